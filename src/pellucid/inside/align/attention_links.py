"""Word links from cross-attention: the source words that each target word was written from.

Reading order: `alignment_maps` (from tokens to tokens), this module (links between words), `choice`
(the best map, without gold links), `direction` (all of them for one model).

Special tokens are not words. A map's column of ``</s>`` counts for no word, and its share is
reported. The row that reads the start token (in `reads`) and the row that predicts ``</s>`` (in
`predicts`) belong to no word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pellucid.decode.hypothesis import OVERFLOW
from pellucid.errors import DataError
from pellucid.evaluation.word_links import Link
from pellucid.inside.align.alignment_maps import PairMaps, View, map_pairs
from pellucid.inside.align.linked_units import (
    NOTHING_GIVEN,
    SIDES,
    GivenUnits,
    PairWords,
    Units,
    find_units,
    words_of_units,
)
from pellucid.inside.pair import problem_of
from pellucid.model import EncoderDecoder
from pellucid.text.language_tokens import code_problem, split_code
from pellucid.text.link_choices import LinkRule, UnitRule
from pellucid.text.token_words import mark_unknown, unknown_pieces
from pellucid.text.tokenizers.tokenizer import Tokenizer

_ALL_FROM = 0.5
"""The share of the strongest weight from which ``all`` links a word too."""

CHUNK = 256
"""The number of pairs that are aligned together."""


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


def align_pairs(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    targets: Sequence[str],
    views: Sequence[View],
    *,
    rule: LinkRule = "both",
    units: UnitRule = "auto",
    given: GivenUnits = NOTHING_GIVEN,
) -> Iterator[Aligned]:
    """Link the words of given pairs by each of some views.

    Args:
        model: reads the source, and the target with teacher forcing.
        tokenizer: its tokenizer.
        sources: one line each.
        targets: their translations.
        views: the maps to read links from, with their conventions.
        rule: which links to take from a map, see `link_words`.
        units: how lines are cut into the words that links count.
        given: words to take instead, and pairs that are faulty.

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
    aligner = _Aligner(model, tokenizer, tuple(views), rule, units)
    pairs = list(zip(sources, targets, strict=True))
    # In parts, so that a long file gives its first links soon.
    for start in range(0, len(pairs), CHUNK):
        yield from aligner.align(pairs[start : start + CHUNK], given, start)


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


@dataclass(frozen=True)
class _Prepared:
    """A pair that can run through the model."""

    ids: tuple[list[int], list[int]]
    units: tuple[Units, Units]
    lines: tuple[str, str]


@dataclass(frozen=True)
class _Aligner:
    """Aligns some pairs together."""

    model: EncoderDecoder
    tokenizer: Tokenizer
    views: tuple[View, ...]
    rule: LinkRule
    units: UnitRule

    def align(
        self, pairs: Sequence[tuple[str, str]], given: GivenUnits, start: int
    ) -> list[Aligned]:
        """Align pairs, of which the first has the number ``start``."""
        aligned: list[Aligned] = []
        ready: dict[int, _Prepared] = {}
        for index, lines in enumerate(pairs):
            pair, prepared = self._prepare(lines, given, start + index)
            aligned.append(pair)
            if prepared is not None:
                ready[index] = prepared
        layers = {view.layer for view in self.views if view.layer is not None}
        if any(view.layer is None for view in self.views):
            # A view without a layer is the mean of all.
            layers = set(self.model.config.attending_layers)
        places = list(ready)
        all_maps = map_pairs(
            self.model,
            [ready[place].ids for place in places],
            layers,
            pad_id=self.tokenizer.config.pad_id,
            start_id=self.tokenizer.config.target_start_id,
            has_norms=any(view.map == "norms" for view in self.views),
        )
        for maps in all_maps:
            place = places[maps.index]
            aligned[place] = self._link(aligned[place], maps, ready[place])
        return aligned

    def _prepare(
        self, lines: tuple[str, str], given: GivenUnits, number: int
    ) -> tuple[Aligned, _Prepared | None]:
        """Cut a pair into tokens and words; None in place of one that cannot be aligned."""
        tokenizer = self.tokenizer
        # Given words name the letters of the line, which masks would replace.
        if all(given.words(side, number) is None for side in SIDES):
            lines = tokenizer.masked_pair(*lines, words_only=True)
        source, target = lines
        text = split_code(tokenizer, source)[1]
        nothing = (frozenset[Link](),) * len(self.views)
        shares = (0.0,) * len(self.views)
        ids = (
            tokenizer.encode_source(source),
            tokenizer.encode_translation(source, mark_unknown(tokenizer, target)),
        )
        no_code = code_problem(tokenizer, source)
        problem = given.faults.get(number) or no_code or problem_of(self.model, *ids)
        units: list[Units] = []
        for side, line, one in zip(SIDES, lines, ids, strict=True):
            words = given.words(side, number)
            try:
                units.append(
                    find_units(tokenizer, side, line, rule=self.units, words=words, ids=one)
                )
            except DataError as error:
                # The first fault of a pair is its reason; later ones may follow from it.
                sentence = str(error).replace("The words", f"The {side} words", 1)
                problem = problem or sentence
                units.append(Units((), ()))
        unknown: tuple[str, ...] = ()
        if tokenizer.config.unk_id in ids[1]:
            unknown = tuple(unknown_pieces(tokenizer, target))
        pair = Aligned(
            source=text,
            target=target,
            source_words=units[0].names,
            target_words=units[1].names,
            links=nothing,
            end_shares=shares,
            error=problem,
            unknown=unknown,
        )
        if problem is not None or not pair.source_words or not pair.target_words:
            return pair, None
        return pair, _Prepared(ids, (units[0], units[1]), lines)

    def _link(self, pair: Aligned, maps: PairMaps, prepared: _Prepared) -> Aligned:
        words = words_of_units(self.tokenizer, prepared.units, prepared.lines, prepared.ids)
        maps_XTS = np.stack([maps.get(view) for view in self.views])
        # Weights too large for the precision overflow; links of them would be chance.
        if not np.isfinite(maps_XTS).all():
            return replace(pair, error=OVERFLOW)
        links = links_of_maps(maps_XTS, words, self.rule)
        end_shares = (maps_XTS[:, :, -1] / maps_XTS.sum(axis=2)).mean(axis=1)
        return replace(pair, links=tuple(links), end_shares=tuple(end_shares.tolist()))


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
