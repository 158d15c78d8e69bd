"""What a search returns."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Hypothesis"]


@dataclass(frozen=True)
class Hypothesis:
    """One way to go on from the start token.

    Attributes:
        ids: the chosen tokens, without the start token, with ``</s>`` where it was reached.
        token_log_probabilities: natural logs of the model's softmax, one for each id, before
            temperature, penalties and constraints.
        is_finished: whether it ends in ``</s>`` rather than at the length limit.
        score: what hypotheses are ranked by, after the length penalty.
    """

    ids: tuple[int, ...]
    token_log_probabilities: tuple[float, ...]
    is_finished: bool
    score: float

    @property
    def log_probability(self) -> float:
        """The sum over the tokens, ``</s>`` included."""
        return sum(self.token_log_probabilities)
