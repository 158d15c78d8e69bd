"""The words of the built-in corpus, and the combinations of them that make sense.

Each English word has one French word and vice versa, so that the English sentence decides the
French one. Nouns come in kinds, and every predicate and most verbs fit only one kind: only food
tastes good, only a vehicle has a flat tire. This decides which noun a pronoun stands for.

A French phrase is written as words with the English words they translate, counted from 0 within
the phrase: ``avait:0 bon:1 goût:0`` for *tasted good*. A word with ``@`` agrees with the subject,
and one with ``^`` is the finite verb.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from pellucid.corpora.french import Gender, make_plural

Kind = Literal[
    "food", "fruit", "drink", "animal", "vehicle", "building", "instrument", "text", "clothes",
    "container", "furniture", "person", "part", "institution", "money", "measure", "detail",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Noun:
    """A noun in both languages; ``is_mass`` nouns take *some* and have no plural here."""

    english: str
    french: str
    gender: Gender
    kind: Kind
    is_mass: bool
    english_plural: str
    french_plural: str


@dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective, its place before or after its noun in French, and the nouns it describes.

    It describes the nouns of ``predicative_kinds`` only after *is*: *the lemons are expensive*, but
    hardly *an expensive lemon*. It never describes the nouns in ``never``.
    """

    english: str
    french: str
    is_before: bool
    kinds: tuple[Kind, ...]
    predicative_kinds: tuple[Kind, ...] = ()
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
    kinds: tuple[Kind, ...]
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


_IRREGULAR_PLURALS = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "baby": "babies",
    "church": "churches",
    "box": "boxes",
    "bus": "buses",
    "dress": "dresses",
    "actress": "actresses",
    "glass": "glasses",
    "crisis": "crises",
    "sandwich": "sandwiches",
    "life": "lives",
}

_TABLE: dict[Kind, str] = {
    "food": "pizza=pizza.f soup=soupe.f* bread=pain.m* cake=gâteau.m cheese=fromage.m* "
    "rice=riz.m* omelette=omelette.f tart=tarte.f meat=viande.f* "
    "sandwich=sandwich.m",
    "fruit": "apple=pomme.f orange=orange.f lemon=citron.m banana=banane.f melon=melon.m "
    "pineapple=ananas.m",
    "drink": "water=eau.f* milk=lait.m* coffee=café.m* tea=thé.m* wine=vin.m* oil=huile.f*",
    "animal": "dog=chien.m cat=chat.m cow=vache.f horse=cheval.m hen=poule.f goat=chèvre.f "
    "bird=oiseau.m frog=grenouille.f donkey=âne.m",
    "vehicle": "car=voiture.f truck=camion.m taxi=taxi.m van=camionnette.f motorcycle=moto.f "
    "tractor=tracteur.m bus=bus.m",
    "building": "house=maison.f church=église.f hotel=hôtel.m castle=château.m school=école.f "
    "museum=musée.m station=gare.f hospital=hôpital.m",
    "instrument": "violin=violon.m guitar=guitare.f piano=piano.m harp=harpe.f "
    "cello=violoncelle.m mandolin=mandoline.f accordion=accordéon.m",
    "text": "book=livre.m letter=lettre.f newspaper=journal.m magazine=revue.f novel=roman.m "
    "poster=affiche.f",
    "clothes": "dress=robe.f shirt=chemise.f coat=manteau.m sweater=pull.m jacket=veste.f "
    "suit=costume.m",
    "container": "oven=four.m fridge=frigo.m box=boîte.f cupboard=placard.m bag=sac.m "
    "cooler=glacière.f suitcase=valise.f",
    "furniture": "table=table.f chair=chaise.f bed=lit.m armchair=fauteuil.m",
    "person": "man=homme.m woman=femme.f boy=garçon.m girl=fille.f king=roi.m queen=reine.f "
    "actor=acteur.m actress=actrice.f child=enfant.m baby=bébé.m",
    "part": "door=porte.f window=fenêtre.f roof=toit.m",
    "institution": "area=zone.f market=marché.m bank=banque.f center=centre.m crisis=crise.f "
    "system=système.m project=projet.m agreement=accord.m mission=mission.f",
    "money": "money=argent.m*",
    "measure": "glass=verre.m cup=tasse.f bottle=bouteille.f",
    "detail": "tire=pneu.m wall=mur.m ceiling=plafond.m sleeve=manche.f handle=poignée.f "
    "brake=frein.m mistake=faute.f stone=pierre.f sound=son.m life=vie.f wool=laine.f* "
    "gas=essence.f*",
}


def _read_nouns() -> dict[str, Noun]:
    nouns = {}
    for kind, row in _TABLE.items():
        for entry in row.split():
            english, _, rest = entry.partition("=")
            french, _, mark = rest.partition(".")
            gender: Gender = "f" if mark[0] == "f" else "m"
            plural = _IRREGULAR_PLURALS.get(english, english + "s")
            forms = (plural, make_plural(french))
            nouns[english] = Noun(english, french, gender, kind, mark.endswith("*"), *forms)
    return nouns


