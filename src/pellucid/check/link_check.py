"""The check of word links: lines that cannot be used, and files in another order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pellucid.check.findings import Finding, FoundPlace, say
from pellucid.check.scan import MOST_EXAMPLES, corpora
from pellucid.config import DataConfig
from pellucid.errors import DataError, InputFileNotFoundError
from pellucid.evaluation.word_links import parse_links
from pellucid.files import refuse_pipe
from pellucid.terminal.text import count_of, percent
from pellucid.text.language_tokens import split_code
from pellucid.text.line_words import line_words
from pellucid.text.reading.bad_lines import BadLine, BadLines
from pellucid.text.reading.lines import read_lines
from pellucid.text.reading.row_sides import Fault
from pellucid.text.reading.sentence_pairs import SentencePair, read_pairs, resolve_folder
from pellucid.text.tokenizers.tokenizer import Tokenizer

MOST_BROKEN = 0.1
"""The share of lines of word links that may be left out; with more, the file is another text's."""

MIN_LINKS = 20
"""With fewer links, a whole file is not judged."""

MIN_CHANGED = 200
MOST_CHANGED = 200_000
"""Links whose order matters: with fewer, the variety of word pairs is not judged; more are not
counted."""

MORE_VARIETY = 1.3
"""Times the different word pairs of the exchanged links, beyond which links are reversed: the right
ones join the same words again and again."""


def read_links(
    pairs: Iterable[SentencePair], alignment: Path | None, bad: BadLines | None = None
) -> Iterator[tuple[SentencePair, str, str]]:
    """Read a file of word links together with its pairs.

    Args:
        pairs: of one corpus.
        alignment: the file, one line per pair; None for a corpus without links.
        bad: lines of the corpus that are left out, whose links are left out too.

    Yields:
        Each pair with its line, and the line's place for messages.

    Raises:
        DataError: the file does not have one line for each pair.
    """
    if alignment is None:
        yield from ((pair, "", "") for pair in pairs)
        return
    refuse_pipe(alignment, "A file of word links")
    lines = enumerate(read_lines(alignment, keeps_damaged=True), start=1)
    number = 0
    for pair in pairs:
        wanted = pair.number or number + 1
        line = ""
        while number < wanted:
            number, line = next(lines, (0, ""))
            if not number:
                raise _not_one_each(alignment, "fewer", "ends before", wanted)
        yield pair, line, f"{alignment}:{number}"
    # The last lines of the corpus may be among those that are left out.
    number += 1 + (0 if bad is None else bad.count)
    if any(found >= number for found, _ in lines):
        raise _not_one_each(alignment, "more", "continues at", number)


def _not_one_each(alignment: Path, word: str, what: str, number: int) -> DataError:
    return DataError(
        f"Word links must have one line for each pair, but there are {word}: {alignment} {what} "
        f"line {number}. Make them from this very text."
    )


def linked_words(
    tokenizer: Tokenizer | None, source: str, target: str
) -> tuple[list[str], list[str]]:
    """Cut a pair into the words that links count, as ``pellucid align`` does.

    Args:
        tokenizer: tells the language code of the source, which is no word; None for a model that
            has no codes.
        source: the line.
        target: its translation.
    """
    text = source if tokenizer is None else split_code(tokenizer, source)[1]
    return line_words(text), line_words(target)


def find_link_fault(links: str, place: str, sizes: tuple[int, int]) -> Fault | None:
    """Find what is wrong with a line of word links.

    Args:
        links: in the Pharaoh format.
        place: the file and the line, for the message.
        sizes: the number of words of the source and the target.
    """
    kind = "not a link"
    try:
        parse_links(links, place)
        kind = "no such word"
        parse_links(links, place, sizes)
    except DataError as error:
        return Fault(kind, str(error))
    return None


def check_links(data: DataConfig, base: Path, tokenizer: Tokenizer | None = None) -> list[Finding]:
    """Check the word links of the training text, line by line.

    Args:
        data: the recipe's data section.
        base: the recipe's folder.
        tokenizer: of the model to start from, if there is one: it may have language codes.

    Returns:
        A finding for each file with lines that cannot be used, or whose links seem to count from 1
        or to lead from target to source.
    """
    folder = resolve_folder(data.folder, base)
    findings: list[Finding] = []
    readable = data.model_copy(update={"on_bad_line": "skip"})
    for corpus, name in zip(corpora(readable, "train"), data.train_alignments, strict=False):
        bad = BadLines()
        report = _LinkReport(name, tokenizer)
        try:
            pairs = read_pairs(corpus.data, "train", base, bad=bad)
            for pair, line, place in read_links(pairs, folder / name, bad):
                report.add(pair, line, place)
        except (DataError, InputFileNotFoundError) as error:
            findings.append(Finding("error", "unreadable", "train", 1, 0.0, str(error)))
        findings += report.findings()
    return findings


