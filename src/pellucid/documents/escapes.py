"""Texts with escape signs, as strings of programs have them, and their lines as segments."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator

from pellucid.documents.markup.segments import Piece, Segment, Spelled, Syntax
from pellucid.documents.placeholders import make_segment

NAMED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", "a": "\a", "v": "\v", "0": "\0"}
NOTHING = r"(?!)"
BACKSLASHES = r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[0-7]{3}|.)"
REFERENCES = r"&(?:#[0-9]+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos|nbsp);"


def read_escapes(
    raw: str, breaks: str = NOTHING, escapes: str = BACKSLASHES
) -> tuple[str, Spelled]:
    r"""Read a text with escapes such as ``\n``, ``\u00e9`` and ``\"``, or ``&amp;``.

    Args:
        raw: the text as it is written.
        breaks: a pattern of what stands for no character, such as the end of a line.
        escapes: a pattern of what stands for one.

    Returns:
        Breaks before the first character, and the text.
    """
    letters: list[str] = []
    forms: dict[int, str] = {}
    before, place = "", 0
    for match in re.finditer(rf"(?P<break>{breaks})|{escapes}", raw, re.DOTALL):
        letters += raw[place : match.start()]
        place = match.end()
        if match["break"] is None:
            forms[len(letters)] = match[0]
            letters += _character(match[0])
        elif letters:
            last = len(letters) - 1
            forms[last] = forms.get(last, letters[last]) + match[0]
        else:
            before += match[0]
    letters += raw[place:]
    return before, _join_surrogates(Spelled("".join(letters), forms))


def _character(form: str) -> str:
    if form[0] == "&":
        return html.unescape(form)
    rest = form[1:]
    if len(rest) == 1:
        return NAMED.get(rest, rest)
    if rest[0] in "uUx":
        code = int(rest[1:], 16)
        return chr(code) if code < 0x110000 else "\ufffd"
    return chr(int(rest, 8))


def _join_surrogates(spelled: Spelled) -> Spelled:
    """Join two halves of a character that are written one by one."""
    if not re.search("[\ud800-\udbff][\udc00-\udfff]", spelled.text):
        return spelled
    letters: list[str] = []
    forms: dict[int, str] = {}
    for place, letter in enumerate(spelled.text):
        form = spelled.forms.get(place)
        if letters and "\ud800" <= letters[-1] <= "\udbff" and "\udc00" <= letter <= "\udfff":
            pair = (letters[-1] + letter).encode("utf-16", "surrogatepass")
            letters[-1] = pair.decode("utf-16")
            forms[len(letters) - 1] += form or letter
            continue
        if form is not None:
            forms[len(letters)] = form
        letters.append(letter)
    return Spelled("".join(letters), forms)


def as_utf16(character: str) -> str:
    r"""Write a character as ``\uXXXX``, or as two of them."""
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))


def line_segments(
    raw: str,
    syntax: Syntax,
    read: Callable[[str], tuple[str, Spelled]],
    *,
    is_interface: bool = True,
    is_folded: bool = False,
) -> Iterator[Piece]:
    """Cut a text into its lines, each a segment, and what is copied between them.

    Args:
        raw: the text as it is written.
        syntax: the way to write it.
        read: reads it.
        is_interface: as for `make_segment`.
        is_folded: True if only line ends that are escaped count; others are spaces.
    """
    before, spelled = read(raw)
    if before:
        yield before
    place = 0
    for match in re.finditer(r"\r?\n|\Z", spelled.text):
        if is_folded and match[0] and match.end() - 1 not in spelled.forms:
            continue
        own = {k - place: form for k, form in spelled.forms.items() if place <= k < match.start()}
        line = Spelled(spelled.text[place : match.start()], own)
        if line.text:
            yield make_segment(line, syntax, is_interface=is_interface)
        yield spelled.raw(*match.span())
        place = match.end()


def reader_of(
    read: Callable[[str], tuple[str, Spelled]],
    syntax: Syntax,
    *,
    is_interface: bool = True,
    is_folded: bool = False,
) -> Callable[[str], Segment | None]:
    """Make what reads a written segment again: one line, or else nothing."""

    def again(written: str) -> Segment | None:
        before, spelled = read(written)
        breaks = [match.start() for match in re.finditer("\n", spelled.text)]
        if before or any(not is_folded or place in spelled.forms for place in breaks):
            return None
        return make_segment(spelled, syntax, is_interface=is_interface)

    return again
