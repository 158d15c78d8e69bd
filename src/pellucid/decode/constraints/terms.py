"""Terms that a translation should hold, and whether it does: in which form, with which capitals."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple, final

from pellucid.languages.letters import word_pattern
from pellucid.machine.turns import give_way
from pellucid.text.normalization import normalize
from pellucid.text.word_forms import inflections, is_inflection

Capitals = Literal["any", "start", "all", "exact", "title"]
"""The capitals that a term asks for.

``any`` and ``start`` take a form as it is written, with a capital at the start of a sentence;
``start`` asks for that capital. ``title`` takes all capitals, ``all`` wants nothing else, and
``exact`` takes a form as it is written only.
"""

Outcome = Literal["hit", "form", "miss"]

Words = tuple[str, ...]

CAPITALS = "other capitals"
MISSING = "not in the translation"

# A sentence begins after one of these,
SENTENCE_ENDS = frozenset(".!?…。！？")
# with any of these in between.
_BETWEEN = frozenset(" \"'“”„«»‘’‚‹›()[]¿¡-–—_&*#•")


class WantedTerm(NamedTuple):
    """A term that a text has, and what may translate it.

    Attributes:
        source: the term, as the glossary has it.
        forms: its allowed translations, the preferred one first.
        is_free: True if their words may have other endings.
        capitals: that the translation needs.
        language: that of the translation; empty if unknown.
    """

    source: str
    forms: Words
    is_free: bool = False
    capitals: Capitals = "any"
    language: str = ""

    def candidates(self) -> list[str]:
        """List the forms to try, the preferred one first."""
        forms = [*self.forms]
        if self.is_free:
            forms += [other for form in self.forms for other in inflections(form, self.language)]
        return [spelled for form in dict.fromkeys(forms) for spelled in self._spelled(form)]

    def _spelled(self, form: str) -> list[str]:
        # A vocabulary may lack a form with other capitals than the glossary's.
        capitalized = form.upper() if self.capitals == "all" else form
        if self.capitals == "start":
            capitalized = f"{form[:1].upper()}{form[1:]}"
        return [*dict.fromkeys((capitalized, form))]


@dataclass(frozen=True)
class UsedTerm:
    """A term of a text, and what became of it.

    Attributes:
        source: the term, as the glossary has it.
        target: its preferred translation.
        outcome: ``hit``; ``form`` if the translation has another allowed form; ``miss``.
        written: the form in the translation; empty if it is missing.
        reason: why it should be looked at; empty if it need not.
    """

    source: str
    target: str
    outcome: Outcome
    written: str = ""
    reason: str = ""

    @property
    def name(self) -> str:
        """The term and its translation, for sentences: ``cat → chat``."""
        return f"{self.source} → {self.target}"

    @property
    def form(self) -> str:
        """What the translation has, as counts list it."""
        return f"{self.written} ({CAPITALS})" if self.reason == CAPITALS else self.written

    def to_dict(self) -> dict[str, Any]:
        """Return the term as JSON values; ``reason`` only if there is one."""
        found = {"source": self.source, "target": self.target, "outcome": self.outcome}
        found["written"] = self.written
        return found | ({"reason": self.reason} if self.reason else {})


def check_terms(terms: Sequence[WantedTerm], text: str) -> tuple[UsedTerm, ...]:
    """Look for terms in a translation, each as often as it is wanted.

    The longest come first, and none lies inside another one. The time is linear in the text, and
    in the terms.

    Args:
        terms: what the text should hold.
        text: the translation.
    """
    places = _Places(text)
    found: dict[int, UsedTerm] = {}
    for k in sorted(range(len(terms)), key=lambda k: -max(map(len, terms[k].forms))):
        found[k] = places.use(terms[k])
    return tuple(found[k] for k in range(len(terms)))


@final
class _Places:
    """The words of a translation, which terms take one after the other."""

    def __init__(self, text: str) -> None:
        self._words = cut_words(text)
        self._is_start = find_starts(self._words)
        self._taken = [False] * len(self._words)
        self._by_word: defaultdict[str, list[int]] = defaultdict(list)
        # Words with other endings begin alike; German umlauts may change the second letter.
        self._by_letter: defaultdict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(map(str.lower, self._words)):
            self._by_word[word].append(place)
            self._by_letter[word[:1]].append(place)
        self._waiting: dict[tuple[Any, ...], Iterator[tuple[int, int, bool]]] = {}

    def use(self, term: WantedTerm) -> UsedTerm:
        """Take a place that has a term; right capitals come before others."""
        target = term.forms[0]
        found = UsedTerm(term.source, target, "miss", reason=MISSING)
        for is_free in (False, True) if term.is_free else (False,):
            for form in term.forms:
                # Places that were passed are taken, or have something else: none is tried twice.
                key = (form, is_free, term.capitals, term.language)
                if key not in self._waiting:
                    self._waiting[key] = self._find(form, term, is_free=is_free)
                for place, end, has_capitals in self._waiting[key]:
                    if any(self._taken[place:end]):
                        continue
                    self._taken[place:end] = [True] * (end - place)
                    written = "".join(self._words[place:end])
                    is_same = written.lower() == target.lower()
                    outcome: Outcome = "hit" if is_same and has_capitals else "form"
                    reason = "" if has_capitals else CAPITALS
                    return replace(found, outcome=outcome, written=written, reason=reason)
        return found

    def _find(
        self, form: str, term: WantedTerm, *, is_free: bool
    ) -> Iterator[tuple[int, int, bool]]:
        """Yield the places of a form, the end of each, and whether its capitals are right."""
        pieces = cut_words(form)
        others: list[tuple[int, int, bool]] = []
        first = pieces[0].lower()
        beginnings = self._by_letter[first[:1]] if is_free else self._by_word[first]
        for place in beginnings:
            give_way()
            end = place + len(pieces)
            there = self._words[place:end]
            if len(there) < len(pieces):
                return
            if not all(
                _is_form(one, piece, term.language, is_free=is_free)
                for one, piece in zip(there, pieces, strict=True)
            ):
                continue
            if _has_capitals(there, pieces, term.capitals, is_start=self._is_start[place]):
                yield place, end, True
            else:
                others.append((place, end, False))
        yield from others


def _is_form(word: str, piece: str, language: str, *, is_free: bool) -> bool:
    if word.lower() == piece.lower():
        return True
    return is_free and word.isalpha() and is_inflection(word, piece, language)


def _has_capitals(there: Words, pieces: Words, capitals: Capitals, *, is_start: bool) -> bool:
    if capitals == "title":
        return True
    if capitals == "all":
        return "".join(there).isupper()
    # Endings may differ, so that only the first two letters of each word can be compared.
    for number, (one, piece) in enumerate(zip(there, pieces, strict=True)):
        is_same = one[:1].isupper() == piece[:1].isupper()
        if number == 0 and is_start and capitals != "exact":
            is_same = one[:1] == one[:1].upper() or (is_same and capitals == "any")
        if not is_same or one[1:2].isupper() != piece[1:2].isupper():
            return False
    return True


def cut_words(text: str) -> Words:
    """Cut a text into words, single other characters, and one space for white space."""
    text = " ".join(normalize(text, "nfc").split())
    return tuple(_pieces().findall(text))


def find_starts(words: Words) -> list[bool]:
    """Tell for each word whether a sentence begins there."""
    found: list[bool] = []
    is_start = True
    for word in words:
        found.append(is_start)
        is_start = word in SENTENCE_ENDS or (is_start and word in _BETWEEN)
    return found


@cache
def _pieces() -> re.Pattern[str]:
    # ASCII comes first, because it is fast to match.
    # Possessive, and not before other letters: otherwise `café` would be cut in two.
    ascii_piece = r"[\0-/:-@\[-`{-\x7f]|[A-Za-z0-9]++(?![^\0-\x7f])"
    return re.compile(f"{ascii_piece}|{word_pattern().pattern}|.", re.DOTALL)
