"""The result of a search."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Hypothesis"]


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
