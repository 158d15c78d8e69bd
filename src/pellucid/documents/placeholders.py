"""Placeholders and tags in the texts of documents, and in the translations of these."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from pellucid.documents.markup.lexing import Token, unescape
from pellucid.documents.markup.placeholder_shapes import IN_ORDER, Placeholder, find_placeholders
from pellucid.documents.markup.segments import ACCELERATOR, Maker, Segment, Spelled, Syntax
from pellucid.documents.markup.template_blocks import block_tags

CLOSES = {
    **dict.fromkeys("\u202a\u202b\u202d\u202e", "\u202c"),
    **dict.fromkeys("\u2066\u2067\u2068", "\u2069"),
}
"""Signs that begin a part of another direction of writing, each with the sign that ends it."""
_LONE_PERCENT = re.compile(r"(?<![0-9%])(?<![0-9][ \u00a0\u202f])%(?!%)(?:[a-zA-Z]\b)?")

ACCELERATORS = re.compile(
    r"(?:(?<![^\W_])&|(?<=[^\W\d_])&(?=[a-z])|(?<!\w)_)(?=[^\W\d_])(?!\w*[;_=])"
)
"""A sign before the key of a menu: at the start of a word or before a small letter, so ``AT&T`` and
``&amp;`` have none."""


def add_text(
    maker: Maker,
    spelled: Spelled,
    *,
    is_interface: bool = False,
    has_copied_tags: bool = True,
    signs: str = "",
) -> None:
    """Add text to a segment, with its placeholders as copies and its tags as elements.

    Args:
        maker: the segment.
        spelled: the text.
        is_interface: True if the text may have one accelerator, which is left out.
        has_copied_tags: as for `find_placeholders`.
        signs: characters that are copied wherever they stand.
    """
    shapes = find_placeholders(spelled.text, has_copied_tags=has_copied_tags)
    found = _with_signs(spelled.text, shapes)
    blocks = block_tags([one.text for one in found])
    each = zip(found, blocks, strict=True)
    marks = [(one.start, one.end, block or one.token) for one, block in each]
    inside = {place for start, end, _ in marks for place in range(start, end)}
    for number, sign in enumerate(spelled.text if signs else ""):
        if sign in signs and number not in inside:
            marks.append((number, number + 1, None))
    if is_interface:
        keys = [one for one in ACCELERATORS.finditer(spelled.text) if one.start() not in inside]
        # Of several signs none is surely that of a key: they are text.
        if len(keys) == 1:
            marks.append((*keys[0].span(), Token("void", "", ACCELERATOR)))
    place = 0
    for start, end, token in sorted(marks, key=lambda mark: mark[:2]):
        maker.add(spelled, place, start)
        raw = spelled.raw(start, end)
        if token is None:
            maker.add_copy([raw], spelled.text[start:end], "")
        else:
            maker.add_tag(replace(token, raw=raw), [raw])
        place = end
    maker.add(spelled, place, len(spelled.text))


def add_html_text(maker: Maker, raw: str) -> None:
    """Add text of HTML, as it is written, to a segment, with its placeholders as copies."""
    place = 0
    found = _with_signs(raw, find_placeholders(raw, has_markup=False))
    for one, token in zip(found, block_tags([one.text for one in found]), strict=True):
        maker.write(raw[place : one.start])
        if token is None:
            maker.add_copy([one.text], " ".join(unescape(one.text).split()), "")
        else:
            maker.add_tag(token, [one.text])
        place = one.end
    maker.write(raw[place:])


def _with_signs(text: str, found: Iterable[Placeholder]) -> list[Placeholder]:
    """Read a placeholder with the signs around it that set its direction of writing."""
    wide = list[Placeholder]()
    for one in found:
        closer = CLOSES.get(text[max(0, one.start - 1) : one.start])
        if one.token is None and closer is not None and text[one.end : one.end + 1] == closer:
            own = text[one.start - 1 : one.end + 1]
            one = Placeholder(one.start - 1, one.end + 1, one.kind, own)
        wide.append(one)
    return wide


def make_segment(
    spelled: Spelled, syntax: Syntax, *, is_interface: bool = False, signs: str = ""
) -> Segment:
    """Make a segment of a text, as `add_text` reads it."""
    maker = Maker(syntax)
    add_text(maker, spelled, is_interface=is_interface, signs=signs)
    return maker.take()


def keeps_copies(segment: Segment, text: str) -> bool:
    """Tell whether a translation has the copies of its source, each as often, and no others.

    Those that programs fill in by their order must stand in the order of the source.
    """
    missing, surplus = _compare(segment, text)
    return not missing and not surplus and in_order(segment, text) == text


def has_words(segment: Segment, text: str) -> bool:
    """Tell whether a translation has a letter outside of the copies of its source."""
    return any(map(str.isalpha, _hide(segment, text)[1]))


def in_order(segment: Segment, text: str) -> str:
    """Put ``%s`` and ``%d`` in the order of the source, if the translation has the same ones."""
    if "%" not in text:
        return text
    wanted, found = (IN_ORDER.findall(one) for one in (segment.text, text))
    if wanted == found or Counter(wanted) != Counter(found):
        return text
    rest = iter(wanted)
    return IN_ORDER.sub(lambda _: next(rest), text)


def without_surplus(segment: Segment, text: str) -> str:
    """Leave out the placeholders that a translation has and its source has not, or less often."""
    missing, surplus = _compare(segment, text)
    while surplus:
        # From the last one on, so that the places of the others stay.
        for start, end in reversed(surplus):
            text = text[:start] + text[end:]
        surplus = _compare(segment, text)[1]  # What is left may be one again.
    text = re.sub(" {2,}", " ", text)
    return text if missing else text.strip()


def _compare(segment: Segment, text: str) -> tuple[Counter[str], list[tuple[int, int]]]:
    """Find the copies that a translation has not, and the places of what it has too much."""
    missing, rest = _hide(segment, text)
    has_markup = segment.syntax.has_markup
    found = [one for one in find_placeholders(rest, has_markup=has_markup) if one.token is None]
    if found:  # What the source reads as well once its copies are hidden is its text.
        own = find_placeholders(_hide(segment, segment.text)[1], has_markup=has_markup)
        text_of_own = Counter(one.text for one in own if one.token is None)
        found = [one for one in found if not _take(text_of_own, one.text)]
        return missing, [(one.start, one.end) for one in found]
    # A source without any percent sign: one in the translation is a broken directive.
    if segment.text.count("%") == sum(one.count("%") for one in segment.copies):
        return missing, [one.span() for one in _LONE_PERCENT.finditer(rest)]
    return missing, []


def _take(counts: Counter[str], text: str) -> bool:
    counts[text] -= 1
    return counts[text] >= 0


def _hide(segment: Segment, text: str) -> tuple[Counter[str], str]:
    """Put spaces in the place of copies; return those that are missing, and the text."""
    missing = Counter(segment.copies)
    if not missing:
        return missing, text
    # The longest first, as one copy may begin with another.
    longest = sorted(missing, key=len, reverse=True)
    # A copied word, as code has them, must not be found within another word.
    words = (rf"\b{one}\b" if one.isalnum() else re.escape(one) for one in longest)
    # As many spaces as signs, so that all places stay.
    hidden = re.sub(
        "|".join(words), lambda one: " " * len(one[0]) if _take(missing, one[0]) else one[0], text
    )
    return +missing, hidden
