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
from pellucid.corpora.french import Gender, Word, agree, make_plural
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
    english = drawing.sentence.english
    before = len(english) - 1
    drawing.subject = draw_subject(drawing, slot)
    drawing.is_negated = False
    # *Do you know where he is*: a later subject is not that of the question.
    if drawing.auxiliary != before or before < 0:
        return
    form = {
        "be": be_form(drawing.subject, is_past=False),
        "was": be_form(drawing.subject, is_past=True),
    }
    form["isn't"] = form["be"].replace("am", "are") + "n't"
    form["wasn't"] = form["was"] + "n't"
    if drawing.subject.is_third:
        form |= {"do": "does", "have": "has", "don't": "doesn't", "haven't": "hasn't"}
    word = english[drawing.auxiliary]
    english[drawing.auxiliary] = form.get(word, word)


def draw_subject(drawing: Drawing, slot: Slot) -> Subject:
    """Draw and say the subject that a pattern names."""
    pick = drawing.pick
    sentence = drawing.sentence
    if slot.name == "people":
        english, french, person, gender = pick.one(SUBJECTS)
        sentence.say(english, french)
        return Subject(person, gender, "person", "they", is_plural=person > 2)
    if slot.name == "counted":
        return subject_of(_say_counted(drawing, pick.one(pool("animate"))))
    if slot.name in ("someone", "other"):
        return _say_someone(drawing, is_noun=slot.name == "other")
    name, likely = SUBJECTS_DRAWN.get(slot.name, SUBJECTS_DRAWN["any"])
    if pick.chance(likely):
        return say_pronoun(sentence, pick.one(_PEOPLE))
    noun = drawing.draw_noun(name)
    role = "place" if slot.name == "asked" else "subject"
    plural = 0.0 if slot.name == "young" else 0.25
    entity = say_free_phrase(sentence, pick, noun, role, plural=plural, described=0.15)
    drawing.entities.append(entity)
    return subject_of(entity)


def _say_someone(drawing: Drawing, *, is_noun: bool) -> Subject:
    """Say a pronoun, *my sister*, *the teacher*, *Anna*, *my father and my mother*."""
    sentence = drawing.sentence
    pick = drawing.pick
    pronoun = "" if is_noun else "pronoun 11, "
    choice = pick.of(pronoun + "kin 5, name 2, person 4, pair")
    if choice == "pronoun":
        return say_pronoun(sentence, pick.one(_PEOPLE))
    if choice != "pair":
        entity = _say_one_of(drawing, choice)
        drawing.entities.append(entity)
        return subject_of(entity)
    kind = pick.of("kin 2, name")
    first = _say_one_of(drawing, kind, is_plural=False)
    if pick.chance(0.25):
        sentence.say("and I", "et:0 moi:1")
        return Subject(3, "m", "person", "we", is_plural=True)
    sentence.say("and", "et:0")
    second = _say_one_of(drawing, kind, is_plural=False, but=first.noun)
    gender: Gender = "f" if first.noun.gender == second.noun.gender == "f" else "m"
    return Subject(4, gender, "person", is_plural=True)


def _say_one_of(
    drawing: Drawing, choice: str, *, is_plural: bool | None = None, but: Noun | None = None
) -> Entity:
    """Say one person or several: of the family, by name, or by profession."""
    pick = drawing.pick
    if choice == "name":
        return say_name(drawing.sentence, pick.one([one for one in pool("name") if one is not but]))
    noun = pick.one([one for one in pool("kin" if choice == "kin" else "folk") if one is not but])
    if is_plural is None:
        # One has one mother, but two parents.
        is_plural = noun.english == "parent" or (pick.chance(0.25) and noun not in pool("only"))
    owned = pick.of("my 3, your, his, her, our, their")
    determiner = owned if choice == "kin" else pick.of(f"the 6, this, that, {owned}")
    adjectives = drawing.describe(noun, 0.1)
    return say_phrase(
        drawing.sentence, noun, determiner, is_plural=is_plural, adjectives=adjectives
    )


