r"""The scale $1/\sqrt{d_k}$: entropy and gradient of the softmax, and what training makes of it.

The gradient of a softmax with weights w is its Jacobian $\text{diag}(w) - ww^T$. Its size is
measured by the Frobenius norm, which is largest for even weights of two keys and 0 for a weight
of 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from pellucid.inside.pair import Keeper
from pellucid.lessons.why.cells import (
    Cells,
    Column,
    decide,
    judge_seeds,
    measure_cells,
    say_seeds,
    write,
    write_small,
)
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import (
    Pair,
    Tiny,
    count_exact,
    derive_loss,
    make_tiny,
    thin,
    train_tiny,
    updates_until,
)
from pellucid.lessons.why.tiny.tiny_language import draw_statements
from pellucid.machine.randomness import generator

WIDTHS = (8, 16, 32, 64, 128, 256, 512)
NUM_KEYS = 32
STAYS = 0.5
FALLS = 0.1
"""A gradient is kept if half of it is left at the largest d_k, and lost below a tenth."""
LEARNED = 0.1
"""A model has learned when its training loss stays below this, in nats a word."""
EVERY = 10

KINDS = {"independent": "queries and keys are independent", "alike": "one key equals the query"}
RAW = "not divided"
SCALED = "divided"
STARTS = {
    "unit": "queries and keys of variance 1",
    "Xavier": "usual first weights",
}


def measure(setting: MeasurementSetting) -> Found:
    """Measure the softmax for d_k from 8 to 512; in the long form train with and without it too."""
    queries = setting.choose(512, 64, 2048)
    softmax = measure_cells(
        setting,
        f"softmax, {{kind}}, d_k {{width}}, {{how}}, {queries} queries",
        lambda kind, how, width, seed: measure_sharpness(
            width, kind, is_scaled=how == SCALED, queries=queries, seed=seed
        ),
        is_quick=True,
        kind=KINDS,
        how=(RAW, SCALED),
        width=WIDTHS,
    )
    verdict = judge_seeds(judge, softmax)
    found = Found(
        "the softmax turns the scores of a query into weights, and its gradient says how much the "
        f"weights still change when the scores change. Random queries and keys of size d_k = "
        f"{WIDTHS[-1]} were compared with those of size {WIDTHS[0]}. Without the division, the "
        "softmax of a typical query is left with "
        f"{_left(softmax, 'independent', RAW):.1%} of the gradient that it has with size "
        f"{WIDTHS[0]}. With the division it has {_left(softmax, 'independent', SCALED):.0%} of it. "
        "But if one of the keys equals the query, as where a word meets itself, the division does "
        f"not help: the gradient with size {WIDTHS[-1]} is then "
        f"{write_small(_left(softmax, 'alike', SCALED))} times that with size {WIDTHS[0]}, both "
        "with a key that equals the query",
        f"Queries of d_k numbers with mean 0 and variance 1 meet {NUM_KEYS} keys. The gradient is "
        "the Frobenius norm of the softmax's Jacobian diag(w) − wwᵀ. The entropy is 1 if all "
        "weights are even and 0 if one key has all. In the second table one of the keys equals the "
        "query, as happens where a word meets itself without projections.",
        {"regions": verdict, "stabilize": verdict},
        tuple(_softmax_table(softmax, kind) for kind in KINDS),
        (
            _panel(softmax, "Gradient of the softmax", "norm of the Jacobian (median)", "gradient"),
            _panel(softmax, "Entropy of the weights", "share of the most possible", "entropy"),
        ),
    )
    return _add_trainings(setting, found) if setting.is_long else found


def _add_trainings(setting: MeasurementSetting, found: Found) -> Found:
    """Train with and without the scale, from two kinds of first weights."""
    widths = setting.choose((8, 64, 512), (8, 16))
    steps = setting.choose(250, 5)
    sizes = setting.choose((6000, 200), (60, 5))
    cells = measure_cells(
        setting,
        f"training, {{start}}, d_k {{width}}, {{how}}, {steps} updates",
        lambda start, width, how, seed: _train(
            start, width, how == SCALED, steps=steps, sizes=sizes, seed=seed
        ),
        start=STARTS,
        width=widths,
        how=(SCALED, RAW),
    )
    last = cells.where(start="unit", width=widths[-1])
    before = {how: write(last.all("gradient", how=how)) for how in (RAW, SCALED)}
    return found.plus(
        f". Then tiny models were trained on a tiny language with each seed, with keys "
        f"of size {say_seeds(widths)}, from the usual random weights, and from weights that give "
        f"queries and keys the variance 1. Learned means a loss below {LEARNED} "
        f"at the end. With the division the language was learned in {_learned(cells, SCALED)} "
        f"trainings. Without it {_learned(cells, RAW)} trainings learned it",
        " Then models of one layer with one head and d = 64 learn a tiny language, "
        f"with and without the scale, in {steps} updates at a rate of 0.003: once from the usual "
        "first weights (Xavier), once from weights that give queries and keys of variance 1, which "
        "is what the scale is made for.",
        verdicts={"stabilize": judge_seeds(judge_learning, cells)},
        tables=[_learning_table(cells.where(start=start), start) for start in STARTS],
        panels=[_course(cells.where(start="unit"), widths)],
        notes=[
            f"Before training, the relative gradient of queries and keys at d_k = {widths[-1]} is "
            f"{before[RAW]} without the scale and {before[SCALED]} with it, from variance 1: "
            "nothing divides it either. What the scale saves is the course of training, not the "
            "size of its first gradient.",
        ],
    )


def measure_sharpness(
    d_key: int, kind: str, *, is_scaled: bool, queries: int, seed: int
) -> dict[str, float]:
    """Draw queries and keys, and measure the softmax of their scores, in float64.

    Returns:
        The standard ``deviation`` of the scores; the ``largest`` weight, on average; the
        ``entropy`` of the weights, from 0 for one key to 1 for even weights; and the ``gradient``
        of the median query.
    """
    numbers = generator(seed, "why scale", d_key)
    query_LK = numbers.standard_normal((queries, d_key))
    key_LMK = numbers.standard_normal((queries, NUM_KEYS, d_key))
    if kind == "alike":
        # A word that meets itself without projections.
        key_LMK[:, 0] = query_LK
    scores_LM = np.einsum("lk,lmk->lm", query_LK, key_LMK)
    if is_scaled:
        scores_LM = scores_LM / math.sqrt(d_key)
    # Otherwise exp of a large score would overflow.
    weights_LM = np.exp(scores_LM - scores_LM.max(axis=1, keepdims=True))
    weights_LM /= weights_LM.sum(axis=1, keepdims=True)
    # 0 · log 0 counts as 0.
    logs_LM = np.log(np.maximum(weights_LM, 1e-300))
    return {
        "deviation": float(scores_LM.std()),
        "largest": float(weights_LM.max(axis=1).mean()),
        "entropy": float((-weights_LM * logs_LM).sum(axis=1).mean() / math.log(NUM_KEYS)),
        "gradient": float(np.median(softmax_gradient(weights_LM))),
    }


def softmax_gradient(weights_LM: np.ndarray) -> np.ndarray:
    r"""Compute $\lVert\text{diag}(w) - ww^T\rVert_F$ of each row of weights.

    Its square is $\sum_i w_i^2(1-w_i)^2 + \sum_{i \ne j} w_i^2 w_j^2$, a sum of positive numbers,
    so that small gradients are not lost in rounding.
    """
    squares_LM = weights_LM**2
    others_LM = squares_LM.sum(axis=1, keepdims=True) - squares_LM
    top = np.argmax(weights_LM, axis=1)
    rows = np.arange(len(weights_LM))
    rest_LM = weights_LM.copy()
    rest_LM[rows, top] = 0.0
    left_LM = 1 - weights_LM
    left_LM[rows, top] = rest_LM.sum(axis=1)  # 1 − w of the largest weight, without cancellation
    others_LM[rows, top] = (rest_LM**2).sum(axis=1)
    both = squares_LM * left_LM**2 + squares_LM * others_LM
    gradient: np.ndarray = np.sqrt(both.sum(axis=1))
    return gradient


def judge(cells: Cells) -> Verdict:
    """Judge by how much of the gradient at the smallest d_k is left at the largest."""
    raw = _left(cells, "independent", RAW)
    scaled = _left(cells, "independent", SCALED)
    alike = _left(cells, "alike", SCALED)
    return decide(
        f"holds if the scale keeps {STAYS:.0%} of the gradient from the smallest to the largest "
        f"d_k where {FALLS:.0%} or less is left without it; only for independent vectors if a key "
        "that equals its query loses more",
        f"left of the gradient: {raw:.2g} without the scale, {scaled:.2g} with it; {alike:.2g} "
        "with it if a key equals the query",
        f"How much of the gradient with size {cells.values('width')[0]} is left with size "
        f"{cells.values('width')[-1]}? With the division it is {scaled:.0%}. To hold, it must be "
        f"{STAYS:.0%} or more. Without the division it is {raw:.1%}, and must be at most "
        f"{FALLS:.0%}. To hold, {STAYS:.0%} must also be left with the division if a key equals "
        f"the query, where it is {write_small(100 * alike)}%.",
        fails=scaled < STAYS or raw > FALLS,
        unless={"queries and keys are independent, as before training": alike < STAYS},
    )


def _left(cells: Cells, kind: str, how: str) -> float:
    """Compute how much of the gradient at the smallest d_k is left at the largest."""
    here = cells.where(kind=kind, how=how)
    widths = cells.values("width")
    return here.mean("gradient", width=widths[-1]) / here.mean("gradient", width=widths[0])


def judge_learning(cells: Cells) -> Verdict:
    """Judge by how many trainings learned with and without the scale, all d_k and starts together.

    Args:
        cells: the trainings.
    """
    return decide(
        f"learned is a training loss that stays below {LEARNED}; holds if more of the trainings "
        "learned with the scale than without, fails otherwise",
        "; ".join(
            f"{STARTS[start]}: {_learned(cells.where(start=start), SCALED)} with, "
            f"{_learned(cells.where(start=start), RAW)} without"
            for start in cells.values("start")
        ),
        f"With the division, {_learned(cells, SCALED)} trainings learned the language. Without it, "
        f"{_learned(cells, RAW)} did. To hold, more must learn with the division than without.",
        fails=len(cells.all("updates", how=SCALED)) <= len(cells.all("updates", how=RAW)),
    )


def _learned(cells: Cells, how: str) -> str:
    return f"{len(cells.all('updates', how=how))} of {len(cells.where(how=how).rows)}"


def _train(
    start: str, width: int, is_scaled: bool, *, steps: int, sizes: tuple[int, int], seed: int
) -> dict[str, Any]:
    train = draw_statements(sizes[0], seed=seed, part="train")
    test = draw_statements(sizes[1], seed=seed, part="test")
    tiny = make_tiny(
        [*train, *test], seed=seed, num_heads=1, d_key=width, d_value=64, scale_scores=is_scaled
    )
    if start == "unit":
        _start_at_unit_variance(tiny, seed)
    # Before training.
    deviation, entropy = _look(tiny, train[:64])
    gradient = _gradient(tiny, train[:64])
    # Sharp weights are mostly numbers so small that they would slow the processor down.
    torch.set_flush_denormal(True)
    try:
        tiny = train_tiny(tiny, train, steps=steps, seed=seed)
    finally:
        torch.set_flush_denormal(False)
    return {
        "losses": thin(tiny.losses, EVERY),
        "updates": updates_until(tiny.losses, LEARNED),
        "exact": count_exact(tiny, test),
        "deviation": deviation,
        "entropy": entropy,
        "gradient": gradient,
        "entropy_after": _look(tiny, train[:64])[1],
    }


@torch.no_grad()
def _start_at_unit_variance(tiny: Tiny, seed: int) -> None:
    """Give the projections of queries and keys weights of variance 1 ÷ d_model.

    Their inputs have a variance of about 1, so that queries and keys get it too.
    """
    for name, weight in tiny.model.named_parameters():
        if name.endswith(("query.weight", "key.weight")):
            drawn = generator(seed, "unit variance", name).standard_normal(tuple(weight.shape))
            weight.copy_(torch.from_numpy(drawn / weight.shape[1] ** 0.5))


@torch.no_grad()
def _look(tiny: Tiny, pairs: Sequence[Pair]) -> tuple[float, float]:
    """Compute the deviation of the encoder's scores and the entropy of its weights."""
    # "scaled" is what the softmax reads, with or without a division.
    keeper = Keeper(("scaled", "weights"), ("encoder.0.self",))
    batch = tiny.batch(pairs)
    real_BS = batch.source_mask_BS
    tiny.model.encode(batch.source_BS, real_BS, probe=keeper)
    weights_BHLM = keeper.found["encoder.0.self.weights"]
    scaled_BHLM = keeper.found["encoder.0.self.scaled"]
    is_pair_BHLM = (real_BS[:, None, :, None] & real_BS[:, None, None, :]).expand_as(scaled_BHLM)
    entropy_BHL = -(weights_BHLM * weights_BHLM.clamp_min(1e-30).log()).sum(dim=-1)
    # Even weights on all words of its own sentence have the largest entropy.
    most_B11 = real_BS.sum(dim=1).log()[:, None, None]
    share_BHL = (entropy_BHL / most_B11)[real_BS[:, None].expand_as(entropy_BHL)]
    return float(scaled_BHLM[is_pair_BHLM].std()), float(share_BHL.mean())


