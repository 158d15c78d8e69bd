"""Residual connections and norms, each removed: gradients, what is left of a word, what trains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from pellucid.lessons.why.cells import (
    PERCENT,
    Cells,
    Column,
    decide,
    judge_seeds,
    measure_cells,
    write_small,
)
from pellucid.lessons.why.claims.gradients import ALIVE, VANISHED
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import (
    Pair,
    Tiny,
    count_exact,
    derive_loss,
    loss_on,
    make_tiny,
    thin,
    train_tiny,
    updates_until,
)
from pellucid.lessons.why.tiny.tiny_language import draw_statements

DEPTHS = (1, 2, 4, 6, 12, 24)
PAPER = 6
"""Layers of the paper's encoder, for which the likeness of words is judged."""
LOST = 0.1
LEARNED = 0.5
"""A model has learned when its training loss stays below this, in nats a word."""
FAR_OFF = 99.0
"""Loss that an update without a finite one is given, in nats a word."""

BOTH = "residual and norm"
NORM = "norm only"
NEITHER = "neither"
KINDS: dict[str, dict[str, Any]] = {
    BOTH: {"residual": True, "norm": "post"},
    "residual only": {"residual": True, "norm": "none"},
    NORM: {"residual": False, "norm": "post"},
    NEITHER: {"residual": False, "norm": "none"},
}

_SHORT = {BOTH: "both", "residual only": "residual", NORM: "norm", NEITHER: "neither"}
"""Each kind in a table with two numbers of each."""


