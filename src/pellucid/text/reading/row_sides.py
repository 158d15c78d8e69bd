"""Sides of a pair in the rows of a file: columns of a table, or keys of an object."""

from __future__ import annotations

import csv
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

from pellucid.config import DataConfig
from pellucid.config.parsing import read_json_text
from pellucid.errors import ConfigurationError
from pellucid.files import endings
from pellucid.languages.codes import find_columns, find_languages, plain_name
from pellucid.terminal.text import count_of
from pellucid.text.reading.lines import read_lines

SOURCE_NAMES = ("source", "src")
TARGET_NAMES = ("target", "tgt", "trg")
"""What headers call the two sides, besides the names and codes of the languages."""

SEPARATORS = {"\t": "tab", "|": "bar", ";": "semicolon", ",": "comma"}
"""What may stand between the cells of a ``.csv``, with names. Sentences have commas most often, so
that these come last."""

JUDGED_LINES = 100
"""Lines of a ``.csv`` by which its separator is chosen."""

# A longer line is text, and need not be split to see that.
LONGEST_HEADER = 200
LONGEST_NAME = 30

NESTED = "translation"
"""The key under which the data sets of Hugging Face hold both languages."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why a line cannot be used.

    Attributes:
        kind: the fault in a few words, for lists.
        sentence: the fault, its place, and what to do.
        advice: what to do about many such lines; empty to correct them.
    """

    kind: str
    sentence: str
    advice: str = ""


Row = list[str] | dict[str, Any]
"""The cells of a table's row, or an object."""


class RowReader(Protocol):
    """Finds both sides in the rows of one file.

    Attributes:
        has_header: True if the first row names the columns instead of holding a pair.
    """

    has_header: bool

    def read(self, row: Any, where: str) -> tuple[str, str] | Fault:
        """Find both sides of one row.

        Args:
            row: as `row_reader` got the first.
            where: its file and line, for the message.
        """


def find_separator(path: Path) -> str:
    """Find the separator of a ``.csv``: most of the first lines have equally many cells with it."""
    found = islice(read_lines(path, keeps_damaged=True), JUDGED_LINES)
    # A longer one cannot be read, and must not hide what the others say.
    lines = [line for line in found if len(line) < csv.field_size_limit()]

    def judge(separator: str) -> tuple[int, bool]:
        # Each line by itself as well, because a stray quotation mark hides those after it.
        each = chain.from_iterable(csv.reader([line], delimiter=separator) for line in lines)
        return max(_judge(csv.reader(lines, delimiter=separator)), _judge(each))

    # `max` takes the first of equals, so the order of the separators counts.
    return max(SEPARATORS, key=judge)


def _judge(rows: Iterable[list[str]]) -> tuple[int, bool]:
    """Count the rows of the commonest width; tell also whether it is two columns."""
    with suppress(csv.Error):
        widths = Counter(map(len, rows))
        count, width = max(((widths[n], n) for n in widths if n > 1), default=(0, 0))
        # If two separators fit equally many lines, two columns are the likelier pairs.
        return count, width == 2
    return 0, False


def row_reader(first: Row, data: DataConfig, path: str) -> RowReader:
    """Find where the rows of a file have their sides.

    Without ``data.columns`` a table's row is source and target, unless the first row has more
    columns and names them.

    Args:
        first: the first row.
        data: the recipe's data section.
        path: the file, for messages.

    Raises:
        ConfigurationError: the first row lacks a column of ``data.columns``, or objects have none
            with a number.
    """
    if isinstance(first, dict):
        return _object_reader(data, path)
    cells = [cell.strip() for cell in first]
    if not data.columns:
        named = named_sides(cells, data)
        # Two columns are two sides, and their first line a pair, whatever it says.
        return (
            _TwoColumns(cells, path)
            if len(cells) == 2 or named is None
            else _Table(cells, named, True)
        )
    places = [column - 1 if isinstance(column, int) else -1 for column in data.columns]
    if any(isinstance(column, str) for column in data.columns):
        for number, column in enumerate(data.columns):
            if isinstance(column, str) and column not in cells:
                raise ConfigurationError(
                    f"data.columns must name columns of the first line, but {column!r} is not "
                    f"among {', '.join(map(repr, cells))} ({path}:1). Take one of these, or give "
                    "the numbers of the columns, from 1."
                )
            if isinstance(column, str):
                places[number] = cells.index(column)
        return _Table(cells, (places[0], places[1]), True)
    return _Table(cells, (places[0], places[1]), named_sides(cells, data) is not None)


