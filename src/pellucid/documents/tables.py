"""CSV and TSV: one column is translated, in place or into another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pellucid.documents.escapes import Strings
from pellucid.documents.markup.segments import Piece, Segment, Spelled, Syntax, spell
from pellucid.documents.placeholders import make_segment
from pellucid.documents.units import Source, Unit
from pellucid.languages.codes import NAMES, short_code
from pellucid.terminal.text import count_of

_SOURCES = ("source", "src", "text")
_STRINGS = Strings({'"': '""'}, '""', is_interface=False)

Cell = tuple[int, int]


def read_csv(source: Source) -> Iterator[Unit]:
    """Find the texts of a column; the first row names the columns.

    Raises:
        DataError: the column is missing, or a row has more or fewer cells than the first one.
    """
    first = source.text.split("\n", 1)[0]
    return _read(source, max(",;\t", key=first.count))


def read_tsv(source: Source) -> Iterator[Unit]:
    """Find the texts of a column of a TSV, as `read_csv` does."""
    return _read(source, "\t")


def _read(source: Source, separator: str) -> Iterator[Unit]:
    needs_quotes = re.compile(rf"\"|[{separator}\r\n]")

    def finish(segment: Segment, written: str) -> str:
        is_plain = written == spell(segment.pieces) or not needs_quotes.search(written)
        return written if is_plain else '"{}"'.format(written.replace('"', '""'))

    bare = Syntax({}, finish=finish, read=lambda raw: make_segment(_read_cell(raw), Syntax({})))
    rows = _read_rows(source, separator)
    names = [_text(source, cell) for cell in next(rows, [])]
    how = source.how
    own = _find_column(source, names, how.column, "--column")
    into = _find_column(source, names, how.into, "--into") if how.into else own
    for row in rows:
        if len(row) != len(names):
            have = count_of(len(row), "column")
            what = f"A row must have {len(names)} columns, as the first has, but has {have}"
            source.refuse(row[0][0], what, "Correct it.")
        if into != own and _text(source, row[into]).strip() and not how.has_all:
            continue
        raw = source.text[slice(*row[own])]
        pieces: list[Piece] = [make_segment(Spelled(raw), bare)]
        if raw.startswith('"'):
            pieces = ['"', *_STRINGS.pieces(raw[1:-1]), '"']
        yield Unit(f"row {source.line(row[0][0])}", *row[into], pieces)


def _read_cell(raw: str) -> Spelled:
    return _STRINGS.read(raw[1:-1])[1] if raw.startswith('"') else Spelled(raw)


def _read_rows(source: Source, separator: str) -> Iterator[list[Cell]]:
    """Read the places of the cells of each row, with their quotes; empty lines are copied."""
    cell = re.compile(
        rf"(?P<text>\"(?:[^\"]|\"\")*\"(?=[{separator}\r\n]|\Z)|(?!\")[^{separator}\r\n]*)"
        rf"(?P<end>{separator}|\r?\n|\r|\Z)"
    )
    row: list[Cell] = []
    place = 0
    while place < len(source.text) or row:
        match = cell.match(source.text, place)
        if match is None:
            source.refuse(place, "A quoted cell must end with a quote, but does not", "Add it.")
        row.append(match.span("text"))
        place = match.end()
        if match["end"] != separator:
            if len(row) > 1 or match["text"]:
                yield row
            row = []


def _text(source: Source, cell: Cell) -> str:
    return _read_cell(source.text[slice(*cell)]).text


def _find_column(source: Source, names: Sequence[str], wanted: str, option: str) -> int:
    """Find a column by its name, or by the usual names of a source."""
    language = source.how.languages[0]
    known = [*_SOURCES, language, NAMES.get(short_code(language), language)]
    lowered = [name.strip().casefold() for name in names]
    usual = [lowered.index(one.casefold()) for one in known if one and one.casefold() in lowered]
    found = [k for k, name in enumerate(names) if name == wanted] if wanted else usual
    if not found:
        have = ", ".join(map(repr, names)) or "none"
        of_what = repr(wanted) if wanted else "the text"
        what = f"The first row must name the column of {of_what}, but has {have}"
        source.refuse(0, what, f"Name one of these with {option}.")
    return found[0]
