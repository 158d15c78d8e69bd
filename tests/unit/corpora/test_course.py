"""The beginner's course: right French of each construction, all of its words, one text a seed."""

from __future__ import annotations

import random
import re
import tomllib
from importlib.resources import files
from itertools import pairwise

import pytest

from pellucid.corpora import Example, make_split
from pellucid.corpora.course.patterns import COURSE, is_felt, patterns_of, say_pattern
from pellucid.corpora.example import Style, make_example
from pellucid.corpora.french import Word, join_french_words
from pellucid.corpora.sentence import Pick, Sentence

_INFINITIVE = r"(?:er|ir|re)\b"
_HAVE_OR_BE = r"(?:ai|as|a|avons|ont|suis|es|est|sommes|sont)\b"
_FUTURE = r"r(?:ai|as|a|ons|ont)\b"
_GO = r"\b(?:vais|vas|va|allons|vont)\b"
_ABLE = (
    r"\b(?:p(?:eu[xt]|ouvons|euvent|ouvai\w+|ouvions|ourrai\w+|ourrions)"
    r"|d(?:oi[st]|evons|oivent|evrai\w+|evrions))\b"
)

# What the French of each construction must have, as a grammar book says; apart from the list.
SHAPES = {
    "infinitive after a verb": _INFINITIVE,
    "verb in -ing": _INFINITIVE,
    "infinitive question": rf"{_INFINITIVE}|voudrais",
    "have to": rf"\b(?:dois|doit|devons|doivent|devais|devait|devions|devaient)\b.*{_INFINITIVE}",
    "near future": rf"{_GO}.*{_INFINITIVE}",
    "near future question": rf"est-ce.*{_GO}.*{_INFINITIVE}",
    "will": _FUTURE,
    "will question": rf"est-ce.*{_FUTURE}",
    "can": rf"{_ABLE}.*{_INFINITIVE}",
    "can question": rf"{_ABLE}.*{_INFINITIVE}",
    "know that": r"\bqu(?:e\b|')|\b(?:sai[st]|savons|savent|compren\w+)\b",
    "know where": r"\b(?:où|pourquoi|quand|si|s'ils?|qui|ce que|ce qu')",
    "know question": r"est-ce.*(?:sai[st]|savons|savent|penses)",
    "if": r"\b(?:si\b|s'ils?\b)",
    "comparative": r"\b(?:plus|moins|aussi|pires?|meilleure?s?)\b",
    "superlative": r"\bl(?:e|a|es) (?:plus|pires?|meilleure?s?)\b",
    "weather": r"\b(?:f(?:ait|aisait|era)|pl(?:eut|euvait|euvra|euvoir|u)|neige|neigé|temps)\b",
    "weather question": r"\b(?:fai\w+|pleut)\b",
    "time": r"\b(?:tard|tôt|heures?|midi|minuit|temps)\b",
    "time question": r"\b(?:heure|tard|tôt|jour|commence)\b",
    "impersonal": rf"\bil (?:ne |n')?(?:est|était)\b.*\b(?:de\b|d').*{_INFINITIVE}",
    "age": r"\b(?:ai|as|a|avons|ont|avai\w+|avions)\b.* ans\b",
    "age question": r"\bquel âge",
    "date": r"\b(?:\w+di|dimanche|en \w+|printemps|le \w+ \w+|ans|dans)\b",
    "one": r"\b(?:une?|celui-là|celle-là|celui-ci|le|la|l'autre|l'un)\b",
    "one question": r"\b(?:lequel|quel(?:le)?)\b",
    "how are you": r"\bcomment (?:va(?:s-tu|-t-(?:il|elle))?|vont)\b",
    "I am fine": r".",
    "what is your name": r"\b(?:appell|nom|viens-tu|fais-tu|né|passé)",
    "my name is": r"\b(?:appelle|viens|parl\w+|étudi\w+|appren\w+|appris|né|née|habite)\b",
    "have question": r"\b(?:est-ce|combien|couleur)\b",
    "not before a noun": r"\bpas\b",
    "play": r"\bjou\w+ (?:pas )?(?:dans|avec|de|d'|du|des|au|aux|dehors)|\bjoué\b",
    "participle with a pronoun": r"\b(?:l'|les\b|le\b|la\b)",
    "it after two nouns": r"\b(?:mais |parce qu')(?:ils?|elles?)\b",
    "number before an adjective": (
        r"\b(?:deux|trois|quatre|cinq|six|sept|huit|neuf|dix|vingt|cent|\w+[zt]e|\d+)"
    ),
    "work of a machine": r"\b(?:march|travaill)\w+",
    "to understood": r"\b(?:à|au|aux)\b",
    "numbers": r"\b(?:euros|jours|heures|semaines|mois|ans|minutes|une?)\b",
    "frequency": r".",
    "adverbs": r".",
    "prepositions": r".",
    "feelings": r".",
    "people in general": r".",
    "new words": r".",
    "quantities": r".",
    "the last verbs": r".",
    "everyday present": r".",
    "everyday past": rf"\b(?:{_HAVE_OR_BE})|\w(?:ais|ait|ions|aient)\b",
    "everyday future": rf"{_FUTURE}|{_GO}",
    "everyday can": _INFINITIVE,
    "everyday being": (rf"\b(?:{_HAVE_OR_BE}|appartient)|\b(?:ét|av)(?:ais|ait|ions|aient)\b"),
    "everyday joined": r"\b(?:et|mais|parce|donc|quand|si|s'ils?|ou|pendant|elles?|ils?)\b|,",
    "everyday that": r"\b(?:que|qu'|où|pourquoi|si|s'ils?)|\bsa(?:i[st]|vons|vent)\b",
    "everyday question": r"\best-ce qu(?:e\b|')",
    "everyday question word": r"\b(?:où|que?|qu'|quel(?:le)?|qui|quand|pourquoi|combien|comment)",
    "everyday there is": r"\bil (?:n'|ne )?y a",
    "everyday there is question": r"\bqu'il y a",
    "everyday order": r".",
    "everyday nobody": r"\b(?:pas|personne|rien|tout|quelqu'un|quelque)\b",
    "everyday comparison": r"\b(?:plus|moins|aussi|pires?|meilleure?s?|mieux)\b",
    "everyday relative": r"\b(?:qui|que|qu')",
    "everyday body and age": r"\bmal\b|\bans\b",
    "everyday phrases": r".",
    "everyday phrases asked": r".",
    "everyday habit": r".",
    "everyday words": r".",
    "everyday just and yet": (
        r"\b(?:vi?en|pas encore|plus|déjà|toujours|souvent|enfin|depuis|march)"
    ),
    "everyday not anything": r"\b(?:rien|personne|nulle|ni|pas|aucun|deux|que|qu'|seulement)",
    "everyday would": rf"(?:ais|ait|ions|aient)\b|{_FUTURE}|{_GO}|{_ABLE}|\bque\b|qu'|\bs'?i\b",
    "everyday want you to": r"\bqu(?:e\b|')|\bdi[rst]|\bde\b|d'|\bà\b|\baux?\b|\blaisse|\bdemande",
    "everyday before and after": r".",
    "everyday more subjects": r".",
    "everyday pronouns": r".",
    "everyday open answers": r".",
    "everyday negative question": r"\best-ce qu.*\b(?:n'|ne\b)",
    "everyday order of two": r".",
    "everyday words asked": r"\best-ce qu|\boù\b",
    "everyday time first": r",|\bque\b|qu'|\best\b",
    "everyday time first asked": r"\best-ce qu",
    "everyday combined": r".",
    "everyday combined asked": r"\b(?:est-ce|qui|lesquels|combien|que)\b",
    "everyday combined order": r".",
    "everyday pronouns anywhere": r"\b(?:[mtl]'|me|te|le|la|les|lui|nous|leur|y|en|n'|celui)",
    "everyday frequent words": r".",
    "everyday frequent asked": r"\b(?:est-ce|où|quand|quelle|c'est)",
    "everyday short words before a vowel": r".",
}
MASCULINE = frozenset(
    word
    for row in (
        "parent fils mari voisin client président membre écrivain oncle grand-père parc pays",
        "restaurant bâtiment appartement tribunal gouvernement groupe programme service",
        "département état parti processus plan travail rapport article mot problème nom exemple",
        "nombre résultat cas prix fait niveau avenir pouvoir sujet moment visage corps pied bras",
        "ordinateur jeu film cadeau parapluie billet papier petit-déjeuner dîner chocolat poisson",
        "poulet beurre canapé avion bateau chien chat garçon livre vélo pain fromage thé café vin",
        "roi four légume oignon yaourt champignon jambon sel miel biscuit repas dessert panier",
        "cousin serveur boulanger dentiste avocat ingénieur policier chanteur copain neveu",
        "cochon mouton lapin canard lion éléphant singe ours serpent citron raisin bol miroir",
        "supermarché cinéma théâtre stade zoo aéroport pont lac métro gant crayon cahier timbre",
        "couteau rideau anniversaire match concert mariage voyage rêve bruit doigt nez dos genou",
    )
    for word in row.split()
)
FEMININE = frozenset(
    word
    for row in (
        "personne grand-mère tante plage bibliothèque route forêt université entreprise équipe",
        "classe leçon loi communauté famille guerre politique histoire liste page étude question",
        "réponse langue idée raison ligne couleur partie règle position valeur santé expérience",
        "différence décision main tête chanson montre musique chose caméra carte nourriture bière",
        "carotte tomate saucisse confiture poire fraise cerise pêche limonade assiette douche",
        "infirmière agricultrice copine nièce maman mamie tortue abeille araignée armoire étagère",
        "boulangerie pharmacie place usine ferme rivière mer montagne île piscine capitale jupe",
        "chaussette écharpe botte cravate casquette règle gomme fourchette cuillère horloge bague",
        "jambe oreille bouche dent gorge épaule réunion neige lune étoile addition recette adresse",
        "pizza soupe voiture maison école fille sœur mère reine table chaise clé fleur lampe",
    )
    for word in row.split()
)
_MALE = frozenset(("le", "un", "ce", "cet", "du", "au"))
_FEMALE = frozenset(("la", "une", "cette", "ma", "ta", "sa"))


