"""The results of a translator: translations and scored pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, Self, final

from pellucid.config import Precision
from pellucid.decode.constraints.terms import UsedTerm
from pellucid.text.sentences import join_parts
from pellucid.wording.other_names import no_attribute

# exp(-1) is the 37 % that docs/guides/translating.md names.
HESITANT = -1.0
"""The log-probability below which a token is not what the model expects."""

Flag = Literal[
    "repeats", "long", "unfinished", "stuck", "empty", "invented", "unsure", "reordered", "partial"
]
"""A reason to read a translation: see `Notes.flags`."""


@final
class FixedCounts(Mapping[str, int]):
    """Counted characters, as a mapping that nobody can change."""

    __slots__ = ("_counts",)

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = dict(counts)

    def __getitem__(self, key: str) -> int:
        return self._counts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __hash__(self) -> int:
        return hash(frozenset(self._counts.items()))

    def __repr__(self) -> str:
        return repr(self._counts)


NO_COUNTS = FixedCounts({})


@dataclass(frozen=True, repr=False)
class Notes:
    """Unusual facts about a line and its translation; a fact that is absent has its default.

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
        missed_changes: those changes, such as ``cut word it``, that changed nothing, because the
            line lacks the word or has it more than once.
        precision: the precision that computed the translation if it is not the model's own, so that
            words may differ from those of other commands; otherwise empty.
    """

    replaced: Mapping[str, int] = NO_COUNTS
    dropped: Mapping[str, int] = NO_COUNTS
    unknown: Mapping[str, int] = NO_COUNTS
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
    missed_changes: tuple[str, ...] = ()
    precision: Precision | Literal[""] = ""

    def __post_init__(self) -> None:
        # All lines without anything unusual share one object, so nothing in it may be changed.
        for name in ("replaced", "dropped", "unknown"):
            counts = getattr(self, name)
            if not isinstance(counts, FixedCounts):
                object.__setattr__(self, name, FixedCounts(counts))

    def __repr__(self) -> str:
        return f"Notes({', '.join(f'{name}={one!r}' for name, one in self._unusual().items())})"

    def _unusual(self) -> dict[str, Any]:
        return {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) != one.default
        }

    def to_json(self) -> dict[str, Any]:
        """Return what is unusual as JSON values, shares rounded; empty if nothing is."""
        found = self._unusual()
        for name, value in found.items():
            if isinstance(value, float):
                found[name] = round(value, 4)
            elif isinstance(value, FixedCounts):
                found[name] = dict(value)
        return found


NO_NOTES = Notes()


@dataclass(frozen=True, repr=False)
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
        middle: of a chain of models, the texts between them. Tokens are then those of the last
            model, and ``log_probability`` and ``score`` sums over all models.
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
    middle: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"TranslatedHypothesis({self.text!r}, {_logs(self.log_probability)})"

    def to_dict(self, *, has_tokens: bool = True) -> dict[str, Any]:
        """Return the hypothesis as JSON values, with words and links if they were asked for.

        Args:
            has_tokens: False to leave out the tokens.
        """
        tokens = _TOKENS if has_tokens else ()
        links = () if self.alignment is None else ("words", "alignment")
        between = ("middle",) if self.middle else ()
        names = ("text", *tokens, "log_probability", "score", *links, *between)
        return {name: _plain(getattr(self, name)) for name in names}

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
class ModelStep:
    """The work of one model of a chain on a text.

    Attributes:
        model: its name.
        translation: the text that it wrote.
        notes: what was unusual to it.
    """

    model: str
    translation: str
    notes: Notes

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON values."""
        notes = {name: _plain(one) for name, one in self.notes.to_json().items()}
        return {"model": self.model, "translation": self.translation, "notes": notes}


