"""Sentences from one speaker to another: orders, suggestions, questions, and sentences with *I*."""

from __future__ import annotations

from pellucid.corpora.lexicon import KINDS, PLACES, VERBS, Verb, nouns_of, verbs_named
from pellucid.corpora.sentence import Article, Pick, Sentence, say_object, say_subject

_THINGS = nouns_of("vehicle", "instrument", "text", "clothes", "container", "furniture", "fruit")
# Things that one person can give to another.
_GIVEN = nouns_of("instrument", "text", "clothes", "fruit", "food", "drink", "money")
_GIVING = (("Show", "montre"), ("Give", "donne"), ("Bring", "apporte"), ("Lend", "prête"))
_LET_US = (("eat", "mangeons"), ("visit", "visitons"), ("read", "lisons"), ("buy", "achetons"))
_LET_US_SOMEWHERE = (("sing", "chantons"), ("dance", "dansons"), ("sleep", "dormons"))
_ORDERED = verbs_named("sell", "eat", "translate", "park", "drive", "feed", "visit", "empty")
# "I read" and "I put" are missing because their tense would be ambiguous.
_OWN = (*_ORDERED, *verbs_named("see", "like", "buy", "iron"))


def draw_order(pick: Pick) -> Sentence:
    """Draw a sentence such as *show me the money*, *help the man*, *eat the apple*."""
    sentence = Sentence("order", mood="order")
    article: Article = pick.one(("the", "the", "a", "some"))
    if pick.chance(0.6):
        english, french = pick.one(_GIVING)
        sentence.say(f"{english.lower()} me", f"{french}-moi:0,1")
        noun = pick.one(_GIVEN)
        say_object(sentence, pick, noun, article)
        return sentence
    if pick.chance(0.25):
        sentence.say("help", "aide:0")
        say_object(sentence, pick, pick.one(KINDS["person"]), "the")
        return sentence
    verb = pick.one(_ORDERED)
    return _say_verb_and_object(sentence, pick, verb, verb.name, f"{verb.je}:0")


def draw_lets(pick: Pick) -> Sentence:
    """Draw a sentence such as *let's go to the station*, in French *allons à la gare*."""
    sentence = Sentence("let's", mood="order")
    choice = pick.one(("place", "object", "object", "somewhere"))
    if choice == "place":
        sentence.say("let's go to", "allons:0,1 à:2")
        say_subject(sentence, pick, pick.one(KINDS["building"]), is_plural=False)
    elif choice == "somewhere":
        english, french = pick.one(_LET_US_SOMEWHERE)
        sentence.say(f"let's {english}", f"{french}:0,1")
        sentence.say(*pick.one((*PLACES, ("in", "dans:0"))))
        say_subject(sentence, pick, pick.one(KINDS["building"]), is_plural=False)
    else:
        english, french = pick.one(_LET_US)
        (verb,) = verbs_named(english)
        noun = pick.one(nouns_of(*verb.kinds))
        sentence.say(f"let's {english}", f"{french}:0,1")
        sentence.combine("object", english, noun)
        say_object(sentence, pick, noun, pick.one(("the", "some")))
    return sentence


def draw_first_person(pick: Pick) -> Sentence:
    """Draw a sentence such as *I have an apple*, in French *j'ai*, or *I buy the violin*."""
    sentence = Sentence("first person")
    if pick.chance(0.4):
        sentence.say("I have", "je:0 ai:1")
        say_object(sentence, pick, pick.one(_THINGS), "a")
        return sentence
    verb = pick.one(_OWN)
    return _say_verb_and_object(
        sentence, pick, verb, f"I {verb.english_first}", f"je:0 {verb.je}:1"
    )


def draw_question(pick: Pick) -> Sentence:
    """Draw a sentence such as *where is the station*, *who bought the car*."""
    sentence = Sentence("question", mood="question")
    if pick.chance(0.5):
        noun = pick.one((*_THINGS, *nouns_of("building", "animal", "person")))
        is_plural = pick.chance(0.3)
        sentence.say(
            "where are" if is_plural else "where is",
            "où:0 sont:1" if is_plural else "où:0 est:1",
        )
        say_subject(sentence, pick, noun, is_plural=is_plural)
        return sentence
    verb = pick.one(VERBS)
    english = f"who {verb.past} {verb.particle}"
    french = f"qui:0 a:1 {verb.participle}:{'1,2' if verb.particle else '1'}"
    return _say_verb_and_object(sentence, pick, verb, english, french)


def _say_verb_and_object(
    sentence: Sentence, pick: Pick, verb: Verb, english: str, french: str
) -> Sentence:
    noun = pick.one(nouns_of(*verb.kinds))
    sentence.say(english, french)
    sentence.combine("object", verb.name, noun)
    say_object(sentence, pick, noun, "the")
    return sentence
