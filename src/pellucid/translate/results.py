"""The results of a translator: translations and scored pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self

from pellucid.text.sentences import join_parts

Flag = Literal[
    "repeats", "long", "unfinished", "stuck", "empty", "invented", "unsure", "reordered", "partial"
]
"""A reason to read a translation: see `Notes.flags`."""


@dataclass(frozen=True)
class Notes:
    """What is unusual about a line and its translation; everything has its default if nothing is.

    Attributes:
        replaced: characters of the line that the model has not learned and that were replaced by
            ones that it knows, with their counts.
        dropped: invisible characters that were left out for the same reason.
        unknown: characters that remained, though training had none of them.
        rare_characters: the share of the line's characters that training had fewer than 10 times.
        rare_tokens: the share of its tokens that training had fewer than 10 times.
        unknown_tokens: the share of its tokens that are ``<unk>`` or single bytes, because their
            text is outside the vocabulary.
        unknown_words: the words that are not in a vocabulary of whole words.
        parts: the number of parts that the line was split into at sentence ends.
        is_long: True if the line, or its longest part, is far longer than the lines of training.
        is_whole: True if the line has more sentences than the lines of training, but was not
            split because of its constraints.
        exceeds_vector: True if the model puts a source into one vector of fixed length, and the
            line, or a part of it, has more tokens than any source of training.
        language_code: ``missing`` if the model has language codes and the line has none, or a code
            that the model does not know.
        unlinked_words: the words that no word of the translation is linked to.
        flags: reasons to read the translation. It ``repeats`` itself; is ``long``, far longer than
            any target that training had for such a source; is ``unfinished`` at the maximum
            length; ``stuck``: attention never left one word; ``empty``; ``invented``: words for a
            line without letters; ``unsure``: the model gave its own words a low probability;
            ``partial``: it may leave words out, see ``unlinked_words``.
        retried: True if a second search, against repetitions, gave this translation.
    """

    replaced: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    rare_characters: float = 0.0
    rare_tokens: float = 0.0
    unknown_tokens: float = 0.0
    unknown_words: tuple[str, ...] = ()
    parts: int = 1
    is_long: bool = False
    is_whole: bool = False
    exceeds_vector: bool = False
    language_code: str = ""
    unlinked_words: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    retried: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return what is unusual as JSON values, shares rounded; empty if nothing is."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in values.items()
            # One part is the usual case, although 1 is a true value.
            if value and not (name == "parts" and value == 1)
        }


NO_NOTES = Notes()


@dataclass(frozen=True)
class TranslatedHypothesis:
    """One translation of a line.

    Attributes:
        text: the translation, with the line breaks and the white space at the edges of the source.
        tokens: its pieces, ``</s>`` included.
        ids: the pieces' ids.
        token_log_probabilities: natural logs of the model's softmax, one per token, before
            temperature, penalties and constraints.
        log_probability: their sum.
        score: the ranking value, after the length penalty.
        parts: the translations of the parts of the source, if it was split.
        alignment: if it was asked for, the links (source word, target word), both from 0.
        words: the words of the text that they count.
    """

    text: str
    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    token_log_probabilities: tuple[float, ...] = ()
    log_probability: float = 0.0
    score: float = 0.0
    parts: tuple[Self, ...] = ()
    alignment: tuple[tuple[int, int], ...] | None = None
    words: tuple[str, ...] = ()

    @classmethod
    def joined(cls, parts: Sequence[Self], gaps: Sequence[str | None]) -> Self:
        """Join the translations of the parts of one text.

        Args:
            parts: the translations.
            gaps: what stands before, between and after them, see `join_parts`.
        """
        return cls(
            join_parts([part.text for part in parts], gaps),
            tuple(token for part in parts for token in part.tokens),
            tuple(id_ for part in parts for id_ in part.ids),
            tuple(log for part in parts for log in part.token_log_probabilities),
            sum(part.log_probability for part in parts),
            # Combinations of parts are ranked by this sum too.
            sum(part.score for part in parts),
            parts=tuple(parts),
        )


NOTHING = TranslatedHypothesis("")
"""A hypothesis without text."""


@dataclass(frozen=True)
class Translation:
    """The translation of one line, or of a text of several lines.

    All other properties are those of the best hypothesis, empty if there is an error.

    Attributes:
        source: the text as given.
        hypotheses: at most ``n_best``, the best first.
        error: one sentence if the line could not be translated, otherwise None.
        notes: what is unusual about the line and its translation.
        source_words: the words of the source that the links of the hypotheses count, if they have
            links.
    """

    source: str
    hypotheses: tuple[TranslatedHypothesis, ...]
    error: str | None = None
    notes: Notes = NO_NOTES
    source_words: tuple[str, ...] = ()

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
