"""Writes the translation of a segment, and reads it again: copied parts and codes must be equal."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from pellucid.documents.markup.linked_words import Alignment
from pellucid.documents.markup.placeholder_shapes import find_placeholders
from pellucid.documents.markup.placing import write_placed
from pellucid.documents.markup.segments import Element, Segment, spell
from pellucid.documents.markup.tag_writing import Placed
from pellucid.documents.placeholders import (
    CLOSES,
    has_words,
    in_order,
    keeps_copies,
    without_surplus,
)
from pellucid.languages.letters import is_unspaced

_STOPS = ".!?…。！？।۔؟ "
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Signs that begin and end a part of another direction of writing."""
_LOOSE = re.compile(r" +([.,…)]+)(?=\s|\Z)")
"""Signs after a space that takes the place of a word that was left out."""


class LinkedTranslation(Protocol):
    """A translation of a text with its word links, if they are known."""

    @property
    def text(self) -> str:
        """The translation."""

    @property
    def words(self) -> Sequence[str]:
        """The words that links count."""

    @property
    def alignment(self) -> Sequence[tuple[int, int]] | None:
        """Pairs of a source word and a word of the translation."""


class GivenTranslation(NamedTuple):
    """A translation that no model of this process made, as `LinkedTranslation` has it."""

    text: str
    words: Sequence[str]
    alignment: Sequence[tuple[int, int]] | None


FEWEST_FOR_PLACEHOLDERS = 4
"""Translations among which one with all placeholders is sought."""

BY_LINKS = "placeholders were lost, and stand where word links put them"
BY_ORDER = "placeholders were lost, and stand after the word before them"
SOURCE = "not all of its codes or cues have a place in the translation, so that the source stays"
DIFFERS = "placeholders differ from those of the source"
WORDLESS = "no word is left between the placeholders"
EMPTIED = "an element that had words has none"
OTHER = "the likeliest translation changes the blocks of a template, so that another one stands"
BROKEN = "a placeholder that tags cut was lost, so that the source stays"
MOVED = "the text within or between the tags of a template has changed"
CUT = "a tag of a template stands within a word"
EMPTY = "the translation is empty, so that the source stays"


def write_segment(
    segment: Segment, answers: Sequence[LinkedTranslation], source_words: Sequence[str] = ()
) -> None:
    """Write the translation of a segment, or keep its source; say why it should be looked at.

    Args:
        segment: the segment.
        answers: the translations of its text without white space at its edges, the best first.
        source_words: the words of the text that links count.
    """
    own = segment.text
    fitting = [one for one in answers if keeps_copies(segment, one.text)]
    found = fitting[0] if fitting else None
    if segment.blocks and found is not None:
        found = next((one for one in fitting if _fits(segment, one, source_words)), found)
        segment.reason = "" if found is fitting[0] else OTHER
    answer = found or answers[0]
    text = answer.text
    links = answer.alignment
    words: tuple[Sequence[str], Sequence[str]] = (source_words, answer.words)
    if found is None:
        segment.reason = BY_ORDER if links is None else BY_LINKS
        text = without_surplus(segment, text).strip()
        # A source that has such spaces itself keeps them.
        if not _LOOSE.search(own):
            text = _LOOSE.sub(r"\1", text)
        # A stop after a copy is in no word, so that it may get lost with the copy.
        last = len(own.rstrip(_STOPS))
        if text[-1:].isalnum() and last in (one.end for one in segment.elements.values()):
            text += own[last:].rstrip()
    text = _paired_signs(text) if _paired_signs(own) == own else text
    if not text.strip():
        segment.reason = EMPTY
        return
    if text.strip() == own.strip():
        # Nothing moved, so the tags did not either: a model may copy what it does not know.
        segment.written = spell(segment.pieces)
        return
    # Without links, words stand for those at the same share of the text.
    if links is None:
        words = (own.split(), text.split()) if segment.reason else ((), ())
        share = len(words[1]) / max(1, len(words[0]))
        copies = segment.copies
        plain = (k for k, word in enumerate(words[0]) if not any(map(word.__contains__, copies)))
        links = [(place, int(place * share)) for place in plain]
    # The model read the text without the white space at its edges.
    whole = f"{own[: len(own) - len(own.lstrip())]}{text.strip()}{own[len(own.rstrip()) :]}"
    broken = _broken(segment)
    for one in _ways(segment):
        placed = write_placed(Alignment(one, whole, *words, links))
        written, shown = (in_order(segment, text) for text in placed[:2])
        if not _keeps_blocks(segment, placed):
            continue
        lost = broken - Counter(_find_shapes(segment, shown))
        if lost:
            segment.reason = f"{BROKEN}: {' '.join(lost)}"
            return
        if written == spell(segment.pieces) or _is_same(segment, written, shown):
            segment.written = written
            segment.reason = (
                segment.reason
                or _what_moved(segment, placed)
                or _what_differs(segment, written, shown)
            )
            return
    segment.reason = SOURCE


