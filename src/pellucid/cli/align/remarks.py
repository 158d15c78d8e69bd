"""What is unusual about lines that are aligned: said once, with counts and first examples."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.cli.ending import warn
from pellucid.inside.align.direction import Direction
from pellucid.text.codes import CodeFaults, find_fault

__all__ = ["Remarks"]

MOST_EXAMPLES = 3
"""The most lines that a sentence names."""


class Remarks:
    """Counts lines with letters outside the vocabulary, and with faults of the language code.

    Args:
        directions: the models that read the lines.
    """

    def __init__(self, directions: Sequence[Direction]) -> None:
        self._codes = [(one, CodeFaults()) for one in directions]
        self._unknown: dict[int, tuple[str, ...]] = {}

    def add(self, number: int, source: str, target: str) -> None:
        """Look at the lines of a pair, counted from 0."""
        for one, faults in self._codes:
            read = target if one.is_backward else source
            faults.add(number, find_fault(one.tokenizer, read))

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

    def _unknown_sentence(self) -> str:
        count = len(self._unknown)
        shown = ", ".join(
            f"line {number + 1}: {' '.join(pieces)}"
            for number, pieces in list(self._unknown.items())[:MOST_EXAMPLES]
        )
        more = "" if count <= MOST_EXAMPLES else f" and {count - MOST_EXAMPLES:,} more"
        lines = "1 line has" if count == 1 else f"{count:,} lines have"
        return (
            f"{lines} letters or words that the model's vocabulary cannot write ({shown}{more}). "
            "They are aligned as <unk>."
        )