def _gradient(tiny: Tiny, pairs: Sequence[Pair]) -> float:
    """Compute the norm of the gradient in the encoder's queries and keys, before training.

    It is divided by the norm of the weights, so that the two starts compare.
    """
    derive_loss(tiny, pairs)
    chosen = [
        weight
        for name, weight in tiny.model.named_parameters()
        if name.startswith("encoder.") and name.endswith(("query.weight", "key.weight"))
    ]
    squares = sum(float(one.grad.square().sum()) for one in chosen if one.grad is not None)
    sizes = sum(float(one.detach().square().sum()) for one in chosen)
    # The training that follows begins without this gradient.
    tiny.model.zero_grad()
    return float((squares / sizes) ** 0.5)


def _softmax_table(cells: Cells, kind: str) -> ResultTable:
    here = cells.where(kind=kind)
    columns: list[Column] = []
    for what, form in (
        ("deviation", ".2f"),
        ("largest", ".3f"),
        ("entropy", ".3f"),
        ("gradient", ".2g"),
    ):
        columns.append(Column(what, what, form, where={"how": RAW}))
        columns.append(Column("÷√d_k", what, form, where={"how": SCALED}))
    title = f"Without and with the scale: {KINDS[kind]}"
    return here.table(title, "width", columns, head="d_k")