def draw(name: str, seed: int, times: int = 3) -> list[Example]:
    """Draw each pattern of a construction so many times."""
    pick = Pick(random.Random(f"{name} {seed}").random)
    found = []
    for pattern in dict.fromkeys(patterns_of(name)):
        for _ in range(times):
            sentence = Sentence(name)
            say_pattern(sentence, pick, pattern)
            pieces = join_french_words(sentence.french)
            found.append(make_example(sentence, pieces, Style(False, "")))
    return found


def words_of(text: str) -> list[str]:
    return re.findall(r"[\wœ-]+'|[\wœ-]+", text.lower())


def problems_of(example: Example) -> list[str]:
    """List faults of elision, contraction and gender."""
    words = words_of(example.target)
    found = []
    for place, (word, after) in enumerate(pairwise(words)):
        is_vowel = after == "y" or bool(
            re.match(r"[aeiouàâéèêîôûœ]|h(?!arpe|aut|enni|uit|amburger|aricot|ockey|onte)", after)
        )
        if word in ("le", "la", "de", "que", "je", "ne", "se", "me", "te") and is_vowel:
            # *La onze* and *le onze* keep their vowel.
            found.append(f"{word} {after}" if after != "onze" else "")
        if word in ("si", "s'") and after in ("il", "ils") and word == "si":
            found.append(f"{word} {after}")
        if word == "de" and after in ("de", "d'", "du", "des"):
            found.append(f"{word} {after}")
        if word in ("de", "à") and after in ("le", "les"):
            # An object pronoun before an infinitive is not contracted.
            then = words[place + 2] if place + 2 < len(words) else ""
            if not re.search(_INFINITIVE, then):
                found.append(f"{word} {after} {then}")
        if (word in _MALE and after in FEMININE) or (word in _FEMALE and after in MASCULINE):
            found.append(f"{word} {after}")
    return [one for one in found if one]