def measure(setting: MeasurementSetting) -> Found:
    """Measure gradient and difference of words by depth, and train deep models with and without."""
    kinds = setting.choose((BOTH, NORM, NEITHER), (BOTH, NORM, NEITHER), tuple(KINDS))
    count, num_tests, steps, every = setting.choose(
        (6000, 100, 400, 1), (60, 7, 4, 1), (6000, 200, 200, 10)
    )
    rate = setting.choose(2e-3, 2e-3, 4e-3)
    untrained = _measure_untrained(setting, kinds, count)
    cells = measure_cells(
        setting,
        f"training, {{kind}}, {{depth}} encoder layers, {steps} updates, rate {rate:g}",
        lambda kind, depth, seed: train_deep(
            count, num_tests, steps, every, seed=seed, rate=rate, depth=depth, **KINDS[kind]
        ),
        depth=setting.choose((4,), (2,), (1, 3, 6, 12)),
        kind=kinds,
    ).add(last=lambda row: row["losses"][-1])
    trained = cells.values("depth")
    most = untrained.values("depth")[-1]
    # The deepest encoder shows most.
    share = {kind: untrained.mean("share", kind=kind, depth=most) for kind in kinds}
    found = Found(
        f"in a network of {most} layers, the gradient of the first layer was compared with that in "
        "a network of the same kind with one layer. With neither residual connections nor norms, "
        "it is "
        f"{write_small(share[NEITHER])} times as large. With norms only, which rescale the vectors "
        f"in each layer, it is {write_small(share[NORM])} times as large. With both it is "
        f"{write_small(share[BOTH])} times as large.{_say_explosion(untrained, most)} But norms "
        "alone are not enough. Without residual connections all words of a sentence get the same "
        "vector",
        "Untrained encoders of growing depth read sentences of a tiny language; the gradient is "
        "that of the translation's loss in the first layer's matrices. Then models (d = 32, one "
        f"decoder layer of the same kind) with {', '.join(map(str, trained))} encoder layers "
        f"learn in {steps} updates at a peak rate of {rate:g}. Norms are post-norm. Learned means "
        f"a training loss that stays below {LEARNED} nats a word.",
        verdicts={
            "gradient": judge_seeds(judge_gradient, untrained),
            "knowledge": judge_seeds(judge_knowledge, untrained, cells),
        },
        tables=(
            _depth_table(untrained),
            *(_training_table(cells.where(depth=depth)) for depth in trained),
        ),
        panels=_panels(untrained, cells.where(depth=trained[(len(trained) - 1) // 2]), every),
    )
    return _add_layers(setting, found, cells) if setting.is_long else found


def _say_explosion(untrained: Cells, most: int) -> str:
    """Say what becomes of the gradient with residual connections and no norms, if it explodes."""
    if "residual only" not in untrained.values("kind"):
        return ""
    share = untrained.mean("share", kind="residual only", depth=most)
    explodes = " With residual connections alone it is too large for 32-bit numbers."
    return "" if math.isfinite(share) else explodes


def _measure_untrained(setting: MeasurementSetting, kinds: Sequence[str], count: int) -> Cells:
    """Measure gradients in the first layer, as shares of those in an encoder of one layer."""
    untrained = measure_cells(
        setting,
        "untrained, {kind}, {depth} layers",
        lambda kind, depth, seed: look_untrained(
            draw_statements(count, seed=seed, part="train")[:32], depth, KINDS[kind], seed=seed
        ),
        kind=kinds,
        depth=setting.choose(DEPTHS, (1, 2, 3)),
    )
    alone = {(row["kind"], row["seed"]): row["gradient"] for row in untrained.where(depth=1).rows}
    return untrained.add(share=lambda row: row["gradient"] / alone[row["kind"], row["seed"]])


def _add_layers(setting: MeasurementSetting, found: Found, cells: Cells) -> Found:
    """Add the gradient by layer, and how deep each kind still trains."""
    layers = setting.choose(12, 3)
    by_layer = measure_layers(setting, layers, KINDS)
    longer = found.plus(
        ", so nothing is learned",
        f" The gradient by layer is that of untrained encoders of {layers} layers.",
        tables=[layer_table(by_layer)],
    )
    how_deep = cells.panel(
        "How deep it still trains",
        ("layers of the encoder", "% of new sentences right"),
        cells.each("kind"),
        "depth",
        "exact",
        scale=100,
        x_log=True,
        y_range=PERCENT,
    )
    # The answer's numbers are those of the first two panels.
    return replace(longer, panels=(*found.panels[:2], how_deep))


def judge_gradient(untrained: Cells) -> Verdict:
    """Judge by the gradient that reaches the first layer of the deepest encoder."""
    deepest = untrained.where(depth=untrained.values("depth")[-1])
    kept = {kind: deepest.mean("share", kind=kind) for kind in deepest.values("kind")}
    lost = [kind for kind in (NORM, NEITHER) if kept[kind] < VANISHED]
    return decide(
        f"as in gradients, alive is {ALIVE} or more of the gradient with one layer, vanished less "
        f"than {VANISHED}; holds if it is alive with residual connections and norms, and vanished "
        "without the former, with norms or not; fails if it is not alive with them, or vanished in "
        "no other model",
        ", ".join(
            f"{kind} {share:.2g}" if math.isfinite(share) else f"{kind} beyond float32"
            for kind, share in kept.items()
        ),
        "Compared with a network of one layer, the gradient of the first of "
        f"{untrained.values('depth')[-1]} layers is {write_small(kept[NEITHER])} times as large "
        f"with neither residual connections nor norms. Below {VANISHED} it has vanished. With "
        f"norms only it is {write_small(kept[NORM])} times as large, and to hold it must have "
        f"vanished there, too. With both it is {write_small(kept[BOTH])} times as large, and must "
        f"be "
        f"{ALIVE} or more.",
        fails=kept[BOTH] < ALIVE or not lost,
        unless=_needs(lost),
    )


def judge_knowledge(untrained: Cells, trained: Cells) -> Verdict:
    """Judge by whether words become alike, and by what is learned at the deepest that learned."""
    # Toy runs have no encoder as deep as the paper's.
    near = min(untrained.values("depth"), key=lambda depth: abs(depth - PAPER))
    learned = deepest_learned(trained.where(kind=BOTH)) or trained.values("depth")[0]
    kinds = untrained.values("kind")
    left = {kind: untrained.mean("difference", kind=kind, depth=near) for kind in kinds}
    right = {kind: trained.mean("exact", kind=kind, depth=learned) for kind in kinds}
    lost = [
        kind
        for kind in (NORM, NEITHER)
        if left[kind] <= LOST * left[BOTH] or right[kind] <= right[BOTH] / 2 > 0
    ]
    numbers = (f"{kind}: difference {left[kind]:.1e}, {right[kind]:.0%} right" for kind in kinds)
    return decide(
        f"lost means at most {LOST} of the difference that residual connections leave with "
        f"{PAPER} layers, or at most half as many right translations after training; holds if that "
        "is so with norms and without; fails if it is so in neither",
        "; ".join(numbers).replace("e-", "e−"),
        f"With residual connections and norms, networks of {learned} layers translate "
        f"{right[BOTH]:.0%} of new sentences correctly. With norms only they translate "
        f"{right[NORM]:.0%}. With neither they translate {right[NEITHER]:.0%}. Half as many or "
        "fewer means that knowledge is lost. A second sign of loss is that the words of a sentence "
        f"become alike. That counts if, after {near} layers, their vectors differ at most {LOST} "
        f"times as much as with both. With norms only it is "
        f"{write_small(left[NORM] / left[BOTH])} times, with "
        f"neither {write_small(left[NEITHER] / left[BOTH])} times. To hold, there must be a sign "
        "of loss in both kinds of networks without residual connections.",
        fails=not lost,
        unless=_needs(lost),
    )


def _needs(lost: Sequence[str]) -> dict[str, bool]:
    """State the condition if only one of the other models lost it."""
    return {"there are no norms": lost == [NEITHER], "there are norms": lost == [NORM]}


def deepest_learned(cells: Cells) -> int:
    """Find the most layers up to which every training learned; 0 if none did."""
    deepest = 0
    for depth in cells.values("depth"):
        # One seed that failed ends it: what trains only sometimes is not trained.
        if any(row["updates"] is None for row in cells.where(depth=depth).rows):
            break
        deepest = depth
    return int(deepest)


def look_untrained(
    pairs: list[Pair], depth: int, changes: dict[str, Any], *, seed: int
) -> dict[str, float]:
    """Measure an untrained encoder.

    Args:
        pairs: sentences with their translations.
        depth: layers of the encoder.
        changes: fields of the configuration that differ from the usual tiny model.
        seed: of the weights.

    Returns:
        The norm of the ``gradient`` in the first layer's matrices, and the ``difference`` of words:
        what still tells two words of a sentence apart in the output, 1 minus their cosine on
        average. It is 0 if all words have become the same.
    """
    tiny = make_tiny(pairs, seed=seed, num_encoder_layers=depth, **changes)
    batch = derive_loss(tiny, pairs)
    gradient = _norms_of_layers(tiny, depth)[0]
    with torch.no_grad():
        memory_BSD = tiny.model.encode(batch.source_BS, batch.source_mask_BS)
        unit_BSD = torch.nn.functional.normalize(memory_BSD.double(), dim=-1)
        cosines_BSS = unit_BSD @ unit_BSD.transpose(1, 2)
        is_real_BS = batch.source_mask_BS
        is_pair_BSS = is_real_BS[:, :, None] & is_real_BS[:, None, :]
        # A word is always equal to itself.
        is_pair_BSS &= ~torch.eye(is_real_BS.shape[1], dtype=torch.bool)
    return {
        "gradient": gradient,
        # Rounding may take the mean cosine just above 1.
        "difference": max(0.0, 1 - float(cosines_BSS[is_pair_BSS].mean())),
    }


def train_deep(
    count: int,
    num_tests: int,
    steps: int,
    every: int,
    *,
    seed: int,
    rate: float,
    depth: int,
    **changes: Any,
) -> dict[str, Any]:
    """Train a small model of some depth on statements, and test it.

    Args:
        count: statements to learn.
        num_tests: new statements.
        steps: updates.
        every: updates over which the kept losses are averaged.
        seed: of the text and the weights.
        rate: the peak of the learning rate.
        depth: layers of the encoder.
        changes: other fields of the configuration.
    """
    pairs = draw_statements(count, seed=seed, part="train")
    test = draw_statements(num_tests, seed=seed, part="test")
    sizes = {"d_model": 32, "d_ff": 64, "num_heads": 2, "num_encoder_layers": depth}
    tiny = make_tiny([*pairs, *test], seed=seed, **sizes, **changes)
    tiny = train_tiny(tiny, pairs, steps=steps, seed=seed, rate=rate)
    # JSON, in which long forms keep their losses, has neither infinity nor "not a number".
    losses = [min(loss, FAR_OFF) for loss in tiny.losses]
    test_loss = loss_on(tiny, test)
    return {
        "losses": thin(losses, every),
        "updates": updates_until(losses, LEARNED),
        "test_loss": test_loss if test_loss < FAR_OFF else FAR_OFF,
        "exact": count_exact(tiny, test),
    }


def gradient_by_layer(
    pairs: Sequence[Pair], depth: int, changes: dict[str, Any], *, seed: int
) -> list[float]:
    """Compute the norm of the gradient in the matrices of each encoder layer, before training.

    Args:
        pairs: sentences whose loss is derived.
        depth: layers of the encoder.
        changes: fields of the configuration that differ from the usual tiny model.
        seed: of the weights.

    Returns:
        One norm for each layer, as a share of that in an encoder of one layer.
    """
    norms = {}
    for layers in (1, depth):
        tiny = make_tiny(pairs, seed=seed, num_encoder_layers=layers, **changes)
        # Gradients through many layers may be smaller than float32 can hold.
        tiny.model.double()
        derive_loss(tiny, pairs)
        norms[layers] = _norms_of_layers(tiny, layers)
    return [norm / norms[1][0] for norm in norms[depth]]


def _norms_of_layers(tiny: Tiny, depth: int) -> list[float]:
    """Compute the norm of the gradient in the matrices of each encoder layer."""
    squares = [0.0] * depth
    for name, weight in tiny.model.named_parameters():
        if name.startswith("encoder.layers.") and weight.dim() == 2 and weight.grad is not None:
            # Matrices only: norms exist in some kinds and not in others.
            squares[int(name.split(".")[2])] += float(weight.grad.square().sum())
    return [square**0.5 for square in squares]


def measure_layers(
    setting: MeasurementSetting, layers: int, kinds: Mapping[str, dict[str, Any]]
) -> Cells:
    """Measure the gradient in each layer of untrained encoders that differ in some settings."""
    count = setting.choose(6000, 60)
    return measure_cells(
        setting,
        f"gradient by layer and with one layer only, {{kind}}, {layers} layers",
        lambda kind, seed: gradient_by_layer(
            draw_statements(count, seed=seed, part="train")[:32], layers, kinds[kind], seed=seed
        ),
        read=lambda found: [
            {"layer": place, "gradient": norm} for place, norm in enumerate(found, start=1)
        ],
        kind=kinds,
    )


def layer_table(cells: Cells) -> ResultTable:
    """Write the gradient of each layer."""
    layers = len(cells.values("layer"))
    return cells.table(
        f"Before training, gradient in each layer of {layers} (1 in an encoder of one)",
        "layer",
        cells.columns("kind", "gradient"),
        head="layer",
    )


def layer_panel(cells: Cells) -> Panel:
    """Draw the gradient of each layer; the first kind in color."""
    return cells.panel(
        f"Gradient by layer, {len(cells.values('layer'))} layers, untrained",
        ("layer of the encoder", "share of that with one layer only"),
        cells.each("kind"),
        "layer",
        "gradient",
        y_log=True,
    )


def _depth_table(cells: Cells) -> ResultTable:
    cells = cells.add(short=lambda row: _SHORT[row["kind"]])
    return cells.table(
        "Before training, by depth: gradient in the first layer (1 with one layer), then "
        "difference of a sentence's words after the last; both: residual and norm",
        "depth",
        [
            *cells.columns("short", "share", ".2g"),
            *cells.columns("short", "difference", ".1e"),
        ],
        head="layers",
    )


def _training_table(cells: Cells) -> ResultTable:
    (depth,) = cells.values("depth")
    return cells.table(
        f"Training with {depth} encoder layers",
        "kind",
        (
            Column("learned", "updates", over_seeds="count"),
            Column(f"updates to {LEARNED}", "updates"),
            Column("last loss", "last", ".3f"),
            Column("right, %", "exact", ".0f", 100),
        ),
    )


def _panels(untrained: Cells, trained: Cells, every: int) -> tuple[Panel, ...]:
    kinds = untrained.each("kind")
    (depth,) = trained.values("depth")
    return (
        untrained.panel(
            "Gradient in the first layer",
            ("layers of the encoder", "share of that with one layer"),
            kinds,
            "depth",
            "share",
            x_log=True,
            y_log=True,
        ),
        untrained.panel(
            "Difference of a sentence's words",
            ("layers of the encoder", "1 − cosine after the last layer"),
            kinds,
            "depth",
            "difference",
            x_log=True,
            y_log=True,
        ),
        trained.panel(
            f"Training loss with {depth} encoder layers",
            ("update", "nats a word"),
            kinds,
            trained.updates("losses", every),
            "losses",
        ),
    )
