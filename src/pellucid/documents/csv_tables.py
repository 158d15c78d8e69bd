"""CSV and TSV: one column is translated, in place or into another one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from pellucid.documents.escapes import Strings
from pellucid.documents.markup.segments import Piece, Segment, Spelled, Syntax, spell
from pellucid.documents.placeholders import make_segment
from pellucid.documents.units import How, Source, Unit
from pellucid.languages.codes import find_columns
from pellucid.terminal.text import count_of

_SOURCES = ("source", "src", "text")
_TARGETS = ("target", "translation")
_SEPARATOR = re.compile(r"sep=([,;\t])\r?")
_QUOTED = re.compile(r"\"(?:[^\"]|\"\")*\"")
_STRINGS = Strings({'"': '""'}, '""', is_interface=False)

Cell = tuple[int, int]


def read_csv(chunks: Iterator[str], how: How) -> Iterator[str | Unit]:
    """Read a table, of which a column is translated; the first row names the columns.

    Raises:
        DataError: the column is missing.
    """
    start = next(chunks, "")
    first, newline, rest = start.partition("\n")
    # Excel reads this line, and shows none of it.
    if (named := _SEPARATOR.fullmatch(first)) is not None:
        yield first + newline
        yield from _read(chain((rest,), chunks), how, named[1])
        return
    # Spreadsheets write semicolons where the decimal sign is a comma.
    yield from _read(chain((start,), chunks), how, max(",;\t", key=first.count))


def read_tsv(chunks: Iterator[str], how: How) -> Iterator[str | Unit]:
    """Read a TSV, as `read_csv` does."""
    return _read(chunks, how, "\t")


def _read(chunks: Iterator[str], how: How, separator: str) -> Iterator[str | Unit]:
    quote = "" if separator == "\t" else '"'
    needs_quotes = re.compile(rf"[{quote}{separator}\r\n]")

    def finish(segment: Segment, written: str) -> str:
        # A cell that stays as it is keeps its form, also if it could do without quotes.
        is_plain = written == spell(segment.pieces) or not needs_quotes.search(written)
        return written if is_plain else '"{}"'.format(written.replace('"', '""'))

    bare = Syntax({}, finish=finish, read=lambda raw: make_segment(_read_cell(raw), Syntax({})))
    names: list[str] = []
    for source, rows in _read_parts(chunks, how, separator):
        if not names:
            # An empty file has no columns: `_find_column` says so.
            first, *others = rows or [[]]
            names = [_text(source, cell) for cell in first]
            if how.column.isdecimal() and how.column not in names:
                # A table without names: its first row is a text, too.
                own = into = _number(source, how.column, len(names))
            else:
                rows = others
                own = _find_column(source, names, how.column, "--column")
                into = _find_into(source, names, own)
        yield from source.cut(_units(source, rows, bare, (own, into, len(names))))


def _units(
    source: Source, rows: Iterable[list[Cell]], bare: Syntax, columns: tuple[int, int, int]
) -> Iterator[Unit]:
    """Make units of rows, with the columns of text and translation and the number of columns."""
    own, into, _ = columns
    for row in rows:
        key = f"row {source.line(row[0][0])}"
        fault = _fault(source, row, columns)
        if fault:
            start = row[0][0]
            end = row[-1][1]
            yield Unit(key, start, end, [source.text[start:end]], fault=fault)
            continue
        # A cell that is filled has its translation already.
        if into != own and _text(source, row[into]).strip() and not source.how.has_all:
            continue
        raw = source.text[slice(*row[own])]
        pieces: list[Piece] = [make_segment(Spelled(raw), bare)]
        if _QUOTED.fullmatch(raw):
            pieces = ['"', *_STRINGS.pieces(raw[1:-1]), '"']
        yield Unit(key, *row[into], pieces)


def _fault(source: Source, row: Sequence[Cell], columns: tuple[int, int, int]) -> str:
    """Say why a row cannot be translated; cells that are empty may be missing or too many."""
    own, into, count = columns
    is_short = len(row) <= max(own, into)
    # A separator that should be in quotes cuts a text, and moves those after it.
    has_more = any(_text(source, one).strip() for one in row[count:])
    if not is_short and not has_more:
        return ""
    return (
        f"the row has {count_of(len(row), 'column')} and the first {count}, so that it stays as it "
        "is"
    )


def _read_parts(
    chunks: Iterable[str], how: How, separator: str
) -> Iterator[tuple[Source, list[list[Cell]]]]:
    """Cut a table into parts of whole rows, with the places of cells; empty lines have none."""
    cell = _cell(separator)
    waiting = ""
    line = 1
    # Without a whole row the size is doubled before the next try, for the time to be linear.
    least = 0
    for chunk in chain(chunks, (None,)):
        waiting += chunk or ""
        if chunk is not None and len(waiting) < least:
            continue
        rows = list[list[Cell]]()
        row = list[Cell]()
        place = 0
        end = 0
        while place < len(waiting) or row:
            match = cell.match(waiting, place)
            if chunk is not None and (match is None or match.end() == len(waiting)):
                break  # The last cell may continue in the next part.
            if match is None:
                what = "A quoted cell must end with a quote, but does not"
                Source(waiting, how, line).refuse(place, what, "Add it.")
            row.append(match.span("text"))
            place = match.end()
            if match["end"] != separator:
                if len(row) > 1 or match["text"]:
                    rows.append(row)
                row = []
                end = place
        least = 0 if end else 2 * len(waiting)
        if end or chunk is None:
            yield Source(waiting[:end], how, line), rows
            line += waiting.count("\n", 0, end)
            waiting = waiting[end:]


def _cell(separator: str) -> re.Pattern[str]:
    # In a TSV a cell has one line, and a quote may be a character like others.
    inner, other = (r"[^\"\r\n]", "") if separator == "\t" else (r"[^\"]", r"(?!\")")
    return re.compile(
        rf"(?P<text>\"(?:{inner}|\"\")*\"(?=[{separator}\r\n]|\Z)|{other}[^{separator}\r\n]*)"
        rf"(?P<end>{separator}|\r?\n|\r|\Z)"
    )


def _read_cell(raw: str) -> Spelled:
    return _STRINGS.read(raw[1:-1])[1] if _QUOTED.fullmatch(raw) else Spelled(raw)


def _text(source: Source, cell: Cell) -> str:
    return _read_cell(source.text[slice(*cell)]).text


def _number(source: Source, column: str, count: int) -> int:
    """Read the number of a column, from 1."""
    # Python refuses to read thousands of digits.
    number = int(column[:9])
    if not 1 <= number <= count:
        have = count_of(count, "column")
        what = f"A table without names must have the column {column}, but has {have}"
        source.refuse(0, what, "Give another number with --column.")
    return number - 1


def _find_into(source: Source, names: Sequence[str], own: int) -> int:
    """Find the column that gets the translation: next to one of sources that of targets."""
    if source.how.into:
        return _find_column(source, names, source.how.into, "--into")
    lowered = [name.strip().casefold() for name in names]
    found = [lowered.index(one) for one in _TARGETS if one in lowered]
    return found[0] if found and lowered[own] in _SOURCES and not source.how.column else own


def _find_column(source: Source, names: Sequence[str], wanted: str, option: str) -> int:
    """Find a column by its name, or by the usual names of a source."""
    language = source.how.languages[0]
    lowered = [name.strip().casefold() for name in names]
    usual = [lowered.index(one) for one in _SOURCES if one in lowered]
    usual += find_columns(language, names)
    found = [k for k, name in enumerate(names) if name == wanted] if wanted else usual
    if found and names.count(names[found[0]]) > 1:
        what = f"Columns must have different names, but two are called {names[found[0]]!r}"
        source.refuse(0, what, "Rename one of them.")
    if not found:
        have = ", ".join(map(repr, names)) or "none"
        of_what = repr(wanted) if wanted else "the text"
        what = f"The first row must name the column of {of_what}, but has {have}"
        source.refuse(0, what, f"Name one of these with {option}." if names else "Add it.")
    return found[0]
