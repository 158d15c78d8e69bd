"""The words of the built-in corpus, and the combinations of them that make sense: ``words.toml``.

Each English word has one French word and vice versa, so that the English sentence decides the
French one. Nouns come in kinds, and every predicate and most verbs fit only one kind: only food
tastes good, only a vehicle has a flat tire. This decides which noun a pronoun stands for.

A French phrase is written as words with the English words they translate, counted from 0 within
the phrase: ``avait:0 bon:1 goût:0`` for *tasted good*. A word with ``@`` agrees with the subject,
and one with ``^`` is the finite verb.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pellucid.corpora.french import Gender, make_plural

NounKind = Literal[
    "food",
    "fruit",
    "drink",
    "animal",
    "vehicle",
    "building",
    "instrument",
    "text",
    "clothes",
    "container",
    "furniture",
    "person",
    "part",
    "institution",
    "money",
    "measure",
    "detail",
    "place",
    "thing",
]


@dataclass(frozen=True, eq=False)
class Noun:
    """A noun in both languages; ``is_mass`` nouns take *some* and have no plural here.

    One that ``is_made_up`` occurs in one sentence only, so that no vocabulary has it.
    """

    english: str
    french: str
    gender: Gender
    kind: NounKind
    is_mass: bool
    english_plural: str
    french_plural: str
    is_made_up: bool = False


@dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective, its place before or after its noun in French, and the nouns it describes.

    It describes the nouns of ``predicative_kinds`` only after *is*: *the lemons are expensive*, but
    hardly *an expensive lemon*. It never describes the nouns in ``never``.
    """

    english: str
    french: str
    is_before: bool
    kinds: tuple[NounKind, ...]
    predicative_kinds: tuple[NounKind, ...] = ()
    is_predicative: bool = True
    never: tuple[str, ...] = ()

    @property
    def nouns(self) -> tuple[Noun, ...]:
        """All nouns that the adjective can describe."""
        nouns = nouns_of(*self.kinds, *self.predicative_kinds)
        return tuple(noun for noun in nouns if noun.english not in self.never)


@dataclass(frozen=True, eq=False)
class Verb:
    """A transitive verb: English past, third and first person; French participle, je, il."""

    past: str
    english_third: str
    english_first: str
    participle: str
    je: str
    il: str
    kinds: tuple[NounKind, ...]
    particle: str = ""

    @property
    def name(self) -> str:
        """The name of the verb in held-out pairs."""
        return self.english_first


@dataclass(frozen=True, eq=False)
class Phrase:
    """A predicate in both languages, in the notation explained above."""

    english: str
    french: str


WORDS: Mapping[str, Any] = tomllib.loads(
    files("pellucid.corpora").joinpath("words.toml").read_text(encoding="utf-8")
)
"""The tables of ``words.toml``."""


def kinds_of(names: str) -> tuple[NounKind, ...]:
    """Read the names of kinds, or of groups of them."""
    kinds: list[Any] = []
    for name in names.split():
        kinds += WORDS["nouns"] if name == "all" else WORDS["groups"].get(name, name).split()
    return tuple(kinds)


def read_nouns(
    rows: Mapping[NounKind, str], plurals: Mapping[str, str], french_plurals: Mapping[str, str]
) -> tuple[Noun, ...]:
    """Read a table of nouns, with the plurals that the endings do not tell."""
    nouns = []
    for kind, row in rows.items():
        for entry in row.split():
            english, _, rest = entry.partition("=")
            french, _, mark = rest.replace("_", " ").partition(".")
            gender: Gender = "f" if mark[0] == "f" else "m"
            plural = plurals.get(english, english + "s")
            french_plural = french_plurals.get(french) or make_plural(french)
            # A star marks what cannot be counted.
            is_mass = mark.endswith("*")
            nouns.append(Noun(english, french, gender, kind, is_mass, plural, french_plural))
    return tuple(nouns)


NOUNS: dict[str, Noun] = {
    noun.english: noun for noun in read_nouns(WORDS["nouns"], WORDS["irregular_plurals"], {})
}
KINDS: dict[NounKind, tuple[Noun, ...]] = {
    kind: tuple(noun for noun in NOUNS.values() if noun.kind == kind) for kind in kinds_of("all")
}
AGENTS = tuple(noun for noun in KINDS["person"] if noun.english != "baby")
"""People who can do something, which a baby cannot."""


def nouns_of(*kinds: NounKind) -> tuple[Noun, ...]:
    """List all nouns of some kinds."""
    return tuple(noun for kind in kinds for noun in KINDS[kind])


def read_adjectives(rows: Mapping[str, Any]) -> tuple[Adjective, ...]:
    """Read a table of adjectives."""
    return tuple(
        Adjective(
            english,
            row["french"],
            row.get("is_before", False),
            kinds_of(row["kinds"]),
            kinds_of(row.get("predicative_kinds", "")),
            row.get("is_predicative", True),
            tuple(row.get("never", "").split()),
        )
        for english, row in rows.items()
    )


def _read_verb(name: str, english: str, french: str, kinds: str) -> Verb:
    past, third, *particle = english.split()
    participle, je, il = french.split()
    return Verb(past, third, name, participle, je, il, kinds_of(kinds), "".join(particle))


def _read_phrases(rows: Mapping[str, str]) -> tuple[Phrase, ...]:
    return tuple(Phrase(english, french) for english, french in rows.items())


ADJECTIVES = read_adjectives(WORDS["adjectives"])
NATIONALITIES = read_adjectives(WORDS["nationalities"])
RELATIONAL = read_adjectives(WORDS["relational"])
INSTITUTION_PREDICATES = _read_phrases(WORDS["institution_predicates"])
PREDICATES: dict[NounKind, tuple[Phrase, ...]] = {
    kind: _read_phrases(rows) for kind, rows in WORDS["predicates"].items()
}
SOUNDS = {animal: Phrase(*pair) for animal, pair in WORDS["sounds"].items()}
"""The sound of each animal, which no other animal makes."""
STATES = {phrase.english: phrase for phrase in _read_phrases(WORDS["states"])}
"""What a person can be, by the English words."""
VERBS = tuple(_read_verb(name, *row) for name, row in WORDS["verbs"].items())
PLACES = (
    ("next to", "à:0 côté:0 de:1"),
    ("behind", "derrière:0"),
    ("in front of", "devant:0,1,2"),
    ("near", "près:0 de:0"),
)
NUMBERS = (("two", "deux"), ("three", "trois"), ("four", "quatre"))


@cache
def adjectives_of(kind: NounKind, *, is_predicative: bool = False) -> tuple[Adjective, ...]:
    """List the adjectives that describe a kind of noun.

    Args:
        kind: the kind of noun.
        is_predicative: True for the adjectives that can follow *is*.
    """
    return tuple(
        adjective
        for adjective in ADJECTIVES
        if (kind in adjective.kinds and (adjective.is_predicative or not is_predicative))
        or (is_predicative and kind in adjective.predicative_kinds)
    )


@cache
def verbs_named(*names: str) -> tuple[Verb, ...]:
    """Look up verbs by their names."""
    by_name = {verb.name: verb for verb in VERBS}
    return tuple(by_name[name] for name in names)
