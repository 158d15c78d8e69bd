"""Placeholders by shape: parts of a text that a translation must hold as they are.

What looks like a placeholder is one, whatever program reads it, unless it is text of a language: a
percentage, a price, a time, a dash, a smiley. A scanner stops at each sign that may begin one, and
tries the few shapes of that sign there, each of bounded length, so that its time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pellucid.documents.markup.lexing import Token, match_tags

# Names are of Latin letters: in other scripts no space may stand between a name and a word.
_LATIN = "A-Za-z0-9_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
_NAME = rf"[A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f][{_LATIN}]{{0,60}}+"
# Scripts without spaces between words, and Korean, which glues particles to what is before them.
_GLUED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af"
# A symbol is what touched before it was masked, also where only ASCII is letters.
_SYMBOLS = "\u2776-\u277f\u24eb-\u24f4"
_NOT_WITHIN = rf"(?<![^\W{_GLUED}])(?<![{_SYMBOLS}])"
_WIDTH = r"[-+#0,(']{0,3}+(?:[0-9]{1,4}|\*(?:[0-9]{1,2}\$)?)?+(?:\.(?:[0-9]{1,4}|\*)?)?+"
_LETTER = r"(?:hh|ll|[hlzjtLq]|I(?:32|64))?[diouxXeEfFgGcrsapnbBvqCS@]"
# What is written right after a number: %dpx, 1920x1080 as %dx%d, %dth.
_UNIT = r"(?:th|st|nd|rd|ms|px|min|sec|hr|fps|bit|[kKMGT]i?[bB]|[ck]?m|[hsxB])"
_PRINTF = (
    r"%(?:\([\w. -]{1,40}\)|<\w{1,40}>|[0-9]{1,2}\$|<)"
    rf"(?:{_WIDTH}(?:{_LETTER}|[tT][A-Za-z]))?+|%(?=[-+#0-9,('.*]){_WIDTH}{_LETTER}"
    r"|%[-+#0]{0,3}[0-9]{0,4}(?:\.[0-9]{1,4})?<PRI\w{1,12}>"
)
# Without a width it may touch a unit or a word with a capital, as in %lis or %sKey.
_BARE = rf"%(?:ll?|z)?[dsiu](?={_UNIT}(?![A-Za-z])|[A-Z])"
# Of a number and %s the sign may be that of the number, as in 50%-os or 100%cotton.
_AFTER_NUMBER = re.compile(rf"%%|%[sdiuxX@](?![{_LATIN}])|(?!%[-+#,('])(?:{_PRINTF})")
_PERCENT = (
    rf"%%[A-Za-z_]\w{{1,40}}%%|%%|%[1-9][0-9]?%(?!\w)|%#@\w{{1,40}}@|{_PRINTF}"
    rf"|%(?!{_LETTER}(?:{_UNIT})?(?![A-Za-z0-9]))[A-Za-z_]\w{{1,40}}(?:[.-]\w{{1,40}})*+%"
    rf"|%{_LETTER}(?![A-Za-z0-9])|%[a-zA-Z@](?![A-Za-z0-9_])|{_BARE}"
    rf"|%[a-zA-Z_]\w{{2,40}}|%[dsiu](?=[a-z])|%[A-Za-z]\w"
)
_ADDRESS = rf"[^\W{_GLUED}]|[-._~:/?#\[\]@!$&'()*+,;=%]"
_TAG = (
    r"</?(?:[a-zA-Z][\w:.-]{0,40}|\d{1,3})"
    r"(?:\s(?:[^<>\"']|\"[^\"]{0,400}\"|'[^']{0,400}'){0,200}+)?/?>"
)
_BBCODE = (
    "[bius]|url|img|email|colou?r|size|font|quote|code|list|center|left|right|spoiler|su[bp]|h[1-6]"
)
# Numbers that a plural of Laravel or Symfony is for, at the start of a form: [2,*], ]1,Inf[.
_RANGE = re.compile(r"(?<![^|])[\[\]](?:\d{1,9}|-Inf),(?:\d{1,9}|\*|\+?Inf)[\]\[]")
# For each sign its shapes, the first that fits wins. Braces are in `_INSIDE`.
_SHAPES = {
    "%": {"code": re.compile(_PERCENT, re.ASCII)},
    "$": {
        # A price begins with a digit, so that `$5 and $10` is no formula.
        "math": re.compile(r"(?<![\w$])\$(?![\s\d$])[^$\n]{0,80}[^\s$\\]\$(?![\w$])"),
        "code": re.compile(
            rf"{_NOT_WITHIN}(?<!\$)\$(?:t?\([^()\n]{{1,80}}\)|{_NAME}(?:(?:\.|->)[a-z]\w{{0,40}}+)*+\$?)"
        ),
    },
    "@": {
        "reference": re.compile(
            r"(?<![\w@?])@(?:\+?(?:[\w.]{1,40}:)?[a-z]{1,20}/[\w./-]{0,60}\w|null\b)", re.ASCII
        ),
        "code": re.compile(
            rf"{_NOT_WITHIN}(?<![.@])@(?:(?:\.[a-z]{{1,20}})?:(?:\([^()\n]{{1,80}}\)|{_NAME}(?:\.{_NAME})*+)"
            rf"|(?=.[{_LATIN}]){_NAME})"
        ),
    },
    ":": {
        # Not after a word or a number, as in 10:30, std::x, 10 %:iin; nor a smiley such as :D.
        "name": re.compile(
            rf"{_NOT_WITHIN}(?<![:%)])(?!:(.)\1++(?!\w)):[a-zA-Z_][\w+-]{{1,40}}+:?", re.ASCII
        )
    },
    "!": {"name": re.compile(r"(?<![^\s(\"'“«])![a-z_]\w{1,40}+(?!!)", re.ASCII)},
    "_": {
        "code": re.compile(
            rf"(?<![{_LATIN}])__[A-Za-z](?:[A-Za-z0-9.-]|_(?!_)){{0,40}}+__(?![{_LATIN}])"
        )
    },
    "-": {
        "option": re.compile(
            rf"{_NOT_WITHIN}(?<!-)--[a-z][\w-]{{0,60}}(?<!-)(?![-\w])(?:=[A-Z_]{{1,40}})?", re.ASCII
        )
    },
    "[": {
        "note": re.compile(r"\[\^[^\]\s]{1,40}\]"),
        "bbcode": re.compile(
            rf"\[/?(?:{_BBCODE})(?:=[^\]\n]{{1,200}}|(?:\s+\w+=[^\]\n]{{1,200}}))?\]", re.IGNORECASE
        ),
        "range": _RANGE,
        "code": re.compile(
            r"\[\[[A-Za-z_][\w.:-]{0,60}\]\]|\[%(?=[-+~#\s])(?:[^%]{1,400}+|%(?!\])){0,40}+%\]"
        ),
    },
    "]": {"range": _RANGE},
    "|": {"range": re.compile(r"\|(?=\{\d{1,9}\}|\[\d{1,9},)")},
    "\\": {"code": re.compile(r"\\\((?:[^()\n]|\([^()\n]{0,80}\)){1,80}+\)")},
    "?": {
        "reference": re.compile(
            r"(?<![\w@?])\?(?:[\w.]{1,40}:)?[a-z]{1,20}/[\w./-]{0,60}\w", re.ASCII
        )
    },
    "&": {"entity": re.compile(r"&[a-zA-Z][a-zA-Z0-9]{1,30};|&#\w{1,8};")},
    "<": {
        "code": re.compile(
            r"<%(?:[^%]{1,400}+|%(?!>)){0,40}+%>|<\?(?:php\b|=)(?:[^?]{1,400}+|\?(?!>)){0,40}+\?>"
        ),
        "tag": re.compile(_TAG),
        "style": re.compile(r"<\d[\d:.]{1,20}>"),
    },
}
_ARGUMENTS = "plural|select|selectordinal|number|date|time|choice|ordinal|spellout|duration|list"
_INSIDE = re.compile(
    # Nothing, a sign, or a name and what may follow it; `{see below}` is text.
    rf"\{{\s*+(?:\}}|[{{$%#@:!/\\&^>*~<\"'.=+;-]|[\w.\[\]-]{{1,60}}+(?:\(|\s*+(?:[}}|?=+*<>&!]|:\S"
    rf"|,\s*+(?:-?\d|(?:{_ARGUMENTS})\b|\w{{1,40}}+\s*+\}}))))"
)
_BEFORE_BRACE = re.compile(r"\\[a-zA-Z]{1,30}\*?\Z")
"""A command of LaTeX, whose braces hold text."""
_SCHEME = re.compile(r"(?:https?|ftp|file|mailto)\Z", re.IGNORECASE)
_URL = re.compile(rf"://?(?:{_ADDRESS})++")
_MAIL = re.compile(r"@[A-Za-z0-9-]{1,64}(?:\.[A-Za-z0-9-]{1,64})++")
_MAILBOX = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9_][A-Za-z0-9.+_-]{0,63}\Z")
_NUMBERED = {
    "%": re.compile(r"%L?([1-9][0-9]?)(?![.,]?[0-9]|[A-Za-z$])"),
    "$": re.compile(r"\$([1-9][0-9]?)(?![.,]?[0-9]|[A-Za-z%])"),
}
"""Numbered from 1, ``%1`` or ``$1``; a percentage or a price is not."""
_BEGINS = re.compile(r"[%$@:!_\-\[\]?&<{|\\]")
_IS_AFTER_NUMBER = re.compile(r"\d[ \u00a0\u202f\u2009]?\Z")
_CLOSING_DASH = re.compile(r"\w--(?![\w-])")
IN_ORDER = re.compile(
    rf"(?!%%|%\(|%<(?!PRI)|%[0-9]+\$)(?:{_PRINTF}|%{_LETTER}(?![A-Za-z0-9])|{_BARE})"
)
"""Directives without a number or a name: programs fill them in by their order."""
_CODES = frozenset(("code", "brace", "name", "range"))


class Placeholder(NamedTuple):
    """A part of a text that is kept.

    Attributes:
        start: the place of its first character.
        end: the place after its last one.
        kind: ``code``, ``brace``, ``name`` and ``range`` are those of programs; others are
            ``address``, ``option``, ``reference``, ``note``, ``math``, ``entity``, ``tag``,
            ``bbcode`` and ``style``.
        text: what it says.
        token: its tag if it is one; None if it is copied.
    """

    start: int
    end: int
    kind: str
    text: str
    token: Token | None = None


def fills_in_order(placeholder: str) -> bool:
    """Tell whether programs fill a placeholder in by its place, as ``%s`` and ``{}``."""
    return placeholder.startswith(("{}", "{:")) or IN_ORDER.match(placeholder) is not None


def codes_of(text: str) -> list[str]:
    """List the placeholders of programs in a text, such as ``%s``, ``%(name)d`` or ``{name}``."""
    return [one.text for one in _scan(text) if one.kind in _CODES]


def addresses_of(text: str) -> list[str]:
    """List the web and mail addresses of a text."""
    return [one.text for one in _scan(text) if one.kind == "address"]


def find_placeholders(
    text: str, *, has_copied_tags: bool = True, has_markup: bool = True
) -> Iterator[Placeholder]:
    """Find placeholders and tags in a text, in order.

    Args:
        text: the text.
        has_copied_tags: True if a tag without its partner is a placeholder, such as ``<file>``.
        has_markup: True if tags and references in it are codes; HTML has read its own already.
    """
    found = [one for one in _scan(text) if has_markup or one.kind not in ("tag", "entity", "style")]
    if not found:
        return
    tokens = [_token(one) for one in found]
    pairs = match_tags(tokens)
    ends = {*pairs, *pairs.values()}
    for number, (one, token) in enumerate(zip(found, tokens, strict=True)):
        is_tag = one.kind == "style" or number in ends
        if one.kind == "bbcode" and not is_tag:
            continue  # An index such as [i] is text.
        # HTML shows these tags, so that they are copied there.
        is_tag = is_tag and (has_markup or one.kind != "bbcode")
        is_tag = is_tag or (one.kind == "tag" and not has_copied_tags)
        yield one._replace(token=token) if is_tag else one


def _token(found: Placeholder) -> Token:
    raw = found.text
    if found.kind not in ("tag", "bbcode") or raw.endswith("/>"):
        return Token("void", raw)
    name = re.match(r"[<\[]/?([^\s/.>=\]]+)", raw)
    # `[b` and `<b` do not make a pair.
    own = f"{'[' if raw[0] == '[' else ''}{name[1].lower()}" if name else ""
    return Token("end" if raw[1] == "/" else "start", raw, own)


def _scan(text: str) -> Iterator[Placeholder]:
    """Find everything that has a shape, in order."""
    begin = _BEGINS.search(text)
    if begin is None:
        return
    closings = match_braces(text) if "{" in text else {}
    numbered = {sign: _counted(sign, text) for sign in _NUMBERED}
    has_dashes = "--" in text and _CLOSING_DASH.search(text) is not None
    last = 0
    while begin is not None:
        place = begin.start()
        found = _at(text, place, last, closings)
        sign = text[place]
        if found is None and sign in numbered and not _is_after_number(text, place, last):
            number = _NUMBERED[sign].match(text, place)
            if number and int(number[1]) <= numbered[sign]:
                found = Placeholder(place, number.end(), "code", number[0])
        if found and found.kind == "option" and has_dashes:
            found = None
        last = last if found is None else found.end
        if found is not None:
            yield found
        begin = _BEGINS.search(text, max(place + 1, last))


def match_braces(text: str) -> dict[int, int]:
    """Find the place after the closing brace of each opening one."""
    opened = list[int]()
    closings = dict[int, int]()
    for one in re.finditer("[{}]", text):
        if one[0] == "{":
            opened.append(one.start())
        elif opened:
            closings[opened.pop()] = one.end()
    return closings


def _counted(sign: str, text: str) -> int:
    """Count how far the numbers after a sign go from 1 on: ``$5`` without ``$1`` is a price."""
    numbers = {int(one) for one in _NUMBERED[sign].findall(text)} if sign in text else set()
    return next(number for number in range(100) if number + 1 not in numbers)


def _is_after_number(text: str, place: int, last: int) -> bool:
    # A number within the placeholder before it, as in %1%2, has no percent sign.
    return _IS_AFTER_NUMBER.search(text[max(last, place - 2) : place]) is not None


def _at(text: str, place: int, last: int, closings: dict[int, int]) -> Placeholder | None:
    """Read what has a shape at a sign, not before the end of the last one."""
    sign = text[place]
    if sign == "{":
        return _brace(text, place, last, closings)
    if sign == "%" and _is_after_number(text, place, last):
        match = _AFTER_NUMBER.match(text, place)
        return None if match is None else Placeholder(place, match.end(), "code", match[0])
    if sign in ":@" and (address := _address(text, place, last)) is not None:
        return address
    for kind, pattern in _SHAPES[sign].items():
        match = pattern.match(text, place)
        if match is not None:
            return Placeholder(place, match.end(), kind, match[0])
    return None


def _brace(text: str, place: int, last: int, closings: dict[int, int]) -> Placeholder | None:
    end = closings.get(place)
    if end is None or _INSIDE.match(text, place, end) is None:
        return None
    before = text[max(last, place - 32) : place]
    if _BEFORE_BRACE.search(before):
        return None
    start = place - (before[-1:] in ("$", "%", "#", "@") and before != "")
    kind = "style" if text.startswith("{\\", start) else "brace"
    return Placeholder(start, end, kind, text[start:end])


def _address(text: str, place: int, last: int) -> Placeholder | None:
    """Read the address whose scheme or mailbox ends at a sign."""
    is_mail = text[place] == "@"
    found = (_MAIL if is_mail else _URL).match(text, place)
    if found is None:
        return None
    before = (_MAILBOX if is_mail else _SCHEME).search(text[max(last, place - 64) : place])
    if before is None:
        return None
    start = place - len(before[0])
    address = text[start : found.end()].rstrip(".,;:!?)'-" if is_mail else ".,;:!?)'")
    return Placeholder(start, start + len(address), "address", address)
