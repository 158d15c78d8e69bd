"""Memory: how far back a recurrent model remembers, with and without attention."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pellucid.corpora import SplitName, make_split
from pellucid.evaluate.corpus_scores import corpus_bleu_score
from pellucid.lessons.why.cells import Cells, Column, decide, join_rows, judge_seeds, measure_cells
from pellucid.lessons.why.claim import Found
from pellucid.lessons.why.clock import thread_seconds
from pellucid.lessons.why.result import Panel, ResultTable, Series, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import train_tiny, translate_tiny
from pellucid.lessons.why.tiny.random_letters import (
    CHANCE,
    LETTERS,
    Check,
    Course,
    Task,
    study_training,
)
from pellucid.lessons.why.tiny.tiny_models import FORMS, Form, make_form
from pellucid.lessons.why.tiny.tiny_vocabulary import Pair

KEPT, LOST = 0.9, 0.5
JUDGED = 20
"""Letters at which the claim is judged: those of a sentence of four words."""
ROWS = 16
UPDATES, TIME = "equal updates", "the time of the Transformer"
_WORD = re.compile(r"\w+|[^\w\s]")


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
            place
            for place, (source, _) in enumerate(pairs)
            if self.least <= len(source.split()) <= self.most
        ]


SPANS = (Span(4, 6), Span(7, 9), Span(10, 12), Span(13, 20))
_NAMES = tuple(span.name for span in SPANS)


def measure(setting: MeasurementSetting) -> Found:
    """Teach letters of many lengths to every form, and translate the corpus in the long form."""
    forms: tuple[Form, ...] = setting.choose(
        ("fixed vector", "additive", "Transformer"), ("fixed vector", "Transformer"), tuple(FORMS)
    )
    lengths: dict[Task, tuple[int, ...]] = setting.choose(
        {"recall": (5, 20, 50), "copy": (5, 20)},
        {"recall": (2, 3), "copy": (2, 3)},
        {"recall": (5, 10, 20, 50, 100, 400), "copy": (5, 10, 20, 50)},
    )
    updates = setting.choose(300, 4)
    cells = _read(
        join_rows(_study(setting, task, forms, lengths[task], updates) for task in lengths), updates
    )
    corpus = translate_corpus(setting) if setting.is_long else None
    recall = cells.where(task="recall", reading=UPDATES)
    judged, farthest = _judged_length(recall), recall.values("length")[-1]
    last = recall.where(form="Transformer", length=farthest).rows
    kept = sum(row["share"] >= KEPT for row in last)
    shares = [recall.mean("share", form=form, length=judged) for form in forms]
    far = [recall.mean("share", form=form, length=farthest) for form in forms]
    attending = (
        f"one that may look back at every letter (attention) names it in {min(shares[1:-1]):.0%}, "
        if shares[1:-1]
        else ""
    )
    still = f"attention still reaches {min(far[1:-1]):.0%}, and " if far[1:-1] else ""
    return Found(
        f"a network that reads letter by letter into one vector names the first of {judged} "
        f"letters in {shares[0]:.0%} of the cases (guessing: {CHANCE:.0%}); {attending}a "
        f"Transformer in {shares[-1]:.0%}. With {farthest} letters {still}{kept} of {len(last)} "
        "Transformers had learned it when training ended.",
        f"Models of equal size, d = 64, read random letters out of {round(1 / CHANCE)}, and "
        "write the first one (recall) or all (copy, each letter after the correct ones before). "
        f"Each length has its own model, which gets {updates} updates with {ROWS} new sequences "
        "each, or fewer if it has learned; 64 others test it. The same training is also read when "
        "it has used as much processor time, on one thread, as the Transformer takes for all "
        "updates." + (_ABOUT_CORPUS if corpus else ""),
        {"lost": judge_seeds(judge, recall)},
        (
            *(
                cells.where(task=task, reading=reading).table(
                    f"{title} right, %, {reading}",
                    "length",
                    [
                        Column(form, "share", ".0f", 100, {"form": form}, over_seeds=".0f")
                        for form in forms
                    ],
                    head="letters",
                    is_of_this_machine=reading == TIME,
                )
                for reading in (UPDATES, TIME)
                for task, title in (("recall", "First letter"), ("copy", "Copied letters"))
            ),
            *((tabulate_corpus(corpus),) if corpus else ()),
        ),
        tuple(_panels(cells.where(reading=UPDATES), corpus, forms)),
        (
            "With attention the encoder reads in both directions, so the state that it hands over "
            "has read the first letter last. Recall is then easy; copying needs the attention.",
            "A model that has not learned after so many updates may learn with more: the share "
            "says what training made of the vector, not what a vector could hold.",
            "Copying ends at 50 letters: at 400 one update of the additive form takes over a "
            "second. Multi30k is left out: to translate it well, a model must train for about "
            "half an hour, for each form and seed.",
        ),
    )


_ABOUT_CORPUS = (
    " Then all forms learn the built-in corpus, cut into words, in 500 updates of 64 sentences, or "
    "as many as fit into the time of the Transformer, and translate new sentences of different "
    "lengths."
)


def judge(recall: Cells) -> Verdict:
    """Judge by the first letters that are right at a length chosen before measuring."""
    forms, lengths, judged = recall.values("form"), recall.values("length"), _judged_length(recall)
    last = {form: recall.mean("share", form=form, length=judged) for form in forms}
    attending = [last[form] for form in forms if form not in ("fixed vector", "Transformer")]
    numbers = "; ".join(
        f"at {length} letters "
        + ", ".join(
            f"{form} {recall.mean('share', form=form, length=length):.0%}" for form in forms
        )
        for length in sorted({judged, lengths[-1]})
    )
    rule = (
        f"judged at {judged} letters; lost means that at most {LOST:.0%} of the first ones are "
        f"right, kept that {KEPT:.0%} are; holds if every recurrent form loses them and the "
        "Transformer keeps them, only for one vector if recurrent models with attention keep "
        "them too, fails otherwise"
    )
    all_lose = all(share <= LOST for share in attending)
    all_keep = all(share >= KEPT for share in attending)
    return decide(
        rule,
        numbers,
        fails=last["Transformer"] < KEPT
        or last["fixed vector"] > LOST
        or not (all_lose or all_keep),
        unless={"the whole sentence must fit into one vector": not all_lose},
    )


def _judged_length(recall: Cells) -> int:
    lengths: list[int] = recall.values("length")
    return JUDGED if JUDGED in lengths else lengths[-1]


def _study(
    setting: MeasurementSetting,
    task: Task,
    forms: Sequence[Form],
    lengths: Sequence[int],
    updates: int,
) -> Cells:
    """Train every form at every length; the Transformer first, whose time is that of the others."""

    def run(form: Form, length: int, seed: int) -> list[tuple[int, float, float]]:
        tiny = make_form(form, LETTERS, seed=seed)
        seconds = 0.0 if form == "Transformer" else updates * _pace(first, length, seed)
        course = study_training(
            tiny, task, length, updates=updates, seconds=seconds, seed=seed, rows=ROWS
        )
        return [(check.updates, check.seconds, check.share) for check in course.checks]

    def cells_of(forms: Sequence[Form]) -> Cells:
        return measure_cells(
            setting,
            f"{{task}}, {{form}}, {{length}} letters, {updates} updates",
            lambda task, form, length, seed: run(form, length, seed),
            read=lambda checks: {"course": Course(tuple(Check(*check) for check in checks))},
            is_timed=True,
            task=(task,),
            form=forms,
            length=lengths,
        )

    first = cells_of(("Transformer",))
    return join_rows((cells_of([form for form in forms if form != "Transformer"]), first))


def _pace(cells: Cells, length: int, seed: int) -> float:
    (row,) = cells.where(form="Transformer", length=length, seed=seed).rows
    course: Course = row["course"]
    return course.pace


def _read(cells: Cells, updates: int) -> Cells:
    """Read the shares after equal updates and in equal time."""

    def shares(row: Mapping[str, Any]) -> dict[str, float]:
        pace = _pace(cells.where(task=row["task"]), row["length"], row["seed"])
        course: Course = row["course"]
        return {UPDATES: course.after_updates(updates), TIME: course.after_seconds(updates * pace)}

    return Cells(
        tuple(
            {**row, "reading": reading, "share": share}
            for row in cells.rows
            for reading, share in shares(row).items()
        )
    )


def translate_corpus(
    setting: MeasurementSetting, *, sentences: int = 10_000, updates: int = 500, tests: int = 500
) -> Cells:
    """Train every form on the built-in corpus with as many updates, and in the Transformer's time.

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
        scores = [
            corpus_bleu_score([written[i] for i in places], [test[i][1] for i in places])
            for places in (span.choose(test) for span in SPANS)
        ]
        return {"scores": scores, "seconds": seconds, "updates": steps}

    def in_equal_time(form: Form, seed: int) -> dict[str, Any]:
        ours, theirs = (
            equal.where(form=one, seed=seed).all("seconds")[0] for one in (form, "Transformer")
        )
        return run(form, seed, round(updates * theirs / ours))

    key = f"corpus, {{form}}, {sentences} sentences, seed {{seed}}, "
    equal = measure_cells(
        setting,
        f"{key}{updates} updates",
        lambda form, seed: run(form, seed, updates),
        is_timed=True,
        form=FORMS,
    )
    timed = measure_cells(
        setting,
        f"{key}in the time of the Transformer's {updates} updates",
        in_equal_time,
        is_timed=True,
        form=[form for form in FORMS if form != "Transformer"],
    )
    return Cells(
        tuple(
            {"reading": reading, **row, **dict(zip(_NAMES, row["scores"], strict=True))}
            for reading, found in (
                ("equal updates", equal),
                ("equal time", join_rows((timed, equal.where(form="Transformer")))),
            )
            for row in found.rows
        )
    )


