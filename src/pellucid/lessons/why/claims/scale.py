r"""The scale $1/\sqrt{d_k}$: how sharp the softmax gets, and what is left of its gradient.

The gradient of a softmax with weights w is its Jacobian $\text{diag}(w) - ww^T$. Its size is
measured by the Frobenius norm, which is largest for even weights of two keys and 0 for a weight
of 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pellucid.lessons.why.result import (
    NOTES,
    OBJECTIVES,
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
from pellucid.machine.randomness import generator

WIDTHS = (8, 16, 32, 64, 128, 256, 512)
NUM_KEYS = 32
STAYS, FALLS = 0.5, 0.1
"""A gradient is kept if half of it is left at the largest d_k, and lost below a tenth."""

Kind = Literal["independent", "alike"]

NOTES_SAY = Statement(
    NOTES, "section 3.3", "the softmax isn't used in regions where it has extremely small gradients"
)
OBJECTIVES_SAY = Statement(
    OBJECTIVES, "", "help avoid high values in attention score and stabilize gradients"
)


@dataclass(frozen=True)
class Sharpness:
    """The softmax of many queries over their keys, for one d_k.

    Attributes:
        d_key: d_k.
        deviation: the standard deviation of the scores.
        largest: the largest weight, on average.
        entropy: of the weights, from 0 for one key to 1 for even weights.
        gradient: the Frobenius norm of the softmax's Jacobian; the median query's.
    """

    d_key: int
    deviation: float
    largest: float
    entropy: float
    gradient: float


def measure(setting: Setting) -> Measurement:
    """Measure softmax entropy and gradient for d_k from 8 to 512, with and without the scale."""
    queries = setting.choose(512, 64)
    runs: dict[tuple[Kind, bool], list[Sharpness]] = {}
    kinds: tuple[Kind, Kind] = ("independent", "alike")
    for kind in kinds:
        for is_scaled in (False, True):
            runs[kind, is_scaled] = [
                measure_sharpness(width, kind, is_scaled, queries=queries, seed=setting.seed)
                for width in WIDTHS
            ]
    verdict = judge(runs)
    raw, scaled = runs["independent", False][-1], runs["independent", True][-1]
    return Measurement(
        claim="scale",
        question="Does dividing by √d_k keep the gradients of the softmax alive?",
        number=f"At d_k = {WIDTHS[-1]} the gradient of the median query is {raw.gradient:.2g} "
        f"without the scale and {scaled.gradient:.2g} with it.",
        method=f"{queries} queries of d_k numbers with mean 0 and variance 1 meet {NUM_KEYS} keys. "
        "The gradient is the Frobenius norm of the softmax's Jacobian diag(w) − wwᵀ. The entropy "
        "is 1 if all weights are even and 0 if one key has all. In the second table one of the "
        "keys equals the query, as happens where a word meets itself without projections.",
        findings=(Finding(NOTES_SAY, verdict), Finding(OBJECTIVES_SAY, verdict)),
        tables=(
            _table("queries and keys are independent", runs["independent", False],
                   runs["independent", True]),
            _table("one key equals the query", runs["alike", False], runs["alike", True]),
        ),
        plot=_plot(runs),
        notes=(
            "The scores of independent vectors have the standard deviation √d_k. That of a vector "
            "with itself is d_k, so that √d_k divides too little: √d_k remains.",
        ),
        to_try=("pellucid attend help-me --row 0", "pellucid why diagonal"),
        seed=setting.seed,
        size=setting.size,
    )  # fmt: skip


def measure_sharpness(
    d_key: int, kind: Kind, is_scaled: bool, *, queries: int, seed: int
) -> Sharpness:
    """Draw queries and keys, and measure the softmax of their scores, in float64."""
    numbers = generator(seed, "why scale", d_key)
    query_LK = numbers.standard_normal((queries, d_key))
    key_LMK = numbers.standard_normal((queries, NUM_KEYS, d_key))
    if kind == "alike":
        key_LMK[:, 0] = query_LK
    scores_LM = np.einsum("lk,lmk->lm", query_LK, key_LMK)
    if is_scaled:
        scores_LM = scores_LM / math.sqrt(d_key)
    weights_LM = np.exp(scores_LM - scores_LM.max(axis=1, keepdims=True))
    weights_LM /= weights_LM.sum(axis=1, keepdims=True)
    logs_LM = np.log(np.maximum(weights_LM, 1e-300))
    return Sharpness(
        d_key,
        float(scores_LM.std()),
        float(weights_LM.max(axis=1).mean()),
        float((-weights_LM * logs_LM).sum(axis=1).mean() / math.log(NUM_KEYS)),
        float(np.median(softmax_gradient(weights_LM))),
    )


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


def judge(runs: dict[tuple[Kind, bool], list[Sharpness]]) -> Verdict:
    """Judge by how much of the gradient at the smallest d_k is left at the largest."""

    def left(kind: Kind, is_scaled: bool) -> float:
        found = runs[kind, is_scaled]
        return found[-1].gradient / found[0].gradient

    raw, scaled, alike = (
        left("independent", False), left("independent", True), left("alike", True)
    )  # fmt: skip
    rule = (
        f"holds if the scale keeps {STAYS:.0%} of the gradient from the smallest to the largest "
        f"d_k where {FALLS:.0%} or less is left without it; only for independent vectors if a key "
        "that equals its query loses more"
    )
    numbers = (
        f"left of the gradient: {raw:.2g} without the scale, {scaled:.2g} with it; {alike:.2g} "
        "with it if a key equals the query"
    )
    if scaled < STAYS or raw > FALLS:
        return Verdict("fails", "", rule, numbers)
    if alike < STAYS:
        return Verdict(
            "holds only if", "queries and keys are about as independent as before training",
            rule, numbers,
        )  # fmt: skip
    return Verdict("holds", "", rule, numbers)


def _table(title: str, raw: list[Sharpness], scaled: list[Sharpness]) -> Table:
    columns = ("d_k", "deviation", "÷√d_k", "largest", "÷√d_k", "entropy", "÷√d_k", "gradient",
               "÷√d_k")  # fmt: skip
    rows = tuple(
        (one.d_key, one.deviation, two.deviation, one.largest, two.largest, one.entropy,
         two.entropy, one.gradient, two.gradient)
        for one, two in zip(raw, scaled, strict=True)
    )  # fmt: skip
    forms = ("d", ".2f", ".2f", ".3f", ".3f", ".3f", ".3f", ".2g", ".2g")
    return Table(f"Without and with the scale: {title}", columns, forms, rows)


def _plot(runs: dict[tuple[Kind, bool], list[Sharpness]]) -> Plot:
    widths = tuple(float(width) for width in WIDTHS)

    def series(name: str, kind: Kind, is_scaled: bool, what: str, role: str) -> Series:
        heights = tuple(getattr(one, what) for one in runs[kind, is_scaled])
        return Series(name, widths, heights, role)  # type: ignore[arg-type]

    def panel(title: str, label: str, what: str, *, is_log: bool) -> Panel:
        return Panel(
            title, "width of queries and keys, d_k", label,
            (
                series("divided by √d_k", "independent", True, what, "accent"),
                series("not divided", "independent", False, what, "plain"),
                series("divided, a key equals the query", "alike", True, what, "plain"),
            ),
            x_log=True, y_log=is_log, y_range=None if is_log else (0, 1),
        )  # fmt: skip

    return Plot(
        (
            panel("Gradient of the softmax", "norm of the Jacobian (median)", "gradient",
                  is_log=True),
            panel("Entropy of the weights", "share of the most possible", "entropy", is_log=False),
        )
    )  # fmt: skip
