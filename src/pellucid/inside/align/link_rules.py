"""From a map of attention to links of words, without PyTorch.

Special tokens are not words. A map's column of ``</s>`` counts for no word. The row that reads the
start token (in `reads`) and the row that predicts ``</s>`` (in `predicts`) belong to no word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pellucid.inside.align.linked_units import PairWords
from pellucid.text.link_choices import LinkRule

if TYPE_CHECKING:
    from pellucid.evaluation.word_links import Link

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

    @property
    def num_source_words(self) -> int:
        """The number of the source's words."""
        return len(self.source_words)

    @property
    def num_target_words(self) -> int:
        """The number of the target's words."""
        return len(self.target_words)


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