def _paired_signs(text: str) -> str:
    """Leave out signs of a direction of writing that have lost their partner."""
    if not _DIRECTIONS.search(text):
        return text
    opened = dict[str, list[int]]()
    lone = set[int]()
    for sign in _DIRECTIONS.finditer(text):
        closer = CLOSES.get(sign[0])
        if closer is not None:
            opened.setdefault(closer, []).append(sign.start())
        elif opened.get(sign[0]):
            opened[sign[0]].pop()
        else:
            lone.add(sign.start())
    lone.update(*opened.values())
    return "".join(sign for place, sign in enumerate(text) if place not in lone)


def _fits(segment: Segment, answer: LinkedTranslation, source_words: Sequence[str]) -> bool:
    """Tell whether a translation keeps the blocks of templates, and the words in them."""
    if answer.alignment is None:
        return False
    own = segment.text
    whole = f"{own[: len(own) - len(own.lstrip())]}{answer.text.strip()}{own[len(own.rstrip()) :]}"
    placed = write_placed(Alignment(segment, whole, source_words, answer.words, answer.alignment))
    return _keeps_blocks(segment, placed) and not _what_moved(segment, placed)


def _keeps_blocks(segment: Segment, placed: Placed) -> bool:
    """Tell whether each block of a template is there once, its tags in the order of the source."""
    if not segment.blocks:
        return True
    wanted = dict[int, list[str]]()
    elements = segment.elements
    for point in segment.points:
        if point.is_block:
            group = next((one for one in reversed(point.parents) if elements[one].is_block), -1)
            wanted.setdefault(group, []).append(spell(point.opening))
    for number, one in elements.items():
        if one.is_block:
            wanted[number] = [spell(one.opening), *wanted.get(number, ()), one.closing]
    found = dict[int, list[str]]()
    for raw, block, _ in placed.blocks:
        found.setdefault(block, []).append(raw)
    return wanted == found


def _what_moved(segment: Segment, placed: Placed) -> str:
    """Say what a translation changes in the blocks of templates, such as ``{% if x %}``."""
    own = segment.blocks
    for raw, place in own:
        around = segment.text[max(0, place - 1) : place + 1]
        # In scripts without spaces words always touch.
        if (
            place > 0
            and len(around) == 2
            and around.isalpha()
            and not any(map(is_unspaced, around))
        ):
            return f"{CUT}: {raw}"
    if placed.is_split or [raw for raw, _ in own] != [one.raw for one in placed.blocks]:
        return MOVED
    for one, other, first, second in zip(
        own, own[1:], placed.blocks, placed.blocks[1:], strict=False
    ):
        had_words = any(map(str.isalpha, segment.text[one[1] : other[1]]))
        if had_words != any(map(str.isalpha, placed.shown[first.place : second.place])):
            return f"{MOVED}: {one[0]}"
    return ""


