"""Verbs in both languages, with every form that the open sentences need.

Persons count from 0: *je*, *tu*, *il*, *nous*, *ils*. English *you* is *tu*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pellucid.corpora.lexicon import KINDS, Kind, Noun, nouns_of

Tense = Literal["present", "progressive", "past", "past progressive", "perfect"]


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
    """The forms of a French verb: five persons of the present, and the past participle."""

    present: tuple[str, ...]
    participle: str
    imperfect_stem: str
    with_etre: bool = False

    def imperfect(self, person: int) -> str:
        """Form the *imparfait* of a person: *mangeais*, *mangions*."""
        ending = ("ais", "ais", "ait", "ions", "aient")[person]
        stem = self.imperfect_stem
        if ending[0] == "i" and stem.endswith("ge"):
            stem = stem[:-1]
        return stem + ending

    @property
    def imperative(self) -> str:
        """The form of an order to one person: *mange*, *vends*, *va*."""
        form = self.present[1]
        return form[:-1] if form.endswith(("es", "as")) else form


@dataclass(frozen=True, eq=False)
class OpenVerb:
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
    kinds: tuple[Kind, ...] = field(default=())


def french_of(row: str, *, with_etre: bool = False) -> French:
    """Read a verb: an infinitive in *-er*, or six forms.

    An infinitive may be followed by ``/`` and the stem of *je, tu, il, ils*: ``acheter/achèt``.
    """
    forms = row.split()
    if len(forms) == 1:
        infinitive, _, strong = row.partition("/")
        stem = infinitive[:-2]
        strong = strong or stem
        we = stem + ("e" if stem.endswith("g") else "")
        present = (strong + "e", strong + "es", strong + "e", we + "ons", strong + "ent")
        return French(present, stem + "é", we, with_etre)
    return French(tuple(forms[:5]), forms[5], forms[3].removesuffix("ons"), with_etre)


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
HAVE = French(("ai", "as", "a", "avons", "ont"), "eu", "av")
"""*Avoir*."""

_THINGS: tuple[Kind, ...] = (
    "food", "fruit", "vehicle", "instrument", "text", "clothes", "container", "furniture",
)  # fmt: skip
_ALL = tuple(KINDS)

_TRANSITIVES: tuple[tuple[str, str, tuple[Kind, ...], str], ...] = (
    ("see sees saw seeing seen", "vois vois voit voyons voient vu", _ALL, "s"),
    ("buy buys bought buying", "acheter/achèt", (*_THINGS, "drink", "animal", "building"), ""),
    ("sell sells sold selling", "vends vends vend vendons vendent vendu",
     (*_THINGS, "drink", "animal", "building"), ""),
    ("find finds found finding", "trouver", _ALL, "s"),
    ("like", "aimer", _ALL, "sa"),
    ("eat eats ate eating eaten", "manger", ("food", "fruit", "food", "fruit", "animal"), ""),
    ("drink drinks drank drinking drunk", "bois bois boit buvons boivent bu", ("drink",), ""),
    ("peel", "éplucher", ("fruit",), ""),
    ("read reads read reading", "lis lis lit lisons lisent lu", ("text",), ""),
    ("translate", "traduis traduis traduit traduisons traduisent traduit", ("text",), ""),
    ("iron", "repasser", ("clothes",), ""),
    ("put puts put putting", "mets mets met mettons mettent mis", ("clothes",), "+on"),
    ("park", "garer", ("vehicle",), ""),
    ("drive drives drove driving driven", "conduis conduis conduit conduisons conduisent conduit",
     ("vehicle",), ""),
    ("feed feeds fed feeding", "nourris nourris nourrit nourrissons nourrissent nourri",
     ("animal", "person"), ""),
    ("stroke", "caresser", ("animal",), ""),
    ("visit", "visiter", ("building", "institution"), ""),
    ("tune", "accorder", ("instrument",), ""),
    ("empty empties emptied emptying", "vider", ("container", "measure"), ""),
    ("follow", "suis suis suit suivons suivent suivi", ("person", "animal", "vehicle"), ""),
    ("chase", "poursuis poursuis poursuit poursuivons poursuivent poursuivi",
     ("person", "animal", "vehicle"), ""),
    ("help", "aider", ("person", "animal"), ""),
    ("open", "ouvre ouvres ouvre ouvrons ouvrent ouvert",
     ("container", "part", "text", "building", "measure"), ""),
    ("close", "fermer", ("container", "part", "text", "building"), ""),
    ("change", "changer", ("institution", "detail", "text"), ""),
    ("bring brings brought bringing", "apporter", (*_THINGS, "drink", "money", "measure"), ""),
    ("show shows showed showing shown", "montrer", _ALL, ""),
    ("lend lends lent lending", "prêter", (*_THINGS, "money"), ""),
    ("give gives gave giving given", "donner", (*_THINGS, "drink", "money", "measure"), ""),
)  # fmt: skip


def _read_transitives() -> Iterator[OpenVerb]:
    for english, french, kinds, marks in _TRANSITIVES:
        forms = english_of(english)
        yield OpenVerb(
            forms,
            french_of(french),
            nouns_of(*kinds),
            particle=marks.partition("+")[2],
            is_stative="s" in marks,
            has_article="a" in marks,
            kinds=kinds,
        )


TRANSITIVES = tuple(_read_transitives())
DITRANSITIVES = TRANSITIVES[-4:]
"""*Bring, show, lend* and *give*, which also have a person: *gave the man a book*."""
_PLACES: tuple[Kind, ...] = ("building", "building", "institution", "vehicle", "furniture")
_GO = "vais vas va allons vont allé"
_COME = "viens viens vient venons viennent venu"
_MOVES: tuple[tuple[str, str, str, str, tuple[Kind, ...]], ...] = (
    ("go goes went going gone", _GO, "to", "à", _PLACES),
    ("go goes went going gone", _GO, "to", "à", _PLACES),
    ("come comes came coming come", _COME, "to", "à", _PLACES),
    ("come comes came coming come", _COME, "from", "de", _PLACES),
    ("arrive", "arriver", "at", "à", _PLACES),
    ("come comes came coming come", "sors sors sort sortons sortent sorti", "out of", "de",
     ("building", "vehicle", "container", "furniture")),
    ("go goes went going gone", "sors sors sort sortons sortent sorti", "out of", "de",
     ("building", "vehicle", "container")),
    ("come comes came coming come", "entrer", "into", "dans",
     ("building", "vehicle", "container")),
    ("come comes came coming come", "reviens reviens revient revenons reviennent revenu",
     "back to", "à", _PLACES),
    ("come comes came coming come", "reviens reviens revient revenons reviennent revenu",
     "back from", "de", _PLACES),
    ("go goes went going gone", "entrer", "into", "dans",
     ("building", "vehicle", "container")),
)  # fmt: skip
MOTIONS = tuple(
    OpenVerb(english_of(english), french_of(french, with_etre=True), nouns_of(*kinds), particle,
             preposition, kinds=kinds)
    for english, french, particle, preposition, kinds in _MOVES
)  # fmt: skip
INTRANSITIVES = tuple(
    OpenVerb(english_of(english), french_of(french))
    for english, french in (
        ("sleep sleeps slept sleeping", "dors dors dort dormons dorment dormi"),
        ("sing sings sang singing sung", "chanter"),
        ("dance", "danser"),
        ("eat eats ate eating eaten", "manger"),
        ("drink drinks drank drinking drunk", "bois bois boit buvons boivent bu"),
        ("change", "changer"),
    )
)
SOUND_VERBS = {
    animal: OpenVerb(english_of(english), french_of(french))
    for animal, english, french in (
        ("dog", "bark", "aboyer/aboi"),
        ("cat", "meow", "miauler"),
        ("cow", "moo", "meugler"),
        ("horse", "neigh", "hennis hennis hennit hennissons hennissent henni"),
        ("hen", "cluck", "caqueter/caquett"),
        ("goat", "bleat", "bêler"),
        ("bird", "chirp", "gazouiller"),
        ("frog", "croak", "coasser"),
    )
}
