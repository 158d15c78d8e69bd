"""Pairs of sentences from parallel files, tab-separated files and JSON Lines, plain or packed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, zip_longest
from pathlib import Path

from pellucid.config.data import SPLITS, DataConfig, Split
from pellucid.documents.document_pairs import read_document_pairs
from pellucid.documents.formats import PAIRED, Format
from pellucid.documents.placeholder_masks import mask_lesson, mask_pair, maskable
from pellucid.documents.units import How
from pellucid.errors import ConfigurationError, DataError, InputError, InputFileNotFoundError
from pellucid.files import endings, read_bytes, refuse_pipe
from pellucid.text.reading.bad_lines import BadLine, BadLines
from pellucid.text.reading.held_out import NOTHING, SET_ASIDE, HeldOut, hold_out
from pellucid.text.reading.joining import joiner
from pellucid.text.reading.lines import read_chunks, read_lines
from pellucid.text.reading.pair_tables import find_damage, kind_of_table, read_rows
from pellucid.text.reading.row_sides import (
    Fault,
    RowReader,
    is_header,
    kind_of_document,
    row_reader,
)

PAIRS = ".tsv, .csv, .jsonl, .po, .xlf, .tmx (and .gz, .xz, .bz2 or .zst), .parquet or .arrow"
"""The endings of files with both sides, for messages."""

_KEY = "set_aside"
"""The entry of a model's manifest, under ``data``, with what its training had set aside."""


@dataclass(frozen=True, slots=True)
class SentencePair:
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
    # An absolute folder in the variable replaces `base`.
    return base / root / rest


def check_text_files(data: DataConfig, base: Path) -> None:
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
    for split in SPLITS:
        for names in data.names(split):
            for name in names:
                if len(names) == 1:
                    _kind_of(name, data.key_of(split))
                _check_file(folder / name, data.key_of(split))
    for name in data.train_alignments:
        _check_file(folder / name, "train_alignments")


def read_pairs(
    data: DataConfig, split: Split, base: Path, *, bad: BadLines | None = None
) -> Iterator[SentencePair]:
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
    bad = BadLines() if bad is None else bad
    if not data.split:
        return _read_files(data, split, base, bad)
    aside = find_aside(data, base).pairs
    if split == "train":
        pairs = _read_files(data, split, base, bad)
        # By the target too, because one entry of a document may have several.
        return (pair for pair in pairs if (pair.where, pair.target) not in aside)
    folder = resolve_folder(data.folder, base)
    files = {str(folder / names[0]) for names in data.names(split)}
    found = (pair for place, pair in aside.values() if place == split)
    return (pair for pair in found if pair.where.rpartition(":")[0] in files)


def read_lessons(
    data: DataConfig,
    split: Split,
    base: Path,
    *,
    symbols: Collection[str],
    bad: BadLines | None = None,
) -> Iterator[SentencePair]:
    """Read pairs as a model learns them, maybe with masks; else as `read_pairs` does.

    Args:
        data: the recipe's data section.
        split: ``"train"``, ``"validation"`` or ``"test"``.
        base: the recipe's folder.
        symbols: those of the tokenizer, which are no placeholders.
        bad: takes the lines that are left out.
    """
    pairs = read_pairs(data, split, base, bad=bad)
    if data.placeholders == "text":
        return pairs
    # Lessons also begin with rare symbols, so that all are learned (docs/decisions/0027).
    hide = mask_lesson if split == "train" else mask_pair
    # Links count the words of a line.
    wanted = maskable(symbols, words_only=bool(data.train_alignments))

    def masked(pair: SentencePair) -> SentencePair:
        source, target = hide(pair.source, pair.target, wanted=wanted)
        return replace(pair, source=source, target=target)

    return map(masked, pairs)


def _states(data: DataConfig, base: Path) -> Iterator[tuple[int, int]]:
    """Yield the size and the time of each file of training text."""
    folder = resolve_folder(data.folder, base)
    for name in chain(*data.names("train")):
        _check_file(folder / name, "train")
        state = (folder / name).stat()
        yield state.st_size, state.st_mtime_ns


def _read_files(
    data: DataConfig, split: Split, base: Path, bad: BadLines
) -> Iterator[SentencePair]:
    """Read the files of a split one after another, whatever is set aside."""
    folder = resolve_folder(data.folder, base)
    join = joiner(data.cut_by)
    key = data.key_of(split)
    for names in data.names(split):
        kind = _kind_of(names[0], key) if len(names) == 1 else ""
        for name in names:
            _check_file(folder / name, key)
        paths = [folder / name for name in names]
        rows = _read_rows(paths[0], kind, data) if kind else _read_parallel(*paths)
        yield from _usable(rows, data, bad, join)


