"""Questions: *does the dog eat soup*, *is she in Paris*, *who has my book*, *what did he buy*."""

from __future__ import annotations

from pellucid.corpora.french import Word
from pellucid.corpora.lexicon import nouns_of
from pellucid.corpora.open.open_words import AT_BE, MOTIONS, TRANSITIVES, Tense
from pellucid.corpora.open.phrases import draw_adjectives, say_free_phrase, say_name, say_phrase
from pellucid.corpora.open.predicates import (
    say_act,
    say_action,
    say_condition,
    say_open_predicate,
    say_place,
    say_quality,
    say_simple,
)
from pellucid.corpora.open.subjects import PRONOUNS, Subject, draw_noun, say_pronoun, subject_of
from pellucid.corpora.open.verbs import Manner, be_form, say_be, say_question_auxiliary, say_verb
from pellucid.corpora.open.where import say_where
from pellucid.corpora.sentence import Pick, Sentence

_ASKED = tuple(pronoun for pronoun in PRONOUNS if pronoun[0] != "it")


def draw_free_question(pick: Pick) -> Sentence:
    """Draw a question of any kind."""
    sentence = Sentence("open question", mood="question")
    pick.one(_KINDS)(sentence, pick)
    return sentence


def _say_asked(
    sentence: Sentence, pick: Pick, *, is_be: bool, manner: Manner
) -> tuple[Subject, Manner]:
    """Say the auxiliary and the subject of a question."""
    index = len(sentence.english)
    if pick.chance(0.35):
        pronoun = pick.one(_ASKED)
        manner = say_question_auxiliary(sentence, pronoun[2], manner, is_be=is_be)
        return say_pronoun(sentence, pronoun), manner
    # The auxiliary depends on the subject's number, so it is drawn first.
    noun = draw_noun(pick, animate=0.7 if not is_be else 0.5)
    is_name = noun.english == noun.english_plural
    is_plural = not noun.is_mass and not is_name and pick.chance(0.25)
    asked = say_question_auxiliary(sentence, 4 if is_plural else 2, manner, is_be=is_be)
    if is_name:
        entity = say_name(sentence, noun)
    else:
        entity = say_free_phrase(sentence, pick, noun, "place", is_plural=is_plural, described=0.25)
    if entity.is_plural != is_plural:
        # A number made it plural: *does* becomes *do*.
        old = sentence.english[index]
        sentence.english[index] = {"does": "do", "is": "are", "was": "were"}.get(old, old)
    return subject_of(entity), asked


def _ask_action(sentence: Sentence, pick: Pick) -> None:
    """Ask *does the dog like the cat*, *did you go to the station*."""
    manner = Manner(pick.one(("present", "past", "past")))
    subject, manner = _say_asked(sentence, pick, is_be=False, manner=manner)
    say_action(sentence, pick, subject, manner)


def _ask_progressive(sentence: Sentence, pick: Pick) -> None:
    """Ask *is the dog eating the soup*."""
    tense: Tense = pick.one(("progressive", "progressive", "past progressive"))
    subject, manner = _say_asked(sentence, pick, is_be=True, manner=Manner(tense))
    verb = pick.one([verb for verb in TRANSITIVES if not verb.is_stative])
    say_act(sentence, pick, subject, manner, verb=verb)


def _ask_being(sentence: Sentence, pick: Pick) -> None:
    """Ask *is the soup good*, *were the boys in the car*, *is it cold*."""
    manner = Manner(pick.one(("present", "present", "past")))
    if pick.chance(0.1):
        asked = say_question_auxiliary(sentence, 2, manner, is_be=True)
        sentence.french.append(Word("ce", (len(sentence.english),)))
        sentence.english.append("it")
        it = Subject(2, "m", None, "it")
        if pick.chance(0.6):
            say_quality(sentence, pick, it, asked)
            return
        say_be(sentence, it, asked)
        noun = draw_noun(pick, animate=0.5)
        say_free_phrase(sentence, pick, noun, "subject", is_plural=False)
        return
    subject, manner = _say_asked(sentence, pick, is_be=True, manner=manner)
    choice = pick.one(("place", "place", "quality", "quality", "quality", "condition"))
    if choice == "place":
        say_place(sentence, pick, subject, manner)
    elif choice == "condition":
        say_condition(sentence, pick, subject, manner)
    else:
        say_quality(sentence, pick, subject, manner)


