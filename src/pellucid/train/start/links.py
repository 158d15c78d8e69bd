"""Turn word links of the training text into links between tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from pellucid.errors import DataError
from pellucid.evaluate.links import parse_links
from pellucid.files import read_lines
from pellucid.text import Pair, Tokenizer
from pellucid.text.token_words import split_pieces, words_of_tokens

__all__ = ["link_tokens", "read_links"]


def read_links(pairs: Iterable[Pair], alignment: Path | None) -> Iterator[tuple[Pair, str, str]]:
    """Read a file of word links together with its pairs.

    Args:
        pairs: of one corpus.
        alignment: the file, one line per pair; None for a corpus without links.

    Yields:
        Each pair with its line, and the line's place for messages.

    Raises:
        DataError: the file does not have one line for each pair.
    """
    if alignment is None:
        yield from ((pair, "", "") for pair in pairs)
        return
    lines = read_lines(alignment)
    for number, (pair, line) in enumerate(zip_longest(pairs, lines), start=1):
        if pair is None or line is None:
            kinds = ("fewer", "ends before") if line is None else ("more", "continues at")
            raise DataError(
                f"Word links must have one line for each pair, but there are {kinds[0]}: "
                f"{alignment} {kinds[1]} line {number}. Make them from this very text."
            )
        yield pair, line, f"{alignment}:{number}"


def link_tokens(
    tokenizer: Tokenizer,
    source: str,
    target: str,
    ids: tuple[Sequence[int], Sequence[int]],
    links: str,
    place: str,
) -> tuple[list[int], list[int]]:
    """Turn the links of a pair's words into links of its subwords.

    Args:
        tokenizer: the tokenizer that cut the pair.
        source: the line.
        target: its translation.
        ids: of both, each ending in ``</s>``.
        links: a line in the Pharaoh format; only sure links (``i-j``) are learned.
        place: the file and the line, for messages.

    Returns:
        The source and the target position of each link; the last one joins both ``</s>``.

    Raises:
        DataError: something is not a link, or leads to a word that does not exist.
    """
    sizes = (len(split_pieces(source)), len(split_pieces(target)))
    sure = parse_links(links, place, sizes).sure
    positions: tuple[list[int], list[int]] = ([], [])
    if sure:
        words = (
            words_of_tokens(tokenizer, "source", source, ids[0]),
            words_of_tokens(tokenizer, "target", target, ids[1]),
        )
        tokens_of = [
            [[t for t, owners in enumerate(one) if word in owners] for word in range(size)]
            for one, size in zip(words, sizes, strict=True)
        ]
        joined = {(s, t) for i, j in sure for s in tokens_of[0][i] for t in tokens_of[1][j]}
        for s, t in sorted(joined):
            positions[0].append(s)
            positions[1].append(t)
    positions[0].append(len(ids[0]) - 1)
    positions[1].append(len(ids[1]) - 1)
    return positions
