"""Slots of the course's patterns for subjects, nouns, adjectives and phrases."""

from __future__ import annotations

from pellucid.corpora.course.course_words import (
    COMPARED,
    DESCRIBING,
    NUMBERS,
    QUALITIES,
    SUBJECTS,
    SUBJECTS_DRAWN,
    TABLES,
    pool,
)
from pellucid.corpora.course.drawing import Drawing, Slot
from pellucid.corpora.french import Word, agree
from pellucid.corpora.lexicon import Noun
from pellucid.corpora.open.open_words import COLORS, OWNERS
from pellucid.corpora.open.phrases import say_free_phrase, say_name, say_phrase
from pellucid.corpora.open.subjects import (
    PRONOUNS,
    Subject,
    say_pronoun,
    say_referring,
    subject_of,
)
from pellucid.corpora.open.verbs import be_form
from pellucid.corpora.sentence import Entity, read_lexicon_words

_PEOPLE = tuple(pronoun for pronoun in PRONOUNS if pronoun[0] != "it")
_BEFORE_COUNTED = (("the", "les:0"), ("my", "mes:0"), ("his", "ses:0"), ("our", "nos:0"))
_SEEN = COLORS | {"big", "small", "new"}
"""Adjectives that tell one of two things from the other: *the red one*."""


def fill_subject(drawing: Drawing, slot: Slot) -> None:
    """Say a subject, and let the auxiliary of a question agree with it."""
    drawing.subject = draw_subject(drawing, slot)
    if drawing.auxiliary is None:
        return
    english = drawing.sentence.english
    form = {"be": be_form(drawing.subject, is_past=False)}
    if drawing.subject.is_third:
        form |= {"do": "does", "have": "has"}
    word = english[drawing.auxiliary]
    english[drawing.auxiliary] = form.get(word, word)


def draw_subject(drawing: Drawing, slot: Slot) -> Subject:
    """Draw and say the subject that a pattern names."""
    pick = drawing.pick
    sentence = drawing.sentence
    if slot.name == "people":
        english, french, person, gender = pick.one(SUBJECTS)
        sentence.say(english, french)
        return Subject(person, gender, "person", "they", is_plural=person == 4)
    if slot.name == "counted":
        return subject_of(_say_counted(drawing, pick.one(pool("animate"))))
    name, likely = SUBJECTS_DRAWN.get(slot.name, SUBJECTS_DRAWN["any"])
    if pick.chance(likely):
        return say_pronoun(sentence, pick.one(_PEOPLE))
    noun = drawing.draw_noun(name)
    role = "place" if slot.name == "asked" else "subject"
    plural = 0.0 if slot.name == "young" else 0.25
    entity = say_free_phrase(sentence, pick, noun, role, plural=plural, described=0.15)
    drawing.entities.append(entity)
    return subject_of(entity)


def say_reference(drawing: Drawing, _: Slot) -> None:
    """Say the pronoun of the noun said first."""
    drawing.subject = say_referring(drawing.sentence, drawing.entities[0])


def fill_noun(drawing: Drawing, slot: Slot) -> None:
    """Say a noun with a determiner."""
    if slot.name == "like":
        drawing.entities.append(_say_alike(drawing))
        return
    said = [entity.noun for entity in drawing.entities]
    noun = drawing.draw_noun(slot.name)
    while noun in said:
        noun = drawing.draw_noun(slot.name)
    if slot.determiner in ("counted", "number"):
        entity = _say_counted(drawing, noun, is_owned=slot.determiner == "counted")
    else:
        entity = _say_determined(drawing, noun, slot.determiner, is_plural=bool(slot.plural))
    drawing.entities.append(entity)
    drawing.noun_said = entity.noun


def _say_determined(drawing: Drawing, noun: Noun, determiner: str, *, is_plural: bool) -> Entity:
    """Say a noun with the determiner of a pattern, or any."""
    sentence = drawing.sentence
    if noun.english == noun.english_plural and noun.kind in ("person", "building"):
        return say_name(sentence, noun)
    if not determiner:
        role = "negated" if drawing.is_negated else "object"
        return say_free_phrase(sentence, drawing.pick, noun, role)
    # What is meant in general is plural, if it can be counted.
    is_plural = not noun.is_mass and (is_plural or determiner in ("general", "bare", "any"))
    if determiner == "any":
        place = len(sentence.english)
        # *Any* of a question is *some* in French.
        entity = say_phrase(sentence, noun, "some", is_plural=is_plural)
        sentence.english[place] = "any"
        return entity
    if determiner == "my":
        determiner = drawing.pick.one((*OWNERS, "the"))
    elif determiner == "a" and drawing.is_negated:
        determiner = "any" if noun.is_mass else "not a"
    elif determiner == "a" and noun.is_mass:
        determiner = "some"
    adjectives = () if determiner in ("general", "bare") else drawing.describe(noun, 0.3)
    return say_phrase(sentence, noun, determiner, is_plural=is_plural, adjectives=adjectives)


