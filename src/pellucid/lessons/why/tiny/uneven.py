"""Lists of animals whose translations are shorter or longer than they are.

*The guinea pig* is *le cobaye*, *the earthworm* is *le ver de terre*, and colors change places as
in `pellucid.lessons.why.tiny.tiny_language`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from pellucid.lessons.why.tiny.tiny_language import draw_colored, draw_lists
from pellucid.lessons.why.tiny.tiny_vocabulary import Pair, read_tiny_words

Kind = Literal["shorter", "equal", "longer"]

_KINDS: tuple[Kind, ...] = ("shorter", "equal", "longer")


def draw_uneven(count: int, *, phrases: Sequence[int], seed: int, part: str) -> list[Pair]:
    """Draw lists such as *the black guinea pig and the earthworm*; all are different.

    Args:
        count: the number of lists.
        phrases: the numbers of animals that a list may have.
        seed: of the draws.
        part: the purpose; lists of ``test`` never occur under another name.
    """
    return draw_lists(count, phrases=phrases, seed=seed, part=part, draw=_phrase)


def kind_of(pair: Pair) -> Kind:
    """Tell whether a translation has fewer words than the source, as many, or more."""
    source, target = (len(text.split()) for text in pair)
    return "shorter" if target < source else "longer" if target > source else "equal"


def order_of(written: str, wanted: str) -> list[Literal["right", "order", "words", "missing"]]:
    """Compare each animal of a translation that has a color with the one in its place.

    Args:
        written: the translation of a model.
        wanted: the correct one.

    Returns:
        For each animal with a color: ``right``; ``order`` if its words are right, but not in their
        order, or a color is not the last word; ``words`` if others stand there; ``missing`` if
        nothing does.
    """
    colors = {word for color in read_tiny_words("colors") for word in color[1:]}
    found: list[Literal["right", "order", "words", "missing"]] = []
    theirs = written.split(" et ")
    for place, phrase in enumerate(wanted.split(" et ")):
        words = phrase.split()
        if words[-1] not in colors:
            continue
        # A model may stop too early.
        have = theirs[place].split() if place < len(theirs) else []
        if have == words:
            found.append("right")
        # A color that is not last stands before its noun, as in English.
        elif sorted(have) == sorted(words) or colors & set(have[:-1]):
            found.append("order")
        else:
            found.append("words" if have else "missing")
    return found


def _phrase(numbers: np.random.Generator) -> Pair:
    kind = _KINDS[numbers.integers(len(_KINDS))]
    return draw_colored(numbers, read_tiny_words(f"animals_{kind}"))
