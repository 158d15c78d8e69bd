"""Why a translation has this word and not that one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pellucid.cli.look.measures import describe_map, of_measure
from pellucid.cli.look.writer import Writer
from pellucid.inside.measures import Contrast, Map, contrast_measure, find_contrast
from pellucid.inside.pair import Pair

DEFAULT = ("occlusion", "integrated-gradients")
"""The measures that are shown if none is named: those of a word, whose differences are exact."""


def show_contrast(
    pair: Pair,
    words: tuple[str, str, str],
    names: Sequence[str] | None,
    place: Mapping[str, Any],
    writer: Writer,
) -> None:
    """Show measures as the difference of two words.

    Args:
        pair: the sentence with its translation.
        words: the text of the translation, its word, and the other one.
        names: of the measures; None takes `DEFAULT`.
        place: as `to_place` collects it.
        writer: where to show it.

    Raises:
        InputError: a word cannot be compared, or a measure does not exist or apply.
    """
    contrast = find_contrast(pair, *words)
    # All are computed first: a mistake in the last measure shows before the first is drawn.
    maps = [
        contrast_measure(contrast, name, **of_measure(place, name)) for name in names or DEFAULT
    ]
    writer.lines(_summarize(contrast))
    for map_ in maps:
        writer.lines(["", *describe_map(map_), *_rank(map_, contrast)])
        writer.matrix(map_.matrix, map_.row_labels, map_.column_labels, is_share=False)


def _summarize(contrast: Contrast) -> Iterator[str]:
    why, other = contrast.words
    first, second = contrast.pieces
    start = contrast.start
    yield f"Why {why} and not {other}"
    beginning = " ".join(contrast.why.predicted_tokens[:start])
    yield f"Source       {' '.join(contrast.why.source_tokens)}"
    yield f"Beginning    {beginning or '(nothing)'}"
    for pieces, logs in zip((first, second), contrast.log_probabilities, strict=True):
        each = " ".join(f"{piece} {log:.4f}" for piece, log in zip(pieces, logs, strict=True))
        total = f" = {sum(logs):.4f}" if len(logs) > 1 else ""
        yield f"             log-probability {each}{total}"
    yield (
        f"Difference   {contrast.difference:+.4f}: from row {start} on, "
        f"{why if contrast.difference > 0 else other} is {_times(abs(contrast.difference))} "
        "likelier."
    )
    if len(first) > 1 or len(second) > 1:
        yield (
            "Words of several pieces: their log-probabilities, and the rows of a measure, are "
            "added up, from where the pieces begin to differ."
        )


def _times(difference: float) -> str:
    times = math.exp(min(difference, 500))
    if times >= 1e6:
        return f"{times:.0e} times"
    return f"{times:,.1f} times" if times < 100 else f"{times:,.0f} times"


def _rank(map_: Map, contrast: Contrast) -> Iterator[str]:
    """Name the columns that speak most for either word."""
    row = map_.matrix[0]
    why, other = contrast.words
    for word, order, is_for in (
        (why, row.argsort()[::-1], row > 0),
        (other, row.argsort(), row < 0),
    ):
        found = [place for place in order[:_MOST_NAMED].tolist() if is_for[place]]
        if found:
            named = ", ".join(f"{map_.column_labels[one]} {row[one]:+.2f}" for one in found)
            yield f"For {word}: {named}"


_MOST_NAMED = 4
