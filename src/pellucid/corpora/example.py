"""An example: a pair of written sentences, with gold links and antecedents.

A *piece* is the text between two spaces. Punctuation belongs to the word before it, and an elided
or contracted word forms one piece with the next word: *l'homme*, *l'a*, *du*. Links join pieces, so
that ``l'a`` is linked both to *it* and to *ate*. The only space inside a piece is the narrow
no-break space of ``vie !``. It occurs only before the last mark, so that programs that cut there
too count the same indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pellucid.corpora.french import NARROW_SPACE, Word
from pellucid.corpora.sentence import Sentence


@dataclass(frozen=True, slots=True)
class Pronoun:
    """The pieces of a pronoun and of its antecedent's head noun, from 0, in both languages."""

    source: int
    source_antecedent: int
    target: int
    target_antecedent: int


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence pair of the corpus.

    ``alignment`` holds sure links (English piece, French piece), sorted.
    """

    source: str
    target: str
    alignment: tuple[tuple[int, int], ...]
    pronouns: tuple[Pronoun, ...]
    construction: str


@dataclass(frozen=True, slots=True)
class Style:
    """The writing of a sentence: a capital or not, and the last mark."""

    has_capital: bool
    mark: str
    is_title: bool = False


def make_example(sentence: Sentence, pieces: Sequence[Word], style: Style) -> Example:
    """Write out a sentence pair.

    Args:
        sentence: the words in both languages.
        pieces: the French words, joined.
        style: the capital and the last mark, the same in both languages.
    """
    english = list(sentence.english)
    french = [piece.text for piece in pieces]
    if style.is_title:
        english = [word if word in _SMALL else _capital(word) for word in english]
    # *I* and names always have a capital, so that nothing in English would announce a lower-case
    # word at the beginning of the French.
    if style.has_capital or english[0][0].isupper():
        english[0], french[0] = _capital(english[0]), _capital(french[0])
    english[-1] += style.mark
    french[-1] += NARROW_SPACE + style.mark if style.mark in ("!", "?") else style.mark
    alignment = {(link, j) for j, piece in enumerate(pieces) for link in piece.links}
    places = {role: j for j, piece in enumerate(pieces) for role in piece.roles}
    pronouns = tuple(
        Pronoun(
            link.english, link.english_antecedent, places[link.role], places[link.role_antecedent]
        )
        for link in sentence.pronouns
    )
    return Example(
        " ".join(english),
        " ".join(french),
        tuple(sorted(alignment)),
        pronouns,
        sentence.construction,
    )


_SMALL = frozenset({"a", "an", "and", "at", "behind", "from", "in", "of", "on", "out", "the"}) | {
    "to",
    "under",
}
"""Words without a capital inside a title."""


def _capital(word: str) -> str:
    return word[0].upper() + word[1:]