@pytest.mark.parametrize("name", COURSE)
def test_sentences_of_a_construction_are_right_french(name: str) -> None:
    for example in draw(name, 1):
        assert re.search(SHAPES[name], example.target.lower()), example
        assert not problems_of(example), (example.target, problems_of(example))
        assert not re.search(r"[$^@~:]", example.source + example.target), example
        targets = {j for _, j in example.alignment}
        missing = set(range(len(example.target.split(" ")))) - targets
        # French says *que* where English leaves it out.
        assert all(example.target.split(" ")[j] == "que" for j in missing), example


@pytest.mark.parametrize(
    "wrong",
    ["de le parc", "à les lois", "si il pleut", "la idée", "un idée", "le entreprise", "de d'aide"],
)
def test_guard_wrong_french_is_found(wrong: str) -> None:
    assert problems_of(Example("", wrong, (), (), ""))


def test_object_pronoun_before_an_infinitive_is_not_contracted() -> None:
    words = [Word("à", ()), Word("les", (), is_pronoun=True), Word("lire", ())]
    assert [word.text for word in join_french_words(words)] == ["à", "les", "lire"]
    article = [Word("à", ()), Word("les", ()), Word("lois", ())]
    assert [word.text for word in join_french_words(article)] == ["aux", "lois"]


