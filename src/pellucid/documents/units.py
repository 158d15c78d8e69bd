"""A document as a stream of copied strings and units."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from pellucid.documents.markup.segments import Piece, Segment, find_segments
from pellucid.documents.markup.split_messages import has_message
from pellucid.errors import DataError

_MOST_LEVELS = 20
_LONGEST_INDENT = 200
_LONGEST_KEY = 1000
"""Of the path to a text only so much is kept: each text below a long key repeats it."""


MESSAGE = "a message of ICU within a text is not translated"


@dataclass(frozen=True)
class Mark:
    """A place that says whether a unit should be looked at, such as the flags of a PO message."""

    plain: str
    marked: str


@dataclass
class Unit:
    """A part of a document that is translated and marked as a whole.

    Attributes:
        key: its name in the document.
        start: the place of its first character.
        end: the place after its last one.
        pieces: what is written in its place.
        line: the number of its first line, from 1.
        old: with ``has_pairs``, its translation in the document.
        state: why this translation is not one to learn from, in a word; empty if it is.
        is_marked: True if its marks say that it should be looked at.
        comment: what the document tells translators about it.
        context: what tells it from others with the same text, such as ``msgctxt``.
        fault: why it cannot be translated, so that it is copied and reported.
        doubt: why its translation should be looked at, whatever that is.
    """

    key: str
    start: int
    end: int
    pieces: Sequence[Piece | Mark]
    line: int = 0
    old: Sequence[Piece] = ()
    state: str = ""
    is_marked: bool = False
    comment: str = ""
    context: str = ""
    fault: str = ""
    doubt: str = ""

    def __str__(self) -> str:
        """Write the unit with its translations."""
        return "".join(
            (one.marked if self.is_marked else one.plain) if isinstance(one, Mark) else str(one)
            for one in self.pieces
        )

    @property
    def segments(self) -> list[Segment]:
        """The segments that are translated, those inside the tags of others first."""
        own = (one for one in self.pieces if not isinstance(one, Mark))
        return [one for one in find_segments(own) if not one.is_blank]

    @property
    def copies(self) -> list[str]:
        """What is copied in its texts."""
        own = (one for one in self.pieces if not isinstance(one, Mark))
        return [copy for one in find_segments(own) for copy in one.copies]

    @property
    def has_text(self) -> bool:
        """True if there is something to translate, even if it cannot be."""
        return bool(self.segments or self.fault)

    @property
    def reason(self) -> str:
        """Why it should be looked at; empty if its codes are surely right."""
        own = (one.reason for one in self.segments if one.reason)
        return self.fault or next(own, self.doubt)

    @property
    def reasons(self) -> list[str]:
        """Each reason to look at it."""
        doubts = (doubt for one in self.segments for doubt in one.doubts)
        return [*dict.fromkeys(filter(None, (self.fault, *doubts, self.doubt)))]

    @property
    def match(self) -> float:
        """The similarity of the texts that a memory gave its translation for; 0 if not of all."""
        return min((one.match for one in self.segments), default=0.0)


@dataclass(frozen=True)
class How:
    """The way to read a document.

    Attributes:
        path: its name, for messages.
        languages: codes of the source and the target; empty if unknown.
        has_all: True to translate also what has a translation.
        has_pairs: True to read texts with their translations; such units are not written.
        column: the column of a table that is translated.
        into: the column that gets the translation; the same one if empty.
        left: counts what has a translation that a person should approve, and is copied; by kind.
    """

    path: str = "the text"
    languages: tuple[str, str] = ("", "")
    has_all: bool = False
    has_pairs: bool = False
    column: str = ""
    into: str = ""
    left: Counter[str] = field(default_factory=Counter, compare=False)

    def refuse(self, line: int, what: str, advice: str) -> NoReturn:
        """Refuse the document with what is wrong in a line, and what to do."""
        raise DataError(f"{what} ({self.path}:{line}). {advice}")


@dataclass
class Source:
    """The text of a document or of a part of it, and the lines of its places.

    Attributes:
        text: the text.
        how: the way to read it.
        first_line: the number of its first line.
    """

    text: str
    how: How = field(default_factory=How)
    first_line: int = 1

    def __post_init__(self) -> None:
        # Found once: counting line ends again for each unit would take quadratic time.
        self._ends = [match.start() for match in re.finditer("\n", self.text)]

    def line(self, place: int) -> int:
        """Return the number of the line of a place, from 1."""
        return self.first_line + bisect_left(self._ends, place)

    def refuse(self, place: int, what: str, advice: str) -> NoReturn:
        """Refuse the document with what is wrong at a place, and what to do."""
        self.how.refuse(self.line(place), what, advice)

    def cut(self, units: Iterable[Unit]) -> Iterator[str | Unit]:
        """Yield units with what is copied between them."""
        place = 0
        for unit in units:
            # Nothing in it is translated, so that it is copied with what is around it.
            if not unit.fault and not any(isinstance(one, Segment) for one in unit.pieces):
                continue
            if any(has_message(copy) for copy in unit.copies):
                unit.doubt = MESSAGE
                unit.fault = unit.fault or ("" if unit.segments else MESSAGE)
            # A unit that begins above its text, as at the flags of PO, says its line itself.
            unit.line = unit.line or self.line(unit.start)
            if unit.start > place:
                yield self.text[place : unit.start]
            yield unit
            place = unit.end
        if place < len(self.text):
            yield self.text[place:]


def join_path(path: Sequence[str | int]) -> str:
    """Write the keys that lead to a text, such as ``menu.file.0``; the end of a long path."""
    key = ".".join(map(str, path[-_MOST_LEVELS:]))
    is_whole = len(path) <= _MOST_LEVELS and len(key) <= _LONGEST_KEY
    return key if is_whole else f"…{key[-_LONGEST_KEY:]}"


def indent_before(text: str, place: int) -> str:
    """Return the line end and the white space before a place; empty if more is before it."""
    found = re.search(r"(?:\r\n|\n|\r)[ \t]*+\Z", text[max(0, place - _LONGEST_INDENT) : place])
    return found[0] if found else ""
