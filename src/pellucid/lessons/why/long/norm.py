"""Layer normalization at full length: its place, the learning rate and the depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pellucid.lessons.why.claims.norm import (
    LEARNED,
    NAMES,
    PLACES,
    STABLE_SAYS,
    TIME_SAYS,
    Course,
    judge_stable,
    judge_time,
)
from pellucid.lessons.why.long.gradients import gradient_by_layer
from pellucid.lessons.why.long.sums import mean, series_of, thin, updates_until, write
from pellucid.lessons.why.result import Cell, Finding, Measurement, Panel, Plot, Table
from pellucid.lessons.why.setting import Setting
from pellucid.lessons.why.tiny.learn import count_exact, loss_on, make_tiny, train_tiny
from pellucid.lessons.why.tiny.sentences import draw_statements

EVERY = 10
FAR_OFF = 99.0
"""Loss that a training without a finite one is given, in nats a word."""
Taught = dict[tuple[str, float, int], list[dict[str, Any]]]


def measure(setting: Setting) -> Measurement:
    """Train with the norm in three places, at several learning rates and depths."""
    rates = setting.choose((0.002, 0.008, 0.032), (0.008, 0.032))
    depths = setting.choose((1, 4), (1, 2))
    steps = setting.choose(200, 4)
    layers = setting.choose(12, 3)
    by_layer = {
        norm: [_by_layer(norm, layers, seed, setting) for seed in setting.seeds] for norm in PLACES
    }
    taught: Taught = {
        (norm, rate, depth): [
            _teach(norm, rate, depth, steps, seed, setting) for seed in setting.seeds
        ]
        for depth in depths
        for norm in PLACES
        for rate in rates
    }
    courses = {
        depth: [average_course(norm, rate, taught[norm, rate, depth])
                for norm in PLACES for rate in rates]
        for depth in depths
    }  # fmt: skip
    flat, deep = courses[depths[0]], courses[depths[-1]]
    right = {
        norm: max(one.exact for one in deep if one.norm == norm) for norm in PLACES
    }  # fmt: skip
    return Measurement(
        claim="norm",
        question="Does layer normalization stabilize and shorten training?",
        number=f"With {depths[-1]} encoder layers and the best of {len(rates)} learning rates, "
        f"{right['post']:.0%} of new sentences are right with post-norm, {right['pre']:.0%} with "
        f"pre-norm and {right['none']:.0%} without norms.",
        method=f"Models of {' and '.join(map(str, depths))} encoder layers and half as many "
        f"decoder layers, d = 32, learn a tiny language in {steps} updates with Adam: with the "
        "norm after each residual sum (post), before each sub-layer (pre) or nowhere, at "
        f"{len(rates)} peak learning rates. Learned means a training loss that stays below "
        f"{LEARNED} nats a word. The gradient by layer is that of untrained encoders of {layers} "
        "layers.",
        findings=(
            Finding(STABLE_SAYS, judge_stable(deep, flat)),
            Finding(TIME_SAYS, judge_time(deep, flat)),
        ),
        tables=(
            *(_training_table(depth, taught, rates) for depth in reversed(depths)),
            _layer_table(by_layer, layers),
        ),
        plot=_plot(by_layer, layers, taught, rates, depths[-1]),
        notes=(
            "A norm re-scales and re-centers the vectors of the forward pass, and through them the "
            "gradients. The notes say that it normalizes the gradients themselves.",
            "A rate counts as learned if all seeds learned at it; updates are those of all seeds "
            "on average.",
        ),
        to_try=("pellucid why residual", "pellucid attend show-me-the-money"),
        seed=setting.seed,
        size=setting.size,
    )


def average_course(norm: str, rate: float, found: Sequence[dict[str, Any]]) -> Course:
    """Sum up the trainings of all seeds: learned only if each learned."""
    updates = [one["updates"] for one in found]
    return Course(
        norm,
        rate,
        max(one["test_loss"] for one in found),
        mean([one["exact"] for one in found]),
        None if None in updates else round(mean(updates)),
    )


def _by_layer(norm: str, layers: int, seed: int, setting: Setting) -> list[float]:
    count = setting.choose(6000, 60)
    found: list[float] = setting.cell(
        f"gradient by layer and with one layer only, {NAMES[norm]}, {layers} layers, seed {seed}",
        lambda: gradient_by_layer(
            draw_statements(count, seed=seed, part="train")[:32], layers, {"norm": norm}, seed=seed
        ),
    )
    return found


def _teach(
    norm: str, rate: float, depth: int, steps: int, seed: int, setting: Setting
) -> dict[str, Any]:
    def train() -> dict[str, Any]:
        pairs = draw_statements(setting.choose(6000, 60), seed=seed, part="train")
        test = draw_statements(setting.choose(200, 5), seed=seed, part="test")
        tiny = make_tiny(
            [*pairs, *test], seed=seed, norm=norm, d_model=32, d_ff=64, num_heads=2,
            num_encoder_layers=depth, num_decoder_layers=(depth + 1) // 2,
        )  # fmt: skip
        tiny = train_tiny(tiny, pairs, steps=steps, seed=seed, rate=rate)
        # No number larger than these, nor one that is not a number, which JSON lacks.
        losses = [min(loss, FAR_OFF) for loss in tiny.losses]
        test_loss = loss_on(tiny, test)
        return {
            "losses": thin(losses, EVERY),
            "updates": updates_until(losses, LEARNED),
            "test_loss": test_loss if test_loss < FAR_OFF else FAR_OFF,
            "exact": count_exact(tiny, test),
        }

    found: dict[str, Any] = setting.cell(
        f"training, {NAMES[norm]}, {depth} layers, rate {rate:g}, {steps} updates, seed {seed}",
        train,
    )
    return found


def _training_table(depth: int, taught: Taught, rates: Sequence[float]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for norm in PLACES:
        for rate in rates:
            found = taught[norm, rate, depth]
            learned = [one["updates"] for one in found if one["updates"] is not None]
            rows.append(
                (
                    NAMES[norm], rate, f"{len(learned)} of {len(found)}", write(learned),
                    write([one["test_loss"] for one in found]),
                    write([one["exact"] for one in found], scale=100),
                )
            )  # fmt: skip
    layers = "one encoder layer" if depth == 1 else f"{depth} encoder layers"
    return Table(
        f"Training with {layers}",
        ("", "rate", "learned", f"updates to {LEARNED}", "test loss", "right, %"),
        ("", "g", "", "", "", ""),
        tuple(rows),
    )


def _layer_table(by_layer: dict[str, list[list[float]]], layers: int) -> Table:
    return Table(
        f"Before training, gradient in each layer of {layers} (1 in an encoder of one)",
        ("layer", *(NAMES[norm] for norm in PLACES)),
        ("d", "", "", ""),
        tuple(
            (layer + 1, *(write([one[layer] for one in by_layer[norm]]) for norm in PLACES))
            for layer in range(layers)
        ),
    )


def _plot(
    by_layer: dict[str, list[list[float]]],
    layers: int,
    taught: Taught,
    rates: Sequence[float],
    depth: int,
) -> Plot:
    def role(norm: str) -> Any:
        return "accent" if norm == "post" else "plain"

    right = Panel(
        f"New sentences right, {depth} encoder layers", "peak learning rate", "%",
        tuple(
            series_of(NAMES[norm], range(len(rates)),
                      [[one["exact"] for one in taught[norm, rate, depth]] for rate in rates],
                      role(norm), scale=100)
            for norm in PLACES
        ),
        kind="bars", names=tuple(f"{rate:g}" for rate in rates), y_range=(0, 105),
    )  # fmt: skip
    middle = rates[1]
    course = Panel(
        f"Training loss at a rate of {middle:g}", "update", "nats a word",
        tuple(
            series_of(NAMES[norm],
                      [EVERY * (i + 0.5)
                       for i in range(len(taught[norm, middle, depth][0]["losses"]))],
                      list(zip(*(one["losses"] for one in taught[norm, middle, depth]),
                               strict=True)),
                      role(norm), in_logarithms=True)
            for norm in PLACES
        ),
        y_log=True,
    )  # fmt: skip
    gradient = Panel(
        f"Gradient by layer, {layers} layers, untrained", "layer of the encoder",
        "share of that with one layer only",
        tuple(
            series_of(NAMES[norm], range(1, layers + 1),
                      list(zip(*by_layer[norm], strict=True)), role(norm), in_logarithms=True)
            for norm in PLACES
        ),
        y_log=True,
    )  # fmt: skip
    return Plot((right, course, gradient))
