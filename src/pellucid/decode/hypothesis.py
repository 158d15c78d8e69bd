"""The result of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass

OVERFLOW = (
    "The model's logits must be finite numbers, but its weights are so large that these are not. "
    "Take an earlier checkpoint, or train again with a lower training.learning_rate."
)
"""The sentence about a model whose results overflow."""


@dataclass(frozen=True)
class Hypothesis:
    """One possible translation.

    Attributes:
        ids: the chosen tokens, without the start token, with ``</s>`` if it was reached.
        token_log_probabilities: natural logs of the model's softmax, one for each id, before
            temperature, penalties and constraints.
        is_finished: True if it ends in ``</s>``, not at the length limit.
        score: the value that hypotheses are ranked by, after the length penalty.
    """

    ids: tuple[int, ...]
    token_log_probabilities: tuple[float, ...]
    is_finished: bool
    score: float

    @property
    def log_probability(self) -> float:
        """The sum over the tokens, ``</s>`` included."""
        return sum(self.token_log_probabilities)

    @property
    def has_overflowed(self) -> bool:
        """True for `OVERFLOWED`."""
        # No other answer has it: a search gives up where a sum is not a number.
        return math.isnan(self.score)


Decided = tuple[tuple[int, ...], tuple[Hypothesis, ...] | None]
"""Ids that no further step of a search can change, and the hypotheses at its end."""

OVERFLOWED = Hypothesis((), (), is_finished=False, score=math.nan)
"""The only answer to a request on whose way logits were not finite."""
