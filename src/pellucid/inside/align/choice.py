"""The choice of a view to read links from without gold links: the most consistent one.

It needs no PyTorch, so the engine in C reads links without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pellucid.errors import InputError
from pellucid.inside.align.linked_units import Aligned

FEW_PAIRS = 50
"""With fewer pairs, words hardly repeat, and consistency says little."""

SAMPLE_PAIRS = 500
"""The most pairs that a recommendation is based on."""

_MARKS = ".,;:!?…\"'’«»()[]\u00a0\u202f"


def consistencies(aligned: Sequence[Aligned]) -> list[float]:
    r"""Compute how consistent each view's links are, without gold links.

    Right links join the same words again and again; wrong ones join any words. So each link
    between words $s$ and $t$ is judged by the links of all other pairs, as if they were a
    dictionary:

    $$\frac{2\,c(s, t)}{c(s) + c(t)}$$

    Here $c(s, t)$ counts links between the two in the other pairs, $c(s)$ and $c(t)$ all links of
    one word. The average over all links is the consistency, from 0 (no two words are linked twice)
    to 1. It also tells the conventions apart: links that are off by one word join neighbors, which
    change from pair to pair. Case, and marks at a word's ends, are ignored.

    Args:
        aligned: pairs, at least some dozens, better hundreds; those with an error are left out.

    Returns:
        One consistency for each view, in order.

    Raises:
        InputError: no pair could be aligned.

    Source:
        The Dice coefficient as used for links: Melamed 2000, "Models of Translational
        Equivalence among Words". Judging heads by it is our own idea, measured in docs/guides.
    """
    usable = [pair for pair in aligned if pair.error is None]
    if not usable:
        raise InputError(
            "No pair can be aligned, so that no head can be chosen. Name one, or give other pairs."
        )
    words = [(_bare(pair.source_words), _bare(pair.target_words)) for pair in usable]
    return [_repeat(usable, words, view) for view in range(len(usable[0].links))]


def _repeat(
    aligned: Sequence[Aligned], words: Sequence[tuple[list[str], list[str]]], view: int
) -> float:
    each = []
    together = Counter[tuple[str, str]]()
    single = Counter[tuple[str, bool]]()
    for pair, (sources, targets) in zip(aligned, words, strict=True):
        # By spelling, so that the same words count together wherever they stand.
        joined = Counter((sources[i], targets[j]) for i, j in pair.links[view])
        singles = Counter[tuple[str, bool]]()
        for (source, target), times in joined.items():
            singles[source, True] += times
            singles[target, False] += times
        each.append((joined, singles))
        together.update(joined)
        single.update(singles)
    found = num_links = 0.0
    for joined, singles in each:
        for (source, target), times in joined.items():
            num_links += times
            again = together[source, target] - times
            # A link that never comes again adds nothing, and may divide by 0.
            if again:
                ends = ((source, True), (target, False))
                # The links of this pair do not judge themselves, so they are subtracted.
                found += times * 2 * again / sum(single[end] - singles[end] for end in ends)
    return found / num_links if num_links else 0.0


def _bare(words: Sequence[str]) -> list[str]:
    return [word.casefold().strip(_MARKS) or word for word in words]