def draw_corpus(count: int, *, seed: int, part: SplitName) -> list[Pair]:
    """Draw sentences of the built-in corpus in small letters, a space around each mark.

    Args:
        count: the number of sentences.
        seed: of the draws.
        part: of the corpus; no sentence is in two of them.
    """
    return [
        (_cut(example.source), _cut(example.target))
        for example in make_split(part, seed=seed, count=count)
    ]


def _cut(sentence: str) -> str:
    return " ".join(_WORD.findall(sentence.lower()))


def tabulate_corpus(corpus: Cells) -> ResultTable:
    """Tabulate BLEU by form and by the length of the source."""
    return corpus.table(
        "BLEU on the built-in corpus by the words of the source",
        ("form", "reading"),
        [Column(name, name, ".1f", over_seeds=".1f") for name in _NAMES],
    )


def _panels(cells: Cells, corpus: Cells | None, forms: Sequence[Form]) -> Iterator[Panel]:
    roles = {form: "accent" if form == "fixed vector" else "plain" for form in forms}
    for task, title in (("recall", "First letter"), ("copy", "Copy")):
        here = cells.where(task=task)
        ends = float(here.values("length")[0]), float(here.values("length")[-1])
        lines = [
            here.line(form, "length", "share", roles[form], scale=100, form=form) for form in forms
        ]
        chance = Series("chance", ends, (100 * CHANCE,) * 2, "faint")
        yield Panel(title, "letters", "% right", (*lines, chance), x_log=True, y_range=(0, 105))
    if corpus:
        lines = [
            corpus.line(
                form, range(len(SPANS)), "scores", roles[form], form=form, reading="equal updates"
            )
            for form in forms
        ]
        yield Panel("Built-in corpus", "words of the source", "BLEU", tuple(lines), names=_NAMES)
