"""What links join, words or subwords of two lines, and the way to them from a map of attention.

Special tokens are not words. A map's column of ``</s>`` counts for no word. The row that reads the
start token (in `reads`) and the row that predicts ``</s>`` (in `predicts`) belong to no word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from pellucid.errors import DataError
from pellucid.text.language_tokens import split_code
from pellucid.text.line_words import find_parts_of_words, line_words
from pellucid.text.link_choices import LinkRule, UnitRule, WordRule
from pellucid.text.token_words import mark_unknown, words_of_tokens
from pellucid.text.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pellucid.evaluation.word_links import Link

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")


@dataclass(frozen=True)
class GivenUnits:
    """What is given with pairs of lines.

    Attributes:
        source_words: the words of each source, separated by spaces; None to cut the line.
        target_words: those of each target.
        faults: for the number of a pair, from 0, why it is faulty.
    """

    source_words: Sequence[str] | None = None
    target_words: Sequence[str] | None = None
    faults: Mapping[int, str] = field(default_factory=dict)

    def words(self, side: Side, index: int) -> str | None:
        """Return the words of one line, if they are given."""
        lines = self.source_words if side == "source" else self.target_words
        return None if lines is None else lines[index]

    def reversed(self) -> GivenUnits:
        """Exchange the sides."""
        return GivenUnits(self.target_words, self.source_words, self.faults)


NOTHING_GIVEN = GivenUnits()


@dataclass(frozen=True)
class Units:
    """The units of one line.

    Attributes:
        names: of each unit, from 0: a word as it is given or stands in the line, or a token.
        parts: the letters of each in the line; None if the units are tokens.
    """

    names: tuple[str, ...]
    parts: tuple[str, ...] | None

    def of_tokens(
        self, tokenizer: Tokenizer, side: Side, line: str, ids: Sequence[int]
    ) -> list[range]:
        """Find the units of each token except ``</s>``; those of a language code have none.

        Args:
            tokenizer: the tokenizer that cut the line.
            side: the side that it was cut as.
            line: the line, a target as it is.
            ids: its tokens, ending in ``</s>``.
        """
        if self.parts is not None:
            # A target is encoded with its unknown letters marked, so they are looked for as such.
            marked = line if side == "source" else mark_unknown(tokenizer, line)
            parts = [
                part if side == "source" else mark_unknown(tokenizer, part) for part in self.parts
            ]
            return words_of_tokens(tokenizer, side, marked, ids, parts)
        found = [range(place, place + 1) for place in range(len(ids) - 1)]
        if side == "source" and split_code(tokenizer, line)[0]:
            is_text = map(bool, words_of_tokens(tokenizer, side, line, ids))
            found = [
                one if is_word else range(0) for one, is_word in zip(found, is_text, strict=True)
            ]
        return found


def find_units(
    tokenizer: Tokenizer,
    side: Side,
    line: str,
    *,
    rule: UnitRule,
    words: str | None = None,
    ids: Sequence[int] | None = None,
) -> Units:
    """Find the units of a line.

    Args:
        tokenizer: tells a source's language code, and cuts a line into tokens.
        side: the side of the line.
        line: the line, perhaps with a language code, which is no unit if units are words.
        rule: how to cut the line.
        words: the words of the line instead, separated by spaces.
        ids: its tokens, ending in ``</s>``, if they are known.

    Raises:
        DataError: the words are not those of the line.
    """
    if rule == "subwords":
        if ids is None:
            encode = tokenizer.encode_source if side == "source" else tokenizer.encode_target
            ids = encode(line if side == "source" else mark_unknown(tokenizer, line))
        read = tokenizer.source_tokens if side == "source" else tokenizer.target_tokens
        return Units(tuple(read(ids[:-1])), None)
    if side == "source":
        line = split_code(tokenizer, line)[1]
        words = None if words is None else split_code(tokenizer, words)[1]
    return units_of_line(line, rule=rule, words=words)


def units_of_line(line: str, *, rule: WordRule, words: str | None = None) -> Units:
    """Find the words of a line that has no language code; as `find_units`."""
    if words is None:
        cut = tuple(line_words(line, rule))
        return Units(cut, cut)
    given = tuple(words.split())
    return Units(given, tuple(find_parts_of_words(given, line)))


def count_linkable_words(
    tokenizer: Tokenizer,
    side: Side,
    line: str,
    *,
    rule: UnitRule = "auto",
    words: str | None = None,
) -> int:
    """Count the words of a line that links may name, as `find_units` finds them."""
    try:
        return len(find_units(tokenizer, side, line, rule=rule, words=words).names)
    except DataError:  # Reported with the line.
        return 0 if words is None else len(words.split())


@dataclass(frozen=True)
class PairWords:
    """The words of a pair: of each token but ``</s>``, and how many either side has."""

    source: list[range]
    target: list[range]
    sizes: tuple[int, int]


def words_of_pair(
    tokenizer: Tokenizer,
    lines: tuple[str, str],
    ids: tuple[Sequence[int], Sequence[int]],
    rule: UnitRule = "auto",
) -> PairWords:
    """Find the words of both lines, by a rule, and those of each token."""
    source_line, target_line = lines
    source_ids, target_ids = ids
    source = find_units(tokenizer, "source", source_line, rule=rule, ids=source_ids)
    target = find_units(tokenizer, "target", target_line, rule=rule, ids=target_ids)
    return words_of_units(tokenizer, (source, target), lines, ids)


def words_of_units(
    tokenizer: Tokenizer,
    units: tuple[Units, Units],
    lines: tuple[str, str],
    ids: tuple[Sequence[int], Sequence[int]],
) -> PairWords:
    """Find the words of each token of a pair whose lines are cut into words already."""
    source, target = units
    return PairWords(
        source.of_tokens(tokenizer, "source", lines[0], ids[0]),
        target.of_tokens(tokenizer, "target", lines[1], ids[1]),
        (len(source.names), len(target.names)),
    )


_ALL_FROM = 0.5
"""The share of the strongest weight from which ``all`` links a word too."""


@dataclass(frozen=True)
class Aligned:
    """The links of one pair.

    Attributes:
        source: the line, without its language code.
        target: its translation.
        source_words: the words of the source that links count, or its tokens.
        target_words: those of the target.
        links: for each view, pairs (source word, target word), from 0.
        end_shares: for each view, the share of its rows on the source's ``</s>``.
        error: the reason why the pair could not be aligned; it then has no links.
        unknown: the pieces of the target that the vocabulary cannot write. They are aligned as
            ``<unk>``.
    """

    source: str
    target: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    links: tuple[frozenset[Link], ...]
    end_shares: tuple[float, ...]
    error: str | None = None
    unknown: tuple[str, ...] = ()


def link_words(
    maps_XTM: np.ndarray, words: Sequence[range], num_words: int, rule: LinkRule
) -> list[frozenset[Link]]:
    """Turn maps from target tokens to source words into links.

    ``best`` links each target word to the source word with the most weight, averaged over the
    target word's tokens. Source words may stay without a link.

    ``both`` links in both directions. A target word's row is the average over its tokens plus the
    row of its first token, which decides what word it becomes. Each target word is linked to the
    source word of whose total weight it has the largest share, so that a source word that all
    rows attend to does not take all links. Each source word is linked to the target word that has
    the most weight on it.

    ``all`` links each target word to every source word that has at least half as much weight as the
    strongest, averaged as for ``best``. It suits a head that was taught links, whose rows divide
    their weight among the words that are linked.

    Args:
        maps_XTM: for each map, a row for each target token and a column for each source word; a
            column of zeros is a word without a token.
        words: the target words of each token.
        num_words: the number of target words.
        rule: ``best``, ``both`` or ``all``.

    Returns:
        The links of each map, (source word, target word).
    """
    is_of_LT = tokens_by_words(words, num_words).T.copy()
    # Words without a token, and words without any weight, get no links.
    target_words = np.flatnonzero(is_of_LT.any(axis=1))
    source_words = np.flatnonzero(maps_XTM.any(axis=(0, 1)))
    if not len(target_words) or not len(source_words):
        return [frozenset() for _ in maps_XTM]
    # Words without a token would divide by 0 below.
    is_of_LT = is_of_LT[target_words]
    maps_XTM = maps_XTM[:, :, source_words]
    maps_XLM = is_of_LT @ maps_XTM / is_of_LT.sum(axis=1, keepdims=True)
    if rule == "best":
        best_XL = source_words[maps_XLM.argmax(axis=2)]
        return [frozenset(zip(row, target_words.tolist(), strict=True)) for row in best_XL.tolist()]
    if rule == "all":
        is_linked_XLM = maps_XLM >= _ALL_FROM * maps_XLM.max(axis=2, keepdims=True)
        return [
            frozenset((int(source_words[m]), int(target_words[t])) for t, m in np.argwhere(one))
            for one in is_linked_XLM
        ]
    maps_XLM = maps_XLM + maps_XTM[:, is_of_LT.argmax(axis=1)]
    # A word without any weight must not divide by 0.
    totals_X1M = np.maximum(maps_XLM.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    # The share of a source word's weight, not the weight: some words draw all rows.
    best_XL = source_words[(maps_XLM / totals_X1M).argmax(axis=2)]
    best_XM = target_words[maps_XLM.argmax(axis=1)]
    return [
        frozenset(zip(sources, target_words.tolist(), strict=True))
        | frozenset(zip(source_words.tolist(), targets, strict=True))
        for sources, targets in zip(best_XL.tolist(), best_XM.tolist(), strict=True)
    ]


def tokens_by_words(words: Sequence[range], num_words: int) -> np.ndarray:
    """Return 1 for each token and word that it belongs to, otherwise 0: ``(tokens, words)``."""
    is_of = np.zeros((len(words), num_words))
    for token, owners in enumerate(words):
        is_of[token, list(owners)] = 1
    return is_of


def links_of_maps(maps_XTS: np.ndarray, words: PairWords, rule: LinkRule) -> list[frozenset[Link]]:
    """Turn maps from target tokens to source tokens into links of words.

    Args:
        maps_XTS: for each map, a row for each target token but ``</s>``, and a column for each
            source token.
        words: those of the pair.
        rule: which links to take, see `link_words`.
    """
    # ``</s>`` comes last and belongs to no word.
    is_of_SM = tokens_by_words([*words.source, range(0)], words.sizes[0])
    return link_words(maps_XTS @ is_of_SM, words.target, words.sizes[1], rule)
