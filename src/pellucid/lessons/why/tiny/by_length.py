"""Translation of the built-in corpus by every form, by the length of the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pellucid.evaluate.corpus import corpus_bleu_score
from pellucid.lessons.why.clock import thread_seconds
from pellucid.lessons.why.setting import Setting
from pellucid.lessons.why.tiny.corpus import draw_corpus
from pellucid.lessons.why.tiny.forms import FORMS, Form, make_form
from pellucid.lessons.why.tiny.learn import train_tiny, translate_tiny
from pellucid.lessons.why.tiny.words import Pair


@dataclass(frozen=True)
class Span:
    """Lengths of sources, in words and marks: from the least to the most."""

    least: int
    most: int

    @property
    def name(self) -> str:
        """The span in words."""
        return f"{self.least} to {self.most}"

    def choose(self, pairs: Sequence[Pair]) -> list[int]:
        """List the places of the pairs whose source has such a length."""
        return [
            place for place, (source, _) in enumerate(pairs)
            if self.least <= len(source.split()) <= self.most
        ]  # fmt: skip


SPANS = (Span(4, 6), Span(7, 9), Span(10, 12), Span(13, 20))


@dataclass(frozen=True)
class Translated:
    """The translations of one form.

    Attributes:
        form: of the model.
        reading: what was equal to the Transformer's training.
        updates: of the Transformer.
        scores: BLEU for each of `SPANS`, one number for each seed.
    """

    form: Form
    reading: str
    updates: int
    scores: tuple[tuple[float, ...], ...]


def measure_corpus(
    setting: Setting, *, sentences: int = 10_000, updates: int = 500, tests: int = 500
) -> list[Translated]:
    """Train every form with as many updates, and again in the Transformer's time.

    Args:
        setting: its seeds, and where to keep cells.
        sentences: of the training text.
        updates: of 64 sentences each.
        tests: new sentences to translate.
    """

    def run(form: Form, seed: int, steps: int) -> dict[str, Any]:
        train = draw_corpus(sentences, seed=seed, part="train")
        test = draw_corpus(tests, seed=seed, part="test")
        tiny = make_form(form, train, seed=seed)
        started = thread_seconds()
        tiny = train_tiny(tiny, train, steps=steps, seed=seed, rate=4e-3)
        seconds = thread_seconds() - started
        written = translate_tiny(tiny, [source for source, _ in test])
        scores = []
        for span in SPANS:
            places = span.choose(test)
            scores.append(
                corpus_bleu_score([written[i] for i in places], [test[i][1] for i in places])
            )
        return {"scores": scores, "seconds": seconds, "updates": steps}

    equal: dict[Form, list[Any]] = {form: [] for form in FORMS}
    timed: dict[Form, list[Any]] = {form: [] for form in FORMS}
    for seed in setting.seeds:
        for form in sorted(FORMS, key=lambda form: form != "Transformer"):
            about = f"{form}, {sentences} sentences, seed {seed}"
            one = setting.cell(
                f"corpus, {about}, {updates} updates",
                partial(run, form, seed, updates),
                is_timed=True,
            )
            equal[form].append(one)
            steps = round(updates * equal["Transformer"][-1]["seconds"] / one["seconds"])
            if form != "Transformer":
                timed[form].append(
                    setting.cell(
                        f"corpus, {about}, in the time of the Transformer's {updates} updates",
                        partial(run, form, seed, steps),
                        is_timed=True,
                    )
                )
    timed["Transformer"] = equal["Transformer"]
    return [
        Translated(
            form, reading, updates,
            tuple(zip(*(one["scores"] for one in runs[form]), strict=True)),
        )
        for reading, runs in (("equal updates", equal), ("equal time", timed))
        for form in FORMS
    ]  # fmt: skip
