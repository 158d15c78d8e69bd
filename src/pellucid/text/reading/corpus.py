"""Pairs of sentences from parallel files, tab-separated files and JSON Lines, plain or packed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat, zip_longest
from pathlib import Path
from typing import Literal, get_args

from pellucid.config import DataConfig
from pellucid.errors import ConfigurationError, DataError, InputFileNotFoundError
from pellucid.files import refuse_pipe
from pellucid.text.reading.joining import joiner
from pellucid.text.reading.lines import CutLine, decode_line, name_unpacked, read_lines
from pellucid.text.reading.rows import Fault, RowReader, json_reader, kind_of_document, table_reader

Split = Literal["train", "validation", "test"]


MOST_LISTED = 10
"""Bad lines that a message lists."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation.

    Attributes:
        source: the sentence, one line.
        target: its translation, one line.
        where: ``FILE:LINE`` of the source, lines from 1.
        number: the number of the line from 1, without a header; 0 if the pair is of no file.
        has_breaks: True if a side had line breaks, which JSON can write; they are spaces here.
    """

    source: str
    target: str
    where: str
    number: int = field(default=0, compare=False)
    has_breaks: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be used.

    Attributes:
        where: ``FILE:LINE``, lines from 1.
        number: the number of the line.
        fault: the reason.
    """

    where: str
    number: int
    fault: Fault


class BadLines:
    """Lines that cannot be used: their number, by kind, and the first ten."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.first: list[BadLine] = []

    @property
    def count(self) -> int:
        """The number of lines."""
        return self.kinds.total()

    def add(self, line: BadLine) -> None:
        """Count a line."""
        self.kinds[line.fault.kind] += 1
        if len(self.first) < MOST_LISTED:
            self.first.append(line)

    def extend(self, other: BadLines) -> None:
        """Add the lines of another collection."""
        self.kinds += other.kinds
        self.first = (self.first + other.first)[:MOST_LISTED]

    def listed(self) -> str:
        """List the first ten with their kinds: ``a.tsv:2 (1 column), 7 (empty)``."""
        shown, file = [], ""
        only = next(iter(self.kinds)) if len(self.kinds) == 1 else ""
        for line in self.first:
            here, _, number = line.where.rpartition(":")
            place = number if here == file else line.where
            shown.append(place if only else f"{place} ({line.fault.kind})")
            file = here
        more = self.count - len(self.first)
        listed = ", ".join(shown) + (f" and {more:,} more" if more else "")
        return f"{listed} ({only})" if only else listed

    def sentence(self) -> str:
        """Say what is wrong and what to do: one line's fault, or a list of lines."""
        skip = 'leave such lines out with data.on_bad_line = "skip"'
        if self.count == 1:
            return f"{self.first[0].fault.sentence.removesuffix('.')}, or {skip}."
        advice = f"Correct or remove them, or {skip}."
        if all(kind.endswith(" columns") for kind in self.kinds):
            advice = f"Name the columns of source and target in data.columns, or {skip}."
        if all(kind == "not UTF-8" for kind in self.kinds):
            advice = "Convert the file, for instance with iconv -f WINDOWS-1252 -t UTF-8, or "
            advice += f"{skip}."
        return f"{self.count:,} lines cannot be used: {self.listed()}. {advice}"


def resolve_folder(folder: str, base: Path) -> Path:
    """Find the folder that the file names of a data section are relative to.

    Args:
        folder: ``data.folder``; ``$NAME`` or ``$NAME/sub`` starts at an environment variable.
        base: the recipe's folder, where a relative folder starts.

    Raises:
        InputFileNotFoundError: the environment variable is not set.
    """
    if not folder.startswith("$"):
        return base / folder
    name, _, rest = folder[1:].partition("/")
    if not name:
        raise InputFileNotFoundError(
            f"data.folder must name an environment variable after its $, but is {folder!r}. "
            "Write $NAME, or use --set data.folder=DIR."
        )
    root = os.environ.get(name, "")
    if not root:
        raise InputFileNotFoundError(
            f"The environment variable {name} of data.folder must be set, but is not. "
            f"Set {name} to the folder of the text, or use --set data.folder=DIR."
        )
    return base / root / rest


