"""Parallel text as a few bytes a pair, for the data check."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from pellucid.check.characters import (
    anchors,
    main_script,
    normalized_words,
    odd_characters,
    oddities,
)
from pellucid.check.line_languages import TextLanguages
from pellucid.check.lost_parts import not_kept
from pellucid.check.tags import ends_of, without_tags
from pellucid.config import DataConfig
from pellucid.config.data import Split
from pellucid.errors import DataError
from pellucid.text.reading.bad_lines import BadLines
from pellucid.text.reading.row_sides import is_header
from pellucid.text.reading.sentence_pairs import SentencePair, read_pairs

MOST_EXAMPLES = 3


@dataclass(frozen=True)
class Corpus:
    """One pair of files, or one file of both sides.

    Attributes:
        source: the source's file, as the recipe names it.
        target: the target's file, which may be the same.
        data: a data section with only this corpus.
    """

    source: str
    target: str
    data: DataConfig


def corpora(data: DataConfig, split: Split) -> list[Corpus]:
    """List the corpora of a split, in the order of `read_pairs`."""
    key = data.key_of(split)
    return [
        Corpus(names[0], names[-1], data.part(**{key: (names if names[1:] else names[0],)}))
        for names in data.names(split)
    ]


@dataclass
class Side:
    """One side of a split.

    Attributes:
        lengths: the characters of each line, without white space around it.
        anchors: the numbers and names of each line, as bits; see `anchors`.
        scripts: the main script of each line, as an index into `Scan.script_names`.
        languages: the language of each line, see `TextLanguages`; empty if none was looked for.
    """

    lengths: array[int] = field(default_factory=lambda: array("i"))
    anchors: array[int] = field(default_factory=lambda: array("Q"))
    scripts: array[int] = field(default_factory=lambda: array("B"))
    languages: array[int] = field(default_factory=lambda: array("B"))


@dataclass
class Scan:
    """All pairs of one split, as numbers.

    Attributes:
        split: the split.
        corpora: its corpora.
        starts: the index of each corpus's first pair.
        source: the sources.
        target: the targets.
        pair_hashes: the hash of each pair's source and target.
        source_hashes: the hash of each pair's source.
        words: the pairs by the hash of their words, see `normalized_words`; empty for training.
        source_words: the pairs by the hash of their source's words; empty for training.
        shared: pair → a training pair of the same words; empty for training.
        shared_sources: pair → a training pair whose source has the same words.
        counts: the number of pairs with an oddity, by its name.
        examples: the first such pairs, by the name of the oddity.
        script_names: the scripts seen; the first stands for too few letters to tell.
        errors: why a corpus could not be read to its end.
        lines: the number of each pair's line.
        bad: the lines that cannot be used; they do not count as pairs.
        characters: the characters that oddities consist of, by the name of the oddity.
        headers: the pairs that name the two sides, as the first lines of tables do.
        languages: the languages that the numbers of both sides' lines stand for.
        tags: the tags of the sources, and how many have them; they count for nothing else.
    """

    split: Split
    corpora: list[Corpus]
    starts: list[int] = field(default_factory=list)
    source: Side = field(default_factory=Side)
    target: Side = field(default_factory=Side)
    pair_hashes: array[int] = field(default_factory=lambda: array("Q"))
    source_hashes: array[int] = field(default_factory=lambda: array("Q"))
    words: dict[int, list[int]] = field(default_factory=dict)
    source_words: dict[int, list[int]] = field(default_factory=dict)
    shared: dict[int, int] = field(default_factory=dict)
    shared_sources: dict[int, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    examples: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    script_names: list[str] = field(default_factory=lambda: [""])
    errors: list[str] = field(default_factory=list)
    lines: array[int] = field(default_factory=lambda: array("I"))
    bad: BadLines = field(default_factory=BadLines)
    characters: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    headers: list[int] = field(default_factory=list)
    languages: TextLanguages | None = None
    tags: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.pair_hashes)

    def where(self, index: int) -> tuple[str, str]:
        """Name the place of a pair: ``FILE:LINE`` of its source and target, lines from 1."""
        number = bisect_right(self.starts, index) - 1
        corpus = self.corpora[number]
        line = self.lines[index]
        return f"{corpus.source}:{line}", f"{corpus.target}:{line}"

    def stretches(self) -> Iterator[tuple[int, int]]:
        """Yield the first pair of each corpus, and the one after its last."""
        yield from zip(self.starts, [*self.starts[1:], len(self)], strict=True)


def scan_text(
    data: DataConfig,
    split: Split,
    base: Path,
    *,
    known: Sequence[Scan] = (),
    languages: TextLanguages | None = None,
    tags: Collection[str] = (),
) -> Scan:
    """Read a split once.

    Args:
        data: the recipe's data section.
        split: the split.
        base: the recipe's folder.
        known: for training text, the other splits; pairs that are in both are noted in them.
        languages: finds the languages of the lines; None leaves them unknown.
        tags: those of the sources.

    Raises:
        InputFileNotFoundError: a file is missing.
    """
    # Bad lines are reported, and the others are checked, whatever training will do.
    readable = data.model_copy(update={"on_bad_line": "skip"})
    scan = Scan(split, corpora(readable, split), languages=languages)
    scan.tags.update(dict.fromkeys(tags, 0))
    waiting = _Waiting(scan)
    for corpus in scan.corpora:
        scan.starts.append(len(scan))
        for pair in _read(corpus, split, base, scan.errors, scan.bad):
            if pair.number == 1 and is_header(f"{pair.source}\t{pair.target}", data):
                scan.headers.append(len(scan))
            scan.lines.append(int(pair.where.rpartition(":")[2]))
            waiting.add(without_tags(pair.source, tags), pair.target)
            _add(scan, pair, known)
    waiting.flush()
    return scan


class _Waiting:
    """Pairs whose languages are found together, which is faster than one by one."""

    _CHUNK = 4096

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._sides: tuple[list[str], list[str]] = ([], [])

    def add(self, source: str, target: str) -> None:
        if self._scan.languages is None:
            return
        self._sides[0].append(source)
        self._sides[1].append(target)
        if len(self._sides[0]) >= self._CHUNK:
            self.flush()

    def flush(self) -> None:
        """Note the languages of the pairs that wait."""
        if self._scan.languages is None:
            return
        numbers = self._scan.languages.of_pairs(*self._sides)
        for side, found in zip((self._scan.source, self._scan.target), numbers, strict=True):
            side.languages.frombytes(found.tobytes())
        self._sides = ([], [])


def read_pairs_again(
    scan: Scan, base: Path, indices: Collection[int]
) -> dict[int, tuple[str, str]]:
    """Read some pairs again, by their index."""
    texts: dict[int, tuple[str, str]] = {}
    for corpus, (start, end) in zip(scan.corpora, scan.stretches(), strict=True):
        wanted = {index - start for index in indices if start <= index < end}
        if not wanted:
            continue
        pairs = islice(_read(corpus, scan.split, base, [], BadLines()), max(wanted) + 1)
        texts |= {
            start + number: (pair.source, pair.target)
            for number, pair in enumerate(pairs)
            if number in wanted
        }
    return texts


def _read(
    corpus: Corpus, split: Split, base: Path, errors: list[str], bad: BadLines
) -> Iterator[SentencePair]:
    """Yield the pairs until the file cannot be read; note why."""
    try:
        yield from read_pairs(corpus.data, split, base, bad=bad)
    except DataError as error:
        errors.append(str(error))


def _add(scan: Scan, pair: SentencePair, known: Sequence[Scan]) -> None:
    index = len(scan)
    source = without_tags(pair.source, scan.tags)
    target = pair.target
    if source != pair.source:
        scan.tags.update(scan.tags.keys() & ends_of(pair.source))
    for side, line in ((scan.source, source), (scan.target, target)):
        side.lengths.append(len(line.strip()))
        side.anchors.append(anchors(line))
        side.scripts.append(_script_number(scan, line))
    scan.pair_hashes.append(_hash(f"{pair.source}\n{target}"))
    scan.source_hashes.append(_hash(pair.source))
    found = {*oddities(source), *oddities(target)}
    if pair.has_breaks:
        found.add("line breaks")
    if not scan.source.lengths[-1] or not scan.target.lengths[-1]:
        found.add("empty")
    else:
        found.update(not_kept(source, target))
        # Numbers and the like translate to themselves; text with enough letters does not.
        if scan.source.scripts[-1] and _is_copy(source, target):
            found.add("equal")
    for name in found:
        scan.counts[name] += 1
        for line in (source, target):
            scan.characters[name].update(odd_characters(name, line))
        if len(scan.examples[name]) < MOST_EXAMPLES:
            scan.examples[name].append(index)
    if "empty" not in found:
        _compare(scan, index, source, target, known)


def _is_copy(source: str, target: str) -> bool:
    """Tell whether a target equals its source, case aside."""
    source = source.strip()
    target = target.strip()
    return source == target or (
        len(source) == len(target) and source.casefold() == target.casefold()
    )


def _compare(scan: Scan, index: int, source: str, target: str, known: Sequence[Scan]) -> None:
    """Look a training pair up among the other splits; of the other splits, note the pair."""
    source_words = normalized_words(source)
    source_hash = _hash(source_words)
    if scan.split != "train":
        scan.source_words.setdefault(source_hash, []).append(index)
        pair_hash = _hash(f"{source_words}\n{normalized_words(target)}")
        scan.words.setdefault(pair_hash, []).append(index)
        return
    for other in known:
        if source_hash not in other.source_words:
            continue
        _note(other.shared_sources, other.source_words[source_hash], index)
        pair_hash = _hash(f"{source_words}\n{normalized_words(target)}")
        _note(other.shared, other.words.get(pair_hash, []), index)


def _note(shared: dict[int, int], same: Sequence[int], index: int) -> None:
    """Note the first training pair of the same words."""
    if same and same[0] not in shared:
        shared.update(dict.fromkeys(same, index))


def _script_number(scan: Scan, line: str) -> int:
    script = main_script(line)
    if script not in scan.script_names:
        scan.script_names.append(script)
    return scan.script_names.index(script)


def _hash(text: str) -> int:
    """Hash a text to 64 bits: two of a million texts collide once in 10^7 corpora."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
