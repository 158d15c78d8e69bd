"""Relative clauses: *the man who sold his house*, *the pizza that the dog ate*."""

from __future__ import annotations

from pellucid.corpora.french import Word
from pellucid.corpora.lexicon import Noun
from pellucid.corpora.open.open_words import DITRANSITIVES, TRANSITIVES, Tense
from pellucid.corpora.open.phrases import say_free_phrase
from pellucid.corpora.open.predicates import (
    draw_object,
    object_role,
    say_open_predicate,
    settle,
    takes,
)
from pellucid.corpora.open.subjects import (
    PRONOUNS,
    Subject,
    draw_noun,
    say_open_subject,
    say_pronoun,
    subject_of,
)
from pellucid.corpora.open.verbs import INDIRECT, Manner, draw_manner, say_verb
from pellucid.corpora.sentence import Entity, Pick, Sentence

_OBJECT_WORDS = {"who": ("that", "who", "whom", ""), "that": ("that", "that", "which", "")}
_POINTING = (
    ("this is", "ce:0 est:1"),
    ("that is", "ce:0 est:1"),
    ("it is", "ce:0 est:1"),
    ("there is", "il:0 y:0 a:1"),
    ("where is", "où:0 est:1"),
    ("who is", "qui:0 est:1"),
)


def draw_relative(pick: Pick) -> Sentence:
    """Draw a sentence in which a noun has a relative clause."""
    sentence = Sentence("relative")
    choice = pick.of("subject 10, object 7, pointing 3")
    if choice == "object":
        return _draw_with_object(sentence, pick)
    if choice == "pointing":
        return _draw_pointing(sentence, pick)
    entity = _say_head(sentence, pick, _draw_common(pick, animate=0.6), "subject")
    _say_clause(sentence, pick, entity)
    say_open_predicate(sentence, pick, subject_of(entity))
    return sentence


def _draw_common(pick: Pick, *, animate: float) -> Noun:
    """Draw a noun other than a name."""
    noun = draw_noun(pick, animate=animate)
    while noun.english == noun.english_plural:
        noun = draw_noun(pick, animate=animate)
    return noun


def _say_head(sentence: Sentence, pick: Pick, noun: Noun, role: str) -> Entity:
    return say_free_phrase(sentence, pick, noun, role, described=0.2)


def _draw_with_object(sentence: Sentence, pick: Pick) -> Sentence:
    """Draw *I know the girl who bought the hat*."""
    subject = say_open_subject(sentence, pick, pronoun=0.5, animate=0.9, described=0.15)
    verb = pick.one(TRANSITIVES)
    manner = settle(draw_manner(pick, subject, is_stative=verb.is_stative), subject, verb)
    noun = draw_object(pick, verb, subject)
    while noun.english == noun.english_plural:
        noun = draw_object(pick, verb, subject)
    say_verb(sentence, subject, verb.english, verb.french, manner, particle=verb.particle)
    sentence.combine("object", verb.english.base, noun)
    entity = _say_head(sentence, pick, noun, object_role(verb, manner))
    _say_clause(sentence, pick, entity)
    return sentence


def _draw_pointing(sentence: Sentence, pick: Pick) -> Sentence:
    """Draw *this is the dog that ate my pizza*, *where is the book that you bought*."""
    english, french = pick.one(_POINTING)
    if english[0] == "w":
        sentence.mood = "question"
    sentence.say(english, french)
    noun = _draw_common(pick, animate=1.0 if english == "who is" else 0.5)
    entity = say_free_phrase(sentence, pick, noun, "place", is_plural=False, described=0.2)
    if entity.is_plural:  # a number made it plural
        return draw_relative(pick)
    _say_clause(sentence, pick, entity)
    return sentence


def _say_clause(sentence: Sentence, pick: Pick, entity: Entity) -> None:
    """Say *who* and a predicate, or *that*, a subject and a verb whose object the noun is."""
    noun = entity.noun
    verbs = [verb for verb in TRANSITIVES if noun.kind in verb.kinds]
    if pick.chance(0.5):
        words = ("who", "who", "that") if noun.kind == "person" else ("that", "that", "which")
        sentence.say(pick.one(words), "qui:0")
        say_open_predicate(sentence, pick, subject_of(entity))
        return
    if word := pick.one(_OBJECT_WORDS["who" if noun.kind == "person" else "that"]):
        sentence.say(word, "que:0")
    else:
        sentence.french.append(Word("que", ()))
    subject = _say_agent(sentence, pick, noun)
    verb = pick.one(verbs)
    tense: Tense = pick.one(("past", "past", "present", "progressive", "past progressive"))
    negation = pick.of("not 2, n't") if pick.chance(0.12) else ""
    manner = settle(Manner(tense, negation), subject, verb)
    sentence.combine("object", verb.english.base, noun)
    clitic = None
    if verb in DITRANSITIVES and pick.chance(0.6):
        clitic = pick.one([one for one in INDIRECT if takes(TRANSITIVES[0], one, subject)])
    say_verb(
        sentence,
        subject,
        verb.english,
        verb.french,
        manner,
        particle=verb.particle,
        clitic=clitic,
        moved=entity,
    )


def _say_agent(sentence: Sentence, pick: Pick, noun: Noun) -> Subject:
    """Say who acts on a noun: a pronoun other than *it*, or another person or animal."""
    if pick.chance(0.5):
        return say_pronoun(sentence, pick.one(PRONOUNS[:-1]))
    agent = draw_noun(pick, animate=1.0)
    while agent is noun:
        agent = draw_noun(pick, animate=1.0)
    return subject_of(say_free_phrase(sentence, pick, agent, "place", plural=0.2, described=0.15))
