"""Names, determiners, adjectives and states of the open sentences."""

from __future__ import annotations

from pellucid.corpora.lexicon import (
    ADJECTIVES,
    KINDS,
    NATIONALITIES,
    NOUNS,
    RELATIONAL,
    Adjective,
    Kind,
    Noun,
    Phrase,
)
from pellucid.corpora.picking import Pick


def _name(text: str, gender: str, kind: Kind) -> Noun:
    return Noun(text, text, "f" if gender == "f" else "m", kind, False, text, text)


PEOPLE = tuple(
    _name(name, gender, "person")
    for name, gender in (
        ("Anna", "f"),
        ("Emma", "f"),
        ("Marie", "f"),
        ("Paul", "m"),
        ("Tom", "m"),
        ("Louis", "m"),
    )
)
"""First names, the same in both languages."""
CITIES = tuple(_name(name, "m", "building") for name in ("Paris", "Berlin", "Rome", "Madrid"))
"""Cities, to which one goes with *à* in French."""
_NAMED = frozenset(noun.english for noun in (*PEOPLE, *CITIES))


def make_up_noun(pick: Pick, *, is_name: bool) -> Noun:
    """Make up a word that is the same in both languages and occurs nowhere else.

    A vocabulary of whole words does not have it. From such words a model learns what to do with
    ``<unk>``: to write it where the word stands.
    """
    word = "".join(pick.one("bdfgklmnprstvz") + pick.one("aeiou") for _ in range(4))
    if is_name:
        return _name(word.capitalize(), "m", "person")
    return Noun(word, word, "m", "detail", False, word + "s", word + "s")


def is_made_up(noun: Noun) -> bool:
    """Tell whether a noun is one that `make_up_noun` made."""
    return noun.english not in NOUNS and noun.english not in _NAMED


NUMBERS = (("two", "deux"), ("three", "trois"), ("four", "quatre"))
OWNERS: dict[str, tuple[str, str, str]] = {
    "my": ("mon", "ma", "mes"),
    "your": ("ton", "ta", "tes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "its": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
"""Possessives: masculine, feminine and plural in French."""

ANIMATE: tuple[Kind, ...] = ("person", "animal")
_EDIBLE: tuple[Kind, ...] = ("food", "fruit", "drink")
_ALL: tuple[Kind, ...] = tuple(KINDS)
_SOLID: tuple[Kind, ...] = tuple(kind for kind in _ALL if kind not in (*ANIMATE, *_EDIBLE))
_HARD: tuple[Kind, ...] = ("text", "part", "container", "institution", "detail")

_WIDE: dict[str, tuple[Kind, ...]] = {
    "clever": ANIMATE,
    "tired": ANIMATE,
    "sick": ANIMATE,
    "happy": ANIMATE,
    "young": ANIMATE,
    "empty": ("container", "building", "vehicle", "furniture", "measure", "institution"),
    "political": ("institution", "text"),
    "economic": ("institution", "text"),
    "cultural": ("institution", "text", "building"),
    "national": ("institution", "text", "building"),
}
_EXTRA = (
    Adjective("little", "petit", True, _ALL),
    Adjective("lovely", "joli", True, _ALL),
    Adjective("long", "long", True, ("clothes", "text", "detail", "furniture", "vehicle")),
    Adjective("high", "haut", True, ("detail", "building", "part", "furniture")),
    Adjective("hot", "chaud", False, (*_EDIBLE, "container", "building", "vehicle", "measure")),
    Adjective("thick", "épais", False, ("detail", "text", "clothes", "food")),
    Adjective("delicious", "délicieux", False, _EDIBLE),
    Adjective("salty", "salé", False, ("food", "drink")),
    Adjective("ripe", "mûr", False, ("fruit",)),
    Adjective("juicy", "juteux", False, ("fruit", "food")),
    Adjective("rotten", "pourri", False, ("fruit", "food")),
    Adjective("tight", "serré", False, ("clothes", "detail")),
    Adjective("broken", "cassé", False, _SOLID),
    Adjective("hard", "difficile", False, _HARD),
    Adjective("full", "plein", False, ("container", "measure", "building", "vehicle")),
    Adjective("English", "anglais", False, _ALL),
    Adjective("hungry", "affamé", False, ANIMATE, is_predicative=False),
    Adjective("thirsty", "assoiffé", False, ANIMATE, is_predicative=False),
)
COLORS = frozenset({"red", "black", "white", "green", "blue"})


def _widen() -> tuple[tuple[Adjective, tuple[Kind, ...]], ...]:
    """Give each adjective the kinds of nouns that an open sentence may describe with it."""
    known = (*ADJECTIVES, *NATIONALITIES, *RELATIONAL)
    wide = [(adjective, _WIDE.get(adjective.english, _ALL)) for adjective in known]
    return (*wide, *[(adjective, adjective.kinds) for adjective in _EXTRA])


_WIDENED = _widen()
ATTRIBUTES: dict[Kind, tuple[Adjective, ...]] = {
    kind: tuple(adjective for adjective, kinds in _WIDENED if kind in kinds) for kind in _ALL
}
"""The adjectives that may stand next to a noun of a kind."""
PREDICATE_ADJECTIVES: dict[Kind, tuple[Adjective, ...]] = {
    kind: tuple(
        adjective
        for adjective in adjectives
        if adjective.english not in ("hungry", "thirsty", "new", "high", "long")
    )
    for kind, adjectives in ATTRIBUTES.items()
}
"""The adjectives that may follow *is*; *nouveau* and *haut* rarely do in French."""

_NATIONS = frozenset(adjective.english for adjective in NATIONALITIES) | {"English", "Italian"}
_RELATIONS = frozenset(adjective.english for adjective in RELATIONAL)
_SIZES = frozenset({"big", "small", "little", "long", "high", "thick"})


def rank(adjective: Adjective) -> int:
    """Give an adjective's place before an English noun: opinion, size, age, color, origin."""
    word = adjective.english
    if word in _RELATIONS:
        return 6
    if word in _NATIONS:
        return 5
    if word in COLORS:
        return 4
    if word in ("old", "new", "young"):
        return 3
    return 1 if word in _SIZES else 2 if not adjective.is_before else 0


STATES: tuple[Phrase, ...] = (
    Phrase("was hungry", "^avait:0 faim:1"),
    Phrase("was thirsty", "^avait:0 soif:1"),
    Phrase("was right", "^avait:0 raison:1"),
    Phrase("was wrong", "^avait:0 tort:1"),
    Phrase("was bankrupt", "^était:0 en:1 faillite:1"),
    Phrase("was late", "^était:0 en:1 retard:1"),
)
"""What a person or an animal can be that French says with *avoir* or a phrase."""
PLACE_WORDS = (
    ("next to", "à:0 côté:0 de:1"),
    ("behind", "derrière:0"),
    ("in front of", "devant:0,1,2"),
    ("near", "près:0 de:0"),
    ("in", "dans:0"),
    ("in", "dans:0"),
    ("on", "sur:0"),
    ("under", "sous:0"),
)
