"""Word links from cross-attention: the source words that each target word was written from.

Reading order: `link_views` (which maps there are), `alignment_maps` (they are computed),
`linked_units` (from tokens to words), this module (many pairs), `direction` (all of them for one
model, and the best map without gold links).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pellucid.decode.hypothesis import OVERFLOW
from pellucid.decode.probing.under_probe import UnderProbe
from pellucid.errors import DataError
from pellucid.evaluation.word_links import Link
from pellucid.inside.align.alignment_maps import map_pairs
from pellucid.inside.align.link_views import PairMaps, View
from pellucid.inside.align.linked_units import (
    NOTHING_GIVEN,
    SIDES,
    Aligned,
    GivenUnits,
    Units,
    find_units,
    links_of_maps,
    words_of_units,
)
from pellucid.inside.pair import problem_of
from pellucid.model import EncoderDecoder
from pellucid.text.language_tokens import code_problem, split_code
from pellucid.text.link_choices import LinkRule, UnitRule
from pellucid.text.token_words import mark_unknown, unknown_pieces
from pellucid.text.tokenizers.tokenizer import Tokenizer

CHUNK = 256
"""The number of pairs that are aligned together."""


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
    change: UnderProbe | None = None,
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
        change: what changes the model on the way.

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
    aligner = _Aligner(model, tokenizer, tuple(views), rule, units, change)
    pairs = list(zip(sources, targets, strict=True))
    # In parts, so that a long file gives its first links soon.
    for start in range(0, len(pairs), CHUNK):
        yield from aligner.align(pairs[start : start + CHUNK], given, start)
    if change is not None and pairs:
        change.probe.warn()


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
    change: UnderProbe | None

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
        if self.change is not None:
            self.change.know((one.ids[0], one.lines[0]) for one in ready.values())
        all_maps = map_pairs(
            self.model,
            [ready[place].ids for place in places],
            layers,
            pad_id=self.tokenizer.config.pad_id,
            start_id=self.tokenizer.config.target_start_id,
            has_norms=any(view.map == "norms" for view in self.views),
            change=self.change,
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