def _ask_who(sentence: Sentence, pick: Pick) -> None:
    """Ask *who bought the car*, *who is in the house*, *who was sick*."""
    index = len(sentence.english)
    sentence.english.append("who")
    sentence.french.append(Word("qui", (index,)))
    subject = Subject(2, "m", "person", "who")
    if pick.chance(0.2):
        _say_who_it_is(sentence, pick)
        return
    if pick.chance(0.6):
        tense: Tense = pick.one(("present", "past", "past", "progressive"))
        say_action(sentence, pick, subject, Manner(tense))
        return
    say_open_predicate(sentence, pick, subject, Manner(pick.one(("present", "past"))))


def _say_who_it_is(sentence: Sentence, pick: Pick) -> None:
    """Say *are you*, *is the old man*, after *who*: in French *es-tu*, *est le vieil homme*."""
    is_past = pick.chance(0.2)
    if pick.chance(0.5):
        english, french, person, gender = pick.one(_ASKED)
        subject = Subject(person, gender, "person", english)
        form = AT_BE.imperfect(person) if is_past else AT_BE.present[person]
        links = (len(sentence.english), len(sentence.english) + 1)
        sentence.english += [be_form(subject, is_past=is_past), english]
        sentence.french.append(Word(f"{form}-{french}", links))
        return
    noun = pick.one(nouns_of("person", "animal"))
    is_plural = pick.chance(0.25)
    subject = Subject(4 if is_plural else 2, noun.gender, noun.kind)
    say_be(sentence, subject, Manner("past" if is_past else "present"))
    determiner = pick.one(("the", "the", "your", "his", "her", "their"))
    adjectives = draw_adjectives(pick, noun)
    say_phrase(sentence, noun, determiner, is_plural=is_plural, adjectives=adjectives)


def _ask_what(sentence: Sentence, pick: Pick) -> None:
    """Ask *what did the dog eat*, in French *qu'est-ce que le chien a mangé*."""
    if pick.chance(0.04):
        sentence.say(f"what is {pick.of('this, that')}", "qu'est-ce:0,1 que:0 ce:2 est:1")
        return
    index = len(sentence.english)
    sentence.english.append("what")
    is_progressive = pick.chance(0.3)
    tense: Tense = "progressive" if is_progressive else pick.one(("present", "past", "past"))
    subject, manner = _say_asked(sentence, pick, is_be=is_progressive, manner=Manner(tense))
    place = next(i for i, word in enumerate(sentence.french) if word.text == "est-ce")
    links = (index, *sentence.french[place].links)
    sentence.french[place] = Word("qu'est-ce", links)
    verbs = [v for v in TRANSITIVES if not (is_progressive and v.is_stative) and not v.particle]
    verb = pick.one(verbs)
    say_verb(sentence, subject, verb.english, verb.french, manner)


def _ask_what_is_there(sentence: Sentence, pick: Pick) -> None:
    """Ask *what is in the box*, in French *qu'est-ce qu'il y a dans la boîte*."""
    is_past = pick.chance(0.3)
    sentence.say(
        "what was" if is_past else "what is",
        f"qu'est-ce:0 que:0 il:1 y:1 {'avait' if is_past else 'a'}:1",
    )
    say_where(sentence, pick)