def _learning_table(cells: Cells, start: str) -> ResultTable:
    return cells.table(
        f"Training from {STARTS[start]}: scores, entropy and relative gradient before the first "
        "update, entropy after the last, trainings that learned with their updates, right",
        ("width", "how"),
        (
            Column("deviation", "deviation"),
            Column("entropy", "entropy"),
            Column("gradient", "gradient"),
            Column("after", "entropy_after"),
            Column("learned", "updates", over_seeds="count"),
            Column("updates", "updates"),
            Column("right, %", "exact", scale=100),
        ),
        head=("d_k", ""),
        names={SCALED: "÷√d_k"},
    )


def _panel(cells: Cells, title: str, label: str, what: str) -> Panel:
    is_log = what == "gradient"
    return cells.panel(
        title,
        ("width of queries and keys, d_k", label),
        {
            "divided by √d_k": {"kind": "independent", "how": SCALED},
            "not divided": {"kind": "independent", "how": RAW},
            "divided, a key equals the query": {"kind": "alike", "how": SCALED},
        },
        "width",
        what,
        x_log=True,
        y_log=is_log,
        y_range=None if is_log else (0, 1),
    )


def _course(cells: Cells, widths: Sequence[int]) -> Panel:
    return cells.panel(
        f"Training loss at d_k = {widths[-1]}, from variance 1",
        ("update", "nats a word"),
        {
            "divided by √d_k": {"width": widths[-1], "how": SCALED},
            "not divided": {"width": widths[-1], "how": RAW},
            f"not divided, d_k = {widths[0]}": {"width": widths[0], "how": RAW},
        },
        cells.updates("losses", EVERY),
        "losses",
        y_log=True,
    )
