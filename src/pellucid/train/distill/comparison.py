"""Teacher and student next to each other: quality, size and speed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from safetensors import safe_open

from pellucid.evaluate.corpus import evaluate_corpus
from pellucid.evaluate.form import Form
from pellucid.evaluate.statistics import Scoring
from pellucid.machine.hardware import leave_lasting_objects
from pellucid.translate.translator import Translator

SINGLE_LINES = 40
BULK_LINES = 1000
SECONDS = 2.0
"""Time for which the same sentences are translated again, so that a pause of the machine counts
little."""

MEANINGLESS = 0.5
"""A student below this share of its teacher's BLEU has not learned from it."""


@dataclass(frozen=True)
class Competitor:
    """A model, or several together, to compare.

    Attributes:
        name: ``teacher`` or ``student``.
        translator: translates with it.
        folders: the bundles.
    """

    name: str
    translator: Translator
    folders: Sequence[Path]

    def count(self) -> tuple[int, int]:
        """Count the parameters and the bytes of all weights on disk."""
        parameters = num_bytes = 0
        for folder in self.folders:
            path = folder / "model.safetensors"
            num_bytes += path.stat().st_size
            with safe_open(path, "numpy") as weights:
                names = [name for name in weights.keys() if not name.endswith("weight_scale")]  # noqa: SIM118
                parameters += sum(math.prod(weights.get_slice(n).get_shape()) for n in names)
        return parameters, num_bytes


@dataclass(frozen=True)
class Measured:
    """One model under one search.

    Attributes:
        name: ``teacher`` or ``student``.
        search: such as ``beam 5``.
        precision: of the products: the fastest with which the model loses at most 0.2 BLEU.
        bleu: of the test text.
        low: the lower end of its 95 % interval.
        high: the upper end.
        parameters: of all models together.
        num_bytes: of the weights on disk.
        single: target tokens a second, one sentence at a time.
        bulk: target tokens a second, all sentences together.
    """

    name: str
    search: str
    precision: str
    bleu: float
    low: float
    high: float
    parameters: int
    num_bytes: int
    single: float
    bulk: float

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return asdict(self)


def compare_models(
    competitors: Sequence[Competitor],
    beams: Sequence[int],
    sources: Sequence[str],
    references: Sequence[str],
) -> list[Measured]:
    """Translate a text with every model and every beam.

    The first sentences are translated once before the clock starts. Speeds are the medians of the
    passes of two seconds on this machine, of at least one.

    Args:
        competitors: the models.
        beams: the widths; 1 is greedy search.
        sources: the text.
        references: its translations made by people.
    """
    return [
        _measure(competitor, beam, sources, references)
        for competitor in competitors
        for beam in beams
    ]


def judge_student(rows: Sequence[Measured]) -> str | None:
    """Return a sentence if the student has not learned from its teacher, otherwise None."""
    best = {row.name: max(one.bleu for one in rows if one.name == row.name) for row in rows}
    teacher, student = best["teacher"], best["student"]
    if student >= MEANINGLESS * teacher:
        return None
    return (
        f"The student has not learned from its teacher: BLEU {student:.1f}, the teacher's is "
        f"{teacher:.1f}. Train it longer (--set training.max_steps=…) or make it larger."
    )


def _measure(
    competitor: Competitor, beam: int, sources: Sequence[str], references: Sequence[str]
) -> Measured:
    translator = competitor.translator

    options: dict[str, Any] = {"beam": beam, "sample": False}
    precision = translator.configure(**options).precision

    def translate(lines: Sequence[str]) -> tuple[list[str], int]:
        found = translator.translate(lines, **options)
        return [one.text for one in found], sum(len(one.tokens) for one in found)

    translate(sources[:3])
    with leave_lasting_objects():
        single = _find_speed(lambda: sum(translate([one])[1] for one in sources[:SINGLE_LINES]))
        bulk = _find_speed(lambda: translate(sources[:BULK_LINES])[1])
    texts, _ = translate(sources)
    form = Form.of_model(translator.tokenizer.config)
    score = evaluate_corpus(texts, references, Scoring(form=form)).bleu
    search = "greedy" if beam == 1 else f"beam {beam}"
    return Measured(
        competitor.name, search, precision, score.score, score.low, score.high,
        *competitor.count(), single, bulk,
    )  # fmt: skip


def _find_speed(translate: Callable[[], int]) -> float:
    """Find the tokens a second of something that translates, and returns how many it wrote."""
    speeds: list[float] = []
    begun = time.perf_counter()
    while not speeds or time.perf_counter() - begun < SECONDS:
        started = time.perf_counter()
        num_tokens = translate()
        speeds.append(num_tokens / (time.perf_counter() - started))
    return median(speeds)