def read_pairs_of_file(
    path: str, languages: tuple[str, str], bad: BadLines
) -> Iterator[SentencePair]:
    """Read the pairs of one file.

    Args:
        path: a table or a document.
        languages: codes of source and target.
        bad: takes what cannot be used.

    Raises:
        InputError: the kind of the file is unknown.
        DataError: it cannot be read.
    """
    # Not validated, because a recipe's section must name files for training.
    data = DataConfig.model_construct(None, on_bad_line="skip")
    yield from _usable(read_table(path, languages), data, bad, None)


def read_table(path: str, languages: tuple[str, str]) -> Iterator[SentencePair | BadLine]:
    """Read every row of a file with both sides, also those that are no pair.

    Args:
        path: a table or a document.
        languages: codes of source and target, by which columns and keys may be named.

    Raises:
        InputError: the kind of the file is unknown.
        DataError: it cannot be read.
    """
    kind = kind_of_table(path)
    if kind is None:
        raise InputError(f"A file of pairs must end in {PAIRS}, but is {path}. Convert it first.")
    names = dict(zip(("source_language", "target_language"), languages, strict=True))
    data = DataConfig.model_construct(None, **names, on_bad_line="skip")
    for row in _read_rows(Path(path), kind, data):
        may_be_header = kind not in PAIRED and row.number <= 1
        both = f"{row.source}\t{row.target}" if isinstance(row, SentencePair) else ""
        if not (may_be_header and both and is_header(both, data)):
            yield row


@dataclass(frozen=True)
class Aside:
    """The pairs that training leaves out because of ``data.split``.

    Attributes:
        held_out: what is set aside, as hashes.
        pairs: each pair with its split, None if only its target is set aside, by its place and its
            target.
    """

    held_out: HeldOut
    pairs: Mapping[tuple[str, str], tuple[str | None, SentencePair]]

    @property
    def num_same_target(self) -> int:
        """The number of pairs that are in no split, because their target is set aside."""
        return sum(split is None for split, _ in self.pairs.values())


def find_aside(data: DataConfig, base: Path) -> Aside:
    """Find what training leaves out because of ``data.split``, in all of its text.

    Raises:
        ConfigurationError: ``data.set_aside_as`` names no model that set text aside.
        DataError: the text cannot be read, or no text is left to set aside or to learn from.
        InputFileNotFoundError: a file is missing.
    """
    whole = data.whole
    if not whole.split:
        return Aside(read_held_out(whole, base), {})
    # The cache needs arguments with a hash: the settings as JSON, and each file's size and time.
    return _set_aside(whole.model_dump_json(), base, tuple(_states(whole, base)))


@lru_cache(maxsize=4)
def _set_aside(data: str, base: Path, _states: tuple[tuple[int, int], ...]) -> Aside:
    """Find once, as long as the files stay as they are, the pairs that training leaves out."""
    settings = DataConfig.model_validate_json(data)

    def pairs() -> Iterator[SentencePair]:
        return _read_files(settings, "train", base, BadLines())

    texts = ((pair.source, pair.target) for pair in pairs())
    held_out = hold_out(texts, settings.split or 0, read_held_out(settings, base))
    found: dict[tuple[str, str], tuple[str | None, SentencePair]] = {}
    has_training = False
    for pair in pairs():
        split = held_out.split_of(pair.source, pair.target)
        if split == "train":
            has_training = True
        else:
            found[pair.where, pair.target] = (split, pair)
    if not has_training:
        raise DataError(
            f"data.split must leave pairs to learn from, but all {len(found):,} have a source or a "
            "target that is set aside. Give more text, or name other text to validate on in place "
            "of data.split: --set data.validation=FILE."
        )
    return Aside(held_out, found)


def read_held_out(data: DataConfig, base: Path) -> HeldOut:
    """Read what the model of ``data.set_aside_as`` had set aside; nothing without one.

    Raises:
        ConfigurationError: there is no such model, or it set nothing aside.
    """
    if not data.set_aside_as:
        return NOTHING
    folder = base / data.set_aside_as
    for name in (SET_ASIDE, "manifest.json", "bundle/manifest.json"):
        if (folder / name).is_file():
            # What is damaged is no such model.
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                record = json.loads(read_bytes(folder / name))
                return HeldOut.of_record(record if name == SET_ASIDE else record["data"][_KEY])
    raise ConfigurationError(
        "data.set_aside_as must name a model whose training set text aside (its bundle or run "
        f"folder), but {folder} is none. Name another, or leave it out."
    )


