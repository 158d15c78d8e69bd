"""Residual connections and norms, each removed: gradients, how deep it trains, how fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pellucid.lessons.why.claims.residual import (
    GRADIENT_SAYS,
    KNOWLEDGE_SAYS,
    Deep,
    judge_gradient,
    judge_knowledge,
    look_untrained,
)
from pellucid.lessons.why.long.gradients import gradient_by_layer
from pellucid.lessons.why.long.sums import mean, series_of, thin, updates_until, write
from pellucid.lessons.why.result import Cell, Finding, Measurement, Panel, Plot, Table
from pellucid.lessons.why.setting import Setting
from pellucid.lessons.why.tiny.learn import count_exact, make_tiny, train_tiny
from pellucid.lessons.why.tiny.sentences import draw_statements

LEARNED = 0.5
"""A model has learned when its training loss stays below this, in nats a word."""
RATE = 4e-3
EVERY = 10
FAR_OFF = 99.0
"""Loss that an update without a finite one is given, in nats a word."""
KINDS: dict[str, dict[str, Any]] = {
    "residual and norm": {"residual": True, "norm": "post"},
    "residual only": {"residual": True, "norm": "none"},
    "norm only": {"residual": False, "norm": "post"},
    "neither": {"residual": False, "norm": "none"},
}
Taught = dict[tuple[str, int], list[dict[str, Any]]]


def measure(setting: Setting) -> Measurement:
    """Measure gradients by depth and by layer, and train encoders of growing depth."""
    depths = setting.choose((1, 2, 4, 6, 12, 24), (1, 2))
    trained = setting.choose((1, 3, 6, 12), (1, 2))
    layers = setting.choose(12, 3)
    steps = setting.choose(200, 4)
    untrained = {
        name: [[_look(name, depth, seed, setting) for seed in setting.seeds] for depth in depths]
        for name in KINDS
    }
    by_layer = {
        name: [_by_layer(name, layers, seed, setting) for seed in setting.seeds] for name in KINDS
    }
    taught: Taught = {
        (name, depth): [_teach(name, depth, steps, seed, setting) for seed in setting.seeds]
        for depth in trained
        for name in KINDS
    }
    shares = {
        name: [_average(by_seed, found[0]) for by_seed in found]
        for name, found in untrained.items()
    }
    ends = _ends(taught, trained)
    deepest = {name: deepest_learned(taught, name, trained) for name in KINDS}
    reached = ", ".join(f"{name} {depth or 'none'}" for name, depth in deepest.items())
    return Measurement(
        claim="residual",
        question="Do residual connections carry gradients and knowledge?",
        number=f"Most encoder layers with which every training learned, of {trained[-1]}: "
        f"{reached}. With {depths[-1]} layers the first layer's gradient is "
        f"{shares['residual and norm'][-1].gradient:.2g} of that with one layer, "
        f"{shares['norm only'][-1].gradient:.2g} without residual connections and "
        f"{shares['neither'][-1].gradient:.2g} without norms too.",
        method="Untrained encoders of growing depth read sentences of a tiny language: the "
        "gradient of the translation's loss in the first layer's matrices, and in every layer of "
        f"an encoder of {layers}. Then models (d = 32, one decoder layer of the same kind) with "
        f"{trained[0]} to {trained[-1]} encoder layers learn in {steps} updates at a peak rate of "
        f"{RATE:g}. Norms are post-norm. Learned means a training loss that stays below {LEARNED} "
        "nats a word.",
        findings=(
            Finding(GRADIENT_SAYS, judge_gradient(shares)),
            Finding(KNOWLEDGE_SAYS, judge_knowledge(shares, ends)),
        ),
        tables=(
            _depth_table(untrained, depths),
            _layer_table(by_layer, layers),
            *(_training_table(depth, taught) for depth in trained),
        ),
        plot=_plot(by_layer, layers, taught, trained),
        notes=(
            "A gradient that is as large as before does not mean that a model learns: with norms "
            "and no residual connections the gradient arrives, but all words have become the same.",
            "Every kind has the same rate and the same updates. With more updates or its "
            "own rate, a kind may learn deeper.",
        ),
        to_try=("pellucid why norm", "pellucid inspect demo --draw whole"),
        seed=setting.seed,
        size=setting.size,
    )


def deepest_learned(taught: Taught, name: str, depths: Sequence[int]) -> int:
    """Find the most layers up to which every training of a kind learned; 0 if none did."""
    deepest = 0
    for depth in depths:
        if any(one["updates"] is None for one in taught[name, depth]):
            break
        deepest = depth
    return deepest


def _ends(taught: Taught, trained: Sequence[int]) -> dict[str, tuple[float, float]]:
    """Average the last losses and the shares that are right, at the deepest that still learned."""
    middle = deepest_learned(taught, "residual and norm", trained) or trained[0]
    return {
        name: (
            mean([one["losses"][-1] for one in taught[name, middle]]),
            mean([one["exact"] for one in taught[name, middle]]),
        )
        for name in KINDS
    }


def _look(name: str, depth: int, seed: int, setting: Setting) -> Deep:
    count = setting.choose(6000, 60)
    found = setting.cell(
        f"untrained, {name}, {depth} layers, seed {seed}",
        lambda: asdict(
            look_untrained(
                draw_statements(count, seed=seed, part="train")[:32], depth, KINDS[name], seed=seed
            )
        ),
    )
    return Deep(**found)


def _average(by_seed: Sequence[Deep], first: Sequence[Deep]) -> Deep:
    """Average over seeds, the gradient as a share of that with one layer."""
    return Deep(
        by_seed[0].depth,
        mean(_shares(by_seed, first)),
        mean([one.difference for one in by_seed]),
    )


def _shares(by_seed: Sequence[Deep], first: Sequence[Deep]) -> list[float]:
    return [one.gradient / start.gradient for one, start in zip(by_seed, first, strict=True)]


def _by_layer(name: str, layers: int, seed: int, setting: Setting) -> list[float]:
    count = setting.choose(6000, 60)
    found: list[float] = setting.cell(
        f"gradient by layer and with one layer only, {name}, {layers} layers, seed {seed}",
        lambda: gradient_by_layer(
            draw_statements(count, seed=seed, part="train")[:32], layers, KINDS[name], seed=seed
        ),
    )
    return found


def _teach(name: str, depth: int, steps: int, seed: int, setting: Setting) -> dict[str, Any]:
    def train() -> dict[str, Any]:
        pairs = draw_statements(setting.choose(6000, 60), seed=seed, part="train")
        test = draw_statements(setting.choose(200, 5), seed=seed, part="test")
        tiny = make_tiny(
            [*pairs, *test], seed=seed, d_model=32, d_ff=64, num_heads=2,
            num_encoder_layers=depth, **KINDS[name],
        )  # fmt: skip
        tiny = train_tiny(tiny, pairs, steps=steps, seed=seed, rate=RATE)
        return {
            # JSON has no infinity.
            "losses": thin([min(loss, FAR_OFF) for loss in tiny.losses], EVERY),
            "updates": updates_until(tiny.losses, LEARNED),
            "exact": count_exact(tiny, test),
        }

    found: dict[str, Any] = setting.cell(
        f"training, {name}, {depth} encoder layers, {steps} updates, rate {RATE:g}, seed {seed}",
        train,
    )
    return found


def _depth_table(untrained: dict[str, list[list[Deep]]], depths: Sequence[int]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for place, depth in enumerate(depths):
        gradients = [write(_shares(found[place], found[0])) for found in untrained.values()]
        differences = [
            write([one.difference for one in found[place]]) for found in untrained.values()
        ]
        rows.append((depth, *gradients, *differences))
    return Table(
        "Before training, by depth: gradient in the first layer (1 with one layer), then "
        "difference of a sentence's words after the last",
        ("layers", *KINDS, *KINDS),
        ("d", *[""] * (2 * len(KINDS))),
        tuple(rows),
    )


def _layer_table(by_layer: dict[str, list[list[float]]], layers: int) -> Table:
    return Table(
        f"Before training, gradient in each layer of {layers} (1 in an encoder of one)",
        ("layer", *KINDS),
        ("d", *[""] * len(KINDS)),
        tuple(
            (layer + 1, *(write([one[layer] for one in found]) for found in by_layer.values()))
            for layer in range(layers)
        ),
    )


def _training_table(depth: int, taught: Taught) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in KINDS:
        found = taught[name, depth]
        learned = [one["updates"] for one in found if one["updates"] is not None]
        rows.append(
            (
                name,
                f"{len(learned)} of {len(found)}",
                write(learned),
                write([one["losses"][-1] for one in found]),
                write([one["exact"] for one in found], scale=100),
            )
        )
    return Table(
        f"Training with {depth} encoder layers",
        ("", "learned", f"updates to {LEARNED}", "last loss", "right, %"),
        ("", "", "", "", ""),
        tuple(rows),
    )


def _plot(
    by_layer: dict[str, list[list[float]]], layers: int, taught: Taught, trained: Sequence[int]
) -> Plot:
    def role(name: str) -> Any:
        return "accent" if name == "residual and norm" else "plain"

    gradient = Panel(
        f"Gradient by layer, {layers} layers, untrained", "layer of the encoder",
        "share of that with one layer only",
        tuple(
            series_of(name, range(1, layers + 1), list(zip(*found, strict=True)), role(name),
                      in_logarithms=True)
            for name, found in by_layer.items()
        ),
        y_log=True,
    )  # fmt: skip
    depth = Panel(
        "How deep it still trains", "layers of the encoder", "% of new sentences right",
        tuple(
            series_of(name, trained,
                      [[one["exact"] for one in taught[name, depth]] for depth in trained],
                      role(name), scale=100)
            for name in KINDS
        ),
        x_log=True, y_range=(0, 105),
    )  # fmt: skip
    middle = trained[1]
    course = Panel(
        f"Training loss with {middle} encoder layers", "update", "nats a word",
        tuple(
            series_of(name,
                      [EVERY * (i + 0.5) for i in range(len(taught[name, middle][0]["losses"]))],
                      list(zip(*(one["losses"] for one in taught[name, middle]), strict=True)),
                      role(name))
            for name in KINDS
        ),
    )  # fmt: skip
    return Plot((gradient, depth, course))
