"""The free sentences: statements, questions, orders, two clauses, titles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pellucid.corpora.lexicon import KINDS, NATIONALITIES, PREDICATES, RELATIONAL, nouns_of
from pellucid.corpora.open.everyday import draw_state, draw_timed, draw_two_pronouns
from pellucid.corpora.open.open_questions import draw_free_question
from pellucid.corpora.open.open_words import TRANSITIVES
from pellucid.corpora.open.orders import draw_free_order, draw_free_suggestion
from pellucid.corpora.open.phrases import draw_adjectives, say_free_phrase, say_of, say_phrase
from pellucid.corpora.open.predicates import (
    say_action,
    say_open_predicate,
    say_place,
    say_quality,
    settle,
)
from pellucid.corpora.open.relatives import draw_relative
from pellucid.corpora.open.subjects import (
    PRONOUNS,
    Subject,
    draw_noun,
    say_open_subject,
    say_pronoun,
    subject_of,
)
from pellucid.corpora.open.two_clauses import (
    draw_animal,
    draw_free_found,
    draw_free_told,
    draw_two_clauses,
    draw_with_pronoun,
)
from pellucid.corpora.open.verbs import Manner, draw_manner, say_be, say_state, say_verb
from pellucid.corpora.open.where import say_where
from pellucid.corpora.sentence import Pick, Sentence


def _draw_statement(pick: Pick) -> Sentence:
    """Draw a subject and a predicate: *my little dog did not eat the soup*."""
    sentence = Sentence("open statement")
    if pick.chance(0.03):
        sentence.say("then", "puis:0")
    subject = say_open_subject(sentence, pick)
    if subject.english == "it":
        _say_of_it(sentence, pick, subject)
    else:
        say_open_predicate(sentence, pick, subject)
    if pick.chance(0.04):
        sentence.say("and", "et:0")
        say_open_predicate(sentence, pick, subject)
    return sentence


def _say_of_it(sentence: Sentence, pick: Pick, subject: Subject) -> None:
    """Say something of *it* that stands for nothing said: *it is good*, in French *c'est bon*."""
    if pick.chance(0.35):
        pick.one((say_place, say_action, _say_taste))(sentence, pick, subject)
    elif pick.chance(0.55):
        _say_this(sentence)
        say_quality(sentence, pick, subject)
    else:
        _say_this(sentence)
        manner = replace(draw_manner(pick, subject, is_stative=True), negation="")
        say_be(sentence, subject, manner)
        say_free_phrase(sentence, pick, draw_noun(pick, animate=0.4), "subject", is_plural=False)


def _say_taste(sentence: Sentence, pick: Pick, subject: Subject) -> None:
    """Say *it tasted good*, *it sounds good*, *it had a flat tire*."""
    phrases = [
        phrase
        for kind in PREDICATES
        for phrase in PREDICATES[kind]
        if not phrase.english.startswith("was ")
    ]
    say_state(sentence, subject, pick.one(phrases), Manner(pick.one(("past", "present"))))


def _say_this(sentence: Sentence) -> None:
    """Make the French pronoun *ce*."""
    sentence.french[-1] = sentence.french[-1]._replace(text="ce")


def _draw_identity(pick: Pick) -> Sentence:
    """Draw *she is an actress*, *this is my house*, in French *c'est une actrice, ma maison*."""
    sentence = Sentence("open identity")
    if pick.chance(0.4):
        return _draw_pointing(sentence, pick)
    pronoun = pick.one([one for one in PRONOUNS if one[0] in ("he", "she", "they", "it")])
    subject = say_pronoun(sentence, pronoun)
    _say_this(sentence)
    noun = draw_noun(pick, animate=0.6)
    if pronoun[0] in ("he", "she"):
        noun = pick.one([one for one in KINDS["person"] if one.gender == pronoun[3]])
    while noun.english == noun.english_plural or noun.is_mass:
        noun = draw_noun(pick, animate=0.6)
    say_be(sentence, subject, Manner(pick.one(("present", "present", "past"))))
    is_plural = subject.is_plural
    determiner = "bare" if is_plural else pick.one(("a", "a", "a", "the", "my", "our"))
    adjectives = draw_adjectives(pick, noun)
    say_phrase(sentence, noun, determiner, is_plural=is_plural, adjectives=adjectives)
    return sentence


