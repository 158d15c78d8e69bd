"""Drawing the next token at random, from a softmax without its unlikely tokens."""

from __future__ import annotations

import torch
from torch import Tensor

# The number of likeliest tokens to sort first for top_p, and the factor if they do not suffice.
_FEW = 64


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
    except that the likeliest always stays. The rest is scaled to one. Of equally likely tokens
    the lower id counts as likelier.

    Args:
        log_probabilities_AV: natural logs, up to a constant for each row. A token with minus
            infinity is never drawn; at least one token of each row has more.
        uniform_A: a number in [0, 1) for each row.
        temperature: above 0; below 1 it favors likely tokens, above 1 unlikely ones.
        top_k: the maximum number of tokens left.
        top_p: the minimum share of the probability left; 1 leaves all.
        epsilon: the minimum probability.

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
    # In double precision, as in the engine in C, so that both draw the same tokens.
    below_AV = log_probabilities_AV.double() - log_probabilities_AV.amax(1, keepdim=True)
    probability_AV = (below_AV / temperature).softmax(dim=1)
    kept_AV = probability_AV
    if epsilon > 0:
        least_A1 = probability_AV.amax(1, keepdim=True).clamp(max=epsilon)
        kept_AV = kept_AV.where(probability_AV >= least_A1, 0.0)
    if top_k or top_p < 1:
        kept_AV = kept_AV.where(_are_likely(probability_AV, top_k, top_p), 0.0)
    return _invert(kept_AV, uniform_A.double())


def _are_likely(probability_AV: Tensor, top_k: int, top_p: float) -> Tensor:
    """Find the tokens among the ``top_k`` likeliest and the fewest that hold ``top_p``."""
    num_A1, least_A1 = _find_least(probability_AV, top_k, top_p)
    is_likely_AV = probability_AV >= least_A1
    if (is_likely_AV.sum(1, keepdim=True) > num_A1).any():
        # Several tokens are as likely as the last one; those with lower ids get the room.
        is_above_AV = probability_AV > least_A1
        room_A1 = num_A1 - is_above_AV.sum(1, keepdim=True)
        is_likely_AV &= is_above_AV | ((is_likely_AV & ~is_above_AV).cumsum(1) <= room_A1)
    return is_likely_AV


def _find_least(probability_AV: Tensor, top_k: int, top_p: float) -> tuple[Tensor, Tensor]:
    """Count the likely tokens of each row, and find the probability of the least likely of them.

    Sorts only as many as needed.
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
    """Find the first token at which the sum from the left exceeds its share of the whole."""
    sum_AV = probability_AV.cumsum(1)
    # A little less than the total: no sum exceeds the total, and rounding could reach it.
    target_A1 = uniform_A[:, None] * sum_AV[:, -1:] * (1 - 2**-50)
    # Sums made in parallel may also rise by rounding at tokens of probability 0.
    return ((sum_AV > target_A1) & (probability_AV > 0)).byte().argmax(1)
