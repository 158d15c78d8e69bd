"""Residual connections and norms, each removed: gradients, what is left of a word, what trains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pellucid.lessons.why.cells import (
    Cells,
    Column,
    decide,
    judge_seeds,
    measure_cells,
    write_small,
)
from pellucid.lessons.why.claim import Found
from pellucid.lessons.why.claims.gradients import ALIVE, VANISHED
from pellucid.lessons.why.result import Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import (
    count_exact,
    make_tiny,
    thin,
    train_tiny,
    updates_until,
)
from pellucid.lessons.why.tiny.tiny_language import draw_statements
from pellucid.lessons.why.tiny.tiny_vocabulary import Pair, make_pair_batch
from pellucid.train.plain import compute_loss

DEPTHS = (1, 2, 4, 6, 12, 24)
PAPER = 6
"""Layers of the paper's encoder, for which the likeness of words is judged."""
LOST = 0.1
LEARNED = 0.5
"""A model has learned when its training loss stays below this, in nats a word."""
FAR_OFF = 99.0
"""Loss that an update without a finite one is given, in nats a word."""

BOTH, NORM, NEITHER = "residual and norm", "norm only", "neither"
KINDS: dict[str, dict[str, Any]] = {
    BOTH: {"residual": True, "norm": "post"},
    "residual only": {"residual": True, "norm": "none"},
    NORM: {"residual": False, "norm": "post"},
    NEITHER: {"residual": False, "norm": "none"},
}


def measure(setting: MeasurementSetting) -> Found:
    """Measure gradient and difference of words by depth, and train deep models with and without."""
    is_long = setting.is_long
    kinds = tuple(KINDS) if is_long else (BOTH, NORM, NEITHER)
    depths = setting.choose(DEPTHS, (1, 2, 3), DEPTHS)
    sizes = setting.choose(
        (6000, 100, 400, 2e-3, 1), (60, 7, 4, 2e-3, 1), (6000, 200, 200, 4e-3, 10)
    )
    count, _, steps, rate, every = sizes
    trained = setting.choose((4,), (2,), (1, 3, 6, 12))
    untrained = measure_cells(
        setting,
        "untrained, {kind}, {depth} layers",
        lambda kind, depth, seed: look_untrained(
            draw_statements(count, seed=seed, part="train")[:32], depth, KINDS[kind], seed=seed
        ),
        kind=kinds,
        depth=depths,
    )
    alone = {(row["kind"], row["seed"]): row["gradient"] for row in untrained.where(depth=1).rows}
    untrained = untrained.add(share=lambda row: row["gradient"] / alone[row["kind"], row["seed"]])
    cells = measure_cells(
        setting,
        f"training, {{kind}}, {{depth}} encoder layers, {steps} updates, rate {rate:g}",
        lambda kind, depth, seed: _train(kind, depth, sizes, seed),
        depth=trained,
        kind=kinds,
    ).add(last=lambda row: row["losses"][-1])
    share = {kind: untrained.mean("share", kind=kind, depth=depths[-1]) for kind in kinds}
    number = (
        f"in a network of {depths[-1]} layers the first one gets {write_small(share[NEITHER])} of "
        f"the gradient of a network of one layer, {share[NORM]:.2g} of it if each layer rescales "
        f"its vectors (norms), and {share[BOTH]:.2g} if residual connections also carry them past "
        "the layers. But without residual connections, even with norms, all words of a sentence "
        "get the same vector"
    )
    verdicts = {
        "gradient": judge_seeds(judge_gradient, untrained),
        "knowledge": judge_seeds(judge_knowledge, untrained, cells),
    }
    tables = (
        _depth_table(untrained, is_long=is_long),
        *(_training_table(cells.where(depth=depth), is_long=is_long) for depth in trained),
    )
    if is_long:
        return _add_long(setting, number, verdicts, tables, cells, (steps, rate, every))
    return Found(
        f"{number}.",
        "Untrained encoders of growing depth read sentences of a tiny language; the gradient is "
        "that of the translation's loss in the first layer's matrices, before training. Then "
        f"models with {trained[0]} encoder layers are trained in {steps} updates. Norms are "
        "post-norm, as in the notes.",
        verdicts,
        tables,
        (
            _depth_panel(
                untrained, "Gradient in the first layer", "share of that with one layer", "share"
            ),
            _depth_panel(
                untrained,
                "Difference of a sentence's words",
                "1 − cosine after the last layer",
                "difference",
            ),
            _course_panel(cells, trained[0], every),
        ),
        (
            "A difference of 0 means that all words of a sentence have the same vector, so that "
            "later layers cannot tell which word stood where. Attention averages words, and only "
            "the residual connection brings each word itself along.",
        ),
    )


