"""Files of glossaries: tables of terms and term bases, whose faults are named with their line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from pellucid.decode.constraints.glossary import Glossary, forms_of
from pellucid.decode.constraints.term_bases import Concept, read_tbx
from pellucid.errors import DataError
from pellucid.files import endings
from pellucid.terminal.text import count_of
from pellucid.text.normalization import normalize
from pellucid.text.reading.lines import read_lines
from pellucid.text.word_forms import Match

_HEADER = ["source", "target"]
_TBX = ("<?xml", "<martif", "<tbx")
_CASE = {"": False, "no": False, "yes": True}


def load_glossary(*paths: Path | str, match: Match = "auto") -> Glossary:
    """Read a glossary from one file or several.

    Args:
        paths: UTF-8 tables, plain or packed, with tabs, or with the ending ``.csv``: source term,
            forms of the target term with ``|`` between them, and perhaps ``yes`` if capitals
            count. Empty lines, lines that begin with ``#``, and a header that begins with
            ``source`` and ``target`` are skipped. With the ending ``.tbx``: term bases, of which
            `Glossary.for_languages` takes the terms.
        match: the forms of a term that are found, see `base_forms`.

    Raises:
        DataError: a line has another form, or a source term has two translations; the message
            gives the file and the line's number.
        InputFileNotFoundError: a file does not exist.
    """
    return read_glossary({path: read_lines(path) for path in paths}, match=match)


def read_glossary(files: Mapping[Path | str, Iterable[str]], match: Match = "auto") -> Glossary:
    """Read a glossary as `load_glossary` does, from the lines of each file."""
    terms: dict[str, str] = {}
    places: dict[str, tuple[Path | str, int]] = {}
    case_sensitive: set[str] = set()
    concepts: list[Concept] = []
    for path, given in files.items():
        lines = iter(given)
        first = next(lines, "")
        lines = chain((first,), lines)
        # Whatever its name, no table begins like this.
        if endings(Path(path)).kind == ".tbx" or first.startswith(_TBX):
            concepts += read_tbx("\n".join(lines), str(path))
            continue
        for number, source, target, has_case in _read_terms(lines, path):
            known = terms.setdefault(source, target)
            first_path, number_there = places.setdefault(source, (path, number))
            if known != target:
                place = f"line {number_there}"
                if first_path != path:
                    place = f"{first_path}:{number_there}"
                raise DataError(
                    f"A source term must have one translation, but {source!r} has {target!r} and "
                    f"also {known!r} in {place} ({path}:{number}). Remove one of them, or write "
                    f"both as forms of one: {known}|{target}."
                )
            if has_case:
                case_sensitive.add(source)
    return Glossary(terms, match=match, case_sensitive=case_sensitive, concepts=concepts)


def _read_terms(lines: Iterable[str], path: Path | str) -> Iterator[tuple[int, str, str, bool]]:
    """Yield the number, both terms and the case of each line that has terms."""
    separator = "\t"
    is_first = True
    is_csv = endings(Path(path)).kind == ".csv"
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        where = f"{path}:{number}"
        if is_csv and is_first:
            separator = max(",;\t", key=line.count)
        # Accents in one form, so that a term equals the same word of a text.
        cells = [normalize(one, "nfc").strip() for one in _cut(line, separator, where)]
        is_header = is_first and [*map(str.lower, cells[:2])] == _HEADER
        is_first = False
        if is_header:
            continue
        if len(cells) not in (2, 3):
            name = {"\t": "tab", ",": "comma", ";": "semicolon"}[separator]
            is_one = len(cells) == 1
            columns = "one column" if is_one else count_of(len(cells), "column")
            advice = f"Is the {name} missing?" if is_one else "Correct or remove it."
            raise DataError(
                f"A line of a glossary must be source, {name}, target, and optionally yes or no "
                f"for capitals, but has {columns} ({where}). {advice}"
            )
        source, target, case = (*cells, "")[:3]
        if not (source and target):
            side = "target" if source else "source"
            raise DataError(
                f"Both terms of a glossary's line must hold text, but the {side} term is empty "
                f"({where}). Correct or remove it."
            )
        if not (forms := forms_of(target)) or not all(forms):
            raise DataError(
                f"The forms of a target term must hold text, but one in {target!r} is empty "
                f"({where}). Write the preferred form first, as in word|words or word|*free*."
            )
        if case.lower() not in _CASE:
            raise DataError(
                "The third column of a glossary must be yes, no or empty for capitals that count, "
                f"but is {case!r} ({where}). Correct or remove it."
            )
        yield number, " ".join(source.split()), target, _CASE[case.lower()]


def _cut(line: str, separator: str, where: str) -> list[str]:
    if separator == "\t":
        return line.split("\t")
    try:
        (cells,) = csv.reader([line], delimiter=separator, strict=True)
    except csv.Error as error:
        raise DataError(
            f"A line of a glossary must be a row of CSV, but {error} ({where}). Correct its quotes."
        ) from error
    return cells
