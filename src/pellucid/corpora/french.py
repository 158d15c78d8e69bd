"""French spelling: gender and number, elision, contraction, and joining words into pieces.

Words come in French order, each with the English words that it translates. `join_french_words`
writes them as French does: *de* and *le* become *du*, and *le* and *homme* become the one piece
*l'homme*, linked to the English words of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

Gender = Literal["m", "f"]

NARROW_SPACE = "\u202f"
"""The space before ``!`` and ``?`` in French: a narrow no-break space."""


class Word(NamedTuple):
    """A French word, or several joined: its text, its English links, its roles.

    A role is the number of a noun phrase or a pronoun of the sentence: it tells which piece that
    became after joining. An object pronoun is not contracted: *à les lire*, but *aux lois*.
    """

    text: str
    links: tuple[int, ...]
    roles: tuple[int, ...] = ()
    is_pronoun: bool = False


_VOWELS = frozenset("aeiouàâéèêëîïôùûœAEIOUÀÂÉÈÊËÎÏÔÙÛŒ")
_ASPIRATED = ("harpe", "haut", "henni", "huit", "hamburger", "haricot", "hockey", "honte")
_ELIDED = {
    "le": "l'",
    "la": "l'",
    "de": "d'",
    "que": "qu'",
    "je": "j'",
    "ne": "n'",
    "se": "s'",
    "me": "m'",
    "te": "t'",
    "ce": "c'",
    "si": "s'",
    "jusque": "jusqu'",
}
_CONTRACTED = {
    ("de", "le"): "du",
    ("de", "les"): "des",
    ("à", "le"): "au",
    ("à", "les"): "aux",
}
# Masculine singular, feminine singular, masculine plural, feminine plural.
_IRREGULAR = {
    "beau": ("beau", "belle", "beaux", "belles"),
    "nouveau": ("nouveau", "nouvelle", "nouveaux", "nouvelles"),
    "vieux": ("vieux", "vieille", "vieux", "vieilles"),
    "blanc": ("blanc", "blanche", "blancs", "blanches"),
    "ce": ("ce", "cette", "ces", "ces"),
    "tout": ("tout", "toute", "tous", "toutes"),
    "bon": ("bon", "bonne", "bons", "bonnes"),
    "italien": ("italien", "italienne", "italiens", "italiennes"),
    "européen": ("européen", "européenne", "européens", "européennes"),
    "culturel": ("culturel", "culturelle", "culturels", "culturelles"),
    "cher": ("cher", "chère", "chers", "chères"),
    "long": ("long", "longue", "longs", "longues"),
    "épais": ("épais", "épaisse", "épais", "épaisses"),
    "mignon": ("mignon", "mignonne", "mignons", "mignonnes"),
    "naturel": ("naturel", "naturelle", "naturels", "naturelles"),
    "gentil": ("gentil", "gentille", "gentils", "gentilles"),
    "bas": ("bas", "basse", "bas", "basses"),
    "public": ("public", "publique", "publics", "publiques"),
    "sec": ("sec", "sèche", "secs", "sèches"),
    "léger": ("léger", "légère", "légers", "légères"),
    "premier": ("premier", "première", "premiers", "premières"),
    "dernier": ("dernier", "dernière", "derniers", "dernières"),
    "le": ("le", "la", "les", "les"),
    "quel": ("quel", "quelle", "quels", "quelles"),
    "gros": ("gros", "grosse", "gros", "grosses"),
    "fier": ("fier", "fière", "fiers", "fières"),
    "inquiet": ("inquiet", "inquiète", "inquiets", "inquiètes"),
    "doux": ("doux", "douce", "doux", "douces"),
    "frais": ("frais", "fraîche", "frais", "fraîches"),
    "faux": ("faux", "fausse", "faux", "fausses"),
    "fou": ("fou", "folle", "fous", "folles"),
    "étranger": ("étranger", "étrangère", "étrangers", "étrangères"),
    "jaloux": ("jaloux", "jalouse", "jaloux", "jalouses"),
    "mien": ("mien", "mienne", "miens", "miennes"),
    "tien": ("tien", "tienne", "tiens", "tiennes"),
    "sien": ("sien", "sienne", "siens", "siennes"),
    "canadien": ("canadien", "canadienne", "canadiens", "canadiennes"),
    "violet": ("violet", "violette", "violets", "violettes"),
    "sportif": ("sportif", "sportive", "sportifs", "sportives"),
    "grec": ("grec", "grecque", "grecs", "grecques"),
    "musicien": ("musicien", "musicienne", "musiciens", "musiciennes"),
    "mécanicien": ("mécanicien", "mécanicienne", "mécaniciens", "mécaniciennes"),
    "chanteur": ("chanteur", "chanteuse", "chanteurs", "chanteuses"),
    "coiffeur": ("coiffeur", "coiffeuse", "coiffeurs", "coiffeuses"),
    "acteur": ("acteur", "actrice", "acteurs", "actrices"),
    "agriculteur": ("agriculteur", "agricultrice", "agriculteurs", "agricultrices"),
    "infirmier": ("infirmier", "infirmière", "infirmiers", "infirmières"),
    "boulanger": ("boulanger", "boulangère", "boulangers", "boulangères"),
    "boucher": ("boucher", "bouchère", "bouchers", "bouchères"),
    "policier": ("policier", "policière", "policiers", "policières"),
    "cuisinier": ("cuisinier", "cuisinière", "cuisiniers", "cuisinières"),
    "joueur": ("joueur", "joueuse", "joueurs", "joueuses"),
    "serveur": ("serveur", "serveuse", "serveurs", "serveuses"),
    "celui-là": ("celui-là", "celle-là", "ceux-là", "celles-là"),
}
_BEFORE_VOWEL = {"beau": "bel", "nouveau": "nouvel", "vieux": "vieil", "fou": "fol", "ce": "cet"}
_PLURAL_VERBS = {"a": "ont", "est": "sont"}


def begins_with_vowel(text: str) -> bool:
    """Tell whether the word before this one is elided: before a vowel or a mute h."""
    return (
        # *J'y vais*, but *le yaourt*: only by itself is it a vowel.
        text == "y"
        or (text[0] in _VOWELS and text not in ("oui", "onze"))
        or (text[0] in "hH" and not text.lower().startswith(_ASPIRATED))
    )


def make_plural(noun: str) -> str:
    """Form the plural of a noun or a masculine adjective."""
    if noun[-1] in "sxz":
        return noun
    if noun.endswith("au"):
        return noun + "x"
    if noun.endswith("al"):
        return noun[:-1] + "ux"
    return noun + "s"


@cache
def agree(adjective: str, gender: Gender, *, is_plural: bool) -> str:
    """Form an adjective or participle that agrees with a noun.

    Args:
        adjective: its masculine singular.
        gender: the noun's gender.
        is_plural: True for a plural noun.
    """
    forms = _IRREGULAR.get(adjective) or _regular_forms(adjective)
    # In the order of the table above.
    return forms[(gender == "f") + 2 * is_plural]


def _regular_forms(adjective: str) -> tuple[str, str, str, str]:
    if adjective.endswith("e"):
        feminine = adjective
    elif adjective.endswith("eux"):
        feminine = adjective[:-1] + "se"
    else:
        feminine = adjective + "e"
    return adjective, feminine, make_plural(adjective), feminine + "s"


def make_prenominal(adjective: str, gender: Gender, *, is_plural: bool, following: str) -> str:
    """Form an adjective that stands before its noun: *un vieil homme*, *un bel hôtel*."""
    if gender == "m" and not is_plural and begins_with_vowel(following):
        return _BEFORE_VOWEL.get(adjective, adjective)
    return agree(adjective, gender, is_plural=is_plural)


def to_plural_verb(verb: str) -> str:
    """Form the third person plural of a verb form that predicates use: *était* to *étaient*."""
    if verb in _PLURAL_VERBS:
        return _PLURAL_VERBS[verb]
    # The imperfect; participles and infinitives stay as they are.
    if verb.endswith("ait"):
        return verb[:-1] + "ent"
    return verb


def join_french_words(words: Sequence[Word]) -> list[Word]:
    """Write words as French does: *de le four* as *du four*, *que il* as *qu'il*.

    Elision comes first, so that *de le homme* is *de l'homme* and nothing is contracted.

    Args:
        words: in French order.

    Returns:
        The pieces between spaces; a piece of two words has the links and roles of both.
    """
    pieces: list[Word] = []
    # From the end, because a word's form depends on the word after it.
    after: Word | None = None
    for word in reversed(words):
        joined = None
        if after is not None:
            # Elision first: *de* and *l'homme* are not contracted.
            text = word.text
            # *S'il*, but *si elle*.
            is_elided = begins_with_vowel(after.text)
            if text == "si":
                is_elided = after.text in ("il", "ils")
            if text in _ELIDED and is_elided:
                joined = _ELIDED[text] + after.text
            elif text in ("de", "à") and not after.is_pronoun:
                joined = _CONTRACTED.get((text, after.text))
        if joined is None or after is None:
            after = word
            pieces.append(word)
        else:
            # The joined piece may itself be elided or contracted with the word before.
            after = Word(joined, word.links + after.links, word.roles + after.roles)
            pieces[-1] = after
    pieces.reverse()
    return pieces
