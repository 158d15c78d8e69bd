"""Queries, keys and values: what is lost without their matrices, and with matrices left random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pellucid.lessons.why.intervals import interval
from pellucid.lessons.why.result import (
    OBJECTIVES,
    STUDY_NOTES,
    Cell,
    Finding,
    Measurement,
    Panel,
    Plot,
    Series,
    Statement,
    Table,
    Verdict,
)
from pellucid.lessons.why.setting import Setting
from pellucid.lessons.why.tiny.trials import LEARNED, Task, Trial, make_task, trial_cell

WIDTH = 32
NEEDED, SLOWER = 0.05, 1.1

NEEDED_SAYS = Statement(
    OBJECTIVES,
    "",
    "three matrices project the embeddings: without them, relations would be static",
)
VALUES_SAYS = Statement(STUDY_NOTES, "", "values are needed, though the author is not sure why")
LEARNED_SAYS = Statement(
    OBJECTIVES, "", "the matrices are learned, which lets the model find patterns"
)


@dataclass(frozen=True)
class Kind:
    """A way to make queries, keys and values.

    Attributes:
        name: as the table has it.
        short: as the plot has it.
        matrices: of each attention, learned or not, W_O not counted.
        changes: fields of the model's configuration.
        frozen: the matrices that keep their random first weights.
        is_filled: True if the feed-forward layers are wider, so that the parameters are as many.
    """

    name: str
    short: str
    matrices: int
    changes: tuple[tuple[str, str], ...] = ()
    frozen: tuple[str, ...] = ()
    is_filled: bool = False

    def settings(self, task: Task) -> dict[str, Any]:
        """Return the settings for `run_trial`."""
        found: dict[str, Any] = dict(self.changes) | {"frozen": self.frozen}
        if self.is_filled:
            layers = task.num_encoder_layers + 1
            missing = (3 - self.matrices) * (layers + 1) * WIDTH**2
            found["d_ff"] = 2 * WIDTH + round(missing / (2 * WIDTH * layers))
        return found


FULL = Kind("queries, keys, values", "Q, K, V", 3)
KINDS = (
    FULL,
    Kind("queries, keys", "Q, K", 2, (("projections", "qk"),), is_filled=True),
    Kind("embeddings only", "none", 0, (("projections", "none"),), is_filled=True),
    Kind("queries, keys random", "Q, K\nrandom", 3, frozen=("query", "key")),
    Kind("all three random", "all\nrandom", 3, frozen=("query", "key", "value")),
)
_NARROW = (
    Kind("queries, keys, fewer parameters", "Q, K", 2, (("projections", "qk"),)),
    Kind("embeddings only, fewer parameters", "none", 0, (("projections", "none"),)),
)
_TEXTS = {"lists": "lists of animals", "pronouns": "pronouns"}

Trials = dict[str, list[Trial]]
"""The trials of each kind of one text, one for each seed."""


def measure(setting: Setting) -> Measurement:
    """Train models that make queries, keys and values in different ways."""
    kinds = setting.choose(KINDS, KINDS, (*KINDS, *_NARROW))
    names = setting.choose(("lists",), ("lists",), ("lists", "pronouns"))
    found: dict[str, Trials] = {}
    for name in names:
        trials: Trials = {kind.name: [] for kind in kinds}
        for seed in setting.seeds:
            task = make_task(name, setting, seed=seed)  # type: ignore[arg-type]
            for kind in kinds:
                trial = trial_cell(setting, task, kind.name, seed=seed, **kind.settings(task))
                trials[kind.name].append(trial)
        found[name] = trials
    lists = found["lists"]
    whole, bare, still = (
        _updates(lists[kind.name]) for kind in (FULL, KINDS[2], KINDS[4])
    )  # fmt: skip
    return Measurement(
        claim="queries",
        question="Why queries, keys and values?",
        number=f"Lists are learned in {whole} updates with the three matrices, in {bare} with the "
        f"embeddings only and as many parameters, in {still} with three random matrices.",
        method="Tiny models learn lists of two to four animals, such as “the black dog and the "
        "cow”; order and agreement differ between the languages. New lists have four. "
        + ("In a second text the predicate tells which noun “it” is. " if len(names) > 1 else "")
        + "Every attention of a model, in encoder and decoder, makes its queries, keys and values "
        "in the same way. With fewer matrices the feed-forward layers are wider, so that all have "
        "as many parameters. Random matrices keep their first weights. W_O is always learned. "
        f"Learned means a training loss below {LEARNED} nats.",
        findings=(
            Finding(NEEDED_SAYS, judge_needed(found)),
            Finding(VALUES_SAYS, judge_values(found)),
            Finding(LEARNED_SAYS, judge_learned(found)),
        ),
        tables=tuple(_table(name, trials) for name, trials in found.items()),
        plot=_plot(found),
        notes=(
            "A model without the matrices is not without weights between embedding and score: "
            "the embeddings, W_O and the feed-forward layers learn to make vectors whose dot "
            "products are the wanted ones. In one layer without them, relations would be static.",
            "Without W^q and W^k a score is the same in both directions, and highest for a word "
            "itself in most rows: pellucid why diagonal.",
        ),
        to_try=("pellucid attend lets-go", "pellucid why diagonal"),
        seed=setting.seed,
        size=setting.size,
    )


def judge_needed(found: dict[str, Trials]) -> Verdict:
    """Judge by what a model with embeddings only loses."""
    return _judge_loss(
        found, KINDS[2].name, "it is about speed: without the matrices learning is slower"
    )


def judge_values(found: dict[str, Trials]) -> Verdict:
    """Judge by what a model whose keys are its values loses."""
    return _judge_loss(
        found, KINDS[1].name, "it is about speed: with keys as values learning is slower"
    )


def judge_learned(found: dict[str, Trials]) -> Verdict:
    """Judge by what a model with three random matrices loses."""
    return _judge_loss(
        found, KINDS[4].name, "it is about speed: with random matrices learning is slower"
    )


def _judge_loss(found: dict[str, Trials], other: str, condition: str) -> Verdict:
    rule = (
        f"holds if the other model has {100 * NEEDED:.0f} points fewer new sentences right; "
        f"only for speed if it needs {SLOWER} times the updates or more; the mean of the "
        "seeds counts, if all of them agree in its direction"
    )
    is_lost = is_slower = False
    numbers = []
    for name, trials in found.items():
        pairs = list(zip(trials[FULL.name], trials[other], strict=True))
        losses = [one.exact - without.exact for one, without in pairs]
        ratios = [without.updates / one.updates for one, without in pairs]
        is_lost |= fmean(losses) >= NEEDED and min(losses) > 0
        is_slower |= fmean(ratios) >= SLOWER and min(ratios) > 1
        mine, theirs = (
            interval([trial.exact for trial in trials[one]]).mean for one in (FULL.name, other)
        )
        numbers.append(
            f"{_TEXTS[name]}: right {mine:.1%} and {theirs:.1%}, updates × {interval(ratios)}"
        )
    said = "; ".join(numbers)
    if is_lost:
        return Verdict("holds", "", rule, said)
    if is_slower:
        return Verdict("holds only if", condition, rule, said)
    return Verdict("fails", "", rule, said)


def _updates(trials: Sequence[Trial]) -> str:
    return f"{interval([trial.updates for trial in trials]).mean:.0f}"


def _table(name: str, trials: Trials) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for kind, runs in trials.items():
        updates = interval([run.updates for run in runs])
        exact = interval([100 * run.exact for run in runs])
        loss = interval([run.loss for run in runs])
        rows.append((kind, runs[0].parameters, str(updates), str(exact), loss.mean))
    return Table(
        f"Ways to make queries, keys and values: {_TEXTS[name]}",
        ("", "parameters", "updates", "right, %", "loss"),
        ("", ",d", "", "", ".4f"),
        tuple(rows),
    )


def _plot(found: dict[str, Trials]) -> Plot:
    places = tuple(float(place) for place in range(len(KINDS)))

    def series(name: str, trials: Trials, column: str, scale: float, role: str) -> Series:
        found = [
            interval([scale * getattr(run, column) for run in trials[kind.name]]) for kind in KINDS
        ]
        return Series(
            _TEXTS[name], places, tuple(one.mean for one in found), role,  # type: ignore[arg-type]
            tuple(one.low for one in found), tuple(one.high for one in found),
        )  # fmt: skip

    def panel(title: str, label: str, column: str, scale: float) -> Panel:
        roles = ("accent", "plain")
        lines = tuple(
            series(name, trials, column, scale, role)
            for (name, trials), role in zip(found.items(), roles, strict=False)
        )
        ends = (0.0, 105.0) if label == "%" else None
        return Panel(
            title, "what is projected, at equal parameters", label, lines, kind="bars",
            names=tuple(kind.short for kind in KINDS), y_range=ends,
        )  # fmt: skip

    return Plot(
        (
            panel("Updates until the text is learned", "updates", "updates", 1),
            panel("New sentences translated exactly", "%", "exact", 100),
        )
    )
