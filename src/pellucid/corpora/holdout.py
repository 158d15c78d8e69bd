"""Which pairs of words are kept out of training, for the compositional test."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Literal

import numpy as np

from pellucid.corpora.lexicon import (
    ADJECTIVES,
    KINDS,
    NATIONALITIES,
    PREDICATES,
    RELATIONAL,
    VERBS,
    nouns_of,
)
from pellucid.corpora.sentence import Combination
from pellucid.randomness import generator

__all__ = ["held_out_combinations"]

# What the example sentences need in training.
_KEPT = frozenset(
    {
        Combination("adjective", "awesome", "pizza"),
        Combination("adjective", "European", "area"),
        Combination("adjective", "economic", "area"),
        Combination("object", "eat", "pizza"),
        Combination("object", "find", "pizza"),
        Combination("predicate", "tasted good", "pizza"),
    }
)
_ONE_IN = 12


@cache
def held_out_combinations(seed: int) -> frozenset[Combination]:
    """The adjective–noun, verb–object and antecedent–predicate pairs that training never has.

    Each adjective and each verb loses about one noun in twelve, each predicate one; the
    predicates of a kind lose different nouns, so that no noun loses all it is known by.
    """
    return frozenset(_draw(seed))


def _draw(seed: int) -> Iterator[Combination]:
    for adjective in ADJECTIVES:
        nouns = [noun.english for noun in adjective.nouns]
        yield from _some(seed, "adjective", adjective.english, nouns)
    for verb in VERBS:
        nouns = [noun.english for noun in nouns_of(*verb.kinds)]
        yield from _some(seed, "object", verb.name, nouns)
    order = generator(seed, "corpora institutions").permutation(len(KINDS["institution"]))
    for number, adjective in enumerate((*NATIONALITIES, *RELATIONAL)):
        noun = KINDS["institution"][order[number % len(order)]]
        combination = Combination("adjective", adjective.english, noun.english)
        if noun in adjective.nouns and combination not in _KEPT:
            yield combination
    for kind, phrases in PREDICATES.items():
        order = generator(seed, "corpora predicates", kind).permutation(len(KINDS[kind]))
        yield from (
            combination
            for phrase, place in zip(phrases, order, strict=False)
            if (combination := _predicate(phrase.english, KINDS[kind][place].english)) not in _KEPT
        )


def _predicate(phrase: str, noun: str) -> Combination:
    return Combination("predicate", phrase, noun)


def _some(
    seed: int, relation: Literal["adjective", "object"], word: str, nouns: list[str]
) -> list[Combination]:
    order: np.ndarray = generator(seed, f"corpora {relation}", word).permutation(len(nouns))
    combinations = [Combination(relation, word, nouns[place]) for place in order]
    free = [combination for combination in combinations if combination not in _KEPT]
    return free[: max(1, len(nouns) // _ONE_IN)]