NOUNS: dict[str, Noun] = _read_nouns()
KINDS: dict[Kind, tuple[Noun, ...]] = {
    kind: tuple(noun for noun in NOUNS.values() if noun.kind == kind) for kind in _TABLE
}
AGENTS = tuple(noun for noun in KINDS["person"] if noun.english != "baby")
"""People who can do something, which a baby cannot."""


def nouns_of(*kinds: Kind) -> tuple[Noun, ...]:
    """List all nouns of some kinds."""
    return tuple(noun for kind in kinds for noun in KINDS[kind])


_GOODS: tuple[Kind, ...] = ("vehicle", "instrument", "text", "clothes", "container", "furniture")

ADJECTIVES: tuple[Adjective, ...] = (
    Adjective("big", "grand", True, ("building", "container", "furniture", "vehicle")),
    Adjective("small", "petit", True, ("building", "animal", *_GOODS)),
    Adjective("old", "vieux", True, ("building", "animal", *_GOODS)),
    Adjective("new", "nouveau", True, ("building", *_GOODS), is_predicative=False),
    Adjective(
        "beautiful", "beau", True, ("building", "animal", "vehicle", "instrument", "clothes")
    ),
    Adjective("good", "bon", True, ("food", "text")),
    Adjective("young", "jeune", True, ("animal",)),
    Adjective("red", "rouge", False, ("vehicle", "clothes", "container", "furniture", "part")),
    Adjective("black", "noir", False, ("vehicle", "clothes", "container", "animal", "furniture")),
    Adjective("white", "blanc", False, ("clothes", "container", "animal", "building", "part")),
    Adjective("green", "vert", False, ("vehicle", "clothes", "container", "furniture", "part")),
    Adjective("blue", "bleu", False, ("vehicle", "clothes", "container", "furniture", "part")),
    Adjective("expensive", "cher", False, ("vehicle", "instrument", "clothes"), ("food", "fruit")),
    Adjective("heavy", "lourd", False, ("container", "instrument", "furniture")),
    Adjective("empty", "vide", False, ("container", "building")),
    Adjective("clean", "propre", False, ("vehicle", "clothes", "container", "furniture")),
    Adjective("dirty", "sale", False, ("vehicle", "clothes", "container", "furniture")),
    Adjective("cold", "froid", False, ("food", "drink", "building")),
    Adjective("famous", "célèbre", False, ("person", "building", "text")),
    Adjective("clever", "intelligent", False, ("person", "animal")),
    Adjective("tired", "fatigué", False, ("person", "animal")),
    Adjective("sick", "malade", False, ("person", "animal")),
    Adjective("happy", "heureux", False, ("person",)),
    Adjective("interesting", "intéressant", False, ("text", "building")),
    Adjective("important", "important", False, ("text",), ("building",)),
    Adjective("fast", "rapide", False, ("vehicle", "animal")),
    Adjective("Italian", "italien", False, ("vehicle", "instrument", "text", "clothes")),
    Adjective("awesome", "génial", False, ("text", "vehicle", "instrument"), ("food",)),
)
NATIONALITIES: tuple[Adjective, ...] = (
    Adjective("European", "européen", False, ("institution",)),
    Adjective("French", "français", False, ("institution",)),
    Adjective("American", "américain", False, ("institution",)),
    Adjective("German", "allemand", False, ("institution",)),
)
RELATIONAL: tuple[Adjective, ...] = (
    Adjective("economic", "économique", False, ("institution",)),
    Adjective(
        "political", "politique", False, ("institution",), never=("bank", "market", "center")
    ),
    Adjective("national", "national", False, ("institution",)),
    Adjective("cultural", "culturel", False, ("institution",), never=("bank",)),
)
INSTITUTION_PREDICATES: tuple[Phrase, ...] = (
    Phrase("is important", "^est:0 @important:1"),
    Phrase("is not new", "ne:1 ^est:0 pas:1 @nouveau:2"),
    Phrase("has changed", "^a:0 changé:1"),
)


@cache
def adjectives_of(kind: Kind, *, is_predicative: bool = False) -> tuple[Adjective, ...]:
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


