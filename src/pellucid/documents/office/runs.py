"""A sentence of runs as a segment: the most frequent formatting is plain, others are elements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pellucid.documents.markup.lexing import Token, TokenKind
from pellucid.documents.markup.segments import MARKUP, Maker, Piece, Segment, Spelled, Syntax, spell
from pellucid.documents.placeholders import add_text
from pellucid.documents.xml import Node

# Signs that XML forbids mark the tags of runs until the sentence is written: a run that holds
# nothing then is left out.
_EMPTY = re.compile("\x02[^\x02-\x05]*+\x03\x04[^\x02-\x05]*+\x05")
_MARKS = re.compile("[\x02-\x05]")


@dataclass(frozen=True)
class Tags:
    """The tags around a text."""

    opening: str = ""
    closing: str = ""


@dataclass(frozen=True, eq=False)
class Level:
    """An element around a text.

    Attributes:
        name: of its tag.
        form: its tags; that of a run has its formatting.
        close: the place of its end tag.
        end: the place after it.
        is_run: True for a run and the text in it.
        is_fence: True if no sentence goes over its ends.
    """

    name: str
    form: Tags
    close: int
    end: int
    is_run: bool
    is_fence: bool


@dataclass(frozen=True)
class Item:
    """A part of a paragraph: a text, a part without text, or what ends a sentence.

    Attributes:
        role: ``text``, ``point`` or ``break``.
        start: the place of its first character.
        end: the place after its last one.
        levels: the elements around its start.
        after: those around its end.
        spelled: of a text: what it says.
        pieces: of the others: what they are.
        shown: the text that a part shows which is computed.
        half: ``start`` and ``end`` for the two halves of a pair.
        node: the element.
    """

    role: str
    start: int
    end: int
    levels: tuple[Level, ...] = ()
    after: tuple[Level, ...] = ()
    spelled: Spelled | None = None
    pieces: Sequence[Piece] = ()
    shown: str = ""
    half: TokenKind = "void"
    node: Node | None = None


Edge = tuple[int, Sequence[Level]]
"""A place and the elements that are open there."""


def make_runs(text: str, items: Sequence[Item], edge: Edge, stop: Edge) -> Segment:
    """Make a segment of the texts of a sentence and what is between them.

    Args:
        text: the document.
        items: the first and the last one are texts.
        edge: where the sentence begins.
        stop: where it ends.
    """
    raw: list[Piece] = []
    done = edge[0]
    for item in items:
        raw += [text[done : item.start], *(item.pieces or (text[item.start : item.end],))]
        done = item.end
    raw.append(text[done : stop[0]])
    writer = _Writer(items, edge[1], stop[1])
    made = writer.write()
    # Before it is translated, it is as it was; also a copying translator leaves it so.
    canonical = made.pieces
    made.pieces = raw
    made.syntax = Syntax(MARKUP, finish=partial(_finish, canonical, raw, writer.frame))
    return made


def _finish(
    canonical: Sequence[Piece], raw: Sequence[Piece], frame: Tags, _: Segment, written: str
) -> str:
    if written == spell(canonical):
        return spell(raw)
    whole = _EMPTY.sub("", f"{frame.opening}{written}{frame.closing}")
    return _MARKS.sub("", whole)


def _common(first: Sequence[Level], second: Sequence[Level]) -> int:
    """Count the elements that stand around two places, up to the first run."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one is not other or one.is_run:
            break
        count += 1
    return count


def _around(levels: Sequence[Level]) -> Sequence[Level]:
    """Return the elements around the run."""
    return [one for one in levels if not one.is_run]


def _run(levels: Sequence[Level]) -> Tags:
    """Return the tags of the run, with marks."""
    own = [one.form for one in levels if one.is_run]
    if not own:
        return Tags()
    opening = "".join(one.opening for one in own)
    closing = "".join(one.closing for one in reversed(own))
    return Tags(f"\x02{opening}\x03", f"\x04{closing}\x05")


def _open(levels: Sequence[Level]) -> str:
    return "".join(one.form.opening for one in levels)


