"""The words of the course: ``course_words.toml``, with the older words of the lexicon."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from pellucid.corpora.lexicon import (
    KINDS,
    NOUNS,
    Adjective,
    Noun,
    NounKind,
    kinds_of,
    read_adjectives,
    read_nouns,
)
from pellucid.corpora.open.open_words import (
    AT_BE,
    ATTRIBUTES,
    CITIES,
    DITRANSITIVES,
    HAVE,
    INTRANSITIVES,
    PEOPLE,
    PREDICATE_ADJECTIVES,
    TRANSITIVES,
    English,
    FreeVerb,
    French,
    english_of,
    french_of,
)


def _read(*names: str) -> dict[str, Any]:
    """Read some files of the course as one, in their order."""
    read: dict[str, Any] = {}
    for name in names:
        path = files("pellucid.corpora.course").joinpath(f"{name}.toml")
        read |= tomllib.loads(path.read_text(encoding="utf-8"))
    return read


def _everyday(*names: str) -> tuple[str, ...]:
    return tuple(f"everyday/everyday_{name}" for name in names)


_WORDS = _read("course_words")
_EVERYDAY = _read(*_everyday("words"))
GRAMMAR = _read("grammar", *_everyday("grammar", "questions", "others", "more", "combined"))
"""The constructions by name: level, weight, an example, patterns."""
RULES: Mapping[str, str] = _read(
    *_everyday("actions", "doings", "clauses", "sayings", "kinds", "parts")
)
"""Parts of patterns, which a slot $R names: each way on a line."""
_PHRASES = _read("phrases", *_everyday("people", "lands", "times", "things", "phrases"))
TABLES: Mapping[str, tuple[tuple[str, str], ...]] = {
    name: tuple(rows.items()) for name, rows in _PHRASES.items()
}
"""Phrases that a pattern names: English, and French in the notation of the lexicon."""

NEW_NOUNS = (
    *read_nouns(_WORDS["nouns"], _WORDS["plurals"], _WORDS["french_plurals"]),
    *read_nouns(_EVERYDAY["nouns"], _EVERYDAY["plurals"], _EVERYDAY["french_plurals"]),
)
_ALL = {kind: (*KINDS[kind], *[n for n in NEW_NOUNS if n.kind == kind]) for kind in KINDS}
_NEW_ADJECTIVES = read_adjectives(_WORDS["adjectives"] | _EVERYDAY["adjectives"])


def _with_new(old: Mapping[NounKind, tuple[Adjective, ...]]) -> dict[NounKind, list[Adjective]]:
    return {
        kind: [*old[kind], *[one for one in _NEW_ADJECTIVES if kind in one.kinds]] for kind in old
    }


NEW_ADJECTIVES = {
    kind: [one for one in _NEW_ADJECTIVES if kind in one.kinds and one.english != "favorite"]
    for kind in KINDS
}
DESCRIBING = _with_new(ATTRIBUTES)
"""The adjectives next to a noun of a kind."""
QUALITIES = {
    kind: [one for one in options if one.is_predicative]
    for kind, options in _with_new(PREDICATE_ADJECTIVES).items()
}
"""The adjectives that may follow *is*."""
COMPARED: Mapping[str, str] = _WORDS["comparatives"] | _EVERYDAY["comparatives"]
"""Comparative and superlative; under ``with_more`` the adjectives that take *more* and *most*."""
NUMBERS = tuple((_WORDS["numbers"] | _EVERYDAY["numbers"]).items())
SUBJECTS = tuple((english, *row) for english, row in _WORDS["subjects"].items())
"""Subjects other than nouns: English, French, person, gender."""
SUBJECTS_DRAWN: Mapping[str, tuple[str, float]] = _WORDS["drawn_subjects"]
"""By the name of a subject's slot: nouns, and how likely a pronoun takes their place."""


_POOLS: Mapping[str, str] = _WORDS["pools"] | _EVERYDAY["pools"]


_FIRST_NAMES = (
    *PEOPLE,
    *[
        Noun(name, name, gender, "person", False, name, name)
        for gender, names in _EVERYDAY["names"].items()
        for name in names.split()
    ],
)
_NAMES = {
    "name": _FIRST_NAMES,
    "man_name": tuple(one for one in _FIRST_NAMES if one.gender == "m"),
    "woman_name": tuple(one for one in _FIRST_NAMES if one.gender == "f"),
}
BRITISH: Mapping[str, str] = _EVERYDAY["british"]
"""Other spellings of English words."""


