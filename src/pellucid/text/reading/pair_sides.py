"""One side of a file with both, read like a file of lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pellucid.errors import DataError
from pellucid.files import refuse_pipe
from pellucid.text.reading.bad_lines import BadLine
from pellucid.text.reading.lines import read_lines
from pellucid.text.reading.pair_tables import kind_of_table
from pellucid.text.reading.sentence_pairs import read_table


class PairSide(str):
    """The name of a file with both sides, in the place of a file with one of them.

    Attributes:
        side: 0 for the source, 1 for the target.
        languages: the codes of both, by which columns and keys may be named.
    """

    side: int
    languages: tuple[str, str]

    def __new__(cls, path: str, side: int, languages: tuple[str, str]) -> PairSide:
        """Name a side."""
        made = super().__new__(cls, path)
        made.side = side
        made.languages = languages
        return made


def is_table(path: str) -> bool:
    """Tell whether a file has both sides, by its name."""
    return kind_of_table(path) is not None


def lines_of(path: Path | str, *, keeps_damaged: bool = False) -> Iterator[str]:
    """Read a file of lines, or one side of a file with both.

    Args:
        path: a file, or a `PairSide`.
        keeps_damaged: as for `read_lines`; a row of a table that is no pair is always refused.

    Raises:
        DataError: a line cannot be read, or a row is no pair.
        InputFileNotFoundError: the file does not exist.
    """
    if not isinstance(path, PairSide):
        yield from read_lines(path, keeps_damaged=keeps_damaged)
        return
    # Each side is read by itself, which a pipe does not allow.
    refuse_pipe(Path(path), "PAIRS")
    for pair in read_table(path, path.languages):
        if isinstance(pair, BadLine):
            reason = pair.fault.sentence or f"{pair.where} has no finished translation."
            raise DataError(reason)
        yield (pair.source, pair.target)[path.side]
