"""Read the history of a run from its folder, as far as files are there and not damaged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from pellucid.config.parsing import read_json_text, read_toml_text
from pellucid.training.console.summary import count_stored

EVENT_STARTS = (
    "Skipped",
    "Went back",
    "Continuing",
    "Lowered",
    "Stopped",
    "The checkpoint of step",
    "Outside the vocabulary",
    "Next:",
)
"""The beginnings of the lines of ``log.txt`` that a report shows."""

LARGEST_STEP = 1 << 53

Numbers = Mapping[str, float]
"""One line of ``metrics.jsonl``; missing values and those that are not numbers are NaN."""

FIELDS = {
    "train": ("epoch", "seconds", "target_tokens", "loss", "learning_rate", "gradient_norm"),
    "validation": ("seconds", "loss", "bleu", "chrf"),
}


@dataclass(frozen=True)
class SampleTranslation:
    """One sentence of the validation text, and its translation after some steps."""

    step: int
    source: str
    reference: str
    translation: str


@dataclass(frozen=True)
class RunHistory:
    """The data of a report, from a run folder, in the order of the steps.

    Attributes:
        name: of the folder.
        recipe: the resolved recipe by section; empty if it cannot be read.
        recipe_toml: its text.
        train: the ``train`` lines of ``metrics.jsonl``.
        validation: the ``validation`` lines.
        samples: translations of validation sentences.
        events: the lines of the log that begin as `EVENT_STARTS` do.
        manifest: of the best bundle; before the first, of the newest checkpoint.
        parameters: weights of that model, by part.
        course: settings of ``[training]`` that were planned again for a time limit.
    """

    name: str
    recipe: Mapping[str, Mapping[str, Any]]
    recipe_toml: str
    train: tuple[Numbers, ...]
    validation: tuple[Numbers, ...]
    samples: tuple[SampleTranslation, ...]
    events: tuple[str, ...]
    manifest: Mapping[str, Any]
    parameters: Mapping[str, int]
    course: Mapping[str, Any]

    @property
    def best(self) -> Numbers | None:
        """The validation of the model that was kept; None before the first validation.

        If the bundle does not tell, it is the first validation with the highest BLEU.
        """
        scored = [line for line in self.validation if math.isfinite(line["bleu"])]
        metrics = self.manifest.get("metrics")
        kept = metrics.get("best_step") if isinstance(metrics, Mapping) else None
        of_kept = (line for line in scored if line["step"] == kept)
        highest = max(scored, key=lambda line: line["bleu"], default=None)
        return next(of_kept, highest)

    @property
    def last_step(self) -> int:
        """The last step that a metric was recorded for."""
        return int(max((line["step"] for line in (*self.train, *self.validation)), default=0))

    @property
    def seconds(self) -> float:
        """Seconds of training until the last recorded step."""
        known = [line["seconds"] for line in (*self.train, *self.validation)]
        return max((seconds for seconds in known if math.isfinite(seconds)), default=0.0)


def read_run(run: Path) -> RunHistory:
    """Read a run folder.

    Damaged lines are left out, and those of steps that were computed again after the run went back
    or was resumed.
    """
    lines = _latest(
        [
            record
            for record in _objects(run / "metrics.jsonl")
            if record.get("kind") in ("train", "validation")
        ]
    )
    kinds = {
        kind: tuple(_numbers(line, kind) for line in lines if line["kind"] == kind)
        for kind in FIELDS
    }
    samples = _latest(
        [
            record
            for record in _objects(run / "samples.jsonl")
            if all(
                isinstance(record.get(key), str) for key in ("source", "reference", "translation")
            )
        ]
    )
    recipe_toml = _read(run / "recipe.toml")
    model = _model_folder(run)
    course = (_object(_read(run / "plan.json")) or {}).get("course")
    return RunHistory(
        name=run.resolve().name,
        recipe=_sections(recipe_toml),
        recipe_toml=recipe_toml,
        train=kinds["train"],
        validation=kinds["validation"],
        samples=tuple(
            SampleTranslation(line["step"], line["source"], line["reference"], line["translation"])
            for line in samples
        ),
        events=tuple(
            line for line in _read(run / "log.txt").split("\n") if line.startswith(EVENT_STARTS)
        ),
        manifest=_object(_read(model / "manifest.json")) or {},
        parameters=count_stored(model / "model.safetensors"),
        course=course if isinstance(course, dict) else {},
    )


def speeds(history: RunHistory) -> list[tuple[int, float]]:
    """Compute target tokens per second between ``train`` lines, padding not counted.

    An interval with a validation in it is left out, unless all have one.

    Returns:
        (step at the end of the interval, tokens per second).
    """
    pauses = [line["step"] for line in history.validation]
    free = []
    all_of_them = []
    for before, after in pairwise(history.train):
        seconds = after["seconds"] - before["seconds"]
        if not seconds > 0:
            continue
        point = int(after["step"]), (after["target_tokens"] - before["target_tokens"]) / seconds
        all_of_them.append(point)
        if not any(before["step"] <= pause < after["step"] for pause in pauses):
            free.append(point)
    return free or all_of_them


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return ""


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = read_json_text(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file that are JSON objects with a step."""
    for line in _read(path).split("\n"):
        value = _object(line)
        step = None if value is None else value.get("step")
        if value is not None and type(step) is int and 0 <= step < LARGEST_STEP:
            yield value


def _latest(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop records of steps that were computed again later."""
    latest: dict[tuple[int, Any, Any], dict[str, Any]] = {}
    for record in records:
        while latest and next(reversed(latest))[0] > record["step"]:
            latest.popitem()
        latest[record["step"], record.get("kind"), record.get("source")] = record
    return list(latest.values())


def _numbers(line: Mapping[str, Any], kind: str) -> Numbers:
    return {"step": line["step"]} | {name: _number(line.get(name)) for name in FIELDS[kind]}


def _number(value: Any) -> float:
    try:
        return float(value) if type(value) in (int, float) else math.nan
    except OverflowError:
        return math.nan


def _sections(recipe_toml: str) -> dict[str, Mapping[str, Any]]:
    try:
        values = read_toml_text(recipe_toml)
    except ValueError:
        return {}
    return {name: section for name, section in values.items() if isinstance(section, dict)}


def _model_folder(run: Path) -> Path:
    best = run / "bundle"
    if best.is_dir():
        return best
    return max(run.glob("checkpoints/step-*"), default=best)
