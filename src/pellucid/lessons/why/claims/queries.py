"""Queries, keys and values: what is lost without their matrices, and with matrices left random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from pellucid.lessons.why.cells import Cells, Column, decide, join, measure_cells, write
from pellucid.lessons.why.claim import Found
from pellucid.lessons.why.result import Panel, Verdict
from pellucid.lessons.why.setting import Setting
from pellucid.lessons.why.tiny.trials import LEARNED, Task, make_task, run_trial

WIDTH = 32
NEEDED, SLOWER = 0.05, 1.1


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

    def settings(self, task: Task) -> dict[str, Any]:
        """Return the settings for `run_trial`."""
        found: dict[str, Any] = {**self.changes, "frozen": self.frozen}
        if self.is_filled:
            layers = task.num_encoder_layers + 1
            missing = (3 - self.matrices) * (layers + 1) * WIDTH**2
            found["d_ff"] = 2 * WIDTH + round(missing / (2 * WIDTH * layers))
        return found


ALL, TWO, NONE, RANDOM = (
    "queries, keys, values", "queries, keys", "embeddings only", "all three random"
)  # fmt: skip
EQUAL = {
    ALL: Projections("Q, K, V", 3, {}),
    TWO: Projections("Q, K", 2, {"projections": "qk"}, is_filled=True),
    NONE: Projections("none", 0, {"projections": "none"}, is_filled=True),
    "queries, keys random": Projections("Q, K\nrandom", 3, {}, ("query", "key")),
    RANDOM: Projections("all\nrandom", 3, {}, ("query", "key", "value")),
}
"""Ways with equally many parameters."""
_NARROW = {
    "queries, keys, fewer parameters": Projections("Q, K", 2, {"projections": "qk"}),
    "embeddings only, fewer parameters": Projections("none", 0, {"projections": "none"}),
}
_TEXTS = {"lists": "lists of animals", "pronouns": "pronouns"}


def measure(setting: Setting) -> Found:
    """Train models that make queries, keys and values in different ways."""
    ways = setting.choose(EQUAL, EQUAL, EQUAL | _NARROW)
    texts = setting.choose(("lists",), ("lists",), ("lists", "pronouns"))
    cells = join(_train(setting, text, ways) for text in texts)
    lists = cells.where(text="lists")
    whole, bare, still = (lists.mean("updates", way=way) for way in (ALL, NONE, RANDOM))
    about = "it is about speed: {} learning is slower"
    return Found(
        f"Lists are learned in {whole:.0f} updates with the three matrices, in {bare:.0f} with the "
        f"embeddings only and as many parameters, in {still:.0f} with three random matrices.",
        "Tiny models learn lists of two to four animals, such as “the black dog and the "
        "cow”; order and agreement differ between the languages. New lists have four. "
        + ("In a second text the predicate tells which noun “it” is. " if len(texts) > 1 else "")
        + "Every attention of a model, in encoder and decoder, makes its queries, keys and values "
        "in the same way. With fewer matrices the feed-forward layers are wider, so that all have "
        "as many parameters. Random matrices keep their first weights. W_O is always learned. "
        f"Learned means a training loss below {LEARNED} nats.",
        {
            "needed": judge(cells, NONE, about.format("without the matrices")),
            "values": judge(cells, TWO, about.format("with keys as values")),
            "learned": judge(cells, RANDOM, about.format("with random matrices")),
        },
        tuple(
            cells.where(text=text).table(
                f"Ways to make queries, keys and values: {_TEXTS[text]}",
                "way",
                (Column("parameters", "parameters", ",d", over_seeds="first"),
                 Column("updates", "updates"), Column("right, %", "exact", scale=100),
                 Column("loss", "loss", ".4f", over_seeds="mean")),
            )
            for text in texts
        ),
        (
            _panel(cells, "Updates until the text is learned", "updates", "updates", 1),
            _panel(cells, "New sentences translated exactly", "%", "exact", 100),
        ),
        (
            "A model without the matrices is not without weights between embedding and score: "
            "the embeddings, W_O and the feed-forward layers learn to make vectors whose dot "
            "products are the wanted ones. In one layer without them, relations would be static.",
            "Without W^q and W^k a score is the same in both directions, and highest for a word "
            "itself in most rows: pellucid why diagonal.",
        ),
    )  # fmt: skip


def judge(cells: Cells, other: str, condition: str) -> Verdict:
    """Judge by what a model loses that makes queries, keys and values in another way.

    Args:
        cells: the trainings of all ways.
        other: the way.
        condition: holds if the other model only learns more slowly.
    """
    is_lost = is_slower = False
    numbers = []
    for text in cells.values("text"):
        here = cells.where(text=text)
        mine, theirs = here.where(way=ALL), here.where(way=other)
        losses = [a - b for a, b in zip(mine.all("exact"), theirs.all("exact"), strict=True)]
        ratios = [b / a for a, b in zip(mine.all("updates"), theirs.all("updates"), strict=True)]
        is_lost |= fmean(losses) >= NEEDED and min(losses) > 0
        is_slower |= fmean(ratios) >= SLOWER and min(ratios) > 1
        numbers.append(
            f"{_TEXTS[text]}: right {mine.mean('exact'):.1%} and {theirs.mean('exact'):.1%}, "
            f"updates × {write(ratios)}"
        )
    rule = (
        f"holds if the other model has {100 * NEEDED:.0f} points fewer new sentences right; "
        f"only for speed if it needs {SLOWER} times the updates or more; the mean of the "
        "seeds counts, if all of them agree in its direction"
    )
    return decide(
        rule, "; ".join(numbers), fails=not (is_lost or is_slower), unless={condition: not is_lost}
    )


def _train(setting: Setting, text: Any, ways: Mapping[str, Projections]) -> Cells:
    steps = make_task(text, setting, seed=setting.seed).steps

    def train(way: str, text: Any, seed: int) -> dict[str, float]:
        task = make_task(text, setting, seed=seed)
        return asdict(run_trial(task, seed=seed, **ways[way].settings(task))[0])

    key = f"{{text}}, {{way}}, {steps} updates"
    return measure_cells(setting, key, train, text=(text,), way=ways)


def _panel(cells: Cells, title: str, label: str, name: str, scale: float) -> Panel:
    equal = join(cells.where(way=way) for way in EQUAL)
    bars = tuple(
        equal.bars(_TEXTS[text], "way", name, role, scale=scale, text=text)
        for text, role in zip(cells.values("text"), ("accent", "plain"), strict=False)
    )
    return Panel(
        title, "what is projected, at equal parameters", label, bars, kind="bars",
        names=tuple(way.short for way in EQUAL.values()),
        y_range=(0.0, 105.0) if label == "%" else None,
    )  # fmt: skip
