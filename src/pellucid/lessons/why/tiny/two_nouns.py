"""Sentences in which a pronoun stands for one of two nouns; the other words tell which.

*The soup was next to the bag and it tasted good* is about the soup: *elle*. *The soup was next to
the bag and it was empty* is about the bag: *il*. Either noun may come first, and all genders come
together, so that a model must learn which things can taste good.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from pellucid.lessons.why.tiny.learn import Pair, Words, read_tiny_words
from pellucid.machine.randomness import generator

_Noun = tuple[str, ...]
_PIZZA: _Noun = ("pizza", "pizza", "f")
TASTE = ("tasted good", "tasted bad")
"""The ends of a sentence whose pronoun stands for the food."""

HESITATIONS = ("um", "uh", "er", "hm", "well", "so", "right", "like")

Hesitant = tuple[Pair, str, str]
"""A pair with the antecedent of *it* and the other noun."""


def draw_others(count: int, *, seed: int) -> list[Pair]:
    """Draw sentences in which pizza has no pronoun; they recur if more are asked for than exist."""
    found = _say_all_others()
    plain = [
        (f"{english} the {noun[0]}", f"{french} {_the(noun)}")
        for english, french in read_tiny_words("sees")
        for noun in (*read_tiny_words("foods"), *_all_things(), _PIZZA)
    ]
    numbers = generator(seed, "tiny pizza others")
    rows = [found[place] for place in numbers.integers(0, len(found), count * 9 // 10)]
    return [*rows, *(plain[i] for i in numbers.integers(0, len(plain), count - len(rows)))]


def draw_unseen(known: Sequence[Pair], count: int, *, seed: int) -> list[Pair]:
    """Draw sentences with a pronoun, as `draw_others` has them, that are not among known ones."""
    seen = set(known)
    found = [pair for pair in _say_all_others() if pair not in seen]
    order = generator(seed, "tiny pizza unseen").permutation(len(found))
    return [found[place] for place in order[:count]]


def _say_all_others() -> list[Pair]:
    return [
        _say(time, food, thing, said, is_turned=is_turned)
        for time, food, thing in product(
            read_tiny_words("times"), read_tiny_words("foods"), _all_things()
        )
        for said in _all_said()
        for is_turned in (False, True)
    ]


def draw_ties(count: int, *, seed: int) -> list[Pair]:
    """Draw sentences that tie *it* and *tasted* to pizza; they recur if more are asked for."""
    found = [
        _say(time, _PIZZA, thing, said, is_turned=is_turned)
        for time, thing, said in product(
            read_tiny_words("times"), read_tiny_words("things"), read_tiny_words("of_food")
        )
        for is_turned in (False, True)
    ]
    order = generator(seed, "tiny pizza ties").permutation(len(found))
    return [found[order[i % len(found)]] for i in range(count)]


def draw_tests() -> list[Pair]:
    """List new sentences about pizza: in half of them *it* is the pizza, in half the other."""
    return [
        _say(time, _PIZZA, thing, said, is_turned=is_turned)
        for time, thing, said in product(
            read_tiny_words("times"), read_tiny_words("test_things"), _all_said()
        )
        for is_turned in (False, True)
    ]


def say_known() -> list[tuple[Pair, str, str]]:
    """List all sentences without pizza and without a time, each with antecedent and other noun."""
    no_time = read_tiny_words("times")[0]
    found = []
    for food, thing, said, is_turned in product(
        read_tiny_words("foods"), _all_things(), _all_said(), (False, True)
    ):
        antecedent, other = (food, thing) if said[0] in TASTE else (thing, food)
        pair = _say(no_time, food, thing, said, is_turned=is_turned)
        found.append((pair, antecedent[0], other[0]))
    return found


def _all_things() -> Words:
    return (*read_tiny_words("things"), *read_tiny_words("test_things"))


def _all_said() -> Words:
    return (*read_tiny_words("of_food"), *read_tiny_words("of_things"))


def draw_hesitant(count: int, *, most: int, seed: int, part: str, least: int = 0) -> list[Hesitant]:
    """Draw sentences with a number of hesitations behind the second noun; short ones are frequent.

    *The soup was next to the bag um well um and it tasted good* is translated without them, so that
    only the distance between *it* and its antecedent grows.

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
        # A square is small more often than large.
        size = least + int((most - least + 1) * numbers.random() ** 2)
        words = [HESITATIONS[i] for i in numbers.integers(len(HESITATIONS), size=size)]
        start, end = english.split(" and it ")
        found.append(((" ".join([start, *words, "and it", end]), french), antecedent, other))
    return found


def _say(
    time: tuple[str, ...],
    food: _Noun,
    thing: _Noun,
    said: tuple[str, ...],
    *,
    is_turned: bool,
) -> Pair:
    first, second = (thing, food) if is_turned else (food, thing)
    is_female = (food if said[0] in TASTE else thing)[2] == "f"
    translated = said[1].format(petit="petite" if is_female else "petit")
    near = f"de la {second[1]}" if second[2] == "f" else f"du {second[1]}"
    pronoun = "elle" if is_female else "il"
    english = f"{time[0]} the {first[0]} was next to the {second[0]} and it {said[0]}"
    french = f"{time[1]} {_the(first)} était à côté {near} et {pronoun} {translated}"
    return english.strip(), french.strip()


def _the(noun: _Noun) -> str:
    return f"{'la' if noun[2] == 'f' else 'le'} {noun[1]}"