def _usable(
    rows: Iterator[SentencePair | BadLine],
    data: DataConfig,
    bad: BadLines,
    join: Callable[[str], str] | None,
) -> Iterator[SentencePair]:
    """Yield the pairs of one file, and collect its bad lines or stop because of them."""
    is_skipping = data.on_bad_line == "skip"
    found = bad if is_skipping else BadLines()
    num_good = 0
    for row in rows:
        if isinstance(row, BadLine):
            (found if row.fault.sentence else bad).add(row)
            continue
        num_good += 1
        # After a fault the file is only searched for more, so that one message lists them.
        if is_skipping or not found.count:
            if join is not None:
                row = replace(row, source=join(row.source), target=join(row.target))
            yield row
    if not is_skipping and found.count:
        raise DataError(found.sentence(num_good))


def _kind_of(name: str, key: str) -> str:
    """Tell the kind of a file with both sides by its name."""
    if kind := kind_of_table(name):
        return kind
    advice = f'Rename it, or name two parallel files: {key} = ["SOURCE", "TARGET"].'
    if endings(name).kind == ".json":
        advice = (
            "If each line is an object, rename it; if the file is one list, write its entries as "
            "lines with jq -c '.[]'."
        )
    elif document := kind_of_document(name):
        advice = (
            f"It is {document} by its name: write its pairs, SOURCE, tab, TARGET, into a .tsv file."
        )
    raise ConfigurationError(
        f"A file with both sides must end in {PAIRS}, but is {name!r} (data.{key}). {advice}"
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


def _read_parallel(source_path: Path, target_path: Path) -> Iterator[SentencePair | BadLine]:
    """Pair line i of one file with line i of the other."""
    sources = read_lines(source_path, keeps_damaged=True)
    targets = read_lines(target_path, keeps_damaged=True)
    for number, (source, target) in enumerate(zip_longest(sources, targets), start=1):
        if source is None or target is None:
            # To the end of the longer file, because the message names both counts.
            rest = sum(1 for _ in (sources if target is None else targets))
            counts = (number + rest, number - 1)
            num_sources, num_targets = counts if target is None else reversed(counts)
            raise DataError(
                "Parallel files must have equally many lines, but "
                f"{source_path} has {num_sources} and {target_path} has {num_targets}. "
                "Line i of one must translate line i of the other: check which lines are missing."
            )
        for line, path in ((source, source_path), (target, target_path)):
            if (fault := find_damage(line, path, number)) is not None:
                yield BadLine(f"{path}:{number}", number, fault)
                break
        else:
            # The `else` of the loop: neither side has a fault.
            yield SentencePair(source, target, f"{source_path}:{number}", number)


def _read_rows(path: Path, kind: str, data: DataConfig) -> Iterator[SentencePair | BadLine]:
    """Read a file with both sides in each row, or a document with translations."""
    if kind in PAIRED:
        yield from _read_document(path, PAIRED[kind], data)
        return
    reader: RowReader | None = None
    for number, line, row in read_rows(path, kind):
        where = f"{path}:{line}"
        if reader is None and not isinstance(row, Fault):
            reader = row_reader(row, data, str(path))
            if reader.has_header and number == 1:
                continue
        sides = row if isinstance(row, Fault) or reader is None else reader.read(row, where)
        if isinstance(sides, Fault):
            yield BadLine(where, line, sides)
        else:
            source, target = map(_in_one_line, sides)
            has_breaks = (source, target) != sides
            first = 0 if reader is None else reader.has_header
            yield SentencePair(source, target, where, number - first, has_breaks)


def _read_document(path: Path, form: Format, data: DataConfig) -> Iterator[SentencePair | BadLine]:
    """Read a document's texts with their translations."""
    number = 0
    how = How(str(path), (data.source_language, data.target_language))
    for line, reason, pairs in read_document_pairs(form, read_chunks(path), how):
        where = f"{path}:{line}"
        if reason:
            yield BadLine(where, line, Fault(reason, ""))
        for source, target in pairs:
            number += 1
            yield SentencePair(source, target, where, number)


def _in_one_line(text: str) -> str:
    """Put spaces in the place of line breaks, and of the white space around them."""
    if "\n" not in text:
        return text
    return " ".join(filter(None, map(str.strip, text.split("\n"))))
