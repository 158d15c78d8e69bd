"""Sentences whose speaker hesitates: words without meaning between a noun and its pronoun.

*The soup was next to the bag um well um and it tasted good* is translated without the hesitations,
so that only the distance between *it* and its antecedent grows.
"""

from __future__ import annotations

from pellucid.lessons.why.tiny.pizza import say_known
from pellucid.lessons.why.tiny.words import Pair
from pellucid.machine.randomness import generator

HESITATIONS = ("um", "uh", "er", "hm", "well", "so", "right", "like")

Hesitant = tuple[Pair, str, str]
"""A pair with the antecedent of *it* and the other noun."""


def draw_hesitant(count: int, *, most: int, seed: int, part: str, least: int = 0) -> list[Hesitant]:
    """Draw sentences with a number of hesitations behind the second noun; short ones are frequent.

    Args:
        count: the number of sentences.
        most: the largest number of hesitations.
        seed: of the draws.
        part: the purpose: each has its own draws.
        least: the smallest number of hesitations.
    """
    numbers = generator(seed, "tiny hesitations", part, least, most)
    found = []
    known = say_known()
    for _ in range(count):
        (english, french), antecedent, other = known[numbers.integers(len(known))]
        size = least + int((most - least + 1) * numbers.random() ** 2)
        words = [HESITATIONS[i] for i in numbers.integers(len(HESITATIONS), size=size)]
        start, end = english.split(" and it ")
        found.append(((" ".join([start, *words, "and it", end]), french), antecedent, other))
    return found
