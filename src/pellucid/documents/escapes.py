"""Texts with escape signs, as strings of programs have them, and their lines as segments."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pellucid.documents.markup.lexing import unescape
from pellucid.documents.markup.segments import Piece, Segment, Spelled, Syntax
from pellucid.documents.placeholders import make_segment

BACKSLASHES = (
    # Both halves of a surrogate pair first: neither of them is a character.
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\(?:u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|x[0-9a-fA-F]{2}|[0-7]{3}|.)"
)
REFERENCES = r"&(?:#[0-9]+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos|nbsp);"
QUOTED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}

_NAMED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", "a": "\a", "v": "\v", "0": "\0"}


@dataclass(frozen=True)
class Strings:
    r"""The way in which a format writes strings.

    Attributes:
        escapes: the forms of characters that are not written as they are.
        forms: a pattern of what stands for a character, such as ``\n``.
        breaks: a pattern of what stands for none, such as the end of a line.
        outside_ascii: as for `Syntax`.
        is_interface: True if texts may have accelerators.
        is_folded: True if only line ends that are escaped end a line; others are spaces.
        finish: as for `Syntax`.
    """

    escapes: Mapping[str, str]
    forms: str = BACKSLASHES
    breaks: str = r"(?!)"
    outside_ascii: Callable[[str], str] | None = None
    is_interface: bool = True
    is_folded: bool = False
    finish: Callable[[Segment, str], str] | None = None

    def read(self, raw: str) -> tuple[str, Spelled]:
        """Read a string; return breaks before its first character, and its text."""
        letters: list[str] = []
        forms: dict[int, str] = {}
        before = ""
        place = 0
        # Breaks next to each other are one, so that adding them takes linear time.
        pattern = rf"(?P<break>(?:{self.breaks})++)|{self.forms}"
        for match in re.finditer(pattern, raw, re.DOTALL):
            letters += raw[place : match.start()]
            place = match.end()
            if match["break"] is None:
                forms[len(letters)] = match[0]
                letters.append(_character(match[0]))
            # A break shows nothing: it belongs to the form of the character before it.
            elif letters:
                last = len(letters) - 1
                forms[last] = forms.get(last, letters[last]) + match[0]
            else:
                before += match[0]
        return before, Spelled("".join((*letters, raw[place:])), forms)

    def pieces(self, raw: str) -> list[Piece]:
        """Cut a string into its lines, each a segment, and what is copied between them."""
        before, spelled = self.read(raw)
        pieces: list[Piece] = [before] if before else []
        places = [*spelled.forms]
        place = 0
        for match in re.finditer(r"\r?\n|\Z", spelled.text):
            if match[0] and not self._ends_line(spelled, match.end() - 1):
                continue
            start, end = match.span()
            if place < start:
                # Looking through all forms for each line would take quadratic time.
                inside = places[bisect_left(places, place) : bisect_left(places, start)]
                own = {k - place: spelled.forms[k] for k in inside}
                line = Spelled(spelled.text[place:start], own)
                pieces.append(make_segment(line, self._syntax, is_interface=self.is_interface))
            pieces.append(spelled.raw(start, end))
            place = end
        return pieces

    def _ends_line(self, spelled: Spelled, place: int) -> bool:
        return not self.is_folded or place in spelled.forms

    @cached_property
    def _syntax(self) -> Syntax:
        return Syntax(self.escapes, self.outside_ascii, finish=self.finish, read=self._again)

    def _again(self, written: str) -> Segment | None:
        """Read a written segment; None if it is more than one."""
        before, spelled = self.read(written)
        breaks = (match.start() for match in re.finditer("\n", spelled.text))
        if before or any(self._ends_line(spelled, place) for place in breaks):
            return None
        return make_segment(spelled, self._syntax, is_interface=self.is_interface)


def _character(form: str) -> str:
    if form[0] == "&":
        return unescape(form)
    if form[0] != "\\":  # A quote that is written twice.
        return form[0]
    if form[:2] == "\\u" and len(form) > 2:
        return str(json.loads(f'"{form}"'))
    if len(form) > 2:
        return chr(int(form[2:], 16) if form[1] in "Ux" else int(form[1:], 8))
    return _NAMED.get(form[1], form[1])


def as_utf16(character: str) -> str:
    r"""Write a character as ``\uXXXX``, or as two of them."""
    return json.dumps(character)[1:-1]