def _add_long(
    setting: MeasurementSetting,
    number: str,
    verdicts: dict[str, Verdict],
    tables: tuple[ResultTable, ...],
    cells: Cells,
    training: tuple[int, float, int],
) -> Found:
    """Add the gradient by layer, and how deep each kind still trains."""
    steps, rate, every = training
    layers = setting.choose(12, 3)
    by_layer = measure_layers(setting, layers, KINDS)
    trained = cells.values("depth")
    deep = tuple(
        cells.line(kind, "depth", "exact", _role(kind), scale=100, kind=kind) for kind in KINDS
    )
    return Found(
        f"{number}, so nothing is learned.",
        "Untrained encoders of growing depth read sentences of a tiny language: the gradient of "
        "the translation's loss in the first layer's matrices, and in every layer of an encoder of "
        f"{layers}. Then models (d = 32, one decoder layer of the same kind) with {trained[0]} to "
        f"{trained[-1]} encoder layers learn in {steps} updates at a peak rate of {rate:g}. Norms "
        f"are post-norm. Learned means a training loss that stays below {LEARNED} nats a word.",
        verdicts,
        (tables[0], layer_table(by_layer), *tables[1:]),
        (
            layer_panel(by_layer, BOTH),
            Panel(
                "How deep it still trains",
                "layers of the encoder",
                "% of new sentences right",
                deep,
                x_log=True,
                y_range=(0, 105),
            ),
            _course_panel(cells, trained[len(trained) // 2 - 1], every),
        ),
        (
            "A gradient that is as large as before does not mean that a model learns: with norms "
            "and no residual connections the gradient arrives, but all words have become the same.",
            "Every kind has the same rate and the same updates. With more updates or its "
            "own rate, a kind may learn deeper.",
        ),
    )


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
            f"{kind} {'beyond float32' if share != share or share == math.inf else f'{share:.2g}'}"
            for kind, share in kept.items()
        ),
        fails=kept[BOTH] < ALIVE or not lost,
        unless=_needs(lost),
    )


def judge_knowledge(untrained: Cells, trained: Cells) -> Verdict:
    """Judge by whether words become alike, and by what is learned at the deepest that learned."""
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
    batch = make_pair_batch(
        tiny.source.encode_all([pair[0] for pair in pairs]),
        tiny.target.encode_all([pair[1] for pair in pairs]),
    )
    loss, _ = compute_loss(tiny.model, batch, 0.0, None)
    loss.backward()  # type: ignore[no-untyped-call]
    squares = [
        float(parameter.grad.square().sum())
        for name, parameter in tiny.model.named_parameters()
        if name.startswith("encoder.layers.0.")
        and parameter.dim() == 2
        and parameter.grad is not None
    ]
    with torch.no_grad():
        memory_BSD = tiny.model.encode(batch.source_BS, batch.source_mask_BS)
        unit_BSD = torch.nn.functional.normalize(memory_BSD.double(), dim=-1)
        cosines_BSS = unit_BSD @ unit_BSD.transpose(1, 2)
        is_real_BS = batch.source_mask_BS
        is_pair_BSS = is_real_BS[:, :, None] & is_real_BS[:, None, :]
        is_pair_BSS &= ~torch.eye(is_real_BS.shape[1], dtype=torch.bool)
    return {
        "gradient": sum(squares) ** 0.5,
        "difference": max(0.0, 1 - float(cosines_BSS[is_pair_BSS].mean())),
    }


