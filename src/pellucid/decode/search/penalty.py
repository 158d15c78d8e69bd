"""The divisor of a hypothesis's log-probability, so that short ones do not always win."""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid.config import DecodingConfig


class LengthPenalty:
    r"""The score of a hypothesis of length Y, ``</s>`` included: $s(Y) = \log P / lp(Y)$.

    ``gnmt``: $lp(Y) = ((5 + Y) / 6)^α$; ``average``: $lp(Y) = Y^α$; ``none``: 1. None of them
    falls with the length, and log-probabilities only fall as tokens are added. So no continuation
    of a hypothesis can score better than its log-probability so far at its maximum length, and
    stopping by that bound is safe.

    Args:
        config: which penalty, and its α.
        longest: the greatest length that will be scored.
        device: the device of the table.

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
            length_T = length_T.clamp(min=1)  # no division by 0 in an empty slot
        self._table_T = length_T**config.alpha

    def score(self, total: Tensor, length: Tensor) -> Tensor:
        """Divide log-probabilities by the penalty of their lengths; shapes broadcast."""
        return total / self._table_T[length]