def _object_reader(data: DataConfig, path: str) -> RowReader:
    """Find the keys of objects."""
    keys: list[str] = []
    for column in data.columns:
        if isinstance(column, int):
            raise ConfigurationError(
                f"data.columns must be keys for JSON and data sets, but has the number {column} "
                f"({path}). "
                'Write names, such as ["en", "fr"].'
            )
        keys.append(column)
    return _Objects(keys, (data.source_language, data.target_language))


def is_header(line: str, data: DataConfig) -> bool:
    """Tell whether a line names the two sides instead of being a pair."""
    return len(line) < LONGEST_HEADER and (
        named_sides([cell.strip() for cell in line.split("\t")], data) is not None
    )


def is_source_name(cell: str, data: DataConfig) -> bool:
    """Tell whether a cell of a header names the source."""
    return bool(_find_side([cell.strip()], SOURCE_NAMES, data.source_language))


def named_sides(cells: Sequence[str], data: DataConfig) -> tuple[int, int] | None:
    """Find the columns that a header calls source and target; None if it names only one."""
    source = _find_side(cells, SOURCE_NAMES, data.source_language)
    target = _find_side(cells, TARGET_NAMES, data.target_language)
    # A name that occurs twice does not say which column counts.
    if len(source) != 1 or len(target) != 1 or source == target:
        return None
    return source[0], target[0]


def _find_side(cells: Sequence[str], names: Sequence[str], language: str) -> list[int]:
    """Find the columns that a header calls by the name of a side, or of its language."""
    called = {place for place, cell in enumerate(cells) if plain_name(cell) in names}
    return sorted(called | set(find_columns(language, cells)))


class _TwoColumns:
    """Source, tab or another separator, target."""

    has_header = False

    def __init__(self, cells: Sequence[str], path: str) -> None:
        self._path = Path(path)
        self._advice = _advise_columns(cells)

    def read(self, row: Any, where: str) -> tuple[str, str] | Fault:
        if len(row) == 2:
            return row[0], row[1]
        count = count_of(len(row), "column")
        advice = self._advice if len(row) > 2 else ""
        return Fault(
            count if any(row) else "empty",
            f"A line must be source, {self._between}, target, but has {count} ({where}). Correct "
            f"it or remove it.{advice and f' {advice}.'}",
            advice,
        )

    @cached_property
    def _between(self) -> str:
        """The name of the separator; looked for once, because a file may have many such rows."""
        is_csv = endings(self._path).kind == ".csv"
        return SEPARATORS[find_separator(self._path)] if is_csv else "tab"


def _advise_columns(cells: Sequence[str]) -> str:
    """Say how to name the columns that count, so that one can type it."""
    languages = find_languages(cells)
    # Numbers of rows stand first, if at all: `id` is hardly Indonesian next to two columns.
    known = [
        cell
        for cell, code in zip(cells, languages, strict=True)
        if code and plain_name(cell) != "id"
    ]
    has_names = len(set(cells)) == len(cells) and max(map(len, cells)) <= LONGEST_NAME
    named: Sequence[str | int] = [1, 2]
    if len(known) > 1:
        named = [*known[:2]]
    elif has_names:
        named = [cell for cell in cells if plain_name(cell) != "id"][:2]
    option = shlex.quote(f"data.columns={json.dumps(named, ensure_ascii=False)}")
    names = f" (the first line has {', '.join(map(repr, cells))})" if has_names else ""
    return f"Name the columns of source and target, such as --set {option}{names}"


class _Table:
    """Two columns of several."""

    def __init__(self, cells: Sequence[str], places: tuple[int, int], has_header: bool) -> None:
        self.has_header = has_header
        self._num_columns = max(len(cells), max(places) + 1)
        self._source, self._target = places

    def read(self, row: Any, where: str) -> tuple[str, str] | Fault:
        if len(row) == self._num_columns:
            return row[self._source], row[self._target]
        count = count_of(len(row), "column")
        return Fault(
            count if any(row) else "empty",
            f"A line must have {self._num_columns} columns, as the first has, but has {count} "
            f"({where}). Correct it or remove it.",
        )