def _train(
    kind: str, depth: int, sizes: tuple[int, int, int, float, int], seed: int
) -> dict[str, Any]:
    count, num_tests, steps, rate, every = sizes
    pairs = draw_statements(count, seed=seed, part="train")
    test = draw_statements(num_tests, seed=seed, part="test")
    tiny = make_tiny(
        [*pairs, *test],
        seed=seed,
        d_model=32,
        d_ff=64,
        num_heads=2,
        num_encoder_layers=depth,
        **KINDS[kind],
    )
    tiny = train_tiny(tiny, pairs, steps=steps, seed=seed, rate=rate)
    return {
        # JSON has no infinity.
        "losses": thin([min(loss, FAR_OFF) for loss in tiny.losses], every),
        "updates": updates_until(tiny.losses, LEARNED),
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
    (alone,) = _norms(pairs, 1, changes, seed=seed)
    return [norm / alone for norm in _norms(pairs, depth, changes, seed=seed)]


def _norms(pairs: Sequence[Pair], depth: int, changes: dict[str, Any], *, seed: int) -> list[float]:
    tiny = make_tiny(pairs, seed=seed, num_encoder_layers=depth, **changes)
    batch = make_pair_batch(
        tiny.source.encode_all([pair[0] for pair in pairs]),
        tiny.target.encode_all([pair[1] for pair in pairs]),
    )
    # In float64, since gradients through many layers may be smaller than float32 can hold.
    tiny.model.double()
    loss, _ = compute_loss(tiny.model, batch, 0.0, None)
    loss.backward()  # type: ignore[no-untyped-call]
    squares = [0.0] * depth
    for name, weight in tiny.model.named_parameters():
        if name.startswith("encoder.layers.") and weight.dim() == 2 and weight.grad is not None:
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
    columns = [Column(kind, "gradient", where={"kind": kind}) for kind in cells.values("kind")]
    layers = len(cells.values("layer"))
    title = f"Before training, gradient in each layer of {layers} (1 in an encoder of one)"
    return cells.table(title, "layer", columns, head="layer")


def layer_panel(cells: Cells, main: str) -> Panel:
    """Draw the gradient of each layer; the main kind in color."""
    lines = tuple(
        cells.line(
            kind, "layer", "gradient", "accent" if kind == main else "plain", is_log=True, kind=kind
        )
        for kind in cells.values("kind")
    )
    title = f"Gradient by layer, {len(cells.values('layer'))} layers, untrained"
    label = "share of that with one layer only"
    return Panel(title, "layer of the encoder", label, lines, y_log=True)


def _depth_table(cells: Cells, *, is_long: bool) -> ResultTable:
    both = {"share": BOTH, "difference": BOTH}
    if not is_long:
        both = {"share": "both", "difference": "difference: both"}
    columns = [
        Column(both[what] if kind == BOTH else kind, what, form, where={"kind": kind})
        for what, form in (("share", ".2g"), ("difference", ".1e"))
        for kind in cells.values("kind")
    ]
    title = (
        "Before training, by depth: gradient in the first layer (1 with one layer), then "
        "difference of a sentence's words after the last"
        if is_long
        else "Gradient in the first layer (1 with one layer), and difference of words after the "
        "last; both: residual and norm"
    )
    return cells.table(title, "depth", columns, head="layers")


def _training_table(cells: Cells, *, is_long: bool) -> ResultTable:
    (depth,) = cells.values("depth")
    learned = (
        Column("learned", "updates", over_seeds="count"),
        Column(f"updates to {LEARNED}", "updates"),
    )
    columns = (
        *(learned if is_long else ()),
        Column("last loss" if is_long else "loss, nats a word", "last", ".3f"),
        Column("right, %", "exact", ".0f", 100),
    )
    return cells.table(
        f"{'Training' if is_long else 'After training'} with {depth} encoder layers",
        "kind",
        columns,
    )


def _role(kind: str) -> str:
    return "accent" if kind == BOTH else "plain"


def _depth_panel(cells: Cells, title: str, label: str, what: str) -> Panel:
    lines = tuple(
        cells.line(kind, "depth", what, _role(kind), kind=kind) for kind in cells.values("kind")
    )
    return Panel(title, "layers of the encoder", label, lines, x_log=True, y_log=True)


def _course_panel(cells: Cells, depth: int, every: int) -> Panel:
    lines = tuple(
        cells.course(kind, "losses", every, _role(kind), kind=kind, depth=depth)
        for kind in cells.values("kind")
    )
    title = f"Training loss with {depth} encoder layers"
    return Panel(title, "update", "nats a word", lines)
