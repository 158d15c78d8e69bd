"""Phrases that many constructions say: somebody, something, what it is like."""

from __future__ import annotations

from pellucid.corpora.lexicon import Noun
from pellucid.corpora.picking import Pick, adjective_for
from pellucid.corpora.sentence import Article, Combination, Entity, Sentence

__all__ = ["say_adjective", "say_object", "say_subject"]


def say_adjective(sentence: Sentence, subject: Entity, english: str, french: str) -> None:
    """Say an adjective of a noun after *is*."""
    sentence.combinations.append(Combination("adjective", english, subject.noun.english))
    sentence.say(english, f"@{french}:0", subject)


def say_subject(sentence: Sentence, pick: Pick, noun: Noun, *, is_plural: bool) -> Entity:
    """Say *the* and a noun, one time in three with an adjective."""
    adjective = adjective_for(pick, noun) if pick.chance(1 / 3) else None
    return sentence.noun_phrase("the", noun, is_plural=is_plural, adjective=adjective)


def say_object(sentence: Sentence, pick: Pick, noun: Noun, article: Article) -> Entity:
    """Say an article and a noun; *a* and *some* change places where the noun wants it."""
    is_plural = not noun.is_mass and (article == "no" or pick.chance(0.3))
    if article == "a" and (noun.is_mass or is_plural):
        article = "some"
    elif article == "some" and not noun.is_mass and not is_plural:
        article = "a"
    chance = 0.4 if article != "no" else 0.0
    adjective = adjective_for(pick, noun) if pick.chance(chance) else None
    return sentence.noun_phrase(article, noun, is_plural=is_plural, adjective=adjective)