def _draw_pointing(sentence: Sentence, pick: Pick) -> Sentence:
    """Draw *this is my house*, *those were bad books*, *that is good*."""
    is_plural = pick.chance(0.25)
    english = pick.one(("these", "those") if is_plural else ("this", "that", "that"))
    subject = say_pronoun(sentence, (english, "ce", 4 if is_plural else 2, "m"))
    manner = replace(draw_manner(pick, subject, is_stative=True), tense=pick.of("present 3, past"))
    if not is_plural and pick.chance(0.35):
        say_quality(sentence, pick, replace(subject, kind=None), manner)
        return sentence
    say_be(sentence, subject, manner)
    noun = draw_noun(pick, animate=0.4)
    say_free_phrase(sentence, pick, noun, "place", is_plural=is_plural)
    return sentence


def _draw_there(pick: Pick) -> Sentence:
    """Draw *there is a cat in the house*, in French *il y a un chat dans la maison*."""
    sentence = Sentence("there is")
    is_past = pick.chance(0.4)
    negation = pick.chance(0.25)
    noun = draw_noun(pick, animate=0.35)
    while noun.english == noun.english_plural:
        noun = draw_noun(pick, animate=0.35)
    is_plural = not noun.is_mass and pick.chance(0.4)
    be = ("were" if is_plural else "was") if is_past else "are" if is_plural else "is"
    verb = "avait" if is_past else "a"
    if negation and pick.chance(0.5):
        sentence.say(f"there {be}", f"il:0 ne:2 y:0 {verb}:1 pas:2")
        determiner = "no"
    elif negation:
        is_one = pick.chance(0.5)
        be, place = (be + "n't", 1) if is_one else (be + " not", 2)
        sentence.say(f"there {be}", f"il:0 ne:{place} y:0 {verb}:1 pas:{place}")
        determiner = "any" if noun.is_mass or is_plural else "not a"
    else:
        sentence.say(f"there {be}", f"il:0 y:0 {verb}:1")
        determiner = "some" if noun.is_mass else "a"
        if is_plural:
            determiner = pick.one(("bare", "some", "two", "three", "four"))
    adjectives = () if determiner == "no" else draw_adjectives(pick, noun)
    say_phrase(sentence, noun, determiner, is_plural=is_plural, adjectives=adjectives)
    if pick.chance(0.8):
        say_where(sentence, pick)
    return sentence


def _draw_title(pick: Pick) -> Sentence:
    """Draw a noun phrase: *the little dog*, *European area*, *a glass of water*."""
    sentence = Sentence("title", mood="name")
    noun = draw_noun(pick, animate=0.35)
    is_plural = not noun.is_mass and noun.english != noun.english_plural and pick.chance(0.3)
    adjectives = draw_adjectives(pick, noun, 0.75)
    if noun.english == noun.english_plural or pick.chance(0.5):
        say_free_phrase(sentence, pick, noun, "subject", is_plural=is_plural, described=0.75)
    else:
        determiner = pick.one(("the", "the", "title", "title", "title", "my"))
        say_phrase(sentence, noun, determiner, is_plural=is_plural, adjectives=adjectives)
    choice = pick.one(("", "", "", "of", "place", "and"))
    if choice == "of" and noun.english != noun.english_plural:
        say_of(sentence, pick, draw_noun(pick, animate=0.4))
    elif choice == "place":
        say_where(sentence, pick)
    elif choice == "and":
        sentence.say("and", "et:0")
        say_free_phrase(sentence, pick, draw_noun(pick), "subject")
    return sentence


def _draw_institution_title(pick: Pick) -> Sentence:
    """Draw a name such as *the European economic area*, with any determiner or a predicate."""
    sentence = Sentence("institution name", mood="name")
    noun = pick.one(KINDS["institution"])
    is_plural = pick.chance(0.25)
    number = pick.one((1, 2, 2))
    adjectives = [pick.one(NATIONALITIES), pick.one(RELATIONAL)]
    if number == 1:
        adjectives = [pick.one(adjectives)]
    elif pick.chance(0.15):
        adjectives[0] = pick.one(draw_adjectives(pick, noun, 1.0))
        if adjectives[0] in RELATIONAL:
            adjectives = adjectives[:1]
    determiner = pick.one(("the", "the", "the", "a", "title", "our", "my", "your", "their"))
    if determiner == "a" and is_plural:
        determiner = "the"
    entity = say_phrase(
        sentence, noun, determiner, is_plural=is_plural, adjectives=tuple(adjectives)
    )
    if determiner != "title" and pick.chance(0.4):
        sentence.mood = "statement"
        say_open_predicate(sentence, pick, subject_of(entity))
    return sentence


