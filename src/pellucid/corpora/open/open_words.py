"""The words of the free sentences: names, adjectives, states, and verbs with all their forms.

Persons count from 0: *je*, *tu*, *il*, *nous*, *ils*. English *you* is *tu*.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pellucid.corpora.lexicon import (
    ADJECTIVES,
    KINDS,
    NATIONALITIES,
    PLACES,
    RELATIONAL,
    STATES,
    WORDS,
    Adjective,
    Noun,
    NounKind,
    kinds_of,
    nouns_of,
    read_adjectives,
)
from pellucid.corpora.sentence import Pick

Tense = Literal["present", "progressive", "past", "past progressive", "perfect", "pluperfect"]

_WORDS = WORDS["free"]


def _name(text: str, gender: str, kind: NounKind) -> Noun:
    return Noun(text, text, "f" if gender == "f" else "m", kind, False, text, text)


PEOPLE = tuple(_name(name, gender, "person") for name, gender in _WORDS["people"].items())
"""First names, the same in both languages."""
CITIES = tuple(_name(name, "m", "building") for name in ("Paris", "Berlin", "Rome", "Madrid"))
"""Cities, to which one goes with *à* in French."""


def make_up_noun(pick: Pick, *, is_name: bool) -> Noun:
    """Make up a word that is the same in both languages and occurs nowhere else.

    A vocabulary of whole words does not have it. From such words a model learns what to do with
    ``<unk>``: to write it where the word stands.
    """
    word = "".join(pick.one("bdfgklmnprstvz") + pick.one("aeiou") for _ in range(4))
    if is_name:
        name = word.capitalize()
        return Noun(name, name, "m", "person", False, name, name, is_made_up=True)
    return Noun(word, word, "m", "detail", False, word + "s", word + "s", is_made_up=True)


OWNERS = {english: tuple(forms.split()) for english, forms in _WORDS["owners"].items()}
"""Possessives: masculine, feminine and plural in French."""

ANIMATE: tuple[NounKind, ...] = ("person", "animal")
COLORS = frozenset({"red", "black", "white", "green", "blue"})


def _widen() -> list[tuple[Adjective, tuple[NounKind, ...]]]:
    """Give each adjective the kinds of nouns that a free sentence may describe with it."""
    wide = [
        (adjective, kinds_of(_WORDS["wide"].get(adjective.english, "all")))
        for adjective in (*ADJECTIVES, *NATIONALITIES, *RELATIONAL)
    ]
    return [*wide, *((one, one.kinds) for one in read_adjectives(_WORDS["adjectives"]))]


_WIDENED = _widen()
ATTRIBUTES: dict[NounKind, tuple[Adjective, ...]] = {
    kind: tuple(adjective for adjective, kinds in _WIDENED if kind in kinds) for kind in KINDS
}
"""The adjectives that may stand next to a noun of a kind."""
PREDICATE_ADJECTIVES: dict[NounKind, tuple[Adjective, ...]] = {
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
_SIZES = frozenset({"tall", "big", "small", "little", "long", "high", "thick"})


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


CONDITIONS = tuple(STATES.values())[:6]
"""What a person or an animal can be that French says with *avoir* or a phrase."""
COMPANY = tuple(_WORDS["company"].items())
"""*With, without, for*, before people and pronouns."""
ANSWERS = tuple(_WORDS["answers"].items())
HERE = tuple(_WORDS["here"].items())
BEFORE_IT = tuple(_WORDS["before_it"].items())
TIMES = {tense: tuple(rows.items()) for tense, rows in _WORDS["times"].items()}
"""What may follow the verb of a tense: *yesterday*, *every day*."""
CONTRACTED = {be: frozenset(words.split()) for be, words in _WORDS["contractions"].items()}
"""The words before each form of *be* that are written as one with it."""
PLACE_WORDS = (*PLACES, ("in", "dans:0"), ("in", "dans:0"), ("on", "sur:0"), ("under", "sous:0"))


@dataclass(frozen=True, eq=False)
class English:
    """The forms of an English verb: *eat*, *eats*, *ate*, *eating*, *eaten*."""

    base: str
    third: str
    past: str
    ing: str
    participle: str


@dataclass(frozen=True, eq=False)
class French:
    """The forms of a French verb: five persons of the present, and the past participle.

    One that ``lasts`` has the *imparfait* for the English past: *had* is *avait*.
    """

    present: tuple[str, ...]
    participle: str
    imperfect_stem: str
    with_etre: bool = False
    lasts: bool = False

    def imperfect(self, person: int) -> str:
        """Form the *imparfait* of a person: *mangeais*, *mangions*."""
        # *Tu* and *vous* are both *you*: the corpus has only *tu*, so five persons.
        ending = ("ais", "ais", "ait", "ions", "aient")[person]
        stem = self.imperfect_stem
        if ending[0] == "i" and stem.endswith("ge"):
            # *Mangeais*, but *mangions*: g is soft before i by itself.
            stem = stem[:-1]
        return stem + ending

    @property
    def imperative(self) -> str:
        """The form of an order to one person: *mange*, *vends*, *va*."""
        form = self.present[1]
        # *Manges* gives *mange*, *vas* gives *va*; *vends* keeps its s.
        return form[:-1] if form.endswith(("es", "as")) else form


@dataclass(frozen=True, eq=False)
class FreeVerb:
    """A verb in both languages, and what its object can be.

    Attributes:
        english: the English forms.
        french: the French forms.
        objects: the nouns that its object can be.
        particle: an English word after the verb, or after its object pronoun.
        preposition: the French preposition before the object, if any.
        is_stative: True if English has no progressive of it.
        has_article: True if a bare object has *le* in French, as with *like*.
    """

    english: English
    french: French
    objects: tuple[Noun, ...] = ()
    particle: str = ""
    preposition: str = ""
    is_stative: bool = False
    has_article: bool = False
    kinds: tuple[NounKind, ...] = field(default=())


def french_of(row: str, *, with_etre: bool = False, lasts: bool = False) -> French:
    """Read a verb: an infinitive in *-er*, or six forms.

    An infinitive may be followed by ``/`` and the stem of *je, tu, il, ils*: ``acheter/achèt``.
    """
    forms = row.split()
    if len(forms) == 1:
        infinitive, _, strong = row.partition("/")
        stem = infinitive[:-2]
        strong = strong or stem
        # *Mangeons*: the e keeps the g soft before o.
        we = stem + ("e" if stem.endswith("g") else "")
        present = (strong + "e", strong + "es", strong + "e", we + "ons", strong + "ent")
        return French(present, stem + "é", we, with_etre, lasts)
    return French(tuple(forms[:5]), forms[5], forms[3].removesuffix("ons"), with_etre, lasts)


def english_of(row: str) -> English:
    """Read the forms of a verb, or make those of a regular one; the last may be like the past."""
    forms = row.split()
    if len(forms) == 1:
        base = forms[0]
        stem = base.removesuffix("e")
        past = base + "d" if base.endswith("e") else base + "ed"
        return English(base, base + "s", past, stem + "ing", past)
    base, third, past, ing, *other = forms
    return English(base, third, past, ing, other[0] if other else past)


AT_BE = French(("suis", "es", "est", "sommes", "sont"), "été", "ét")
"""*Être*."""
HAVE = French(("ai", "as", "a", "avons", "ont"), "eu", "av", lasts=True)
"""*Avoir*."""


def _read_transitive(english: str, french: str, kinds: str, marks: str) -> FreeVerb:
    return FreeVerb(
        english_of(english),
        french_of(french, lasts="l" in marks),
        nouns_of(*kinds_of(kinds)),
        particle=marks.partition("+")[2],
        is_stative="s" in marks,
        has_article="a" in marks,
        kinds=kinds_of(kinds),
    )


def _read_motion(english: str, french: str, *row: str) -> FreeVerb:
    particle, preposition, names = row
    kinds = kinds_of(names)
    forms = english_of(english), french_of(french, with_etre=True)
    return FreeVerb(*forms, nouns_of(*kinds), particle, preposition, kinds=kinds)


def _read_alone(english: str, french: str, mark: str = "") -> FreeVerb:
    return FreeVerb(english_of(english), french_of(french, with_etre=mark == "e"))


_VERBS = _WORDS["verbs"]
TRANSITIVES = tuple(_read_transitive(*row) for row in _VERBS["transitive"])
DITRANSITIVES = TRANSITIVES[-4:]
"""*Bring, show, lend* and *give*, which also have a person: *gave the man a book*."""
MOTIONS = tuple(_read_motion(*row) for row in _VERBS["motion"])
COMMON = frozenset(_VERBS["common"].split())
"""Verbs of orders with a pronoun: of all verbs each form would be too rare to learn."""
STATES_OF = tuple(verb for verb in TRANSITIVES if verb.english.base in _VERBS["states"].split())
"""Verbs whose participle is a state: *the house is sold*."""
INTRANSITIVES = tuple(_read_alone(*row) for row in _VERBS["intransitive"])
SOUND_VERBS = {animal: _read_alone(*row) for animal, row in _WORDS["sounds"].items()}
