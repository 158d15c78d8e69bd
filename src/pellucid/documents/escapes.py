"""Texts with escape signs, as strings of programs have them, and their lines as segments."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pellucid.documents.markup.lexing import unescape
from pellucid.documents.markup.placeholder_shapes import find_placeholders
from pellucid.documents.markup.segments import Piece, Segment, Spelled, Syntax
from pellucid.documents.markup.split_messages import find_arms
from pellucid.documents.placeholders import make_segment
from pellucid.languages.plurals import missing_categories

BACKSLASHES = (
    # Both halves of a surrogate pair first: neither of them is a character.
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\(?:u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|x[0-9a-fA-F]{2}|[0-7]{3}|.)"
)
REFERENCES = r"&(?:#[0-9]+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos|nbsp);"
QUOTED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}

_LINE_END = re.compile(r"\r?\n")
_PIPE = re.compile(r"(?<!\|)\|(?!\|)")
_GROUP = re.compile(r"\([^()]*+\)|\[[^\[\]]*+\]|<[^<>]*+>|`[^`]*+`")
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
        is_piped: True if ``|`` parts forms of a plural.
        signs: characters that are copied.
    """

    escapes: Mapping[str, str]
    forms: str = BACKSLASHES
    breaks: str = r"(?!)"
    outside_ascii: Callable[[str], str] | None = None
    is_interface: bool = True
    is_folded: bool = False
    finish: Callable[[Segment, str], str] | None = None
    is_piped: bool = False
    signs: str = ""

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

    def pieces(self, raw: str, target: str = "") -> list[Piece]:
        """Cut a string into its lines, each a segment, and what is copied between them.

        Of a message of ICU the texts for each number or case are cut, and those that plurals of
        the target's language need are added.

        Args:
            raw: the string as it is written.
            target: the code of the language; empty adds none.
        """
        before, spelled = self.read(raw)
        pieces: list[Piece] = [before] if before else []
        places = [*spelled.forms]
        place = 0
        for arm in find_arms(spelled.text):
            pieces.append(spelled.raw(place, arm.start))
            own = self._of_arms._lines(spelled, places, arm.start, arm.end)
            pieces += own
            # The form for all other numbers has their number, as new ones must.
            missing = missing_categories(arm.siblings, target) if arm.name == "other" else ()
            for category in missing:
                pieces.append(f"}} {category} {{")
                pieces += self._of_arms._lines(spelled, places, arm.start, arm.end)
            place = arm.end
        if place:
            return [*pieces, spelled.raw(place)]
        return [*pieces, *self._lines(spelled, places, 0, len(spelled.text))]

    def _lines(self, spelled: Spelled, places: list[int], start: int, end: int) -> list[Piece]:
        """Cut a part of a text at its borders; its places with forms are given."""
        pieces: list[Piece] = []
        place = start
        for first, last in [*self._borders(spelled, start, end), (end, end)]:
            if place < first:
                # Looking through all forms for each line would take quadratic time.
                inside = places[bisect_left(places, place) : bisect_left(places, first)]
                own = {k - place: spelled.forms[k] for k in inside}
                line = Spelled(spelled.text[place:first], own)
                pieces.append(self._segment(line))
            pieces.append(spelled.raw(first, last))
            place = last
        return pieces

    def _segment(self, spelled: Spelled) -> Segment:
        syntax = self._syntax
        return make_segment(spelled, syntax, is_interface=self.is_interface, signs=self.signs)

    def _borders(
        self, spelled: Spelled, start: int = 0, end: int | None = None
    ) -> list[tuple[int, int]]:
        """Find what ends a line, or a form of a plural."""
        text = spelled.text
        stop = len(text) if end is None else end
        found = [
            one.span()
            for one in _LINE_END.finditer(text, start, stop)
            if not self.is_folded or one.end() - 1 in spelled.forms
        ]
        if self.is_piped:
            found += ((start + k, start + k + 1) for k in find_pipes(text[start:stop]))
        return sorted(found)

    @cached_property
    def _syntax(self) -> Syntax:
        return Syntax(self.escapes, self.outside_ascii, finish=self.finish, read=self._again)

    @cached_property
    def _of_arms(self) -> Strings:
        # Of the number of a plural.
        return replace(self, signs="#")

    def _again(self, written: str) -> Segment | None:
        """Read a written segment; None if it is more than one."""
        before, spelled = self.read(written)
        return None if before or self._borders(spelled) else self._segment(spelled)


def find_pipes(text: str) -> list[int]:
    """Find the places of signs between forms of a plural, as ``dog|dogs`` of Laravel has them.

    Signs in placeholders, and in brackets as those of a command's usage, are text.
    """
    if "|" not in text:
        return []
    inside = [one.span() for one in _GROUP.finditer(text)]
    inside += [(one.start, one.end) for one in find_placeholders(text) if one.text != "|"]
    hidden = {place for span in inside for place in range(*span)}
    return [one.start() for one in _PIPE.finditer(text) if one.start() not in hidden]


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