def _ask_where(sentence: Sentence, pick: Pick) -> None:
    """Ask *where is my book*, *where did the man go*, *when did she arrive*, *where are you*."""
    if pick.chance(0.22):
        english, french = pick.one((("when", "quand"), ("when", "quand"), ("why", "pourquoi")))
        _ask_why(sentence, pick, english, french)
        return
    sentence.english.append("where")
    if pick.chance(0.3):
        subject, manner = _say_asked(sentence, pick, is_be=False, manner=Manner("past"))
        place = next(i for i, word in enumerate(sentence.french) if word.text == "est-ce")
        sentence.french.insert(place, Word("où", (0,)))
        verbs = [
            verb for verb in TRANSITIVES if verb.english.base in ("find", "see", "buy", "park")
        ]
        verb = pick.one(verbs)
        if pick.chance(0.5):
            going = MOTIONS[0]
            say_verb(sentence, subject, going.english, going.french, manner)
            return
        say_act(sentence, pick, subject, manner, verb=verb, may_have_place=False)
        return
    is_past = pick.chance(0.25)
    sentence.french.append(Word("où", (0,)))
    if pick.chance(0.35):
        pronoun = pick.one(_ASKED)
        subject = Subject(pronoun[2], pronoun[3], "person", pronoun[0])
        form = AT_BE.imperfect(pronoun[2]) if is_past else AT_BE.present[pronoun[2]]
        sentence.english += [be_form(subject, is_past=is_past), pronoun[0]]
        sentence.french.append(Word(f"{form}-{pronoun[1]}", (1, 2)))
        return
    noun = draw_noun(pick, animate=0.35)
    is_name = noun.english == noun.english_plural
    is_plural = not is_name and not noun.is_mass and pick.chance(0.3)
    subject = Subject(4 if is_plural else 2, noun.gender, noun.kind)
    form = AT_BE.imperfect(subject.person) if is_past else AT_BE.present[subject.person]
    sentence.french.append(Word(form, (len(sentence.english),)))
    sentence.english.append(be_form(subject, is_past=is_past))
    if is_name:
        say_name(sentence, noun)
        return
    determiner = pick.one(("the", "the", "the", "my", "your", "his", "her", "our", "their"))
    say_phrase(
        sentence, noun, determiner, is_plural=is_plural, adjectives=draw_adjectives(pick, noun)
    )


def _ask_why(sentence: Sentence, pick: Pick, english: str, french: str) -> None:
    """Ask *when did the bus arrive*, *why is the baby crying*, *why are you late*."""
    sentence.english.append(english)
    choice = pick.of("action 2, simple 3, crying 2, condition, quality")
    is_be = choice not in ("action", "simple")
    tense: Tense = "progressive" if choice == "crying" else pick.of("past 3, present")
    subject, manner = _say_asked(sentence, pick, is_be=is_be, manner=Manner(tense))
    place = next(i for i, word in enumerate(sentence.french) if word.text == "est-ce")
    sentence.french.insert(place, Word(french, (0,)))
    say = {"action": say_action, "condition": say_condition, "quality": say_quality}
    say.get(choice, say_simple)(sentence, pick, subject, manner)


def _ask_there(sentence: Sentence, pick: Pick) -> None:
    """Ask *is there a cat in the house*, in French *est-ce qu'il y a un chat*."""
    is_past = pick.chance(0.25)
    noun = draw_noun(pick, animate=0.3)
    while noun.english == noun.english_plural:
        noun = draw_noun(pick, animate=0.3)
    is_plural = not noun.is_mass and pick.chance(0.3)
    be = ("were" if is_plural else "was") if is_past else "are" if is_plural else "is"
    sentence.say(f"{be} there", f"est-ce:0 que:0 il:1 y:1 {'avait' if is_past else 'a'}:0")
    determiner = "some" if noun.is_mass or is_plural else "a"
    if determiner == "some" and pick.chance(0.4):
        # *Any* of a question is *some* in French.
        index = len(sentence.english)
        say_phrase(sentence, noun, "some", is_plural=is_plural)
        sentence.english[index] = "any"
    else:
        say_phrase(
            sentence, noun, determiner, is_plural=is_plural, adjectives=draw_adjectives(pick, noun)
        )
    if pick.chance(0.8):
        say_where(sentence, pick)


_KINDS = (
    _ask_action,
    _ask_action,
    _ask_action,
    _ask_progressive,
    _ask_being,
    _ask_being,
    _ask_being,
    _ask_who,
    _ask_who,
    _ask_what,
    _ask_what,
    _ask_where,
    _ask_where,
    _ask_where,
    _ask_there,
    _ask_what_is_there,
)
