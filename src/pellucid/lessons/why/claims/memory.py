"""Memory: how far back a recurrent model remembers, with and without attention."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pellucid.corpora import SplitName, make_split
from pellucid.evaluation.corpus_scores import corpus_bleu_score
from pellucid.lessons.why.cells import (
    PERCENT,
    Cells,
    Column,
    decide,
    join_rows,
    judge_seeds,
    measure_cells,
)
from pellucid.lessons.why.clock import thread_seconds
from pellucid.lessons.why.result import Found, Panel, ResultTable, Series, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import FORMS, Form, Pair, make_form, train_tiny, translate_tiny
from pellucid.lessons.why.tiny.random_letters import (
    CHANCE,
    LETTERS,
    Check,
    Course,
    Task,
    study_training,
)

KEPT = 0.9
LOST = 0.5
JUDGED = 20
"""Letters at which the claim is judged: those of a sentence of four words."""
ROWS = 16
UPDATES = "equal updates"
TIME = "the time of the Transformer"
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
    recall = cells.where(task="recall", reading=UPDATES)
    found = Found(
        _say(recall),
        f"Models of equal size, d = 64, read random letters out of {round(1 / CHANCE)}, and "
        "write the first one (recall) or all (copy, each letter after the correct ones before). "
        f"Each length has its own model, which gets {updates} updates with {ROWS} new sequences "
        "each, or fewer if it has learned; 64 others test it. The same training is also read when "
        "it has used as much processor time, on one thread, as the Transformer takes for all "
        "updates.",
        verdicts={"lost": judge_seeds(judge, recall)},
        tables=tuple(_tables(cells)),
        panels=(
            _panel(cells.where(task="recall", reading=UPDATES), "First letter"),
            _panel(cells.where(task="copy", reading=UPDATES), "Copy"),
        ),
    )
    if not setting.is_long:
        return found
    corpus = translate_corpus(setting)
    return found.plus(
        method=" Then all forms learn the built-in corpus, cut into words, in 500 updates of 64 "
        "sentences, or as many as fit into the time of the Transformer, and translate new "
        "sentences of different lengths.",
        tables=[tabulate_corpus(corpus)],
        panels=[_corpus_panel(corpus)],
    )


def _say(recall: Cells) -> str:
    """Say how many first letters are right, at the judged length and at the largest."""
    forms = recall.values("form")
    judged = _judged_length(recall)
    farthest = recall.values("length")[-1]
    shares = [recall.mean("share", form=form, length=judged) for form in forms]
    far = [recall.mean("share", form=form, length=farthest) for form in forms]
    last = recall.where(form="Transformer", length=farthest).rows
    kept = sum(row["share"] >= KEPT for row in last)
    # Between the fixed vector and the Transformer stand the forms with attention, if any.
    attending = ""
    still = ""
    if len(forms) > 2:
        attending = (
            " If attention may look back at every letter, a recurrent network names it in "
            f"{min(shares[1:-1]):.0%}."
        )
        still = (
            f" Of {farthest} letters, a recurrent network with attention names the first in "
            f"{min(far[1:-1]):.0%}."
        )
    return (
        "networks read random letters, and must then name the first. A recurrent network with one "
        f"vector names the first of {judged} letters in {shares[0]:.0%} of the tests. There are "
        f"{round(1 / CHANCE)} different letters, so guessing is right once in {round(1 / CHANCE)} "
        f"times.{attending} A Transformer names it in {shares[-1]:.0%}.{still} With {farthest} "
        f"letters a Transformer was trained for each seed. When training ended, {kept} of "
        f"{len(last)} had learned it, that is, named the first letter in at least {KEPT:.0%} of "
        "the tests"
    )


def judge(recall: Cells) -> Verdict:
    """Judge by the first letters that are right at a length chosen before measuring."""
    forms = recall.values("form")
    lengths = recall.values("length")
    judged = _judged_length(recall)
    last = {form: recall.mean("share", form=form, length=judged) for form in forms}
    # The forms between both ends may agree with either.
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
    reason = (
        f"A recurrent network with one vector names the first of {judged} letters in "
        f"{last['fixed vector']:.0%} of the tests. The letter counts as lost up to {LOST:.0%}. A "
        f"Transformer names it in {last['Transformer']:.0%}."
    )
    if attending:
        reason += f" A recurrent network with attention names it in {min(attending):.0%}."
    reason += (
        f" From {KEPT:.0%} on it counts as kept. How well networks keep the last letters was not "
        "tested."
    )
    all_lose = all(share <= LOST for share in attending)
    all_keep = all(share >= KEPT for share in attending)
    return decide(
        rule,
        numbers,
        reason,
        fails=last["Transformer"] < KEPT
        or last["fixed vector"] > LOST
        or not (all_lose or all_keep),
        unless={"the whole sentence must fit into one vector": not all_lose},
    )


def _judged_length(recall: Cells) -> int:
    lengths: list[int] = recall.values("length")
    # Toy runs have shorter sequences only.
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
        # Every form trains on until it has used the Transformer's time too.
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

    # Its time is needed before the others begin.
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

    rows = []
    for row in cells.rows:
        for reading, share in shares(row).items():
            rows.append({**row, "reading": reading, "share": share})
    return Cells(tuple(rows))


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
        scores = []
        for span in SPANS:
            places = span.choose(test)
            references = [test[i][1] for i in places]
            scores.append(corpus_bleu_score([written[i] for i in places], references))
        return {"scores": scores, "seconds": seconds, "updates": steps}

    def in_equal_time(form: Form, seed: int) -> dict[str, Any]:
        # Processor time of a thread: other programs hardly change it.
        (ours,) = equal.all("seconds", form=form, seed=seed)
        (theirs,) = equal.all("seconds", form="Transformer", seed=seed)
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
    rows = []
    for reading, found in (
        ("equal updates", equal),
        ("equal time", join_rows((timed, equal.where(form="Transformer")))),
    ):
        for row in found.rows:
            by_length = dict(zip(_NAMES, row["scores"], strict=True))
            rows.append({"reading": reading, **row, **by_length})
    return Cells(tuple(rows))


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


def _tables(cells: Cells) -> Iterator[ResultTable]:
    for reading in (UPDATES, TIME):
        for task, title in (("recall", "First letter"), ("copy", "Copied letters")):
            here = cells.where(task=task, reading=reading)
            yield here.table(
                f"{title} right, %, {reading}",
                "length",
                here.columns("form", "share", ".0f", scale=100, over_seeds=".0f"),
                head="letters",
                is_of_this_machine=reading == TIME,
            )


def _panel(cells: Cells, title: str) -> Panel:
    lengths = cells.values("length")
    ends = (float(lengths[0]), float(lengths[-1]))
    return cells.panel(
        title,
        ("letters", "% right"),
        cells.each("form"),
        "length",
        "share",
        scale=100,
        more=[Series("chance", ends, (100 * CHANCE,) * 2, "faint")],
        x_log=True,
        y_range=PERCENT,
    )


def _corpus_panel(corpus: Cells) -> Panel:
    equal = corpus.where(reading="equal updates")
    return equal.panel(
        "Built-in corpus",
        ("words of the source", "BLEU"),
        equal.each("form"),
        range(len(SPANS)),
        "scores",
        names=_NAMES,
    )
