"""A model that aligns, forwards or backwards: its views, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from pellucid.bundle import Bundle
from pellucid.decode.probing.under_probe import UnderProbe
from pellucid.evaluation.word_links import GoldLinks, LinkScore, count_links, score_counts
from pellucid.inside.align.attention_links import align_pairs
from pellucid.inside.align.choice import SAMPLE_PAIRS, consistencies
from pellucid.inside.align.link_views import View, all_views
from pellucid.inside.align.linked_units import NOTHING_GIVEN, Aligned, GivenUnits
from pellucid.inside.changes.cutting import change_model
from pellucid.inside.changes.given_changes import GivenChanges
from pellucid.model import EncoderDecoder
from pellucid.text.language_tokens import backwards, find_code, with_code
from pellucid.text.link_choices import (
    CONVENTIONS,
    MAPS,
    Convention,
    LinkRule,
    MapName,
    UnitRule,
)
from pellucid.text.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class Judged:
    """A view judged by gold links.

    Attributes:
        view: the view.
        score: of its links against the gold links.
        end_share: the share of its rows on the source's ``</s>``, on average.
    """

    view: View
    score: LinkScore
    end_share: float


@dataclass(frozen=True)
class Recommended:
    """A view judged by how well its links agree with each other.

    Attributes:
        view: the view.
        consistency: of its links, see `consistencies`.
        end_share: the share of its rows on the source's ``</s>``, on average.
    """

    view: View
    consistency: float
    end_share: float


@dataclass(frozen=True, eq=False)
class Direction:
    """A model with the views that links may be read from.

    Attributes:
        model: translates one side into the other.
        tokenizer: its tokenizer.
        views: the maps to read links from.
        rule: which links to take from a map.
        is_backward: True if the model translates the target into the source. Links are (source,
            target) in either case.
        units: how lines are cut into the words that links count.
        taught: the view that learned word links, which needs no other choice; None without one.
        taught_rule: which links to take from that one.
        code: the language code that every line gets that the model reads; ``""`` leaves them.
        change: what changes the model on the way.
    """

    model: EncoderDecoder
    tokenizer: Tokenizer
    views: tuple[View, ...]
    rule: LinkRule
    is_backward: bool = False
    units: UnitRule = "auto"
    taught: View | None = None
    taught_rule: LinkRule = "all"
    code: str = ""
    change: UnderProbe | None = None

    def align(
        self, sources: Sequence[str], targets: Sequence[str], given: GivenUnits = NOTHING_GIVEN
    ) -> Iterator[Aligned]:
        """Link the words of each pair by every view, in order.

        Args:
            sources: one line each.
            targets: their translations.
            given: words to take instead of those of the lines.
        """
        if self.is_backward:
            sources, targets = targets, sources
            given = given.reversed()
        if self.code:
            sources = [with_code(self.tokenizer, self.code, line) for line in sources]
        found = align_pairs(
            self.model,
            self.tokenizer,
            sources,
            targets,
            self.views,
            rule=self.rule,
            units=self.units,
            given=given,
            change=self.change,
        )
        for pair in found:
            if not self.is_backward:
                yield pair
                continue
            yield replace(
                pair,
                source=pair.target,
                target=pair.source,
                source_words=pair.target_words,
                target_words=pair.source_words,
                # The model read the target as its source, so that its links are the other way
                # round.
                links=tuple(frozenset((i, j) for j, i in links) for links in pair.links),
            )

    def only(self, view: View) -> Direction:
        """Return the same direction with a single view."""
        return replace(self, views=(view,))

    def recommend(
        self, sources: Sequence[str], targets: Sequence[str], given: GivenUnits = NOTHING_GIVEN
    ) -> list[Recommended]:
        """Judge the views by the consistency of their links, the best first.

        Raises:
            InputError: no pair can be aligned.
        """
        aligned = list(islice(self.align(sources, targets, given), SAMPLE_PAIRS))
        values = consistencies(aligned)
        usable = [pair.end_shares for pair in aligned if pair.error is None]
        shares = np.mean(usable, axis=0).tolist()
        judged = map(Recommended, self.views, values, shares)
        return sorted(judged, key=lambda one: -one.consistency)

    def judge(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        golds: Sequence[GoldLinks],
        given: GivenUnits = NOTHING_GIVEN,
        *,
        tell: Callable[[int, str], object],
        tell_unknown: Callable[[int, Sequence[str]], object] | None = None,
    ) -> list[Judged]:
        """Judge the views by gold links, in their order.

        Args:
            sources: one line each.
            targets: their translations.
            golds: the right links; a pair that cannot be aligned misses all of its links.
            given: words to take instead of those of the lines.
            tell: is called with the number, from 0, of each such pair, and the reason.
            tell_unknown: is called with the number of each pair, and the pieces of its target that
                the vocabulary cannot write.
        """
        counts = []
        shares = []
        aligned = self.align(sources, targets, given)
        for index, (pair, gold) in enumerate(zip(aligned, golds, strict=True)):
            counts.append([count_links(links, gold) for links in pair.links])
            if tell_unknown is not None:
                tell_unknown(index, pair.unknown)
            if pair.error is None:
                shares.append(pair.end_shares)
            else:
                tell(index, pair.error)
        # Without a single pair there is no share to average.
        means = np.mean(shares or [(0.0,) * len(self.views)], axis=0).tolist()
        return list(map(Judged, self.views, score_counts(np.array(counts)), means))


def make_direction(
    bundle: Bundle,
    *,
    rule: LinkRule,
    maps: Collection[MapName] = MAPS,
    conventions: Collection[Convention] = CONVENTIONS,
    layer: int | None = None,
    head: int | None = None,
    is_backward: bool = False,
    units: UnitRule = "auto",
    language: str | None = None,
    changes: GivenChanges | None = None,
) -> Direction:
    """Make a direction of a model and the views that are asked for.

    Args:
        bundle: the model.
        rule: which links to take from a map.
        maps: as in `all_views`.
        conventions: as in `all_views`.
        layer: as in `all_views`.
        head: as in `all_views`.
        is_backward: True if the model translates the target into the source.
        units: how lines are cut into the words that links count.
        language: those of the pairs, such as ``en:fr``, as `find_code` takes them.
        changes: of the model, for all pairs.

    Raises:
        InputError: the layer, the head or the language does not exist, no view fits, or a change
            cannot be made.
    """
    tokenizer = bundle.tokenizer
    if is_backward:
        # Of two models perhaps only the first has codes.
        language = backwards(language) if tokenizer.language_codes else None
    code = "" if language is None else find_code(tokenizer, language)
    views = all_views(
        bundle.config.model, maps=maps, conventions=conventions, layer=layer, head=head
    )
    model, under = change_model(bundle.model, tokenizer, changes)
    return Direction(
        model, tokenizer, tuple(views), rule, is_backward, units, code=code, change=under
    )
