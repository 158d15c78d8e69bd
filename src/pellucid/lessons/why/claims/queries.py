"""Queries, keys and values: what is lost without their matrices, and with matrices left random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pellucid.lessons.why.cells import (
    PERCENT,
    Cells,
    Column,
    decide,
    each_seed,
    join_rows,
    judge_seeds,
    measure_cells,
    say_seeds,
    write,
)
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.trials import LEARNED, TextToLearn, make_task, run_trial

WIDTH = 32
NEEDED = 0.05
"""A matrix is needed if so many fewer of the new sentences are right without it."""


@dataclass(frozen=True)
class Projections:
    """A way to make queries, keys and values.

    Attributes:
        short: its name in the plot.
        matrices: of each attention, learned or not, W_O not counted.
        changes: fields of the model's configuration.
        frozen: the matrices that keep their random first weights.
        is_filled: True if the feed-forward layers are wider, so that the parameters are as many.
    """

    short: str
    matrices: int
    changes: Mapping[str, str]
    frozen: tuple[str, ...] = ()
    is_filled: bool = False

    def settings(self, task: TextToLearn) -> dict[str, Any]:
        """Return the settings for `run_trial`."""
        found: dict[str, Any] = {**self.changes, "frozen": self.frozen}
        if self.is_filled:
            layers = task.num_encoder_layers + 1
            # Each decoder layer has two attentions, so there is one more than layers.
            missing = (3 - self.matrices) * (layers + 1) * WIDTH**2
            found["d_ff"] = 2 * WIDTH + round(missing / (2 * WIDTH * layers))
        return found


ALL = "queries, keys, values"
TWO = "queries, keys"
NONE = "embeddings only"
RANDOM = "all three random"
EQUAL = {
    ALL: Projections("Q, K, V", 3, {}),
    TWO: Projections("Q, K", 2, {"projections": "qk"}, is_filled=True),
    NONE: Projections("none", 0, {"projections": "none"}, is_filled=True),
    "queries, keys random": Projections("Q, K\nrandom", 3, {}, ("query", "key")),
    RANDOM: Projections("all\nrandom", 3, {}, ("query", "key", "value")),
}
"""Ways with the same number of parameters."""
_NARROW = {
    "queries, keys, fewer parameters": Projections("Q, K", 2, {"projections": "qk"}),
    "embeddings only, fewer parameters": Projections("none", 0, {"projections": "none"}),
}
_SAID = {
    TWO: "without the matrix of the values",
    NONE: "without the three matrices",
    RANDOM: "with matrices that keep the random numbers that they begin with",
}
"""Ways in a sentence."""
_ALONE = (
    "Static is read as: decided by the embeddings only. In one attention and nothing else this "
    "needs no measurement: without the matrices, the score of two words is the product of their "
    "embeddings. In a whole model it should lead to worse translations. "
)
_TEXTS = {"lists": "lists of animals", "pronouns": "sentences with pronouns"}


def measure(setting: MeasurementSetting) -> Found:
    """Train models that make queries, keys and values in different ways."""
    ways = setting.choose(EQUAL, EQUAL, EQUAL | _NARROW)
    texts = setting.choose(("lists",), ("lists",), ("lists", "pronouns"))
    cells = join_rows(_train(setting, text, ways) for text in texts)
    lists = cells.where(text="lists")
    right = {way: f"{lists.mean('exact', way=way):.0%}" for way in (ALL, TWO, NONE)}
    random = say_seeds(lists.all("exact", way=RANDOM), ".0%")
    return Found(
        "there, without the three matrices, the score of a pair such as river and bank is the "
        "product of their embeddings. So nothing else decides it, and river looks at bank as much "
        "as bank at river. With the matrices, training can change the score and leave the "
        "embeddings as they are, and river may look at bank but not bank at river. But in a whole "
        "model the other layers can take over the work of the matrices. Tiny translators learned "
        "lists of animals, and others learned sentences with pronouns, which are in the table. "
        "In those without a matrix the feed-forward layers are wider, so that all have the same "
        "number of parameters. With all three matrices, they translate "
        f"{right[ALL]} of new lists correctly. Without the matrix of the values they translate "
        f"{right[TWO]} correctly. Without any of the three they translate {right[NONE]} "
        f"correctly. Less than {100 * NEEDED:.0f} points count as no difference. If the three keep "
        f"the random numbers that they begin with, {random} of the lists are right, seed by seed",
        "Tiny models learn lists of two to four animals, such as “the black dog and the "
        "cow”; order and agreement differ between the languages. New lists have four. "
        "In a text of pronouns the predicate tells which noun “it” is. "
        "Every attention of a model, in encoder and decoder, makes its queries, keys and values "
        "in the same way. With fewer matrices the feed-forward layers are wider, so that all have "
        "the same number of parameters. Random matrices keep their first weights. W_O is always "
        "learned. "
        f"Learned means a training loss below {LEARNED} nats.",
        {
            "needed": judge_seeds(
                lambda one: judge(one, NONE, "one attention and nothing else"), cells
            ),
            "values": judge_seeds(lambda one: judge(one, TWO), cells),
            "learned": judge_seeds(lambda one: judge(one, RANDOM), cells),
        },
        tuple(_table(cells, text) for text in texts),
        (
            _panel(cells, "Updates until the text is learned", "updates", "updates", 1),
            _panel(cells, "New sentences translated exactly", "%", "exact", 100),
        ),
    )


def judge(cells: Cells, other: str, alone: str = "") -> Verdict:
    """Judge by what a model loses that makes queries, keys and values in another way.

    Args:
        cells: the trainings of all ways.
        other: the way.
        alone: where the claim holds by arithmetic, whatever a whole model makes up for.
    """
    numbers = []
    is_lost = False
    for text in cells.values("text"):
        mine = cells.mean("exact", text=text, way=ALL)
        theirs = cells.mean("exact", text=text, way=other)
        # One text that suffers is enough.
        is_lost |= mine - theirs >= NEEDED
        before = cells.all("updates", text=text, way=ALL)
        after = cells.all("updates", text=text, way=other)
        ratios = write([b / a for a, b in zip(before, after, strict=True)])
        numbers.append(
            f"{_TEXTS[text]}: right {mine:.1%} and {theirs:.1%}, updates × {ratios}",
        )
    rule = (
        f"holds if the other model has {100 * NEEDED:.0f} points fewer new sentences right in some "
        "text, fails otherwise"
    )
    if alone:
        rule += f"; for {alone} it holds anyway: x·x of two embeddings depends on nothing else"
    shares = "".join(_say_shares(cells.where(text=text), other) for text in cells.values("text"))
    reason = (
        f"{_ALONE * bool(alone)}Tiny translators were trained {_SAID[other]}.{shares} To hold, at "
        f"least {100 * NEEDED:.0f} points fewer must be right than with trained matrices, in "
        "one of the texts."
    )
    return decide(
        rule,
        "; ".join(numbers),
        reason,
        fails=not is_lost and not alone,
        unless={f"the model is {alone}": not is_lost},
    )


def _say_shares(cells: Cells, other: str) -> str:
    """Say how much of a text is right without the matrices and with them, for each seed."""
    (text,) = cells.values("text")
    theirs, mine = (say_seeds(cells.all("exact", way=way), ".1%") for way in (other, ALL))
    return (
        f" {each_seed(theirs)}, {theirs} of new {_TEXTS[text]} are right. With all three matrices "
        f"trained it is {mine}."
    )


def _train(setting: MeasurementSetting, text: Any, ways: Mapping[str, Projections]) -> Cells:
    steps = make_task(text, setting, seed=setting.seed).steps

    def train(way: str, text: Any, seed: int) -> dict[str, float]:
        task = make_task(text, setting, seed=seed)
        return asdict(run_trial(task, seed=seed, **ways[way].settings(task))[0])

    key = f"{{text}}, {{way}}, {steps} updates"
    return measure_cells(setting, key, train, text=(text,), way=ways)


def _table(cells: Cells, text: str) -> ResultTable:
    return cells.where(text=text).table(
        f"Ways to make queries, keys and values: {_TEXTS[text]}",
        "way",
        (
            Column("parameters", "parameters", ",d", over_seeds="first"),
            Column("updates", "updates"),
            Column("right, %", "exact", scale=100),
            Column("loss", "loss", ".4f", over_seeds="mean"),
        ),
    )


def _panel(cells: Cells, title: str, label: str, name: str, scale: float) -> Panel:
    equal = join_rows(cells.where(way=way) for way in EQUAL)
    return equal.panel(
        title,
        ("what is projected, at equal parameters", label),
        {_TEXTS[text]: {"text": text} for text in cells.values("text")},
        "way",
        name,
        scale=scale,
        kind="bars",
        names=tuple(way.short for way in EQUAL.values()),
        y_range=PERCENT if label == "%" else None,
    )
