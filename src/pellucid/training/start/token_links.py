"""Turn word links of the training text into links between tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pellucid.check.link_check import MOST_BROKEN, find_link_fault, linked_words
from pellucid.errors import DataError
from pellucid.evaluation.word_links import parse_links
from pellucid.terminal.text import count_of
from pellucid.text.reading.bad_lines import BadLine, BadLines
from pellucid.text.token_words import words_of_tokens
from pellucid.text.tokenizers.tokenizer import Tokenizer


class BrokenLinks:
    """Lines of word links that cannot be used; their pairs are trained without links."""

    def __init__(self) -> None:
        self.lines = BadLines()
        self._num_lines = 0

    def check(self, links: str, place: str, sizes: tuple[int, int]) -> str:
        """Return a line of links, or an empty one in place of one that cannot be used.

        Args:
            links: in the Pharaoh format.
            place: the file and the line; empty for a corpus without links.
            sizes: the number of words of the source and the target.
        """
        if not place:
            return links
        self._num_lines += 1
        fault = find_link_fault(links, place, sizes)
        if fault is None:
            return links
        self.lines.add(BadLine(place, int(place.rpartition(":")[2]), fault))
        return ""

    def describe(self) -> str | None:
        """Say which lines were left out, or return None.

        Raises:
            DataError: so many that the file cannot belong to this text.
        """
        count = self.lines.count
        if not count:
            return None
        if count > MOST_BROKEN * self._num_lines:
            first = self.lines.first[0].fault.sentence
            raise DataError(
                f"Word links must belong to this text, but {count:,} of {self._num_lines:,} lines "
                f"cannot be used: {self.lines.listed()}. {first} See pellucid check."
            )
        lines = count_of(count, "line")
        return (
            f"Word links: {lines} cannot be used, and the pair is trained without links: "
            f"{self.lines.listed()}. See pellucid check."
        )


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
    source_words, target_words = linked_words(tokenizer, source, target)
    sure = parse_links(links, place, (len(source_words), len(target_words))).sure
    joined: set[tuple[int, int]] = set()
    if sure:
        sources = _tokens_of_words(tokenizer, "source", source, ids[0], source_words)
        targets = _tokens_of_words(tokenizer, "target", target, ids[1], target_words)
        for i, j in sure:
            joined |= {(s, t) for s in sources[i] for t in targets[j]}
    pairs = [*sorted(joined), (len(ids[0]) - 1, len(ids[1]) - 1)]
    return [s for s, _ in pairs], [t for _, t in pairs]


def _tokens_of_words(
    tokenizer: Tokenizer,
    side: Literal["source", "target"],
    text: str,
    ids: Sequence[int],
    words: Sequence[str],
) -> list[list[int]]:
    """List the tokens of each word; a token may belong to several."""
    owners = words_of_tokens(tokenizer, side, text, ids, words)
    return [
        [token for token, of_token in enumerate(owners) if word in of_token]
        for word in range(len(words))
    ]