def check_files(data: DataConfig, base: Path) -> None:
    """Check that every file that a recipe names exists and is not empty.

    Args:
        data: the recipe's data section.
        base: the recipe's folder.

    Raises:
        ConfigurationError: a file's kind is unknown.
        DataError: a file is empty or cannot be read.
        InputFileNotFoundError: a file is missing; the message names the key.
    """
    folder = resolve_folder(data.folder, base)
    for split in get_args(Split):
        for key in (f"{split}_source", f"{split}_target", split, f"{split}_alignments"):
            # Only training text has alignments.
            for name in getattr(data, key, ()):
                if key == split:
                    _kind_of(name, key)
                _check_file(folder / name, key)


def read_pairs(
    data: DataConfig, split: Split, base: Path, *, bad: BadLines | None = None
) -> Iterator[Pair]:
    """Read the pairs of one split, file after file, in order.

    A line that cannot be used ends the reading, after the rest of its file has been searched for
    more of them. With ``data.on_bad_line = "skip"`` it is left out.

    Args:
        data: the recipe's data section.
        split: ``"train"``, ``"validation"`` or ``"test"``.
        base: the recipe's folder.
        bad: takes the lines that are left out.

    Yields:
        Each pair. Nothing is kept in memory.

    Raises:
        ConfigurationError: a file's kind is unknown, or it lacks the columns of ``data.columns``.
        DataError: parallel files differ in length, a file is empty, or a line cannot be used; the
            message says which.
        InputFileNotFoundError: a file is missing.
    """
    folder = resolve_folder(data.folder, base)
    bad = BadLines() if bad is None else bad
    names = zip(getattr(data, f"{split}_source"), getattr(data, f"{split}_target"), strict=True)
    join = joiner(data.cut_by)
    for source, target in names:
        _check_file(folder / source, f"{split}_source")
        _check_file(folder / target, f"{split}_target")
        rows = _read_parallel(folder / source, folder / target)
        yield from _usable(rows, data, bad, join)
    for name in getattr(data, split):
        kind = _kind_of(name, split)
        _check_file(folder / name, split)
        yield from _usable(_read_rows(folder / name, kind, data), data, bad, join)


def _usable(
    rows: Iterator[Pair | BadLine],
    data: DataConfig,
    bad: BadLines,
    join: Callable[[str], str] | None,
) -> Iterator[Pair]:
    """Yield the pairs of one file, and collect its bad lines or stop because of them."""
    is_skipping = data.on_bad_line == "skip"
    found = bad if is_skipping else BadLines()
    for row in rows:
        if isinstance(row, BadLine):
            found.add(row)
        elif is_skipping or not found.count:
            if join is not None:
                row = replace(row, source=join(row.source), target=join(row.target))
            yield row
    if not is_skipping and found.count:
        raise DataError(found.sentence())


def _kind_of(name: str, key: str) -> str:
    """Tell the kind of a file with both sides by its name: ``.tsv`` or ``.jsonl``."""
    stem = name_unpacked(name)
    for kind in (".tsv", ".jsonl"):
        if stem.endswith(kind):
            return kind
    advice = f"Rename it, or name parallel files in {key}_source and {key}_target."
    if stem.endswith(".json"):
        advice = (
            "If each line is an object, rename it; if the file is one list, write its entries as "
            "lines with jq -c '.[]'."
        )
    elif document := kind_of_document(stem):
        advice = (
            f"It is {document} by its name: write its pairs, SOURCE, tab, TARGET, into a .tsv file."
        )
    raise ConfigurationError(
        "A file with both sides must end in .tsv or .jsonl (and .gz, .xz, .bz2 or .zst), but is "
        f"{name!r} (data.{key}). {advice}"
    )


def _check_file(path: Path, key: str) -> None:
    """Check that a file exists and is not empty."""
    if not path.exists():
        raise InputFileNotFoundError(
            f"data.{key} must name a file, but {path} does not exist. Check the name and "
            "data.folder."
        )
    refuse_pipe(path, f"data.{key}")
    if next(read_lines(path, keeps_damaged=True), None) is None:
        raise DataError(f"A text file must not be empty, but {path} is empty (data.{key}).")


