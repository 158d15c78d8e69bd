"""Drawing the next token at random, from a softmax of which unlikely tokens are cut off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from pellucid.randomness import generator

__all__ = ["draw", "uniforms"]

# How many of the likeliest tokens are looked at first for top_p.
_FEW = 64


def uniforms(keys: Sequence[str], seed: int, count: int) -> np.ndarray:
    """Make the random numbers that samples are drawn with.

    A sample's numbers depend on the seed and its own key alone, not on its neighbors; asking for
    more of them does not change the first ones.

    Args:
        keys: one for each sample.
        seed: the option's.
        count: how many numbers each sample needs: one a token.

    Returns:
        ``float64`` of shape (samples, count), in [0, 1).
    """
    numbers = [generator(seed, "sample", key).random(count) for key in keys]
    return np.stack(numbers) if numbers else np.empty((0, count))


def draw(
    log_probabilities_AV: Tensor,
    uniform_A: Tensor,
    *,
    temperature: float,
    top_k: int,
    top_p: float,
    epsilon: float,
) -> Tensor:
    """Draw a token of each row by inverting the cumulative distribution.

    The distribution is the softmax of the log-probabilities over the temperature. It is cut down
    to the ``top_k`` likeliest tokens (0: all); to the fewest of the likeliest that together hold
    at least ``top_p``, so the one that crosses it stays; and to those of at least ``epsilon``,
    but the likeliest always stays. What is left is scaled to one. Of equally likely tokens the
    lower id counts as likelier.

    Args:
        log_probabilities_AV: natural logs, up to a constant for each row; minus infinity is
            never drawn, and at least one token of each row has more.
        uniform_A: a number in [0, 1) for each row.
        temperature: above 0; below 1 it favors likely tokens, above 1 unlikely ones.
        top_k: how many tokens are left at most.
        top_p: which share of the mass is left at least; 1 leaves all.
        epsilon: the least probability.

    Returns:
        ``token_A``.

    Source:
        Fan et al. 2018, "Hierarchical Neural Story Generation" (top-k); Holtzman et al. 2020,
        "The Curious Case of Neural Text Degeneration" (top-p); Hewitt et al. 2022, "Truncation
        Sampling as Language Model Desmoothing" (epsilon).

    Differs:
        All three are measured on the softmax at the temperature, so their order does not matter.
        Other libraries scale to one after each.
    """
    below_AV = log_probabilities_AV.double() - log_probabilities_AV.amax(1, keepdim=True)
    probability_AV = (below_AV / temperature).softmax(dim=1)
    highest_A1 = probability_AV.amax(1, keepdim=True)
    is_kept_AV = None
    if epsilon > 0:
        is_kept_AV = probability_AV >= highest_A1.clamp(max=epsilon)
    if top_k or top_p < 1:
        is_likely_AV = _are_likely(probability_AV, top_k, top_p)
        is_kept_AV = is_likely_AV if is_kept_AV is None else is_kept_AV & is_likely_AV
    if is_kept_AV is not None:
        probability_AV = probability_AV.where(is_kept_AV, 0.0)
    return _invert(probability_AV, uniform_A.double())


def _are_likely(probability_AV: Tensor, top_k: int, top_p: float) -> Tensor:
    """Which tokens are among the ``top_k`` likeliest and the fewest that hold ``top_p``."""
    num_A1, least_A1 = _find_least(probability_AV, top_k, top_p)
    is_likely_AV = probability_AV >= least_A1
    if (is_likely_AV.sum(1, keepdim=True) > num_A1).any():
        is_above_AV = probability_AV > least_A1
        room_A1 = num_A1 - is_above_AV.sum(1, keepdim=True)
        is_likely_AV &= is_above_AV | ((is_likely_AV & ~is_above_AV).cumsum(1) <= room_A1)
    return is_likely_AV


def _find_least(probability_AV: Tensor, top_k: int, top_p: float) -> tuple[Tensor, Tensor]:
    """How many tokens of each row are likely, and the probability of the least likely of them.

    Only as many are sorted as are needed.
    """
    size = probability_AV.shape[1]
    count = top_k or _FEW
    while True:
        count = min(count, size)
        sorted_AX = probability_AV.topk(count).values
        before_AX = torch.nn.functional.pad(sorted_AX.cumsum(1)[:, :-1], (1, 0))
        is_likely_AX = before_AX < (top_p if top_p < 1 else torch.inf)
        if top_k or count == size or not is_likely_AX[:, -1].any():
            num_A1 = is_likely_AX.sum(1, keepdim=True)
            return num_A1, sorted_AX.gather(1, num_A1 - 1)
        count *= _FEW


def _invert(probability_AV: Tensor, uniform_A: Tensor) -> Tensor:
    """The first token at which the sum from the left exceeds its share of the whole."""
    sum_AV = probability_AV.cumsum(1)
    # A little less than the total, which no sum exceeds; otherwise rounding could bring it there.
    target_A1 = uniform_A[:, None] * sum_AV[:, -1:] * (1 - 2**-50)
    # Sums made in parallel may also rise by rounding, where the probability is 0.
    return ((sum_AV > target_A1) & (probability_AV > 0)).byte().argmax(1)