def _what_differs(segment: Segment, written: str, shown: str) -> str:
    """Say which shapes a translation has not as its source, whatever was done to keep them."""
    wanted, found = (_shapes(segment, one) for one in (segment.text, shown))
    if wanted != found:
        names = dict.fromkeys(((wanted - found) + (found - wanted)).elements())
        return f"{DIFFERS}: {' '.join(names)}"
    if has_words(segment, segment.text) and not has_words(segment, shown):
        return WORDLESS
    for one in segment.elements.values():
        had_words = any(map(str.isalpha, segment.text[one.start : one.end]))
        if not one.is_copy and had_words and f"{spell(one.opening)}{one.closing}" in written:
            return f"{EMPTIED}: {spell(one.opening)}"
    return ""


def _broken(segment: Segment) -> Counter[str]:
    """Count the placeholders that tags cut: they are text, and no model needs to keep them."""
    elements = segment.elements.values()
    own = [*elements, *segment.points]
    borders = sorted(place for one in own for place in (one.start, one.end) if not one.is_copy)
    copies = sorted((one.start, one.end) for one in elements if one.is_copy)
    found = Counter[str]()
    for one in find_placeholders(segment.text, has_markup=segment.syntax.has_markup):
        border = bisect_right(borders, one.start)
        copy = bisect_left(copies, (one.end, one.end)) - 1
        # With brackets nothing else is meant; `$name<b>er</b>` is a name before a tag.
        is_whole = one.kind == "brace" or one.text.startswith("%(")
        is_copied = not is_whole and copy >= 0 and copies[copy][1] > one.start
        if one.token is None and border < len(borders) and borders[border] < one.end:
            found[one.text] += not is_copied
    return +found


def _shapes(segment: Segment, text: str) -> Counter[str]:
    """Count what has the shape of a placeholder, also over tags, and braces of any kind."""
    return Counter(_find_shapes(segment, text)) + Counter(re.findall("[{}]", text))


def _find_shapes(segment: Segment, text: str) -> Iterator[str]:
    found = find_placeholders(text, has_markup=segment.syntax.has_markup)
    return (one.text for one in found if one.token is None)


def _ways(segment: Segment) -> Iterator[Segment]:
    """Yield the segment as it is; then with all signs escaped; then also on one line."""
    yield segment
    syntax = segment.syntax
    harsh = replace(syntax, escapes={**syntax.escapes, **syntax.all_signs})
    spaces = {
        place: form for place, form in segment.spellings.items() if segment.text[place].isspace()
    }
    if syntax.all_signs:
        yield replace(segment, syntax=harsh, spellings=spaces)
    yield replace(segment, syntax=harsh, spellings={})


def _is_same(segment: Segment, written: str, shown: str) -> bool:
    """Tell whether a written segment reads as its translation, with the codes of its source."""
    if segment.syntax.read is None:
        return True
    again = segment.syntax.read(written)
    if again is None or "".join(again.text.split()) != "".join(shown.split()):
        return False
    wanted, points, copies = _codes(segment)
    found, others, again_copies = _codes(again)
    # Without a word an element is read as a part without text.
    found += Counter({one: count for one, count in others.items() if one in wanted})
    others = Counter({one: count for one, count in others.items() if one not in wanted})
    # An element that was closed and opened again counts twice.
    is_whole = {*found} == {*wanted} if segment.syntax.reopens else found == wanted
    return is_whole and others == points and again_copies == copies


def _codes(segment: Segment) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Count the elements of a segment, its parts without text, and its copies."""

    def count(own: Iterable[Element]) -> Counter[str]:
        raws = ("".join(f"{spell(one.opening)}{one.closing}".split()) for one in own)
        return Counter(filter(None, raws))

    elements = segment.elements.values()
    return (
        count(one for one in elements if not one.is_copy),
        count(segment.points),
        count(one for one in elements if one.is_copy),
    )
