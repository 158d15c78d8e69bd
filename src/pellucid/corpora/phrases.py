"""Phrases that many constructions use: a noun and its adjective, a predicate, a pronoun."""

from __future__ import annotations

from pellucid.corpora.lexicon import Noun, Phrase, Verb, adjectives_of
from pellucid.corpora.picking import Pick
from pellucid.corpora.sentence import Article, Entity, Sentence


def say_noun(
    sentence: Sentence,
    pick: Pick,
    noun: Noun,
    *,
    is_plural: bool,
    described: float,
    article: Article = "the",
) -> Entity:
    """Say an article and a noun, with an adjective at the probability ``described``."""
    adjective = None
    if pick.chance(described) and (options := adjectives_of(noun.kind)):
        adjective = pick.one(options)
    return sentence.noun_phrase(article, noun, is_plural=is_plural, adjective=adjective)


def say_subject(sentence: Sentence, pick: Pick, noun: Noun, *, is_plural: bool) -> Entity:
    """Say *the* and a noun, one time in three with an adjective."""
    return say_noun(sentence, pick, noun, is_plural=is_plural, described=1 / 3)


def say_object(sentence: Sentence, pick: Pick, noun: Noun, article: Article) -> Entity:
    """Say an article and a noun; *a* and *some* replace each other as the noun requires."""
    is_plural = not noun.is_mass and (article == "no" or pick.chance(0.3))
    if article == "a" and (noun.is_mass or is_plural):
        article = "some"
    elif article == "some" and not noun.is_mass and not is_plural:
        article = "a"
    described = 0.4 if article != "no" else 0.0
    return say_noun(sentence, pick, noun, is_plural=is_plural, described=described, article=article)


def say_adjective(sentence: Sentence, subject: Entity, english: str, french: str) -> None:
    """Say an adjective of a noun after *is*."""
    sentence.combine("adjective", english, subject.noun)
    sentence.say(english, f"@{french}:0", subject)


def say_predicate(sentence: Sentence, subject: Entity, phrase: Phrase) -> None:
    """Say what a noun did or was; *was* becomes *were* in the plural."""
    english = phrase.english
    if subject.is_plural and english.startswith("was "):
        english = "were " + english.removeprefix("was ")
    sentence.combine("predicate", phrase.english, subject.noun)
    sentence.say(english, phrase.french, subject)


def say_object_pronoun(
    sentence: Sentence, antecedent: Entity, verb: Verb, *, is_past: bool, agent: Entity
) -> None:
    """Say a verb and its object as a pronoun: *read it*, in French *l'a lue* or *la lit*."""
    sentence.combine("object", verb.name, antecedent.noun)
    index = len(sentence.english)
    english = "them" if antecedent.is_plural else "it"
    french = "les" if antecedent.is_plural else "le" if antecedent.noun.gender == "m" else "la"
    sentence.english.append(verb.past if is_past else verb.english_third)
    sentence.pronoun(english, french, antecedent)
    links = "0"
    if verb.particle:
        sentence.english.append(verb.particle)
        links = "0,2"
    forms = f"{'ont' if agent.is_plural else 'a'}:0 @{verb.participle}:{links}"
    # The English words are there already, and the French verb comes after its pronoun. So the verb
    # is said in an empty sentence, and its links are moved to where the English verb is.
    verb_only = Sentence("")
    verb_only.say("", forms if is_past else f"{verb.il}:{links}", antecedent)
    sentence.french += [
        word._replace(links=tuple(index + link for link in word.links)) for word in verb_only.french
    ]