class _Objects:
    """Objects with ``source`` and ``target``, or with a key for each language."""

    has_header = False

    def __init__(self, keys: Sequence[str], languages: tuple[str, str]) -> None:
        self._keys = keys
        self._languages = languages

    def read(self, row: Any, where: str) -> tuple[str, str] | Fault:
        sides = []
        for key, holder in self._find(row):
            text = text_of(holder, key, where)
            if isinstance(text, Fault):
                return self._with_hint(text, row)
            sides.append(text)
        return sides[0], sides[1]

    def _find(self, value: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Find the key of each side, and the object that should have it."""
        if self._keys:
            return [find_dotted_key(value, key) for key in self._keys]
        if "source" not in value and "target" not in value and all(self._languages):
            nested = value.get(NESTED)
            for holder in (nested, value):
                if isinstance(holder, dict) and any(name in holder for name in self._languages):
                    return [(name, holder) for name in self._languages]
        return [("source", value), ("target", value)]

    def _with_hint(self, fault: Fault, value: dict[str, Any]) -> Fault:
        """Add what to set if the keys are those of languages."""
        nested = value.get(NESTED)
        if self._keys or not fault.kind.startswith("no ") or not isinstance(nested, dict):
            return fault
        known = ", ".join(map(repr, nested))
        hint = f" Or set data.source_language and data.target_language to two of {known}."
        return Fault(fault.kind, fault.sentence + hint)


def read_object(line: str, where: str, form: str) -> dict[str, Any] | Fault:
    """Read one line of JSON Lines.

    Args:
        line: the line.
        where: its file and number, for the message.
        form: an object as it should be, for the message.
    """
    try:
        value = read_json_text(line)
    except ValueError as error:
        return Fault(
            "not JSON" if line else "empty",
            f"A line must be a JSON object, but cannot be read: {error} ({where}). Correct it "
            "or remove it.",
        )
    if not isinstance(value, dict):
        return Fault(
            _json_type(value),
            f"A line must be a JSON object, but is {_json_type(value)} ({where}). Write {form}.",
        )
    return value


def find_dotted_key(value: dict[str, Any], path: str) -> tuple[str, dict[str, Any]]:
    """Follow a dotted key, such as ``translation.en``, to the object that holds its last part."""
    key = path
    # A key may have a dot in its own name, so the whole name is tried first.
    while key not in value and "." in key:
        first, _, rest = key.partition(".")
        inner = value.get(first)
        if not isinstance(inner, dict):
            break
        value = inner
        key = rest
    return key, value


def text_of(value: dict[str, Any], key: str, where: str) -> str | Fault:
    """Take a text, which may have line breaks, out of a JSON object.

    Args:
        value: the object.
        key: the text's key.
        where: the file and number of its line, for the message.
    """
    if key not in value:
        return Fault(f'no "{key}"', f'A line must have "{key}", but does not ({where}). Add it.')
    text = value[key]
    if not isinstance(text, str):
        kind = _json_type(text)
        return Fault(
            f'"{key}" is {kind}',
            f'"{key}" must be text, but is {kind} ({where}). Put it in quotes.',
        )
    try:
        # JSON can write half a character as an escape, which text files cannot hold.
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return Fault(
            "half a surrogate pair",
            f'"{key}" must be Unicode text, but character {error.start + 1} is half of a '
            f"surrogate pair ({where}). Write the whole character.",
        )
    return text


def _json_type(value: Any) -> str:
    """Name a JSON value's type."""
    names = {bool: "true or false", int: "a number", float: "a number", str: "a string"}
    return {type(None): "null", list: "a list", dict: "an object", **names}[type(value)]


_KINDS = {
    "a gettext catalog": "po pot gmo",
    "a file of translation units": "xlf xliff sdlxliff mqxliff mxliff xlz tmx tbx ttx",
    "a file of an interface's texts": "arb ftl properties resx strings stringsdict xcstrings",
    "subtitles": "srt vtt ass ssa sub sbv smi ttml dfxp",
    "a page with markup": "htm html xhtml mhtml xml svg",
    "text with markup": "md markdown mdx rst adoc asciidoc tex latex textile",
    "a table": "csv tsv xls xlsx xlsm ods parquet arrow",
    "a file of data": "json jsonl ndjson geojson yaml yml toml ini",
    "a document with a layout": "doc docx docm dotx odt ott rtf pdf epub mobi",
    "slides": "ppt pptx pptm odp",
    "an archive": "zip tar tgz txz tbz2 7z rar lz4 lz",
}
# Codes of languages are left out, since corpora are named so: ``ts`` is Tsonga, ``mo`` Moldavian.
_BY_ENDING = {ending: kind for kind, endings in _KINDS.items() for ending in endings.split()}


def kind_of_document(name: str) -> str | None:
    """Describe the kind of a file that is not plain lines, or return None.

    Args:
        name: the file's name or path; the ending of a packed file is not looked at.
    """
    return _BY_ENDING.get(endings(name).kind.removeprefix("."))
