"""The table of placeholders: parts of a text that a translation must hold as they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from pellucid.documents.markup.lexing import Token, match_tags
from pellucid.documents.markup.segments import ACCELERATOR, Maker, Segment, Spelled, Syntax

# Repetitions have bounds: without them, a text of many braces takes quadratic time.
_SIMPLE = r"[\w.:!<>^%#+\[\]-]{0,60}"
_NESTED = r"(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,400}+\}){0,400}+\}){0,400}+"
_TABLE = {
    # The first kind that fits wins: braces of Jinja and ICU look like Fluent's from within.
    "jinja": r"\{\{[^{}\n]{0,80}\}\}|\{%[^{}\n]{1,80}%\}",
    "icu": rf"\{{\s*\w{{1,40}}\s*,\s*(?:plural|select|number|date|time)\w*\b{_NESTED}\}}",
    "fluent": rf"\{{\s*+[$-]?{_SIMPLE}(?:\([^(){{}}\n]{{0,80}}\))?\s*+\}}",
    "ruby": r"%\{[\w.]{1,40}\}",
    # A price begins with a digit, so that `$5 and $10` is no formula.
    "math": r"(?<![\w$])\$(?![\s\d$])[^$\n]{0,80}[^\s$\\]\$(?![\w$])",
    "shell": (
        r"\$\{[^{}\n]{1,60}\}|\$\([\w.]{1,40}\)|\$t\([^()\n]{1,80}\)"
        r"|(?<!\w)\$[A-Za-z_]\w{0,40}"
    ),
    "printf": (
        r"%(?:\(\w{1,40}\)|<\w{1,40}>|[0-9]{1,2}\$)?[-+#0]{0,3}(?:[0-9]{1,4}|\*)?"
        r"(?:\.[0-9*]{1,4})?(?:hh|ll|[hlzjtL])?[diouxXeEfFgGcrsap@]|%%"
        r"|%[-+#0]{0,3}[0-9]{0,4}(?:\.[0-9]{1,4})?<PRI\w{1,12}>"
    ),
    "qt": r"%L?[0-9]{1,2}(?!\w)|%n(?!\w)",
    "address": (
        r"(?:https?|ftp|file|mailto)://?[^\s<>\"«»{}|\\^`]+(?<![.,;:!?)'])"
        r"|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{0,64}\w"
    ),
    "option": r"(?<![\w-])--[a-zA-Z][\w-]{0,60}(?:=[A-Z_]{1,40})?",
    "name": r"(?<![\w:]):[a-zA-Z_][\w+-]{1,40}:?(?!\w)",
    "note": r"\[\^[^\]\s]{1,40}\]",
    "reference": r"(?<![\w@?])[@?]\+?(?:[\w.]{1,40}:)?[a-z]{1,20}/[\w./-]{0,60}\w|(?<!\w)@null\b",
    "entity": r"&[a-zA-Z][a-zA-Z0-9]{1,30};|&#\w{1,8};",
    "tag": r"</?(?:[a-zA-Z][\w:.-]{0,40}|\d{1,3})"
    r"(?:\s(?:[^<>\"']|\"[^\"]{0,400}\"|'[^']{0,400}'){0,200}+)?/?>",
    "style": r"\{\\[^{}\n]{1,200}\}|<\d[\d:.]{1,20}>",
}
_PATTERN = re.compile("|".join(f"(?P<{name}>{one})" for name, one in _TABLE.items()))
_CODES = re.compile(
    "|".join(_TABLE[name] for name in ("jinja", "icu", "ruby", "fluent", "shell", "printf"))
)
_IN_ORDER = re.compile(rf"(?!%%|%\(|%<(?!PRI)|%[0-9]+\$)(?:{_TABLE['printf']})")
"""Directives without a number or a name: programs fill them in by their order."""
_LONE_PERCENT = re.compile(r"(?<![0-9%])(?<![0-9][ \u00a0\u202f])%(?!%)(?:[a-zA-Z]\b)?")
# One quick search, since most texts have no placeholder.
_MAY_HOLD = re.compile(r"[{%$<&@:?]|--|\[\^")

ACCELERATORS = re.compile(
    r"(?:(?<![^\W_])&|(?<=[^\W\d_])&(?=[a-z])|(?<!\w)_)(?=[^\W\d_])(?!\w*[;_=])"
)
"""A sign before the key of a menu: at the start of a word or before a small letter, so ``AT&T`` and
``&amp;`` have none."""


def fills_in_order(placeholder: str) -> bool:
    """Tell whether programs fill a placeholder in by its place, as ``%s`` and ``{}``."""
    return placeholder.startswith(("{}", "{:")) or _IN_ORDER.match(placeholder) is not None


def codes_of(text: str) -> list[str]:
    """List the placeholders of programs in a text, such as ``%s``, ``%(name)d`` or ``{name}``."""
    return _CODES.findall(text) if re.search("[{%$]", text) else []


def find_placeholders(
    text: str, *, has_copied_tags: bool = True
) -> Iterator[tuple[re.Match[str], Token | None]]:
    """Find placeholders and tags in a text, in order.

    Args:
        text: the text.
        has_copied_tags: True if a tag without its partner is a placeholder, such as ``<file>``.

    Yields:
        Each match, with its tag if it is one; with None if it is a placeholder.
    """
    if not _MAY_HOLD.search(text):
        return
    found = list(_PATTERN.finditer(text))
    tokens = [_token(one) for one in found]
    pairs = match_tags(tokens)
    ends = {*pairs, *pairs.values()}
    for number, (one, token) in enumerate(zip(found, tokens, strict=True)):
        is_tag = one.lastgroup == "style" or number in ends
        is_tag = is_tag or (one.lastgroup == "tag" and not has_copied_tags)
        yield one, token if is_tag else None


def _token(found: re.Match[str]) -> Token:
    raw = found[0]
    if found.lastgroup != "tag" or raw.endswith("/>"):
        return Token("void", raw)
    name = re.match(r"</?([^\s/.>]+)", raw)
    return Token("end" if raw[1] == "/" else "start", raw, name[1] if name else "")


def add_text(
    maker: Maker, spelled: Spelled, *, is_interface: bool = False, has_copied_tags: bool = True
) -> None:
    """Add text to a segment, with its placeholders as copies and its tags as elements.

    Args:
        maker: the segment.
        spelled: the text.
        is_interface: True if the text may have one accelerator, which is left out.
        has_copied_tags: as for `find_placeholders`.
    """
    found = find_placeholders(spelled.text, has_copied_tags=has_copied_tags)
    marks = [(*one.span(), token) for one, token in found]
    if is_interface:
        inside = {place for start, end, _ in marks for place in range(start, end)}
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


def make_segment(spelled: Spelled, syntax: Syntax, *, is_interface: bool = False) -> Segment:
    """Make a segment of a text, as `add_text` reads it."""
    maker = Maker(syntax)
    add_text(maker, spelled, is_interface=is_interface)
    return maker.take()


def keeps_copies(segment: Segment, text: str) -> bool:
    """Tell whether a translation has the copies of its source, each as often, and no others.

    Those that programs fill in by their order must stand in the order of the source.
    """
    missing, surplus = _compare(segment, text)
    return not missing and not surplus and in_order(segment, text) == text


def in_order(segment: Segment, text: str) -> str:
    """Put ``%s`` and ``%d`` in the order of the source, if the translation has the same ones."""
    if "%" not in text:
        return text
    wanted, found = (_IN_ORDER.findall(one) for one in (segment.text, text))
    if wanted == found or Counter(wanted) != Counter(found):
        return text
    rest = iter(wanted)
    return _IN_ORDER.sub(lambda _: next(rest), text)


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
    if not segment.syntax.has_placeholders:
        return missing, []
    found = [one for one, token in find_placeholders(rest) if token is None]
    if found:  # What the source reads as well once its copies are hidden is its text.
        own = find_placeholders(_hide(segment, segment.text)[1])
        text_of_own = Counter(one[0] for one, token in own if token is None)
        found = [one for one in found if not _take(text_of_own, one[0])]
    # A source without any percent sign: one in the translation is a broken directive.
    elif segment.text.count("%") == sum(one.count("%") for one in segment.copies):
        found = [*_LONE_PERCENT.finditer(rest)]
    return missing, [one.span() for one in found]


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
