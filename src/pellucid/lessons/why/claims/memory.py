"""Memory: how far back a recurrent model remembers, with and without attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean

from pellucid.lessons.why.over_seeds import line_over_seeds, write_over_seeds
from pellucid.lessons.why.result import (
    NOTES,
    Finding,
    Measurement,
    Panel,
    Plot,
    Statement,
    Table,
    Verdict,
)
from pellucid.lessons.why.setting import Setting
from pellucid.lessons.why.tiny.by_length import SPANS, Translated, measure_corpus
from pellucid.lessons.why.tiny.forms import FORMS, Form, make_form
from pellucid.lessons.why.tiny.letters import CHANCE, LETTERS, Check, Course, Task, study
from pellucid.machine.hardware import describe_machine

KEPT, LOST = 0.9, 0.5
ROWS = 16

SAYS = Statement(
    NOTES,
    "introduction",
    "in recurrent networks, information from earlier tokens is lost in long sequences",
)

Shares = Mapping[tuple[Form, int], Sequence[float]]
"""The share of right letters for each form and length, one number for each seed."""


def measure(setting: Setting) -> Measurement:
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
    equal_updates, equal_time = _read_all(setting, forms, lengths, updates)
    translated = measure_corpus(setting) if setting.size == "full" else []
    recalled = equal_updates["recall"]
    farthest = _judged_length(recalled)
    vector, transformer = (
        fmean(recalled[form, farthest]) for form in ("fixed vector", "Transformer")
    )
    tables = [
        _table(f"{title}, {reading}", shares)
        for reading, found in (
            ("equal updates", equal_updates), ("the time of the Transformer", equal_time)
        )
        for title, shares in (
            ("First letter right, %", found["recall"]), ("Copied letters right, %", found["copy"])
        )
    ]  # fmt: skip
    return Measurement(
        claim="memory",
        question="Is what was read first forgotten?",
        number=f"After {updates} updates on {farthest} letters, a recurrent model that hands over "
        f"one vector names the first letter in {vector:.0%} of the cases (chance is "
        f"{CHANCE:.0%}), the Transformer in {transformer:.0%}.",
        method=f"Models of equal size, d = 64, read random letters out of {round(1 / CHANCE)}, and "
        "write the first one (recall) or all (copy, each letter after the correct ones before). "
        "Each length has its own model, which gets "
        f"{updates} updates with {ROWS} new sequences each, or fewer if it has learned; 64 others "
        "test it. The same training is also read when it has used as much processor time, on one "
        "thread, as the Transformer takes for all updates." + _about_corpus(translated),
        findings=(Finding(SAYS, judge(equal_updates["recall"])),),
        tables=(*tables, *([_corpus_table(translated)] if translated else [])),
        plot=_plot(equal_updates, translated),
        notes=_NOTES,
        to_try=("pellucid why gradients", "pellucid demo --model recurrent"),
        seed=setting.seed,
        size=setting.size,
        machine=describe_machine(),
    )


_NOTES = (
    "With attention the encoder reads in both directions, so the state that it hands over has read "
    "the first letter last. Recall is then easy; copying needs the attention.",
    "A model that has not learned after so many updates may learn with more: the share says what "
    "training made of the vector, not what a vector could hold.",
    "Copying ends at 50 letters: at 400 one update of the additive form takes over a second. "
    "Multi30k is left out: a model that translates it well trains for about half an hour, a form "
    "and seed.",
)


def judge(shares: Shares) -> Verdict:
    """Judge by the first letters that are right at the longest length that can be learned.

    Args:
        shares: of the task recall, after equal updates.
    """
    forms = list(dict.fromkeys(form for form, _ in shares))
    lengths = sorted({length for _, length in shares})
    judged = _judged_length(shares)
    last = {form: fmean(shares[form, judged]) for form in forms}
    recurrent = [form for form in forms if form != "Transformer"]
    attending = [form for form in recurrent if form != "fixed vector"]
    rule = (
        "the length is the longest at which the Transformer keeps the first letters, or the "
        f"longest of all if it never does; lost means that at most {LOST:.0%} of them are right, "
        f"kept that {KEPT:.0%} are; holds if every recurrent form loses them and the Transformer "
        "keeps them, only for a fixed vector if recurrent models with attention keep them too, "
        "fails otherwise"
    )
    numbers = "; ".join(
        f"at {length} letters "
        + ", ".join(f"{form} {fmean(shares[form, length]):.0%}" for form in forms)
        for length in sorted({judged, lengths[-1]})
    )
    kept = [length for length in lengths if fmean(shares["fixed vector", length]) >= KEPT]
    if kept:
        numbers += f"; the fixed vector keeps them up to {kept[-1]}"
    else:
        numbers += "; the fixed vector keeps them at no length"
    if last["Transformer"] < KEPT or last["fixed vector"] > LOST:
        return Verdict("fails", "", rule, numbers)
    if all(last[form] <= LOST for form in recurrent):
        return Verdict("holds", "", rule, numbers)
    if all(last[form] >= KEPT for form in attending):
        condition = "the encoder hands over one vector of fixed length: attention keeps it"
        return Verdict("holds only if", condition, rule, numbers)
    return Verdict("fails", "", rule, numbers)


def _judged_length(shares: Shares) -> int:
    """Find the longest length at which the Transformer keeps the first letters."""
    lengths = sorted({length for _, length in shares})
    kept = [length for length in lengths if fmean(shares["Transformer", length]) >= KEPT]
    return kept[-1] if kept else lengths[-1]


def _read_all(
    setting: Setting,
    forms: Sequence[Form],
    lengths: Mapping[Task, Sequence[int]],
    updates: int,
) -> tuple[Mapping[Task, Shares], Mapping[Task, Shares]]:
    """Train for both tasks, and read the shares after equal updates and in equal time."""
    equal_updates: dict[Task, Shares] = {}
    equal_time: dict[Task, Shares] = {}
    for task in lengths:
        courses = _study_all(setting, task, forms, lengths[task], updates)
        equal_updates[task] = {
            key: [course.after_updates(updates) for course in found]
            for key, found in courses.items()
        }
        equal_time[task] = {
            (form, length): [
                course.after_seconds(updates * reference.pace)
                for course, reference in zip(found, courses["Transformer", length], strict=True)
            ]
            for (form, length), found in courses.items()
        }
    return equal_updates, equal_time


def _study_all(
    setting: Setting, task: Task, forms: Sequence[Form], lengths: Sequence[int], updates: int
) -> dict[tuple[Form, int], list[Course]]:
    """Train every form at every length; the Transformer first, whose time is that of the others."""
    found: dict[tuple[Form, int], list[Course]] = {}
    for length in lengths:
        for form in sorted(forms, key=lambda form: form != "Transformer"):
            found[form, length] = []
            for place, seed in enumerate(setting.seeds):
                paces = [course.pace for course in found["Transformer", length]]
                seconds = 0.0 if form == "Transformer" else updates * paces[place]
                checks = setting.cell(
                    f"{task}, {form}, {length} letters, {updates} updates, seed {seed}",
                    partial(_study, task, form, length, seconds, seed, updates),
                    is_timed=True,
                )
                found[form, length].append(Course(tuple(Check(*check) for check in checks)))
    return {(form, length): found[form, length] for form in forms for length in lengths}


def _study(
    task: Task, form: Form, length: int, seconds: float, seed: int, updates: int
) -> list[tuple[int, float, float]]:
    tiny = make_form(form, LETTERS, seed=seed)
    course = study(
        tiny, task, length, updates=updates, seconds=seconds, seed=seed, rows=ROWS
    )  # fmt: skip
    return [(check.updates, check.seconds, check.share) for check in course.checks]


def _table(title: str, shares: Shares) -> Table:
    forms = list(dict.fromkeys(form for form, _ in shares))
    lengths = sorted({length for _, length in shares})
    return Table(
        title,
        ("letters", *forms),
        ("d", *("" for _ in forms)),
        tuple(
            (length, *(
                write_over_seeds([100 * share for share in shares[form, length]], ".0f")
                for form in forms
            ))
            for length in lengths
        ),
        is_of_this_machine="time" in title,
    )  # fmt: skip


def _corpus_table(translated: Sequence[Translated]) -> Table:
    return Table(
        "BLEU on the built-in corpus by the words of the source",
        ("", "", *(span.name for span in SPANS)),
        ("", "", *("" for _ in SPANS)),
        tuple(
            (one.form, one.reading, *(write_over_seeds(row, ".1f") for row in one.scores))
            for one in translated
        ),
    )


def _about_corpus(translated: Sequence[Translated]) -> str:
    if not translated:
        return ""
    return (
        " Then all forms learn the built-in corpus, cut into words, in "
        f"{translated[0].updates} updates of 64 sentences, or as many as fit into the time of the "
        "Transformer, and translate new sentences of different lengths."
    )


def _plot(equal: Mapping[Task, Shares], translated: Sequence[Translated]) -> Plot:
    roles = {"fixed vector": "accent"}
    panels = []
    for task, title in (("recall", "First letter"), ("copy", "Copy")):
        shares = equal[task]  # type: ignore[index]
        lengths = sorted({length for _, length in shares})
        lines = [
            line_over_seeds(
                form, lengths, [shares[form, length] for length in lengths],
                roles.get(form, "plain"), scale=100, ends=(0, 1),  # type: ignore[arg-type]
            )
            for form in dict.fromkeys(form for form, _ in shares)
        ]  # fmt: skip
        chance = line_over_seeds(
            "chance", (lengths[0], lengths[-1]), [[CHANCE], [CHANCE]], "faint", scale=100
        )
        panels.append(
            Panel(title, "letters", "% right", (*lines, chance), x_log=True, y_range=(0, 105))
        )
    if translated:
        lines = [
            line_over_seeds(
                one.form, range(len(SPANS)), one.scores,
                roles.get(one.form, "plain"), ends=(0, 100),  # type: ignore[arg-type]
            )
            for one in translated if one.reading == "equal updates"
        ]  # fmt: skip
        names = tuple(span.name for span in SPANS)
        panels.append(
            Panel("Built-in corpus", "words of the source", "BLEU", tuple(lines), names=names)
        )
    return Plot(tuple(panels))
