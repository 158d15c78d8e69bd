"""What a hypothesis's log-probability is divided by, so that short ones do not always win."""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid.config import DecodingConfig

__all__ = ["LengthPenalty"]


class LengthPenalty:
    r"""The score of a hypothesis of length Y, ``</s>`` included: $s(Y) = \log P / lp(Y)$.

    ``gnmt``: $lp(Y) = ((5 + Y) / 6)^α$; ``average``: $lp(Y) = Y^α$; ``none``: 1. All grow with
    the length or stay, and log-probabilities only fall as tokens are added; so no continuation
    of a hypothesis can score better than its log-probability so far over the penalty of the
    longest length: that is `bound`, and stopping by it is safe.

    Args:
        config: which penalty, and its α.
        longest: the greatest length that will be asked for.
        device: where the table goes.

    Source:
        Wu et al. 2016, "Google's Neural Machine Translation System", equation 14, without the
        coverage penalty.
    """

    def __init__(self, config: DecodingConfig, longest: int, device: torch.device) -> None:
        length_T = torch.arange(longest + 1, dtype=torch.float64, device=device)
        if config.length_penalty == "none":
            length_T = torch.ones_like(length_T)
        elif config.length_penalty == "gnmt":
            length_T = (5 + length_T) / 6
        else:
            length_T = length_T.clamp(min=1)
        self._table_T = length_T**config.alpha

    def score(self, total: Tensor, length: Tensor) -> Tensor:
        """Divide log-probabilities by the penalty of their lengths; shapes broadcast."""
        return total / self._table_T[length]

    def bound(self, total: Tensor, longest: Tensor) -> Tensor:
        """The best score that anything growing from here could still get."""
        return total / self._table_T[longest]
