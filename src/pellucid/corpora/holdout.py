"""Pairs of words that are kept out of training, for the compositional test."""

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
    Noun,
    nouns_of,
)
from pellucid.corpora.sentence import Combination
from pellucid.machine.randomness import generator

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
    """Draw the adjective–noun, verb–object and antecedent–predicate pairs kept out of training.

    Each adjective and each verb loses about one noun in twelve, each predicate one; the
    predicates of a kind lose different nouns, so that no noun loses everything said of it.
    """
    return frozenset(_draw(seed)) - _KEPT


def _draw(seed: int) -> Iterator[Combination]:
    for adjective in ADJECTIVES:
        yield from _some(seed, "adjective", adjective.english, adjective.nouns)
    for verb in VERBS:
        yield from _some(seed, "object", verb.name, nouns_of(*verb.kinds))
    order = generator(seed, "corpora institutions").permutation(len(KINDS["institution"]))
    for number, adjective in enumerate((*NATIONALITIES, *RELATIONAL)):
        noun = KINDS["institution"][order[number % len(order)]]
        if noun in adjective.nouns:
            yield Combination("adjective", adjective.english, noun.english)
    for kind, phrases in PREDICATES.items():
        order = generator(seed, "corpora predicates", kind).permutation(len(KINDS[kind]))
        for phrase, place in zip(phrases, order, strict=False):
            yield Combination("predicate", phrase.english, KINDS[kind][place].english)


def _some(
    seed: int, relation: Literal["adjective", "object"], word: str, nouns: tuple[Noun, ...]
) -> list[Combination]:
    """Draw one in twelve of the nouns that go with a word, at least one."""
    order: np.ndarray = generator(seed, f"corpora {relation}", word).permutation(len(nouns))
    combinations = [Combination(relation, word, nouns[place].english) for place in order]
    free = [combination for combination in combinations if combination not in _KEPT]
    return free[: max(1, len(nouns) // _ONE_IN)]
