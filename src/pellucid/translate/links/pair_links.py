"""Word links of given pairs, by one model or by two that translate in opposite directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from pellucid.bundle import Bundle
from pellucid.evaluation.word_links import symmetrize
from pellucid.inside.align.choice import FEW_PAIRS
from pellucid.inside.align.direction import Direction, make_direction
from pellucid.inside.align.link_views import guided_view
from pellucid.inside.align.linked_units import NOTHING_GIVEN, GivenUnits
from pellucid.inside.changes.given_changes import GivenChanges
from pellucid.text.link_choices import LinkRule, Symmetrization, UnitRule
from pellucid.text.reading.lines import not_a_line
from pellucid.translate.text_scoring import check_same_number
from pellucid.wording.other_names import no_attribute


@dataclass(frozen=True)
class PairLinks:
    """The links of a pair.

    Attributes:
        source: the line.
        target: its translation.
        source_words: the words of the source that links count.
        target_words: those of the target.
        alignment: the links (source word, target word), both from 0.
        unknown: the pieces that a vocabulary cannot write.
        error: the reason why the pair has no links; otherwise None.
    """

    source: str
    target: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]
    unknown: tuple[str, ...] = ()
    error: str | None = None

    if not TYPE_CHECKING:  # Type checkers would take every name for an attribute.

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(no_attribute("PairLinks", name), name=name, obj=self)

    def _repr_html_(self) -> str:
        from pellucid.translate.links.linked_html import linked_lines, two_lines

        if self.error is not None:
            return two_lines(self.source, self.target, self.error)
        return linked_lines(self.source_words, self.target_words, self.alignment)


def link_pairs(
    directions: Sequence[Direction],
    method: Symmetrization,
    sources: Sequence[str],
    targets: Sequence[str],
    given: GivenUnits = NOTHING_GIVEN,
) -> Iterator[PairLinks]:
    """Yield the links of each pair, with two directions joined.

    Args:
        directions: one or two, each with one view.
        method: how to join the links of two directions.
        sources: one line each.
        targets: their translations.
        given: words to take instead of those of the lines.
    """
    each = (one.align(sources, targets, given) for one in directions)
    for source, target, *pairs in zip(sources, targets, *each, strict=True):
        errors = [pair.error for pair in pairs if pair.error is not None]
        links = pairs[0].links[0]
        if errors:
            # Half of the answer would look like all of it.
            links = frozenset()
        elif len(pairs) == 2:
            links = symmetrize(links, pairs[1].links[0], method)
        yield PairLinks(
            source,
            target,
            source_words=pairs[0].source_words,
            target_words=pairs[0].target_words,
            alignment=tuple(sorted(links)),
            # Each piece once, in the order of the line.
            unknown=tuple(dict.fromkeys(piece for pair in pairs for piece in pair.unknown)),
            error=errors[0] if errors else None,
        )


def make_directions(
    models: Sequence[tuple[Bundle, GivenChanges | None]],
    heads: Sequence[tuple[int | None, int | None]],
    *,
    rule: LinkRule | None,
    **choices: Any,
) -> list[Direction]:
    """Make the direction of a model, and of one that translates back.

    Args:
        models: one model or two, each with its changes.
        heads: the layer and the head of each to read links from; None for all.
        rule: which links to take from a map; chosen unless given.
        choices: further ones, as in `make_direction`.
    """
    is_joined = len(models) > 1
    directions = []
    for number, ((bundle, changes), place) in enumerate(zip(models, heads, strict=True)):
        layer, head = place
        direction = make_direction(
            bundle,
            # Two directions are joined later, so that each gives its own best links.
            rule=rule or ("best" if is_joined else "both"),
            layer=layer,
            head=head,
            is_backward=number == 1,
            changes=changes,
            **choices,
        )
        view = guided_view(bundle)
        if view is not None and view in direction.views:
            # The head was taught all links of a word, not only the best one.
            taught_rule: LinkRule = rule or ("best" if is_joined else "all")
            direction = replace(direction, taught=view, taught_rule=taught_rule)
        directions.append(direction)
    return directions


def choose_direction(
    direction: Direction, sources: Sequence[str], targets: Sequence[str]
) -> Direction:
    """Choose the view of a direction: the one that was taught, or whose links are consistent."""
    if len(direction.views) == 1:
        return direction
    if direction.taught is not None:
        return replace(direction.only(direction.taught), rule=direction.taught_rule)
    if len(sources) >= FEW_PAIRS:
        return direction.only(direction.recommend(sources, targets)[0].view)
    # Words of few pairs hardly repeat, so that consistency would say little.
    predicting = [view for view in direction.views if view.convention == "predicts"]
    means = [view for view in predicting if view.map == "layer-mean"]
    return direction.only((means or predicting)[-1])


def align_texts(
    models: Sequence[tuple[Bundle, GivenChanges | None]],
    head: tuple[int | None, int | None],
    sources: Sequence[str],
    targets: Sequence[str],
    units: UnitRule,
    method: Symmetrization,
    language: str | None = None,
) -> list[PairLinks]:
    """Link the words of given pairs, with the choices that are left open made by them.

    Args:
        models: a model with its changes, and perhaps one that translates back.
        head: the layer and the head of the first to read links from; None for all.
        sources: one line each.
        targets: their translations.
        units: how lines are cut into the words that links count.
        method: how to join the links of two models.
        language: those of the pairs, such as ``en:fr``, for models with language codes.

    Raises:
        InputError: a model does not have the language.
        DataError: sources and targets differ in number.
    """
    check_same_number(sources, targets)
    faults = {}
    for number, pair in enumerate(zip(sources, targets, strict=True)):
        fault = next(filter(None, map(not_a_line, pair)), None)
        if fault is not None:
            faults[number] = fault
    # A damaged line keeps its place, so that results stay parallel.
    read_sources, read_targets = (
        ["" if number in faults else line for number, line in enumerate(lines)]
        for lines in (sources, targets)
    )
    heads = [head, (None, None)][: len(models)]
    directions = [
        choose_direction(one, read_sources, read_targets)
        for one in make_directions(models, heads, rule=None, units=units, language=language)
    ]
    given = GivenUnits(faults=faults)
    found = link_pairs(directions, method, read_sources, read_targets, given)
    return [
        replace(one, source=source, target=target)
        for one, source, target in zip(found, sources, targets, strict=True)
    ]