PREDICATES: dict[Kind, tuple[Phrase, ...]] = {
    "food": (
        Phrase("tasted good", "^avait:0 bon:1 goût:0"),
        Phrase("was delicious", "^était:0 @délicieux:1"),
        Phrase("was too salty", "^était:0 trop:1 @salé:2"),
    ),
    "fruit": (
        Phrase("was ripe", "^était:0 @mûr:1"),
        Phrase("was juicy", "^était:0 @juteux:1"),
        Phrase("was rotten", "^était:0 @pourri:1"),
    ),
    "animal": (
        Phrase("was hungry", "^avait:0 faim:1"),
        Phrase("was thirsty", "^avait:0 soif:1"),
        Phrase("was sleeping", "^dormait:0,1"),
    ),
    "vehicle": (
        Phrase("had a flat tire", "^avait:0 un:1 pneu:3 crevé:2"),
        Phrase("was out of gas", "ne:1 ^avait:0 plus:1 de:2 essence:3"),
        Phrase("had good brakes", "^avait:0 de:1 bons:1 freins:2"),
    ),
    "building": (
        Phrase("was made of stone", "^était:0 en:1,2 pierre:3"),
        Phrase("had thick walls", "^avait:0 des:1 murs:2 épais:1"),
        Phrase("had high ceilings", "^avait:0 de:1 hauts:1 plafonds:2"),
    ),
    "instrument": (
        Phrase("was out of tune", "^était:0 @désaccordé:1,2,3"),
        Phrase("sounded good", "^sonnait:0 bien:1"),
        Phrase("had a lovely sound", "^avait:0 un:1 joli:2 son:3"),
    ),
    "text": (
        Phrase("was hard to read", "^était:0 @difficile:1 à:2 lire:3"),
        Phrase("was full of mistakes", "^était:0 @plein:1 de:2 fautes:3"),
        Phrase("was written in English", "^était:0 @écrit:1 en:2 anglais:3"),
    ),
    "clothes": (
        Phrase("had long sleeves", "^avait:0 de:1 longues:1 manches:2"),
        Phrase("was made of wool", "^était:0 en:1,2 laine:3"),
        Phrase("was too tight", "^était:0 trop:1 @serré:2"),
    ),
    "container": (
        Phrase("closed badly", "^fermait:0 mal:1"),
        Phrase("had a broken handle", "^avait:0 une:1 poignée:3 cassée:2"),
        Phrase("was hard to open", "^était:0 @difficile:1 à:2 ouvrir:3"),
    ),
}
SOUNDS: dict[str, Phrase] = {
    "dog": Phrase("barked", "^a:0 aboyé:0"),
    "cat": Phrase("meowed", "^a:0 miaulé:0"),
    "cow": Phrase("mooed", "^a:0 meuglé:0"),
    "horse": Phrase("neighed", "^a:0 henni:0"),
    "hen": Phrase("clucked", "^a:0 caqueté:0"),
    "goat": Phrase("bleated", "^a:0 bêlé:0"),
    "bird": Phrase("chirped", "^a:0 gazouillé:0"),
    "frog": Phrase("croaked", "^a:0 coassé:0"),
}
"""The sound of each animal, which no other animal makes."""

VERBS: tuple[Verb, ...] = (
    Verb("saw", "sees", "see", "vu", "vois", "voit",
         ("animal", "building", "person", "vehicle")),
    Verb("bought", "buys", "buy", "acheté", "achète", "achète",
         ("food", "fruit", *_GOODS)),
    Verb("sold", "sells", "sell", "vendu", "vends", "vend", ("fruit", *_GOODS)),
    Verb("found", "finds", "find", "trouvé", "trouve", "trouve",
         ("animal", "fruit", *_GOODS)),
    Verb("liked", "likes", "like", "aimé", "aime", "aime", ("text", "building", "food")),
    Verb("ate", "eats", "eat", "mangé", "mange", "mange", ("food", "fruit")),
    Verb("drank", "drinks", "drink", "bu", "bois", "boit", ("drink",)),
    Verb("peeled", "peels", "peel", "épluché", "épluche", "épluche", ("fruit",)),
    Verb("read", "reads", "read", "lu", "lis", "lit", ("text",)),
    Verb("translated", "translates", "translate", "traduit", "traduis", "traduit",
         ("text",)),
    Verb("ironed", "irons", "iron", "repassé", "repasse", "repasse", ("clothes",)),
    Verb("put", "puts", "put", "mis", "mets", "met", ("clothes",), particle="on"),
    Verb("parked", "parks", "park", "garé", "gare", "gare", ("vehicle",)),
    Verb("drove", "drives", "drive", "conduit", "conduis", "conduit", ("vehicle",)),
    Verb("fed", "feeds", "feed", "nourri", "nourris", "nourrit", ("animal",)),
    Verb("stroked", "strokes", "stroke", "caressé", "caresse", "caresse",
         ("animal",)),
    Verb("visited", "visits", "visit", "visité", "visite", "visite", ("building",)),
    Verb("tuned", "tunes", "tune", "accordé", "accorde", "accorde", ("instrument",)),
    Verb("emptied", "empties", "empty", "vidé", "vide", "vide", ("container",)),
)  # fmt: skip


@cache
def verbs_named(*names: str) -> tuple[Verb, ...]:
    """Look up verbs by their names."""
    by_name = {verb.name: verb for verb in VERBS}
    return tuple(by_name[name] for name in names)


MEASURES: dict[str, tuple[str, ...]] = {
    "glass": ("water", "milk", "wine"),
    "cup": ("coffee", "tea", "milk"),
    "bottle": ("water", "milk", "wine", "oil"),
}
