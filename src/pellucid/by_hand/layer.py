"""The parts of an encoder layer, written down: heads, W⁰, add and norm, feed-forward network.

Source:
    Notes "Transformers", equations 12 to 17.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.by_hand.sheet import (
    AttentionByHand,
    NamedMatrix,
    Step,
    make_given,
    make_step,
    make_weight_step,
    named_matrix,
)
from pellucid.by_hand.written_stages import (
    make_product_step,
    write_added,
    write_normed,
    write_spread,
)

EPSILON = 1e-5


@dataclass(frozen=True, eq=False)
class NormByHand:
    """A layer norm: ε, gain and bias if there are any, and whether it precedes the sub-layer."""

    epsilon: float = EPSILON
    gain_D: Tensor | None = None
    bias_D: Tensor | None = None
    is_before: bool = False


@dataclass(frozen=True, eq=False)
class FeedForwardByHand:
    """The two linear layers of a feed-forward network; a missing bias is zero."""

    inner_DF: Tensor
    outer_FD: Tensor
    inner_bias_F: Tensor | None = None
    outer_bias_D: Tensor | None = None


def joined_steps(
    names: Sequence[str], heads: Sequence[AttentionByHand], output: Tensor | None, name: str = "W⁰"
) -> tuple[tuple[Step, ...], Tensor]:
    """Join the contexts of the heads, and multiply by W⁰ if there is one.

    Returns:
        The steps, and the result.
    """
    contexts = [head.context_LE for head in heads if head.context_LE is not None]
    joined_LX = torch.cat(contexts, dim=-1)
    steps: list[Step] = []
    if len(heads) > 1:
        columns = tuple(
            # Features keep their number within a head, so that a stroke tells the head.
            f"c{index}" + "′" * head
            for head, context_LE in enumerate(contexts)
            for index in range(context_LE.shape[-1])
        )
        joined = NamedMatrix(tuple(names), columns, joined_LX)
        note = "The contexts of all heads, side by side. A stroke marks the second head, and so on."
        steps.append(make_step("joined", "Concat(h₁, h₂, …)", joined, note=note))
    if output is None:
        return tuple(steps), joined_LX
    # The rows of W⁰ are the columns that it meets.
    rows = steps[0].tables[0].columns if steps else tuple(f"c{i}" for i in range(len(output)))
    columns = tuple(map(str, range(output.shape[-1])))
    given = make_given(name, NamedMatrix(rows, columns, output))
    product = make_product_step("output", f"joined · {name}", names, joined_LX, output, "o")
    return (*steps, given, product), joined_LX @ output


def add_step(
    names: Sequence[str], x_LD: Tensor, change_LD: Tensor, formula: str
) -> tuple[Step, Tensor]:
    """Write a residual connection down.

    Returns:
        The step, and the sum.
    """
    total_LD = x_LD + change_LD
    arithmetic = write_added(names, x_LD, change_LD, "y")
    step = make_step(
        "residual",
        formula,
        named_matrix(names, total_LD, "y"),
        arithmetic=arithmetic,
    )
    return step, total_LD


def norm_steps(
    names: Sequence[str], rows_LD: Tensor, norm: NormByHand
) -> tuple[tuple[Step, Step], Tensor]:
    """Write a layer norm down, with the mean and the variance of each row.

    Returns:
        The steps, and the result.
    """
    mean_L1 = rows_LD.mean(dim=-1, keepdim=True)
    # Written out rather than by torch.var, whose default divides by n − 1.
    variance_L1 = (rows_LD - mean_L1).square().mean(dim=-1, keepdim=True)
    root_L1 = (variance_L1 + norm.epsilon).sqrt()
    normed_LD = (rows_LD - mean_L1) / root_L1
    normed_LD = normed_LD if norm.gain_D is None else normed_LD * norm.gain_D
    normed_LD = normed_LD if norm.bias_D is None else normed_LD + norm.bias_D
    spread = write_spread(names, rows_LD, norm.epsilon)
    result = write_normed(names, rows_LD, mean_L1, root_L1, gain_D=norm.gain_D, bias_D=norm.bias_D)
    ends = ("" if norm.gain_D is None else " · gain") + ("" if norm.bias_D is None else " + bias")
    columns = ("μ", "σ²", "√(σ² + ε)")
    values_LX = torch.cat([mean_L1, variance_L1, root_L1], dim=-1)
    steps = (
        make_step(
            "mean and variance",
            f"of each row; ε = {norm.epsilon:g}",
            NamedMatrix(tuple(names), columns, values_LX),
            note="σ² divides by the number of features, not by one less.",
            arithmetic=spread,
        ),
        make_step(
            "norm",
            f"(y − μ) ÷ √(σ² + ε){ends}",
            named_matrix(names, normed_LD, "n"),
            arithmetic=result,
        ),
    )
    return steps, normed_LD


def feed_forward_steps(
    names: Sequence[str], x_LD: Tensor, network: FeedForwardByHand
) -> tuple[tuple[Step, ...], Tensor]:
    """Write a feed-forward network down: max(0, x·W₁ + b₁)·W₂ + b₂.

    Returns:
        The steps, and the result.
    """
    inner = make_product_step(
        "inner",
        "max(0, x·W₁ + b₁)" if network.inner_bias_F is not None else "max(0, x·W₁)",
        names,
        x_LD,
        network.inner_DF,
        "h",
        bias_K=network.inner_bias_F,
        is_rectified=True,
        note="What is negative becomes 0.",
    )
    # Taken from the table, so that the next step starts from what is shown.
    inner_LF = inner.tables[0].values_LX
    outer = make_product_step(
        "feed-forward",
        "inner·W₂ + b₂" if network.outer_bias_D is not None else "inner·W₂",
        names,
        inner_LF,
        network.outer_FD,
        "f",
        bias_K=network.outer_bias_D,
    )
    given = (
        make_weight_step("W₁", network.inner_DF),
        *_bias_step("b₁", network.inner_bias_F, "h"),
        make_given(
            "W₂",
            NamedMatrix(
                inner.tables[0].columns,
                tuple(map(str, range(network.outer_FD.shape[-1]))),
                network.outer_FD,
            ),
        ),
        *_bias_step("b₂", network.outer_bias_D, "f"),
    )
    return (*given, inner, outer), outer.tables[0].values_LX


def _bias_step(name: str, bias_F: Tensor | None, letter: str) -> tuple[Step, ...]:
    if bias_F is None:
        return ()
    return (make_given(name, named_matrix(("",), bias_F[None], letter)),)
