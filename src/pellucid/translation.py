"""What a translator gives back."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NOTHING", "Scored", "TranslatedHypothesis", "Translation"]


@dataclass(frozen=True)
class TranslatedHypothesis:
    """One translation of a line.

    Attributes:
        text: the translation, one line.
        tokens: its pieces, ``</s>`` included.
        ids: their indices.
        token_log_probabilities: natural logs of the model's softmax, one a token, before
            temperature, penalties and constraints.
        log_probability: their sum.
        score: what hypotheses are ranked by, after the length penalty.
    """

    text: str
    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    token_log_probabilities: tuple[float, ...] = ()
    log_probability: float = 0.0
    score: float = 0.0


NOTHING = TranslatedHypothesis("")
"""The translation of nothing."""


@dataclass(frozen=True)
class Translation:
    """One line translated.

    What is asked of it beside these is the best hypothesis's, empty where there is an error.

    Attributes:
        source: the line as given.
        hypotheses: as many as were asked for, where there are as many; the best first.
        error: one sentence where the line could not be translated, otherwise None.
    """

    source: str
    hypotheses: tuple[TranslatedHypothesis, ...]
    error: str | None = None

    @property
    def best(self) -> TranslatedHypothesis:
        """The first hypothesis; an empty one where there is an error."""
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
        """Their indices."""
        return self.best.ids

    @property
    def token_log_probabilities(self) -> tuple[float, ...]:
        """Natural logs of the model's softmax, one a token."""
        return self.best.token_log_probabilities

    @property
    def log_probability(self) -> float:
        """Their sum."""
        return self.best.log_probability

    @property
    def score(self) -> float:
        """What the best hypothesis was ranked by."""
        return self.best.score


@dataclass(frozen=True)
class Scored:
    """One given pair, and how likely the model finds its target.

    Attributes as in `TranslatedHypothesis`; ``source`` and ``target`` are the lines as given.
    """

    source: str
    target: str
    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    token_log_probabilities: tuple[float, ...] = ()
    log_probability: float = 0.0
    error: str | None = None