def _read_parallel(source_path: Path, target_path: Path) -> Iterator[Pair | BadLine]:
    """Pair line i of one file with line i of the other."""
    sources = read_lines(source_path, keeps_damaged=True)
    targets = read_lines(target_path, keeps_damaged=True)
    for number, (source, target) in enumerate(zip_longest(sources, targets), start=1):
        if source is None or target is None:
            rest = sum(1 for _ in (sources if target is None else targets))
            counts = (number + rest, number - 1)
            num_sources, num_targets = counts if target is None else reversed(counts)
            raise DataError(
                "Parallel files must have equally many lines, but "
                f"{source_path} has {num_sources} and {target_path} has {num_targets}. "
                "Line i of one must translate line i of the other: check which lines are missing."
            )
        damage = _damage(source, source_path, number) or _damage(target, target_path, number)
        yield damage or Pair(source, target, f"{source_path}:{number}", number)


def _read_rows(path: Path, kind: str, data: DataConfig) -> Iterator[Pair | BadLine]:
    """Read a file with both sides in each line."""
    lines = read_lines(path, keeps_damaged=True)
    reader: RowReader | None = json_reader(data, str(path)) if kind == ".jsonl" else None
    for number, line in enumerate(_without_blank_end(lines), start=1):
        if (damage := _damage(line, path, number)) is not None:
            yield damage
            continue
        if reader is None:
            reader = table_reader(line, data, str(path))
            if reader.has_header and number == 1:
                continue
        where = f"{path}:{number}"
        row = reader.read(line, where)
        if isinstance(row, Fault):
            yield BadLine(where, number, row)
        else:
            source, target = map(_in_one_line, row)
            has_breaks = (source, target) != row
            yield Pair(source, target, where, number - reader.has_header, has_breaks)


def _in_one_line(text: str) -> str:
    """Put spaces in the place of line breaks, and of the white space around them."""
    if "\n" not in text:
        return text
    return " ".join(filter(None, map(str.strip, text.split("\n"))))


def _without_blank_end(lines: Iterator[str]) -> Iterator[str]:
    """Leave out empty lines at the end of a file; others keep their places."""
    num_empty = 0
    for line in lines:
        if line:
            yield from repeat("", num_empty)
            num_empty = 0
            yield line
        else:
            num_empty += 1


def _damage(line: str, path: Path, number: int) -> BadLine | None:
    """Describe a line that is too long, or not UTF-8."""
    if isinstance(line, CutLine):
        sentence = f"{line.fault()} ({path}:{number}). Break it into shorter ones."
        return BadLine(f"{path}:{number}", number, Fault("too long", sentence))
    try:
        line.encode()
    except UnicodeEncodeError:
        raw = line.encode("utf-8", "surrogateescape")
        try:
            decode_line(raw, path, number)
        except DataError as error:
            return BadLine(f"{path}:{number}", number, Fault("not UTF-8", str(error)))
    return None


DropReason = Literal[
    "empty source", "empty target", "source too long", "target too long", "length ratio"
]


def reason_to_drop(
    source: str,
    target: str,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    *,
    max_length: int,
    max_length_ratio: float,
) -> DropReason | None:
    """Tell why a training pair cannot be used, if so.

    Args:
        source: the source text.
        target: the target text.
        source_ids: its tokens, ending in ``</s>``.
        target_ids: the target's tokens, ending in ``</s>``.
        max_length: the most tokens on either side, with ``</s>``, which the model sees too.
        max_length_ratio: the most times that the longer side may have the tokens of the shorter,
            without ``</s>``.

    Returns:
        The first reason that holds, or None for a good pair.
    """
    if not source.strip() or len(source_ids) <= 1:
        return "empty source"
    if not target.strip() or len(target_ids) <= 1:
        return "empty target"
    if len(source_ids) > max_length:
        return "source too long"
    if len(target_ids) > max_length:
        return "target too long"
    shorter, longer = sorted((len(source_ids) - 1, len(target_ids) - 1))
    if longer > max_length_ratio * shorter:
        return "length ratio"
    return None