@cache
def pool(name: str) -> tuple[Noun, ...]:
    """List the nouns that a pattern names: by their own list, by kinds, or by a group of kinds."""
    if name in _NAMES:
        return _NAMES[name]
    if name == "everyday":
        return NEW_NOUNS
    if name == "city":
        return CITIES
    if name in _POOLS:
        by_name = {noun.english: noun for noun in (*NOUNS.values(), *NEW_NOUNS)}
        return tuple(by_name[word] for word in _POOLS[name].split())
    nouns = tuple(noun for kind in kinds_of(name) for noun in _ALL[kind])
    return (*nouns, *_NAMES["name"]) if name in ("person", "animate") else nouns


@cache
def new_in(nouns: tuple[Noun, ...]) -> tuple[Noun, ...]:
    """Keep only the nouns that the course adds, or all if it adds none of them."""
    return tuple(noun for noun in nouns if noun in NEW_NOUNS) or nouns


_INFINITIVES: Mapping[str, str] = _WORDS["infinitives"] | _EVERYDAY["infinitives"]


def infinitive(french: French) -> French:
    """Give a verb its infinitive in every person."""
    return replace(french, present=(_stems(french)[0],) * 5)


def future(french: French) -> French:
    """Give a verb the forms of the *futur simple* in place of the present."""
    stem = _stems(french)[1]
    return replace(french, present=tuple(stem + end for end in ("ai", "as", "a", "ons", "ont")))


_SUBJUNCTIVES: Mapping[str, str] = _EVERYDAY["subjunctives"]


def subjunctive(french: French) -> French:
    """Give a verb the forms of the *subjonctif*: *mange*, *mangions*, *soit*."""
    if row := _SUBJUNCTIVES.get(french.participle):
        return replace(french, present=tuple(row.split()))
    stem = french.present[4].removesuffix("ent")
    ends = ("e", "es", "e", "", "ent")
    forms = [stem + end for end in ends]
    forms[3] = french.imperfect(3)
    return replace(french, present=tuple(forms))


def _stems(french: French) -> list[str]:
    if row := _INFINITIVES.get(french.participle):
        stems: list[str] = row.split()
        return stems
    # *Achète* gives *achètera*, *appelle* gives *appellera*.
    return [french.participle[:-1] + "er", french.present[0] + "r"]


def _read_object(english: str, particle: str, french: str, names: str) -> FreeVerb:
    kinds = kinds_of(names)
    return FreeVerb(english_of(english), french_of(french), (), particle, kinds=kinds)


_VERBS = _WORDS["verbs"]
_COMMON = frozenset(_VERBS["common"].split())


def _by_use(verbs: Sequence[FreeVerb]) -> tuple[FreeVerb, ...]:
    """Repeat the common verbs: of all alike, each form would be too rare to learn."""
    return tuple(verb for verb in verbs for _ in range(4 if verb.english.base in _COMMON else 1))


ACTS = _by_use(
    (
        *[verb for verb in TRANSITIVES if verb not in DITRANSITIVES],
        *[
            FreeVerb(
                english_of(english),
                french_of(french),
                is_stative="s" in marks,
                has_article="a" in marks,
                kinds=kinds_of(names),
            )
            for english, french, names, marks in _VERBS["transitive"]
        ],
        *[
            _read_object(english, particle, french, kinds)
            for english, particle, french, kinds in _VERBS["with_particle"]
        ],
        FreeVerb(english_of("have has had having"), HAVE, is_stative=True, kinds=kinds_of("all")),
    )
)
"""Verbs with an object; one with a particle takes no pronoun here."""
ALONE = _by_use(
    (
        *INTRANSITIVES,
        *[
            FreeVerb(english_of(english), french_of(french, with_etre=mark == ["e"]))
            for english, french, *mark in _VERBS["intransitive"]
        ],
    )
)
NAMED: Mapping[str, tuple[English, French]] = {
    "".join(name) or english.split()[0]: (
        english_of(english),
        french_of(french, with_etre="e" in marks, lasts="l" in marks),
    )
    for english, french, marks, *name in _VERBS["named"]
}
"""The verbs that patterns name, each by its key in the table or its English infinitive."""
EVERYDAY: Mapping[str, tuple[English, French, str, str]] = {
    name: (
        english_of(english),
        french_of(french, with_etre="e" in marks, lasts="l" in marks),
        marks,
        particle,
    )
    for name, (english, french, marks, particle) in _EVERYDAY["verbs"].items()
}
"""The verbs of everyday actions: marks, and an English particle."""
FRENCH: Mapping[str, French] = {
    **{name: french_of(row) for name, row in _WORDS["french"].items()},
    "être": AT_BE,
    "avoir": HAVE,
}
MODALS: Mapping[str, tuple[str, tuple[str, ...], French]] = {
    name: (english, tuple(negations.split()), french_of(french))
    for name, (english, negations, french) in _WORDS["modals"].items()
}
