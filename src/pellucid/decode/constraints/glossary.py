"""A glossary: target terms that a translation must hold because of its source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import final

from pellucid.errors import DataError
from pellucid.languages.letters import word_pattern
from pellucid.machine.turns import give_way
from pellucid.text.normalization import normalize
from pellucid.text.reading.lines import read_lines
from pellucid.text.word_forms import Match, base_forms

_Words = tuple[str, ...]

_CACHE_SIZE = 2**16
"""Words whose forms are remembered."""

# A sentence begins after one of these,
_SENTENCE_ENDS = frozenset(".!?…。！？")
# with any of these in between.
_BETWEEN = frozenset(" \"'“”„«»‘’‚‹›()[]¿¡-–—_&*#•")

_SMALL = """
a an and as at but by for from in into of on or the to via with
de des du et la le les à da do e y del el der das die und von zu
"""
_SMALL_WORDS = frozenset(_SMALL.split())  # without a capital inside titles


@final
class Glossary:
    """Source terms and the target terms that translate them."""

    def __init__(
        self,
        terms: Mapping[str, str],
        *,
        match: Match = "auto",
        language: str = "",
        can_write: Callable[[str], bool] | None = None,
    ) -> None:
        """Index the terms by their words.

        Args:
            terms: the target term of each source term.
            match: the forms of a term that are found, see `base_forms`.
            language: the language of the source terms, such as ``en``.
            can_write: tells whether a model can write a target term with other capitals.
        """
        self._can_write = can_write or (lambda _: True)
        self.terms = dict(terms)
        self._match: Match = match
        self._language = language
        self._bases = lru_cache(_CACHE_SIZE)(self._list_bases)
        self._targets: dict[_Words, str] = {}
        self._targets_of_capitalized: dict[_Words, str] = {}
        for source, target in self.terms.items():
            self._targets[_words(source)] = target
            if source == source.lower():
                capitalized = source[:1].upper() + source[1:]
                self._targets_of_capitalized[_words(capitalized)] = target
        lengths: dict[str, set[int]] = {}
        for words in (*self._targets, *self._targets_of_capitalized):
            lengths.setdefault(words[0], set()).add(len(words))
        # The longest first, so that the first term found is the longest.
        self._lengths = {word: sorted(sizes, reverse=True) for word, sizes in lengths.items()}
        # By their first word, because few words of a text begin a term of a large glossary.
        self._terms_from: dict[str, list[tuple[_Words, str]]] = {}
        for targets in (self._targets, self._targets_of_capitalized):
            for term, target in targets.items():
                self._terms_from.setdefault(term[0], []).append((term, target))

    def for_language(
        self, language: str, can_write: Callable[[str], bool] | None = None
    ) -> Glossary:
        """Return the same glossary for source terms of another language, and for a vocabulary."""
        return Glossary(self.terms, match=self._match, language=language, can_write=can_write)

    def terms_for(self, source: str) -> tuple[str, ...]:
        """Find the target terms whose source terms a text holds.

        Terms are found as whole words, in the order of the text, as often as they occur; signs
        such as ``_`` and ``&`` do not belong to a word. If several begin at the same place, the
        longest counts; terms do not overlap. All runs of white space are equal. A term as it is
        comes before one of which the text has another form.

        Case matters, except that a term in lower case is also found with a capital at the
        beginning of a sentence, in titles (all longer words have capitals), in sentences of
        capitals only, and with any capitals if it has several words. Its target term begins with
        a capital at the beginning of a sentence, and has only capitals where the source has.

        Args:
            source: the text.
        """
        words = _words(source)
        lowered = tuple(map(str.lower, words))
        has_capitals = lowered != words
        may_differ = self._match != "exact"
        is_caseless = _find_caseless(words) if has_capitals else []
        found = []
        place = 0
        is_start = True
        while place < len(words):
            give_way()
            length, target = self._longest(words, place, is_start)
            if has_capitals:
                other = self._longest(lowered, place, is_start=False)
                is_several = sum(map(str.isalpha, lowered[place : place + other[0]])) > 1
                is_free = may_differ and (is_several or is_caseless[place])
                if is_free and other[1] and (target is None or other[0] > length):
                    length, target = other
                if other == (length, target):
                    target = self._with_capitals(target, words[place : place + length], is_start)
            if target is not None:
                found.append(target)
            last = words[place + length - 1]
            is_start = last in _SENTENCE_ENDS or (is_start and last in _BETWEEN)
            place += length
        return tuple(found)

    def _with_capitals(self, target: str | None, there: _Words, is_start: bool) -> str | None:
        """Write the target of a term in lower case with the capitals that the source has."""
        if target is None or there in self._targets:
            return target  # The glossary has this very form.
        text = "".join(there)
        wanted = target
        if text.isupper() and len(text) > 1:
            wanted = target.upper()
        elif is_start and text[:1].isupper():
            wanted = target[:1].upper() + target[1:]
        return wanted if wanted == target or self._can_write(wanted) else target

    def _longest(self, words: _Words, place: int, is_start: bool) -> tuple[int, str | None]:
        """Find the longest term at a place: its length and translation, or 1 and None."""
        found = self._longest_as_it_is(words, place, is_start)
        if self._match == "exact":
            return found
        for first in self._bases(words[place]):
            for term, target in self._terms_from.get(first, ()):
                is_longer = found[1] is None or len(term) > found[0]
                if is_longer and self._is_there(term, words, place, is_start):
                    found = (len(term), target)
        return found

    def _longest_as_it_is(
        self, words: _Words, place: int, is_start: bool
    ) -> tuple[int, str | None]:
        for length in self._lengths.get(words[place], ()):
            term = words[place : place + length]
            target = self._targets.get(term)
            if target is None and is_start:
                target = self._targets_of_capitalized.get(term)
            if target is not None:
                return len(term), target
        return 1, None

    def _is_there(self, term: _Words, words: _Words, place: int, is_start: bool) -> bool:
        """Tell whether each word of a text at a place is a form of the term's word."""
        there = words[place : place + len(term)]
        # A form with a capital that the glossary lacks counts only where a sentence begins.
        if len(there) < len(term) or not (is_start or term in self._targets):
            return False
        return all(word in self._bases(other) for word, other in zip(term, there, strict=True))

    def _list_bases(self, word: str) -> tuple[str, ...]:
        return base_forms(word, self._language, self._match)