def _draw_of(pick: Pick) -> Sentence:
    """Draw a subject with *of*: *the walls of the house are thick*, *the sound of the harp*."""
    sentence = Sentence("of")
    noun = pick.one(nouns_of("part", "detail", "part", "detail", "person", "text", "institution"))
    if pick.chance(0.3):
        noun = draw_noun(pick, animate=0.3)
    if noun.english == noun.english_plural:
        noun = pick.one(KINDS["part"])
    is_plural = not noun.is_mass and pick.chance(0.3)
    entity = say_phrase(
        sentence, noun, "the", is_plural=is_plural, adjectives=draw_adjectives(pick, noun, 0.25)
    )
    say_of(sentence, pick, draw_noun(pick, animate=0.4))
    say_open_predicate(sentence, pick, subject_of(entity))
    return sentence


def _draw_exclamation(pick: Pick) -> Sentence:
    """Draw *not on your table!*, in French *pas sur ta table !*."""
    sentence = Sentence("not", mood="order")
    sentence.say("not", "pas:0")
    if pick.chance(0.5):
        english, french = pick.one((("on", "sur:0"), ("in", "dans:0"), ("under", "sous:0")))
        sentence.say(english, french)
        noun = pick.one(
            nouns_of("furniture", "clothes", "container", "vehicle", "building", "text")
        )
        determiner = pick.one(("my", "your", "your", "the", "his", "her", "our"))
        adjectives = draw_adjectives(pick, noun, 0.6)
        say_phrase(sentence, noun, determiner, is_plural=pick.chance(0.2), adjectives=adjectives)
        return sentence
    say_where(sentence, pick)
    return sentence


def _draw_measure(pick: Pick) -> Sentence:
    """Draw *she drinks a glass of cold water*, *there are two bottles of wine on the table*."""
    sentence = Sentence("open measure")
    measure = pick.one(KINDS["measure"])
    contents = pick.one(KINDS["drink"])
    is_title = pick.chance(0.2)
    if is_title:
        sentence.mood = "name"
    else:
        subject = say_open_subject(sentence, pick, animate=0.95)
        verb = pick.one([v for v in TRANSITIVES if v.english.base in _OF_MEASURES])
        manner = settle(replace(draw_manner(pick), negation=""), subject, verb)
        say_verb(sentence, subject, verb.english, verb.french, manner)
        sentence.combine("object", verb.english.base, contents)
    is_plural = pick.chance(0.3)
    determiner = pick.one(("two", "three", "four")) if is_plural else pick.one(("a", "the", "my"))
    say_phrase(
        sentence,
        measure,
        determiner,
        is_plural=is_plural,
        adjectives=draw_adjectives(pick, measure, 0.15),
    )
    sentence.say("of", "de:0")
    say_phrase(sentence, contents, "title", adjectives=draw_adjectives(pick, contents, 0.15))
    return sentence


_OF_MEASURES = ("drink", "buy", "find", "see", "sell", "bring", "like")

FREE_CONSTRUCTIONS: dict[str, tuple[Callable[[Pick], Sentence], int]] = {
    "open statement": (_draw_statement, 54),
    "open identity": (_draw_identity, 7),
    "there is": (_draw_there, 6),
    "title": (_draw_title, 12),
    "institution name": (_draw_institution_title, 4),
    "of": (_draw_of, 5),
    "not": (_draw_exclamation, 4),
    "open measure": (_draw_measure, 3),
    "relative": (draw_relative, 26),
    "state": (draw_state, 8),
    "two pronouns": (draw_two_pronouns, 12),
    "timed": (draw_timed, 10),
    "animal": (draw_animal, 10),
    "open question": (draw_free_question, 20),
    "open order": (draw_free_order, 34),
    "open suggestion": (draw_free_suggestion, 16),
    "two clauses": (draw_two_clauses, 14),
    "open told": (draw_free_told, 6),
    "open found": (draw_free_found, 5),
    "open pronoun": (draw_with_pronoun, 16),
}
"""Every construction of the free sentences, with its weight in drawing."""
