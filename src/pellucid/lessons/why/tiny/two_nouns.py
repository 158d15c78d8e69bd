"""Sentences in which a pronoun stands for one of two nouns; the other words tell which.

*The soup was next to the bag and it tasted good* is about the soup: *elle*. *The soup was next to
the bag and it was empty* is about the bag: *il*. Either noun may come first, and all genders come
together, so that a model must learn which things can taste good.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from pellucid.lessons.why.tiny.tiny_vocabulary import Pair
from pellucid.machine.randomness import generator

_Noun = tuple[str, str, str]
_FOODS: tuple[_Noun, ...] = (
    ("soup", "soupe", "f"),
    ("tart", "tarte", "f"),
    ("meat", "viande", "f"),
    ("cake", "gâteau", "m"),
    ("bread", "pain", "m"),
    ("rice", "riz", "m"),
)
_PIZZA: _Noun = ("pizza", "pizza", "f")
_THINGS: tuple[_Noun, ...] = (
    ("cupboard", "placard", "m"),
    ("bag", "sac", "m"),
    ("basket", "panier", "m"),
    ("box", "boîte", "f"),
    ("suitcase", "valise", "f"),
    ("bottle", "bouteille", "f"),
)
_TEST_THINGS: tuple[_Noun, ...] = (("oven", "four", "m"), ("fridge", "frigo", "m"))
"""No training text has pizza next to these."""
TASTE = ("tasted good", "tasted bad")
_OF_FOOD = (("tasted good", "avait bon goût"), ("tasted bad", "avait mauvais goût"))
_OF_THINGS = (("was too small", "était trop {petit}"), ("was empty", "était vide"))
_TIMES: tuple[tuple[str, str], ...] = (
    ("", ""),
    ("today", "aujourd'hui"),
    ("yesterday", "hier"),
    ("then", "puis"),
    ("later", "plus tard"),
    ("finally", "enfin"),
    ("first", "d'abord"),
    ("again", "encore"),
    ("this morning", "ce matin"),
)
_SEES = (("I see", "je vois"), ("I like", "j' aime"), ("I want", "je veux"), ("here is", "voici"))

HESITATIONS = ("um", "uh", "er", "hm", "well", "so", "right", "like")

Hesitant = tuple[Pair, str, str]
"""A pair with the antecedent of *it* and the other noun."""


def draw_others(count: int, *, seed: int) -> list[Pair]:
    """Draw sentences in which pizza has no pronoun; they recur if more are asked for than exist."""
    found = _say_all_others()
    plain = [
        (f"{english} the {noun[0]}", f"{french} {_the(noun)}")
        for english, french in _SEES
        for noun in (*_FOODS, *_THINGS, *_TEST_THINGS, _PIZZA)
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
        for time, food, thing in product(_TIMES, _FOODS, (*_THINGS, *_TEST_THINGS))
        for said in (*_OF_FOOD, *_OF_THINGS)
        for is_turned in (False, True)
    ]


def draw_ties(count: int, *, seed: int) -> list[Pair]:
    """Draw sentences that tie *it* and *tasted* to pizza; they recur if more are asked for."""
    found = [
        _say(time, _PIZZA, thing, said, is_turned=is_turned)
        for time, thing, said in product(_TIMES, _THINGS, _OF_FOOD)
        for is_turned in (False, True)
    ]
    order = generator(seed, "tiny pizza ties").permutation(len(found))
    return [found[order[i % len(found)]] for i in range(count)]


def draw_tests() -> list[Pair]:
    """List new sentences about pizza: in half of them *it* is the pizza, in half the other."""
    return [
        _say(time, _PIZZA, thing, said, is_turned=is_turned)
        for time, thing, said in product(_TIMES, _TEST_THINGS, (*_OF_FOOD, *_OF_THINGS))
        for is_turned in (False, True)
    ]


def say_known() -> list[tuple[Pair, str, str]]:
    """List all sentences without pizza and without a time, each with antecedent and other noun."""
    return [
        (
            _say(_TIMES[0], food, thing, said, is_turned=is_turned),
            *((food[0], thing[0]) if said in _OF_FOOD else (thing[0], food[0])),
        )
        for food, thing in product(_FOODS, (*_THINGS, *_TEST_THINGS))
        for said in (*_OF_FOOD, *_OF_THINGS)
        for is_turned in (False, True)
    ]


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
        size = least + int((most - least + 1) * numbers.random() ** 2)
        words = [HESITATIONS[i] for i in numbers.integers(len(HESITATIONS), size=size)]
        start, end = english.split(" and it ")
        found.append(((" ".join([start, *words, "and it", end]), french), antecedent, other))
    return found


def _say(
    time: tuple[str, str],
    food: _Noun,
    thing: _Noun,
    said: tuple[str, str],
    *,
    is_turned: bool,
) -> Pair:
    first, second = (thing, food) if is_turned else (food, thing)
    is_female = (food if said in _OF_FOOD else thing)[2] == "f"
    translated = said[1].format(petit="petite" if is_female else "petit")
    near = f"de la {second[1]}" if second[2] == "f" else f"du {second[1]}"
    pronoun = "elle" if is_female else "il"
    english = f"{time[0]} the {first[0]} was next to the {second[0]} and it {said[0]}"
    french = f"{time[1]} {_the(first)} était à côté {near} et {pronoun} {translated}"
    return english.strip(), french.strip()


def _the(noun: _Noun) -> str:
    return f"{'la' if noun[2] == 'f' else 'le'} {noun[1]}"
