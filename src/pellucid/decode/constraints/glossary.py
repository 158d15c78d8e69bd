"""A glossary: target terms that a translation must hold because of its source."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, final

from pellucid.decode.constraints.term_bases import Concept, choose_terms
from pellucid.decode.constraints.terms import (
    SENTENCE_ENDS,
    Capitals,
    WantedTerm,
    Words,
    cut_words,
    find_starts,
)
from pellucid.errors import DataError
from pellucid.machine.turns import give_way
from pellucid.text.word_forms import Match, base_forms

FREE = "*free*"
"""Stands among the forms of a target term whose words may have other endings."""

_CACHE_SIZE = 2**16
"""Words whose forms are remembered."""

_SMALL = """
a an and as at but by for from in into of on or the to via with
de des du et la le les à da do e y del el der das die und von zu
"""
_SMALL_WORDS = frozenset(_SMALL.split())  # without a capital inside titles


def forms_of(target: str) -> Words:
    """List the forms of a target term, which ``|`` separates, without `FREE`."""
    forms = (one.strip() for one in target.split("|"))
    return tuple(one for one in forms if one != FREE)


def _no_terms(concepts: Sequence[Concept], languages: tuple[str, str]) -> DataError:
    there = sorted({one.language for concept in concepts for one in concept})
    wanted = " and ".join(filter(None, languages)) or "the languages of the model, which names none"
    return DataError(
        f"A TBX glossary must have terms in {wanted} for the same concept, but has "
        f"{', '.join(there[:8]) or 'no languages'}. Take another glossary, or another model."
    )


@final
class _Node:
    """A place in the tree of all terms, reached by some words.

    Attributes:
        next: the places after each further word.
        own: the term that these words are; empty if none.
        at_start: the lower-case term that they are at the start of a sentence, if any.
    """

    __slots__ = ("at_start", "next", "own")

    def __init__(self) -> None:
        self.next: dict[str, _Node] = {}
        self.own = ""
        self.at_start = ""

    def walk(self, words: Words) -> _Node:
        """Return the place that some words lead to, and make it if need be."""
        node = self
        for word in words:
            node = node.next.setdefault(word, _Node())
        return node


class _Found(NamedTuple):
    """The longest term at a place: its length, itself, and whether it has its own forms."""

    length: int = 1
    source: str = ""
    is_plain: bool = True


@final
class Glossary:
    """Source terms and the target terms that translate them."""

    def __init__(
        self,
        terms: Mapping[str, str],
        *,
        match: Match = "auto",
        languages: tuple[str, str] = ("", ""),
        can_write: Callable[[str], bool] | None = None,
        case_sensitive: Collection[str] = (),
        concepts: Sequence[Concept] = (),
    ) -> None:
        """Index the terms by their words.

        Args:
            terms: the target term of each source term: a form, or several with ``|`` between
                them, of which the first is preferred; `FREE` allows other endings as well.
            match: the forms of a source term that are found, see `base_forms`.
            languages: of source and target, such as ``en``.
            can_write: tells whether a model can write a target term.
            case_sensitive: source terms whose capitals count, on both sides.
            concepts: of term bases, from which `for_languages` takes terms.
        """
        self.terms = dict(terms)
        self.concepts = concepts
        self.case_sensitive = frozenset(case_sensitive)
        self.can_write = can_write or (lambda _: True)
        self._match: Match = match
        self._languages = languages
        self._bases = lru_cache(_CACHE_SIZE)(self._list_bases)
        self._root = _Node()
        for source in self.terms:
            give_way()
            self._root.walk(cut_words(source)).own = source
            if source == source.lower() and source not in self.case_sensitive:
                capitalized = source[:1].upper() + source[1:]
                self._root.walk(cut_words(capitalized)).at_start = source

    def for_languages(
        self, languages: tuple[str, str], can_write: Callable[[str], bool] | None = None
    ) -> Glossary:
        """Return the same glossary for terms of other languages, and for a vocabulary.

        Terms that tables have come before those of term bases.

        Raises:
            DataError: a term base has no term in both languages.
        """
        terms = self.terms
        if self.concepts:
            chosen = choose_terms(self.concepts, languages)
            if not chosen:
                raise _no_terms(self.concepts, languages)
            terms = {**{one: "|".join(forms) for one, forms in chosen.items()}, **terms}
        return Glossary(
            terms,
            match=self._match,
            languages=languages,
            can_write=can_write,
            case_sensitive=self.case_sensitive,
        )

    def terms_for(self, source: str) -> tuple[WantedTerm, ...]:
        """Find the target terms whose source terms a text holds.

        Terms are found as whole words, in the order of the text, as often as they occur; signs
        such as ``_`` and ``&`` do not belong to a word. Of terms that overlap the longest counts,
        then the first. All runs of white space are equal. A term as it is comes before one of
        which the text has another form; that allows other endings in the translation too.

        Case matters, except that a term in lower case is also found with a capital at the
        beginning of a sentence, in titles (all longer words have capitals), in sentences of
        capitals only, and with any capitals if it has several words. Its target term begins with
        a capital at the beginning of a sentence, and has only capitals where the source has.

        The time is linear in the text, whatever the number of terms.

        Args:
            source: the text.
        """
        words = cut_words(source)
        lowered = tuple(map(str.lower, words))
        has_capitals = lowered != words
        may_differ = self._match != "exact"
        is_caseless = _find_caseless(words) if has_capitals else []
        found: list[tuple[int, int, WantedTerm]] = []
        for place, is_start in enumerate(find_starts(words)):
            give_way()
            one = self._longest(words, place, is_start=is_start)
            has_other_case = False
            if has_capitals:
                other = self._longest(lowered, place, is_start=False)
                if other.source in self.case_sensitive:
                    other = _Found()
                is_several = sum(map(str.isalpha, lowered[place : place + other.length])) > 1
                is_free = may_differ and (is_several or is_caseless[place])
                if is_free and other.source and (not one.source or other.length > one.length):
                    one = other
                has_other_case = other[:2] == one[:2]
            if one.source:
                there = words[place : place + one.length]
                term = self._wanted(one, there, is_start=is_start, has_other_case=has_other_case)
                found.append((one.length, place, term))
        return _longest_of(found, len(words))

    def _wanted(
        self, found: _Found, there: Words, *, is_start: bool, has_other_case: bool
    ) -> WantedTerm:
        """Say how a term that stands in a text must be translated."""
        source = found.source
        target = self.terms[source]
        forms = forms_of(target)
        text = "".join(there)
        capitals: Capitals = "any"
        if source in self.case_sensitive:
            capitals = "exact"
        # Otherwise the glossary has this very form, and its translation keeps its own capitals.
        elif has_other_case and text != source and text != text.lower():
            if text.isupper() and len(text) > 1:
                capitals = "all"
            elif is_start and text[:1].isupper():
                capitals = "start"
            else:
                capitals = "title"
        is_free = not found.is_plain or FREE in map(str.strip, target.split("|"))
        return WantedTerm(source, forms, is_free, capitals, self._languages[1])

    def _longest(self, words: Words, place: int, *, is_start: bool) -> _Found:
        """Find the longest term at a place; one with its own forms comes before others."""
        found = _Found()
        # Each node with whether the words on the way to it are the term's own.
        nodes = [(self._root, True)]
        for end in range(place, len(words)):
            word = words[end]
            # Its own form is the first.
            nodes = [
                (after, is_plain and base == word)
                for node, is_plain in nodes
                if node.next
                for base in self._bases(word)
                if (after := node.next.get(base)) is not None
            ]
            if not nodes:
                return found
            for node, is_plain in nodes:
                source = node.own or (node.at_start if is_start else "")
                if source:
                    found = _Found(end + 1 - place, source, is_plain)
                    break
        return found

    def _list_bases(self, word: str) -> Words:
        return base_forms(word, self._languages[0], self._match)


def _longest_of(found: list[tuple[int, int, WantedTerm]], num_words: int) -> tuple[WantedTerm, ...]:
    """Choose among terms that overlap, given by length and place, and put them in order."""
    is_taken = [False] * num_words
    chosen = []
    for length, place, term in sorted(found, key=lambda one: (-one[0], one[1])):
        # A longer one came before, so that it covers an end of this one.
        if not (is_taken[place] or is_taken[place + length - 1]):
            is_taken[place : place + length] = [True] * length
            chosen.append((place, term))
    return tuple(term for _, term in sorted(chosen, key=lambda one: one[0]))


def _find_caseless(words: Words) -> list[bool]:
    """Tell for each word whether its sentence is a title or has capitals only."""
    found: list[bool] = []
    for place, word in enumerate(words):
        if word not in SENTENCE_ENDS and place + 1 < len(words):
            continue
        sentence = words[len(found) : place + 1]
        letters = [one for one in sentence if one.isalpha()]
        is_caseless = False
        if letters and letters[0][0].isupper():
            is_title = all(one[0].isupper() or one in _SMALL_WORDS for one in letters)
            # One word with a capital is an ordinary beginning; one in capitals only is a title.
            is_one = len(letters) == 1 and not (letters[0].isupper() and len(letters[0]) > 1)
            is_caseless = is_title and not is_one
        found += [is_caseless] * len(sentence)
    return found
