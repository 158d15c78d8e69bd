"""Word links from cross-attention: the source words that each target word was written from.

Reading order: `maps` (from tokens to tokens), this module (links between words), `choice` (the
best map, without gold links), `direction` (all of them for one model).

Special tokens are not words. A map's column of ``</s>`` counts for no word, and its share is
reported. The row that reads the start token (in `reads`) and the row that predicts ``</s>`` (in
`predicts`) belong to no word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from pellucid.errors import DataError
from pellucid.evaluate.links import Link
from pellucid.inside.align.maps import PairMaps, View, map_pairs
from pellucid.inside.pair import problem_of
from pellucid.model import Transformer
from pellucid.text import Tokenizer
from pellucid.text.codes import split_code
from pellucid.text.token_words import (
    mark_unknown,
    split_pieces,
    unknown_pieces,
    words_of_tokens,
)

__all__ = ["LINK_RULES", "Aligned", "LinkRule", "align_pairs", "link_words", "tokens_by_words"]

LinkRule = Literal["best", "both"]
LINK_RULES: tuple[LinkRule, ...] = get_args(LinkRule)

CHUNK = 256
"""The number of pairs that are aligned together."""


@dataclass(frozen=True)
class Aligned:
    """The links of one pair.

    Attributes:
        source: the line, without its language code.
        target: its translation.
        num_source_words: the number of the source's words.
        num_target_words: the number of the target's words.
        links: for each view, pairs (source word, target word), from 0.
        end_shares: for each view, the share of its rows on the source's ``</s>``.
        error: the reason why the pair could not be aligned; it then has no links.
        unknown: the pieces of the target that the vocabulary cannot write. They are aligned as
            ``<unk>``.
    """

    source: str
    target: str
    num_source_words: int
    num_target_words: int
    links: tuple[frozenset[Link], ...]
    end_shares: tuple[float, ...]
    error: str | None = None
    unknown: tuple[str, ...] = ()


def align_pairs(
    model: Transformer,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    targets: Sequence[str],
    views: Sequence[View],
    *,
    rule: LinkRule = "both",
) -> Iterator[Aligned]:
    """Link the words of given pairs by each of some views.

    Args:
        model: reads the source, and the target with teacher forcing.
        tokenizer: its tokenizer.
        sources: one line each.
        targets: their translations.
        views: the maps to read links from, with their conventions.
        rule: which links to take from a map, see `link_words`.

    Yields:
        The links of each pair, in order. A pair with an empty side has none.

    Raises:
        DataError: the numbers of sources and targets differ.
    """
    if len(sources) != len(targets):
        raise DataError(
            f"The number of targets must be that of the sources, {len(sources)}, but is "
            f"{len(targets)}. Give one target for each source."
        )
    pairs = list(zip(sources, targets, strict=True))
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        yield from _align_chunk(model, tokenizer, chunk, views, rule=rule)


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

    Args:
        maps_XTM: for each map, a row for each target token and a column for each source word; a
            column of zeros is a word without a token.
        words: the target words of each token.
        num_words: the number of target words.
        rule: ``best`` or ``both``.

    Returns:
        The links of each map, (source word, target word).
    """
    is_of_LT = tokens_by_words(words, num_words).T.copy()
    # Words without a token, and words without any weight, get no links.
    target_words = np.flatnonzero(is_of_LT.any(axis=1))
    source_words = np.flatnonzero(maps_XTM.any(axis=(0, 1)))
    if not len(target_words) or not len(source_words):
        return [frozenset() for _ in maps_XTM]
    is_of_LT = is_of_LT[target_words]
    maps_XTM = maps_XTM[:, :, source_words]
    maps_XLM = is_of_LT @ maps_XTM / is_of_LT.sum(axis=1, keepdims=True)
    if rule == "best":
        best_XL = source_words[maps_XLM.argmax(axis=2)]
        return [frozenset(zip(row, target_words.tolist(), strict=True)) for row in best_XL.tolist()]
    maps_XLM = maps_XLM + maps_XTM[:, is_of_LT.argmax(axis=1)]
    totals_X1M = np.maximum(maps_XLM.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
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


def _align_chunk(
    model: Transformer,
    tokenizer: Tokenizer,
    pairs: Sequence[tuple[str, str]],
    views: Sequence[View],
    *,
    rule: LinkRule,
) -> list[Aligned]:
    aligned = []
    ids, places = [], []
    for index, (source, target) in enumerate(pairs):
        text = split_code(tokenizer, source)[1]
        sizes = (len(split_pieces(text)), len(split_pieces(target)))
        target_ids = tokenizer.encode_target(mark_unknown(tokenizer, target))
        pair_ids = (tokenizer.encode_source(source), target_ids)
        problem = problem_of(model, *pair_ids)
        unknown: tuple[str, ...] = ()
        if tokenizer.config.unk_id in target_ids:
            unknown = tuple(unknown_pieces(tokenizer, target))
        nothing, shares = (frozenset[Link](),) * len(views), (0.0,) * len(views)
        aligned.append(Aligned(text, target, *sizes, nothing, shares, problem, unknown))
        if problem is None and all(sizes):
            ids.append(pair_ids)
            places.append(index)
    layers = {view.layer for view in views if view.layer is not None}
    if any(view.layer is None for view in views):
        layers = set(range(model.config.num_decoder_layers))
    all_maps = map_pairs(
        model,
        ids,
        layers,
        pad_id=tokenizer.config.pad_id,
        start_id=tokenizer.config.target_start_id,
        has_norms=any(view.map == "norms" for view in views),
    )
    for maps in all_maps:
        place = places[maps.index]
        source_words = words_of_tokens(tokenizer, "source", pairs[place][0], ids[maps.index][0])
        aligned[place] = _align_pair(
            aligned[place],
            maps,
            tokenizer,
            source_words,
            ids[maps.index][1],
            views=views,
            rule=rule,
        )
    return aligned


def _align_pair(
    pair: Aligned,
    maps: PairMaps,
    tokenizer: Tokenizer,
    source_words: Sequence[range],
    target_ids: Sequence[int],
    *,
    views: Sequence[View],
    rule: LinkRule,
) -> Aligned:
    marked = mark_unknown(tokenizer, pair.target)
    target_words = words_of_tokens(tokenizer, "target", marked, target_ids)
    # ``</s>`` comes last and belongs to no word.
    is_of_SM = tokens_by_words([*source_words, range(0)], pair.num_source_words)
    maps_XTS = np.stack([maps.get(view) for view in views])
    links = link_words(maps_XTS @ is_of_SM, target_words, pair.num_target_words, rule)
    end_shares = (maps_XTS[:, :, -1] / maps_XTS.sum(axis=2)).mean(axis=1)
    return replace(pair, links=tuple(links), end_shares=tuple(end_shares.tolist()))
