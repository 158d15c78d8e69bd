"""The results of a translator: translations and scored pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

__all__ = ["NOTHING", "Scored", "TranslatedHypothesis", "Translation"]


@dataclass(frozen=True)
class TranslatedHypothesis:
    """One translation of a line.

    Attributes:
        text: the translation, one line.
        tokens: its pieces, ``</s>`` included.
        ids: the pieces' ids.
        token_log_probabilities: natural logs of the model's softmax, one per token, before
            temperature, penalties and constraints.
        log_probability: their sum.
        score: the ranking value, after the length penalty.
    """

    text: str
    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    token_log_probabilities: tuple[float, ...] = ()
    log_probability: float = 0.0
    score: float = 0.0

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Join the translations of the parts of one line."""
        return cls(
            " ".join(part.text for part in parts),
            tuple(token for part in parts for token in part.tokens),
            tuple(id_ for part in parts for id_ in part.ids),
            tuple(log for part in parts for log in part.token_log_probabilities),
            sum(part.log_probability for part in parts),
            sum(part.score for part in parts),
        )


NOTHING = TranslatedHypothesis("")
"""The translation of an empty line."""


@dataclass(frozen=True)
class Translation:
    """The translation of one line.

    All other properties are those of the best hypothesis, empty if there is an error.

    Attributes:
        source: the line as given.
        hypotheses: at most ``n_best``, the best first.
        error: one sentence if the line could not be translated, otherwise None.
    """

    source: str
    hypotheses: tuple[TranslatedHypothesis, ...]
    error: str | None = None

    @property
    def best(self) -> TranslatedHypothesis:
        """The first hypothesis; an empty one if there is an error."""
        return self.hypotheses[0] if self.hypotheses else NOTHING

    @property
    def text(self) -> str:
        """The best hypothesis's text."""
        return self.best.text

    @property
    def tokens(self) -> tuple[str, ...]:
        """The best hypothesis's pieces, ``</s>`` included."""
        return self.best.tokens

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of its pieces."""
        return self.best.ids

    @property
    def token_log_probabilities(self) -> tuple[float, ...]:
        """Natural logs of the model's softmax, one per token."""
        return self.best.token_log_probabilities

    @property
    def log_probability(self) -> float:
        """Their sum."""
        return self.best.log_probability

    @property
    def score(self) -> float:
        """The ranking value of the best hypothesis."""
        return self.best.score


@dataclass(frozen=True)
class Scored:
    """A given pair with the log-probability of its target.

    Attributes as in `TranslatedHypothesis`; ``source`` and ``target`` are the lines as given.
    """

    source: str
    target: str
    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    token_log_probabilities: tuple[float, ...] = ()
    log_probability: float = 0.0
    error: str | None = None