def say_reference(drawing: Drawing, slot: Slot) -> None:
    """Say the pronoun of the noun said first, or last."""
    entity = drawing.entities[-1 if slot.name == "last" else 0]
    drawing.subject = say_referring(drawing.sentence, entity)


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
    if determiner == "plain":
        return say_phrase(sentence, noun, "title")
    if determiner == "part":
        options = ("any", "not bare") if drawing.is_negated else ("some", "bare", "bare")
        determiner = drawing.pick.one(options)
        return say_phrase(sentence, noun, determiner, is_plural=not noun.is_mass)
    if determiner in ("own", "one"):
        may_be = determiner == "own" and noun not in pool("only")
        is_plural = is_plural or (may_be and drawing.pick.chance(0.15))
        determiner = drawing.pick.of("the 4, my 4, your, his, her, our, their, this, that")
        is_plural = is_plural and not noun.is_mass
    # What is meant in general is plural, if it can be counted.
    is_plural = not noun.is_mass and (is_plural or determiner in ("general", "bare", "any"))
    if determiner == "any":
        place = len(sentence.english)
        # *Any* of a question is *some* in French.
        entity = say_phrase(sentence, noun, "some", is_plural=is_plural)
        sentence.english[place] = "any"
        return entity
    if determiner == "my":
        # *Its* hardly owns a person.
        determiner = drawing.pick.one((*[one for one in OWNERS if one != "its"], "the"))
    elif determiner == "single":
        determiner = "a"
    elif determiner == "a" and drawing.is_negated:
        determiner = "any" if noun.is_mass else "not a"
    elif determiner == "a" and noun.is_mass:
        determiner = "some"
    adjectives = () if determiner in ("general", "bare") else drawing.describe(noun, 0.25)
    if determiner == "a" and adjectives and adjectives[0].english == "other":
        # *Another* is one word.
        adjectives = ()
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
    _say_any_number(drawing)
    adjectives = drawing.describe(noun, 0.7)
    return say_phrase(drawing.sentence, noun, "title", is_plural=True, adjectives=adjectives)


def say_number(drawing: Drawing, slot: Slot) -> None:
    """Say a number: `$NUM` one of the list or now and then another, `$NUM:year` always another."""
    _say_any_number(drawing, other=1.0 if slot.name == "year" else 0.05)


def _say_any_number(drawing: Drawing, *, other: float = 0.05) -> None:
    """Say a number, sometimes one that no vocabulary has, so that a model learns to copy it."""
    if not drawing.pick.chance(other):
        drawing.say(*drawing.pick.one(NUMBERS))
        return
    digits = "".join(drawing.pick.one("123456789") for _ in range(6))
    drawing.sentence.has_unknown = True
    drawing.say(digits, digits)


def fill_from_table(drawing: Drawing, slot: Slot) -> None:
    """Say a phrase of a table; what is marked agrees with the subject."""
    sentence = drawing.sentence
    english, french = drawing.pick.one(TABLES[slot.name])
    if slot.name == "profession_is" and drawing.subject.is_plural:
        _say_professions(drawing, english, french)
        return
    start = len(sentence.english)
    sentence.english += english.split()
    for text, links, agrees, _ in read_lexicon_words(french):
        if agrees:
            text = agree(text, drawing.subject.gender, is_plural=drawing.subject.is_plural)
        sentence.french.append(Word(text, tuple(start + link for link in links)))


def _say_professions(drawing: Drawing, english: str, french: str) -> None:
    """Say *teachers* of *they are teachers*."""
    word = english.split()[-1]
    plurals = {noun.english: noun.english_plural for noun in pool("person")}
    text = read_lexicon_words(french)[0].text
    form = agree(text, drawing.subject.gender, is_plural=True)
    if french[0] != "@":
        form = make_plural(text)
    drawing.say(plurals.get(word, word + "s"), form)


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
        link = (len(sentence.english),)
        first, *rest = noun.french.split()
        head = [Word(first, link, (sentence.num_roles,)), *[Word(part, link) for part in rest]]
        sentence.english.append(noun.english)
        the = Word(agree("le", gender, is_plural=False), (start - 1,))
        words = [the, *words, *head] if adjective.is_before else [the, *head, the, *words]
    sentence.french += words


_POSSESSIVES = {"I": "my", "you": "your", "he": "his", "she": "her", "we": "our", "they": "their"}


def say_possessive(drawing: Drawing, _: Slot) -> None:
    """Say *his* of *he washes his hands*, where French has an article."""
    subject = drawing.subject
    mine = "their" if subject.is_plural else "her" if subject.gender == "f" else "his"
    drawing.sentence.english.append(_POSSESSIVES.get(subject.english, mine))
