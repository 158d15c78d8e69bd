"""Layer normalization: its place, the learning rate and the depth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pellucid.lessons.why.cells import (
    PERCENT,
    Cells,
    Column,
    average,
    decide,
    judge_seeds,
    measure_cells,
    say_seeds,
)
from pellucid.lessons.why.claims.residual import (
    LEARNED,
    layer_panel,
    layer_table,
    measure_layers,
    train_deep,
)
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting

POST = "post-norm"
PRE = "pre-norm"
NONE = "no norm"
NORMS = {POST: "post", PRE: "pre", NONE: "none"}


def measure(setting: MeasurementSetting) -> Found:
    """Train the same model with the norm in three places, at several learning rates and depths."""
    rates = setting.choose((0.002, 0.008, 0.032), (0.008, 0.032))
    shallow, several = setting.choose((1, 4), (1, 2))
    count, num_tests, steps, every = setting.choose(
        (6000, 200, 200, 1), (60, 7, 4, 1), (6000, 200, 200, 10)
    )

    def train(depth: int, rates: Sequence[float]) -> Cells:
        return measure_cells(
            setting,
            f"training, {{norm}}, {{depth}} layers, rate {{rate:g}}, {steps} updates",
            lambda depth, norm, rate, seed: train_deep(
                count,
                num_tests,
                steps,
                every,
                seed=seed,
                rate=rate,
                depth=depth,
                num_decoder_layers=(depth + 1) // 2,
                norm=NORMS[norm],
            ),
            depth=(depth,),
            norm=NORMS,
            rate=rates,
        )

    deep = train(several, rates)
    flat = train(shallow, setting.choose(rates[1:2], rates[1:2], rates))
    learned = {norm: said for norm, (_, said) in _count_learned(deep).items()}
    fastest = {norm: _say_fastest(deep, norm) for norm in NORMS}
    found = Found(
        f"models of {several} layers were trained on a tiny language, once with each of "
        f"{len(rates)} learning rates and each seed. Learned means that the loss on new sentences "
        f"is below {LEARNED} at the end. With a layer normalization after each layer, as in the "
        f"paper, they learned it in {learned[POST]} trainings. With one before each layer they "
        f"learned it in {learned[PRE]}. Without any they learned it in {learned[NONE]}. How long "
        f"did it take, "
        "until the loss on the sentences of training stayed below that? The fastest of all "
        f"trainings with one after each layer {fastest[POST]}. The fastest with one before each "
        f"layer {fastest[PRE]}. The fastest without any {fastest[NONE]}. Models of one layer"
        f" learned it without any in {_count_learned(flat)[NONE][1]} trainings",
        f"Models of {shallow} and {several} encoder layers and half as many decoder layers, d = "
        f"32, learn {count:,} sentences of a tiny language in {steps} updates with Adam: with the "
        "norm after each residual sum (post), before each sub-layer (pre) or nowhere, at "
        f"{len(rates)} peak learning rates. Weights and text are the same. Learned means a "
        f"loss on new sentences below {LEARNED} nats a word. Updates are counted until the loss of "
        "training stays below that.",
        verdicts={
            "stable": judge_seeds(judge_stable, deep, flat),
            "time": judge_seeds(judge_updates, deep, flat),
        },
        tables=(_table(deep), _table(flat)),
        panels=_panels(deep, rates, every),
    )
    if not setting.is_long:
        return found
    layers = setting.choose(12, 3)
    by_layer = measure_layers(
        setting, layers, {norm: {"norm": place} for norm, place in NORMS.items()}
    )
    return found.plus(
        method=f" The gradient by layer is that of untrained encoders of {layers} layers.",
        tables=[layer_table(by_layer)],
        panels=[layer_panel(by_layer)],
    )


def judge_stable(deep: Cells, flat: Cells) -> Verdict:
    """Judge by the number of trainings that learn, over all learning rates and seeds.

    Args:
        deep: trainings of a model of several layers.
        flat: trainings of a model of one layer.
    """
    learned = _count_learned(deep)
    shallow = _count_learned(flat)
    better = [norm for norm in (POST, PRE) if learned[norm][0] > learned[NONE][0]]
    return decide(
        "stable means that more of the trainings learn than without norms; holds if so with "
        "post-norm and with pre-norm, only for several layers if with one layer no norm learns as "
        "often, fails if with neither",
        ", ".join(f"{norm} {said}" for norm, (_, said) in learned.items())
        + f"; one layer without norms {shallow[NONE][1]}",
        f"Each seed has {len(deep.values('rate'))} trainings, one for each learning rate. How many "
        f"of them learned? With a norm after each layer {_say_learned(deep, POST)}, seed by seed. "
        f"With a norm before each layer {_say_learned(deep, PRE)}. Without norms "
        f"{_say_learned(deep, NONE)}. A norm helps if more learned with it than without. To hold, "
        "both norms must help. And in networks of one layer at least one of them must, too. There "
        f"{shallow[NONE][1]} trainings learned without norms, {shallow[POST][1]} with a norm after "
        f"each layer, and {shallow[PRE][1]} with one before it.",
        fails=not better,
        unless=_needs(better, is_only_deep=shallow[NONE][0] >= max(shallow.values())[0]),
    )


def judge_updates(deep: Cells, flat: Cells) -> Verdict:
    """Judge by the fewest updates until each model had learned, at its best learning rate.

    Args:
        deep: trainings of a model of several layers.
        flat: trainings of a model of one layer.
    """
    fewest = _fewest(deep)
    shallow = _fewest(flat)
    better = [norm for norm in (POST, PRE) if fewest[norm] < fewest[NONE]]
    is_flat_as_fast = shallow[NONE] <= min(shallow[POST], shallow[PRE]) < math.inf
    return decide(
        f"the fewest updates to a loss of {LEARNED} at any of the learning rates; holds if "
        "post-norm and pre-norm need fewer than no norm, only for several layers if they do not "
        "with one layer, fails if neither does",
        ", ".join(f"{norm} {_write(number)}" for norm, number in fewest.items())
        + "; one layer: "
        + ", ".join(map(_write, shallow.values())),
        "After how many updates did the loss on the sentences of training stay below "
        f"{LEARNED}? Of each seed the fastest training counts. With a norm after each layer it "
        f"took {_say_updates(deep, POST)} updates, seed by seed. With a norm before each layer "
        f"{_say_updates(deep, PRE)}. Without norms {_say_updates(deep, NONE)}. To hold, both norms "
        "must take fewer than no norms. And in networks of one layer at least one of them must, "
        f"too. There it took {_say_updates(flat, NONE)} updates without norms, and "
        f"{_say_updates(flat, POST, PRE)} with the faster of the two norms.",
        fails=not better,
        unless=_needs(better, is_only_deep=is_flat_as_fast),
    )


def _each_seed(cells: Cells) -> list[Cells]:
    return [cells.where(seed=seed) for seed in cells.values("seed")]


def _say_learned(cells: Cells, norm: str) -> str:
    """Write how many trainings learned, for each seed."""
    return say_seeds([_count_learned(one)[norm][0] for one in _each_seed(cells)])


def _say_updates(cells: Cells, *norms: str) -> str:
    """Write the fewest updates with one of the norms, for each seed."""
    fewest = [_fewest(one) for one in _each_seed(cells)]
    return say_seeds([min(one[norm] for norm in norms) for one in fewest], ".0f")


def _needs(better: Sequence[str], *, is_only_deep: bool) -> Mapping[str, bool]:
    """State the conditions if the norm helps in one place only, or in deep models only."""
    return {
        "the norm stands before each layer": better == [PRE],
        "the norm stands after each layer": better == [POST],
        "the model has several layers": is_only_deep,
    }


def _say_fastest(cells: Cells, norm: str) -> str:
    """Say how many updates the fastest of all trainings took, at any rate and with any seed."""
    updates = [found for found in cells.all("updates", norm=norm) if found is not None]
    return f"took {min(updates)} updates" if updates else "did not learn it"


def _write(updates: float) -> str:
    return "never" if updates == math.inf else f"{updates:.0f}"


def _count_learned(cells: Cells) -> dict[str, tuple[int, str]]:
    """Count the trainings that learned, at all rates and with all seeds; also of how many."""
    # On new sentences: a training loss may fall by learning by heart.
    losses = {norm: cells.all("test_loss", norm=norm) for norm in NORMS}
    counts = {norm: sum(loss < LEARNED for loss in found) for norm, found in losses.items()}
    return {norm: (count, f"{count} of {len(losses[norm])}") for norm, count in counts.items()}


def average_updates(cells: Cells) -> float:
    """Average the updates until a model had learned; infinite if one seed never did."""
    updates = [row["updates"] for row in cells.rows]
    # One seed that never learned is not balanced by others that did.
    return math.inf if None in updates else round(average(updates))


def _fewest(cells: Cells) -> dict[str, float]:
    return {
        # At its best rate, as no rate is right for all.
        norm: min(
            average_updates(cells.where(norm=norm, rate=rate)) for rate in cells.values("rate")
        )
        for norm in NORMS
    }


def _table(cells: Cells) -> ResultTable:
    (depth,) = cells.values("depth")
    return cells.table(
        f"Training with {'one encoder layer' if depth == 1 else f'{depth} encoder layers'}",
        ("norm", "rate"),
        (
            Column("learned", "updates", over_seeds="count"),
            Column(f"updates to {LEARNED}", "updates"),
            Column("test loss", "test_loss"),
            Column("right, %", "exact", ".0f", 100),
        ),
        head=("", "rate"),
        form="g",
    )


def _panels(deep: Cells, rates: Sequence[float], every: int) -> tuple[Panel, Panel]:
    (depth,) = deep.values("depth")
    middle = deep.where(rate=rates[1])
    return (
        deep.panel(
            f"New sentences right, {depth} encoder layers",
            ("peak learning rate", "%"),
            deep.each("norm"),
            "rate",
            "exact",
            scale=100,
            kind="bars",
            y_range=PERCENT,
        ),
        middle.panel(
            f"Training loss at a rate of {rates[1]:g}",
            ("update", "nats a word"),
            middle.each("norm"),
            middle.updates("losses", every),
            "losses",
            y_log=True,
        ),
    )