@dataclass(frozen=True, repr=False)
class Translation:
    """The translation of one line, or of a text of several lines.

    ``str(translation)`` is its text, and a notebook shows it with its source. All other properties
    are those of the best hypothesis, empty if there is an error.

    Attributes:
        source: the text as given.
        hypotheses: at most ``n_best``, the best first.
        error: one sentence if the line could not be translated, otherwise None.
        notes: what is unusual about the line and its translation.
        source_words: the words of the source that the links of the hypotheses count, if they have
            links.
        through: of a chain, what each model made of it on the way to the best hypothesis.
        terms: of a glossary, those in the source, and what became of them in the best hypothesis.
    """

    source: str
    hypotheses: tuple[TranslatedHypothesis, ...]
    error: str | None = None
    notes: Notes = NO_NOTES
    source_words: tuple[str, ...] = ()
    through: tuple[ModelStep, ...] = ()
    terms: tuple[UsedTerm, ...] = ()

    if not TYPE_CHECKING:  # Type checkers would take every name for an attribute.

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(no_attribute("Translation", name), name=name, obj=self)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        if self.error is not None:
            return f"Translation(error={self.error!r})"
        notes = "" if self.notes == NO_NOTES else f", notes={self.notes!r}"
        more = len(self.hypotheses) - 1
        others = f", and {more} more" if more > 0 else ""
        return f"Translation({self.text!r}, {_logs(self.log_probability)}{notes}{others})"

    def _repr_html_(self) -> str:
        from pellucid.translate.links.linked_html import linked_lines, two_lines

        links = self.best.alignment
        # A text of several lines has no single row of words.
        if links is not None and "\n" not in self.source.strip():
            return linked_lines(self.source_words, self.best.words, links)
        flags = ", ".join(self.notes.flags)
        return two_lines(self.source, self.text if self.error is None else self.error, flags)

    def to_dict(self, *, has_tokens: bool = True) -> dict[str, Any]:
        """Return the translation as JSON values, the same as in files and over HTTP.

        Args:
            has_tokens: False to leave out the tokens of each hypothesis.

        Returns:
            ``source``, ``translation`` (the best text, or None), ``error``, ``hypotheses`` and
            ``notes``, which is empty if nothing is unusual; with links also ``source_words``, of a
            chain ``through``, and ``terms`` if the source has some of a glossary.
        """
        has_links = bool(self.source_words) or self.best.alignment is not None
        return {
            "source": _without_halves(self.source),
            "translation": None if self.error is not None else self.text,
            "error": self.error,
            **({"source_words": [*map(_without_halves, self.source_words)]} if has_links else {}),
            "hypotheses": [one.to_dict(has_tokens=has_tokens) for one in self.hypotheses],
            "notes": {name: _plain(one) for name, one in self.notes.to_json().items()},
            **({"through": [one.to_dict() for one in self.through]} if self.through else {}),
            **({"terms": [one.to_dict() for one in self.terms]} if self.terms else {}),
        }

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

    @property
    def alignment(self) -> tuple[tuple[int, int], ...] | None:
        """Its word links, source word and target word from 0; None unless asked for."""
        return self.best.alignment


class ModelLanguages(NamedTuple):
    """The languages of a model, as it names them; empty if they are unknown.

    Attributes:
        source: the code of the source language.
        target: the code of the target language.
        targets: all that ``to`` takes; none for a model without language codes.
    """

    source: str
    target: str
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Scored:
    """A given pair with the log-probability of its target.

    Attributes as in `TranslatedHypothesis`; ``source`` and ``target`` are the lines as given, and
    ``missed_changes`` those of `Notes`.
    """

    source: str
    target: str
    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    token_log_probabilities: tuple[float, ...] = ()
    log_probability: float = 0.0
    error: str | None = None
    missed_changes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        if self.error is not None:
            return f"Scored({self.target!r}, error={self.error!r})"
        return f"Scored({self.target!r}, {_logs(self.log_probability)})"

    def to_dict(self, *, has_tokens: bool = True) -> dict[str, Any]:
        """Return the score as JSON values, the same as in files and over HTTP.

        Args:
            has_tokens: False to leave out the tokens.
        """
        record: dict[str, Any] = {
            "source": _without_halves(self.source),
            "target": _without_halves(self.target),
            "error": self.error,
            # The default, 0.0, would mean a certain translation.
            "log_probability": self.log_probability if self.error is None else None,
        }
        if self.missed_changes:
            record["missed_changes"] = [*self.missed_changes]
        return record | {name: _plain(getattr(self, name)) for name in _TOKENS if has_tokens}


_HALF = re.compile(r"[\ud800-\udfff]")
_TOKENS = ("tokens", "ids", "token_log_probabilities")


def _logs(log_probability: float) -> str:
    return f"log_probability={log_probability:.3f}"


def _without_halves(text: str) -> str:
    """Put U+FFFD in the place of half characters, as which bytes that are not UTF-8 are read."""
    return text if text.isascii() else _HALF.sub("\ufffd", text)


def _plain(value: Any) -> Any:
    """Turn tuples into the lists that JSON has."""
    return list(map(_plain, value)) if isinstance(value, tuple) else value