class _LinkReport:
    """Counts of one file of word links."""

    def __init__(self, name: str, tokenizer: Tokenizer | None) -> None:
        self._name = name
        self._tokenizer = tokenizer
        self._num_lines = 0
        self._num_links = 0
        self._broken = BadLines()
        self._examples: list[FoundPlace] = []
        self._fits = Counter[str]()
        self._has_zero = False
        self._num_without = 0
        self._num_outside = Counter[str]()
        self._num_changed = 0
        self._word_pairs: dict[str, set[int]] = {"": set(), "reversed": set()}

    def add(self, pair: SentencePair, line: str, place: str) -> None:
        """Count a pair's line."""
        source, target = linked_words(self._tokenizer, pair.source, pair.target)
        self._num_lines += 1
        self._num_without += not line.strip()
        fault = find_link_fault(line, place, (len(source), len(target)))
        if fault is not None:
            number = int(place.rpartition(":")[2])
            self._broken.add(BadLine(f"{self._name}:{number}", number, fault))
            if len(self._examples) < MOST_EXAMPLES:
                where = pair.where.rpartition(":")
                self._examples.append(
                    FoundPlace(
                        f"{self._name}:{number}",
                        f"{Path(where[0]).name}:{where[2]}",
                        line,
                        f"{pair.source} | {pair.target}",
                    )
                )
        with suppress(DataError):
            self._count_fits(source, target, line, place)

    def _count_fits(
        self, source: Sequence[str], target: Sequence[str], line: str, place: str
    ) -> None:
        """Count what links join, read as they are and in two wrong ways."""
        links = parse_links(line, place).possible
        for i, j in links:
            self._num_links += 1
            self._has_zero |= not (i and j)
            for way, (s, t) in (("", (i, j)), ("reversed", (j, i)), ("one", (i - 1, j - 1))):
                if 0 <= s < len(source) and 0 <= t < len(target):
                    self._fits[way] += source[s] == target[t]
                else:
                    self._num_outside[way] += 1
            is_in_both = max(i, j) < min(len(source), len(target))
            # Links that come with their mirror images are the same in both orders.
            if is_in_both and (j, i) not in links and self._num_changed < MOST_CHANGED:
                self._num_changed += 1
                self._word_pairs[""].add(hash((source[i], target[j])))
                self._word_pairs["reversed"].add(hash((source[j], target[i])))

    def findings(self) -> Iterator[Finding]:
        """List what is wrong: single lines, the order of all links, lines without a link."""
        count = self._broken.count
        hint = self._hint()
        if count:
            share = count / self._num_lines
            kinds = [f"{number:,} {kind}" for kind, number in self._broken.kinds.items()]
            yield Finding(
                "error" if share > MOST_BROKEN else "warning",
                "word links",
                "train",
                count,
                share,
                say(
                    "broken links",
                    lines=count_of(count, "line"),
                    kinds=", ".join(kinds),
                    listed=self._broken.listed(),
                    hint=hint or say("pairs without links"),
                ),
                tuple(self._examples),
            )
        elif hint:
            yield Finding("warning", "word links", "train", self._num_lines, 1.0, hint)
        if 0 < self._num_without == self._num_lines:
            sentence = say("no links", file=self._name)
            yield Finding("warning", "word links", "train", self._num_lines, 1.0, sentence)
        elif self._num_without:
            yield self._describe_without()

    def _describe_without(self) -> Finding:
        share = self._num_without / self._num_lines
        sentence = say(
            "lines without links",
            lines=count_of(self._num_without, "line"),
            file=self._name,
            share=percent(share),
        )
        return Finding("note", "word links", "train", self._num_without, share, sentence)

    def _hint(self) -> str:
        """Name a mistake that concerns the whole file, if there seems to be one."""
        if self._num_links < MIN_LINKS:
            return ""
        if not self._has_zero:
            return say("links from 1", file=self._name)
        if self._are_reversed():
            return say("reversed links", file=self._name)
        return ""

    def _are_reversed(self) -> bool:
        """Tell whether the links fit much better with their two numbers exchanged."""
        if self._fits["reversed"] > MIN_LINKS + 3 * self._fits[""]:
            return True
        if self._num_outside[""] > MIN_LINKS + 3 * self._num_outside["reversed"]:
            return True
        variety = {way: len(pairs) for way, pairs in self._word_pairs.items()}
        is_enough = self._num_changed >= MIN_CHANGED
        return is_enough and variety[""] > MORE_VARIETY * variety["reversed"]