def _close(levels: Sequence[Level]) -> str:
    return "".join(one.form.closing for one in reversed(levels))


class _Writer:
    """Adds items to a segment.

    Args:
        items: of the sentence.
        before: the elements that are open where it begins.
        after: those that must be open where it ends.

    Attributes:
        frame: what is written around the sentence.
    """

    def __init__(
        self, items: Sequence[Item], before: Sequence[Level], after: Sequence[Level]
    ) -> None:
        self._items = items
        texts = [one for one in items if one.spelled]
        ends = [before, after, *(one.levels for one in items), *(one.after for one in items)]
        self._shared = min(_common(before, one) for one in ends)
        counts = Counter[Tags]()
        for one in texts:
            weight = len(one.spelled.text) if one.spelled else 0
            is_inside = len(_around(one.levels)) > self._shared
            # The formatting of links is plain text only if there is no other.
            counts[_run(one.levels)] += 0 if is_inside else weight
        base = max(counts, key=counts.__getitem__)
        self._forms = [base]
        self._opened: list[Level] = []
        self._own: Tags | None = None
        self._maker = Maker(Syntax(MARKUP))
        self.frame = Tags(
            f"{_close(before[self._shared :])}{base.opening}",
            f"{base.closing}{_open(after[self._shared :])}",
        )

    def write(self) -> Segment:
        """Return the segment, whose pieces are what is written."""
        held: list[Spelled] = []
        form = self._forms[0]
        chain: Sequence[Level] = ()
        for item in self._items:
            around = _around(item.levels)[self._shared :]
            own = _run(item.levels)
            # Equal formatting is one text, so that a placeholder may go over two runs.
            if item.spelled is None or (list(around), own) != (list(chain), form):
                self._flush(held, chain, form)
                held = []
            if item.spelled is not None:
                held.append(item.spelled)
                chain = around
                form = own
            else:
                self._add_point(item)
        self._flush(held, chain, form)
        self._go((), self._forms[0])
        return self._maker.take()

    def _flush(self, held: Sequence[Spelled], chain: Sequence[Level], form: Tags) -> None:
        if held:
            self._go(chain, form)
            forms: dict[int, str] = {}
            length = 0
            for one in held:
                forms |= {length + place: raw for place, raw in one.forms.items()}
                length += len(one.text)
            add_text(self._maker, Spelled("".join(one.text for one in held), forms))

    def _go(self, chain: Sequence[Level], form: Tags) -> None:
        """Close and open elements until a text in some elements with a formatting can follow."""
        forms = self._forms
        is_same = list(chain) == self._opened
        if self._own is not None and (not is_same or form != self._own):
            self._tag("end", f"{self._own.closing}{forms[-1].opening}")
            self._own = None
        while self._opened != list(chain[: len(self._opened)]):
            level = self._opened.pop()
            inner = forms.pop()
            self._tag("end", f"{inner.closing}{level.form.closing}{forms[-1].opening}")
        for level in chain[len(self._opened) :]:
            self._tag("start", f"{forms[-1].closing}{level.form.opening}{form.opening}")
            self._opened.append(level)
            forms.append(form)
        if form != forms[-1] and self._own is None:
            self._tag("start", f"{forms[-1].closing}{form.opening}")
            self._own = form

    def _tag(self, kind: TokenKind, raw: str, name: str = "run") -> None:
        self._maker.add_tag(Token(kind, raw, name), [raw])

    def _add_point(self, item: Item) -> None:
        around = _around(item.levels)[self._shared :]
        if list(around) != self._opened or item.half != "void":
            self._go(around, self._forms[-1])
        current = self._own or self._forms[-1]
        # A field may end in other elements than it begins in.
        shared = _common(item.levels, item.after)
        before = f"{current.closing}{_open(item.levels[shared:])}"
        after = f"{_close(item.after[shared:])}{current.opening}"
        pieces = [before, *item.pieces, after]
        if item.shown.strip():
            self._maker.add_copy(pieces, item.shown, "")
        elif item.half == "void":
            self._maker.add_tag(Token("void", "", "point"), pieces)
        else:
            self._tag(item.half, spell(pieces), "field")
