"""What a run folder tells about its run. Nothing that is missing or damaged stops the reading."""

from __future__ import annotations

import json
import math
import struct
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid.train.console.summary import count_by_part

__all__ = ["EVENT_WORDS", "RunRecords", "Sample", "read_run", "speeds"]

EVENT_WORDS = (
    "Skipped",
    "Went back",
    "Going on",  # Written by earlier versions.
    "Continuing",
    "Lowered",
    "Stopped",
    "The checkpoint of step",
)
"""How the lines of ``log.txt`` begin that a report shows."""

LARGEST_STEP = 1 << 53
LARGEST_HEADER = 1 << 24

Numbers = Mapping[str, float]
"""One line of ``metrics.jsonl``: what is missing or no number is NaN."""

FIELDS = {
    "train": ("epoch", "seconds", "target_tokens", "loss", "learning_rate", "gradient_norm"),
    "validation": ("seconds", "loss", "bleu", "chrf"),
}


@dataclass(frozen=True)
class Sample:
    """One sentence of the validation text, and what the model made of it after some steps."""

    step: int
    source: str
    reference: str
    translation: str


@dataclass(frozen=True)
class RunRecords:
    """Everything that a run folder holds about its run, in the order of the steps.

    Attributes:
        name: the folder's own name.
        recipe: the resolved recipe by section; empty where it cannot be read.
        recipe_toml: its text.
        train: the ``train`` lines of ``metrics.jsonl``.
        validation: the ``validation`` lines.
        samples: translations of validation sentences.
        events: the lines of the log that begin as `EVENT_WORDS` do.
        manifest: that of the best bundle; of the newest checkpoint before there is one.
        parameters: weights of that model, by part.
    """

    name: str
    recipe: Mapping[str, Mapping[str, Any]]
    recipe_toml: str
    train: tuple[Numbers, ...]
    validation: tuple[Numbers, ...]
    samples: tuple[Sample, ...]
    events: tuple[str, ...]
    manifest: Mapping[str, Any]
    parameters: Mapping[str, int]

    @property
    def best(self) -> Numbers | None:
        """The validation with the highest BLEU, the first of equals; None before there is one."""
        scored = [found for found in self.validation if math.isfinite(found["bleu"])]
        return max(scored, key=lambda found: found["bleu"], default=None)

    @property
    def last_step(self) -> int:
        """The last step that is known of."""
        return int(max((line["step"] for line in (*self.train, *self.validation)), default=0))

    @property
    def seconds(self) -> float:
        """Training time up to there."""
        known = [line["seconds"] for line in (*self.train, *self.validation)]
        return max((seconds for seconds in known if math.isfinite(seconds)), default=0.0)


def read_run(run: Path) -> RunRecords:
    """Read a run folder.

    Lines that are damaged are left out, and so are lines of steps that were made again after the
    run had gone back or was resumed.
    """
    lines = _latest([record for record in _objects(run / "metrics.jsonl") if _is_metric(record)])
    kinds = {
        kind: tuple(_numbers(line, kind) for line in lines if line["kind"] == kind)
        for kind in FIELDS
    }
    samples = _latest([record for record in _objects(run / "samples.jsonl") if _is_sample(record)])
    recipe_toml = _read(run / "recipe.toml")
    model = _model_folder(run)
    return RunRecords(
        name=run.resolve().name,
        recipe=_sections(recipe_toml),
        recipe_toml=recipe_toml,
        train=kinds["train"],
        validation=kinds["validation"],
        samples=tuple(
            Sample(line["step"], line["source"], line["reference"], line["translation"])
            for line in samples
        ),
        events=tuple(
            line for line in _read(run / "log.txt").split("\n") if line.startswith(EVENT_WORDS)
        ),
        manifest=_object(_read(model / "manifest.json")) or {},
        parameters=_count_parameters(model / "model.safetensors"),
    )


def speeds(records: RunRecords) -> list[tuple[int, float]]:
    """Target tokens a second between successive ``train`` lines, padding not counted.

    An interval with a validation in it is left out, unless all have one.

    Returns:
        (step at the end of the interval, tokens a second).
    """
    pauses = [found["step"] for found in records.validation]
    free, all_of_them = [], []
    for before, after in zip(records.train, records.train[1:], strict=False):
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
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file that are JSON objects with a step."""
    for line in _read(path).split("\n"):
        value = _object(line)
        step = None if value is None else value.get("step")
        if value is not None and type(step) is int and 0 <= step < LARGEST_STEP:
            yield value


def _is_metric(record: Mapping[str, Any]) -> bool:
    return record.get("kind") in ("train", "validation")


def _is_sample(record: Mapping[str, Any]) -> bool:
    return all(isinstance(record.get(key), str) for key in ("source", "reference", "translation"))


def _latest(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what was said of steps that were made again later."""
    kept: dict[tuple[int, Any, Any], dict[str, Any]] = {}
    for record in records:
        while kept and next(reversed(kept))[0] > record["step"]:
            kept.popitem()
        kept[record["step"], record.get("kind"), record.get("source")] = record
    return list(kept.values())


def _numbers(line: Mapping[str, Any], kind: str) -> Numbers:
    return {"step": line["step"]} | {name: _number(line.get(name)) for name in FIELDS[kind]}


def _number(value: Any) -> float:
    try:
        return float(value) if type(value) in (int, float) else math.nan
    except OverflowError:
        return math.nan


def _sections(recipe_toml: str) -> dict[str, Mapping[str, Any]]:
    try:
        values = tomllib.loads(recipe_toml)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
    return {name: section for name, section in values.items() if isinstance(section, dict)}


def _model_folder(run: Path) -> Path:
    best = run / "bundle"
    if best.is_dir():
        return best
    return max(run.glob("checkpoints/step-*"), default=best)


def _count_parameters(weights: Path) -> dict[str, int]:
    """Count weights by part from the head of a safetensors file, without reading the weights."""
    try:
        with weights.open("rb") as stream:
            (size,) = struct.unpack("<Q", stream.read(8))
            head = _object(stream.read(min(size, LARGEST_HEADER)).decode("utf-8"))
        shapes = {name: entry["shape"] for name, entry in (head or {}).items()}
        return count_by_part({name: math.prod(shape) for name, shape in shapes.items()})
    except (OSError, struct.error, UnicodeDecodeError, KeyError, TypeError):
        return {}