def test_if_is_elided_before_il_only() -> None:
    assert join_french_words([Word("si", (0,)), Word("il", (1,))])[0].text == "s'il"
    assert len(join_french_words([Word("si", (0,)), Word("elle", (1,))])) == 2


def test_each_of_the_500_most_frequent_words_is_drawn_or_left_out_for_a_reason() -> None:
    text = files("pellucid.corpora.course").joinpath("frequent.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)
    drawn = [word for group in rows["drawn"].values() for word in group.split()]
    left_out = [word for group in rows["left_out"].values() for word in group.split()]
    assert len({*drawn, *left_out}) == len(drawn) + len(left_out) == 500
    assert len(left_out) <= 30
    sources = [example.source for name in COURSE for example in draw(name, 2, times=40)]
    sources += [example.source for example in make_split("train", count=3000)]
    said = {word for source in sources for word in re.findall(r"[a-z]+", source.lower())}
    assert not [word for word in drawn if word.lower() not in said]


def test_every_construction_is_in_the_text_and_the_older_ones_remain() -> None:
    examples = make_split("train", count=6000, grammar="course")
    said = {example.construction for example in examples}
    assert said >= COURSE.keys()
    assert said >= {example.construction for example in make_split("train", count=1500)}
    share = sum(example.construction in COURSE for example in examples) / len(examples)
    assert 0.6 < share < 0.8


def test_course_is_a_function_of_the_seed() -> None:
    some = make_split("test", seed=3, count=60, grammar="course")
    assert some == make_split("test", seed=3, count=60, grammar="course")
    assert some[:20] == make_split("test", seed=3, count=20, grammar="course")
    assert some != make_split("test", seed=4, count=60, grammar="course")


def test_nobody_is_cold_as_a_soup_is() -> None:
    examples = make_split("train", count=4000, grammar="course")
    cold = [e.target for e in examples if re.search(r"\bI (?:am|was) (?:very )?cold", e.source)]
    assert all("froid" in target and "suis" not in target for target in cold)
    soup = Sentence("", ["it", "is", "cold"], [Word("il", (0,)), Word("est", (1,))])
    assert is_felt(soup)