def _say_alike(drawing: Drawing) -> Entity:
    """Say another noun of the subject's kind: *the car is faster than the bike*."""
    nouns = pool(drawing.subject.kind or "person")
    noun = drawing.pick.one([noun for noun in nouns if noun is not drawing.subject.noun])
    return say_free_phrase(drawing.sentence, drawing.pick, noun, "place", plural=0.1, described=0.1)


def _say_counted(drawing: Drawing, noun: Noun, *, is_owned: bool = True) -> Entity:
    """Say *two young boys*, *my three cats*: a number before an adjective."""
    while noun.is_mass or noun.english == noun.english_plural:
        noun = drawing.pick.one(pool("animate"))
    if is_owned and drawing.pick.chance(0.4):
        drawing.sentence.say(*drawing.pick.one(_BEFORE_COUNTED))
    drawing.say(*drawing.pick.one(NUMBERS))
    adjectives = drawing.describe(noun, 0.7)
    return say_phrase(drawing.sentence, noun, "title", is_plural=True, adjectives=adjectives)


def say_number(drawing: Drawing, _: Slot) -> None:
    """Say a number word."""
    drawing.say(*drawing.pick.one(NUMBERS))


def fill_from_table(drawing: Drawing, slot: Slot) -> None:
    """Say a phrase of a table; what is marked agrees with the subject."""
    sentence = drawing.sentence
    english, french = drawing.pick.one(TABLES[slot.name])
    start = len(sentence.english)
    sentence.english += english.split()
    for text, links, agrees, _ in read_lexicon_words(french):
        if agrees:
            text = agree(text, drawing.subject.gender, is_plural=drawing.subject.is_plural)
        sentence.french.append(Word(text, tuple(start + link for link in links)))


def fill_adjective(drawing: Drawing, _: Slot) -> None:
    """Say an adjective of the subject."""
    drawing.say_quality()


def say_of_noun(drawing: Drawing, _: Slot) -> None:
    """Say an adjective that agrees with the noun said last, in the singular."""
    noun = drawing.noun_said
    adjective = drawing.pick.one([one for one in DESCRIBING[noun.kind] if one.english in _SEEN])
    drawing.sentence.combine("adjective", adjective.english, noun)
    drawing.say(adjective.english, agree(adjective.french, noun.gender, is_plural=False))


def say_degree(drawing: Drawing, slot: Slot) -> None:
    """Say *taller*, *more expensive*, *the tallest* without its article, *the tallest boy*."""
    sentence = drawing.sentence
    noun = drawing.pick.one(pool(slot.name or "people")) if slot.slot == "SUPN" else None
    options = QUALITIES[noun.kind] if noun else drawing.qualities()
    degrees = (*COMPARED, *COMPARED["with_more"].split())
    adjective = drawing.pick.one([one for one in options if one.english in degrees])
    if noun:
        sentence.english.append("the")
    start = len(sentence.english)
    # An irregular French form, such as *meilleur*, is the third.
    forms = COMPARED.get(adjective.english, "").split()
    is_most = slot.slot != "CMP"
    said = [forms[is_most]] if forms else ["most" if is_most else "more", adjective.english]
    sentence.english += said
    gender = noun.gender if noun else drawing.subject.gender
    is_plural = drawing.subject.is_plural and not noun
    form = agree((*forms, *[adjective.french] * 3)[2], gender, is_plural=is_plural)
    words = [Word("plus", (start,)), Word(form, (start + len(said) - 1,))]
    if len(forms) > 2:
        del words[0]
    if noun:
        sentence.num_roles += 1
        head = Word(noun.french, (len(sentence.english),), (sentence.num_roles,))
        sentence.english.append(noun.english)
        the = Word(agree("le", gender, is_plural=False), (start - 1,))
        words = [the, *words, head] if adjective.is_before else [the, head, the, *words]
    sentence.french += words
