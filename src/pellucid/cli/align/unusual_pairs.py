"""The pairs of a window of lines, and what is unusual about them: said once, with examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pellucid.cli.align.align_options import JOINED
from pellucid.cli.ending import note, warn
from pellucid.inside.align.direction import Direction
from pellucid.inside.align.linked_units import SIDES, GivenUnits
from pellucid.terminal.text import count_of
from pellucid.text.language_tokens import CodeFaults, find_fault
from pellucid.text.line_words import has_spaced_letters, is_without_spaces
from pellucid.text.reading.lines import not_a_line

BETWEEN = " ||| "
"""What stands between source and target in a file of both."""


@dataclass(frozen=True)
class Lines:
    """Pairs of lines.

    Attributes:
        sources: one line each.
        targets: their translations.
        given: words of these lines, and lines that are no pair.
    """

    sources: Sequence[str]
    targets: Sequence[str]
    given: GivenUnits


def take_lines(columns: Mapping[str, Sequence[str]]) -> Lines:
    """Take the pairs from the lines of each file, by option."""
    faults: dict[int, str] = {}
    # Faults are noted below, as the lines are read.
    given = GivenUnits(columns.get("--source-words"), columns.get("--target-words"), faults)
    if JOINED not in columns:
        sides = [_usable(columns[name], faults) for name in ("--source", "--target")]
        return Lines(sides[0], sides[1], given)
    sources = []
    targets = []
    for number, line in enumerate(_usable(columns[JOINED], faults)):
        # An empty side has no word: `SOURCE |||` has no target.
        fields = f" {line} ".split(BETWEEN)
        if len(fields) == 2:
            source, target = (field.strip(" ") for field in fields)
        else:
            source = ""
            target = ""
            if line.strip():
                faults[number] = (
                    "A pair must be written SOURCE ||| TARGET, but has "
                    f"{'no |||' if len(fields) == 1 else f'{len(fields) - 1} times |||'}. "
                    "Put ||| with spaces around it between the two."
                )
        sources.append(source)
        targets.append(target)
    return Lines(sources, targets, given)


def _usable(lines: Sequence[str], faults: dict[int, str]) -> list[str]:
    """Empty the lines that are too long or not text, and note the fault of each."""
    found = []
    for number, line in enumerate(lines):
        if (fault := not_a_line(line)) is not None:
            # Both sides may be damaged; the first fault is enough.
            faults.setdefault(number, fault)
        # An empty line keeps the numbers of the others.
        found.append("" if fault is not None else line)
    return found


MOST_EXAMPLES = 3
"""The most lines that a sentence names."""


class Remarks:
    """Counts lines with letters outside the vocabulary, faults of the code, and without spaces.

    Args:
        directions: the models that read the lines.
    """

    def __init__(self, directions: Sequence[Direction]) -> None:
        # Codes that are put in cannot be wrong.
        self._codes = [(one, CodeFaults()) for one in directions if not one.code]
        self._unknown: dict[int, tuple[str, ...]] = {}
        self._is_auto = any(one.units == "auto" for one in directions)
        self._by_script: list[int] = []
        self._at_spaces: list[int] = []

    def add(self, first: int, lines: Lines) -> None:
        """Look at some pairs.

        Args:
            first: number of the first pair, from 0.
            lines: the pairs.
        """
        for index, pair in enumerate(zip(lines.sources, lines.targets, strict=True)):
            for one, faults in self._codes:
                faults.add(first + index, find_fault(one.tokenizer, pair[one.is_backward]))
            if self._is_auto:
                # Given words are taken as they are, whatever the script.
                words = (lines.given.words(side, index) for side in SIDES)
                cut = [line for line, given in zip(pair, words, strict=True) if given is None]
                if any(map(is_without_spaces, cut)):
                    self._by_script.append(first + index)
                elif any(map(has_spaced_letters, cut)):
                    self._at_spaces.append(first + index)

    def add_unknown(self, number: int, pieces: Sequence[str]) -> None:
        """Note the pieces of a line that a vocabulary cannot write."""
        if pieces:
            known = self._unknown.get(number, ())
            self._unknown[number] = tuple(dict.fromkeys((*known, *pieces)))

    def tell(self) -> None:
        """Write a sentence for each kind to standard error."""
        for one, faults in self._codes:
            if sentence := faults.sentence(one.tokenizer):
                warn(sentence)
        if self._unknown:
            warn(self._unknown_sentence())
        if self._by_script:
            note(
                f"{_lines_have(self._by_script)} no spaces between words, and "
                f"{_are(self._by_script)} cut by script: each Chinese character, run of "
                "kana, or Thai, Lao, Khmer or Burmese letter with its marks is a word. Give other "
                "words with --source-words and --target-words, or set --words-by."
            )
        elif self._at_spaces:
            warn(
                f"{_lines_have(self._at_spaces)} spaces in a script that has none between words, "
                f"and {_are(self._at_spaces)} cut at the spaces. If these are not words, set "
                "--words-by script."
            )

    def _unknown_sentence(self) -> str:
        count = len(self._unknown)
        shown = ", ".join(
            f"line {number + 1}: {' '.join(pieces)}"
            for number, pieces in list(self._unknown.items())[:MOST_EXAMPLES]
        )
        more = "" if count <= MOST_EXAMPLES else f" and {count - MOST_EXAMPLES:,} more"
        lines = count_of(count, "line has", "lines have")
        return (
            f"{lines} letters or words that the model's vocabulary cannot write ({shown}{more}). "
            "They are aligned as <unk>."
        )


def _lines_have(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"1 line (line {numbers[0] + 1}) has"
    return f"{len(numbers):,} lines (the first is line {numbers[0] + 1}) have"


def _are(numbers: Sequence[int]) -> str:
    return "is" if len(numbers) == 1 else "are"