def load_glossary(*paths: Path | str, match: Match = "auto", language: str = "") -> Glossary:
    """Read a glossary from one file or several.

    Args:
        paths: UTF-8 files, plain or gzip: source term, tab, target term on each line. Empty lines
            and lines that begin with ``#`` are skipped.
        match: the forms of a term that are found, see `base_forms`.
        language: the language of the source terms, such as ``en``.

    Raises:
        DataError: a line has another form, or a source term has two translations; the message
            gives the file and the line's number.
        InputFileNotFoundError: a file does not exist.
    """
    terms: dict[str, str] = {}
    places: dict[str, tuple[Path | str, int]] = {}
    for path in paths:
        for number, source, target in _read_terms(path):
            known = terms.setdefault(source, target)
            first_path, first = places.setdefault(source, (path, number))
            if known != target:
                place = f"line {first}" if first_path == path else f"{first_path}:{first}"
                raise DataError(
                    f"A source term must have one translation, but {source!r} has {target!r} and "
                    f"also {known!r} in {place} ({path}:{number}). Remove one of them."
                )
    return Glossary(terms, match=match, language=language)


def _read_terms(path: Path | str) -> Iterator[tuple[int, str, str]]:
    """Yield the number, source term and target term of each line that has terms."""
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        # Accents in one form, so that a term equals the same word of a text.
        columns = [normalize(column, "nfc").strip() for column in line.split("\t")]
        where = f"{path}:{number}"
        if len(columns) != 2:
            raise DataError(
                "A line of a glossary must be source term, tab, target term, but has "
                f"{len(columns) - 1} tabs ({where}). Correct or remove it."
            )
        if not all(columns):
            side = "source" if not columns[0] else "target"
            raise DataError(
                f"Both terms of a glossary's line must hold text, but the {side} term is empty "
                f"({where}). Correct or remove it."
            )
        yield number, " ".join(columns[0].split()), columns[1]


def _words(text: str) -> _Words:
    """Cut a text into words, single other characters, and one space for white space."""
    text = " ".join(normalize(text, "nfc").split())
    return tuple(_pieces().findall(text))


def _find_caseless(words: _Words) -> list[bool]:
    """Tell for each word whether its sentence is a title or has capitals only."""
    found: list[bool] = []
    for place, word in enumerate(words):
        if word not in _SENTENCE_ENDS and place + 1 < len(words):
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


@cache
def _pieces() -> re.Pattern[str]:
    # ASCII comes first, because it is fast to match.
    # Possessive, and not before other letters: otherwise `café` would be cut in two.
    ascii_piece = r"[\0-/:-@\[-`{-\x7f]|[A-Za-z0-9]++(?![^\0-\x7f])"
    return re.compile(f"{ascii_piece}|{word_pattern().pattern}|.", re.DOTALL)
