"""Slots of the course's patterns for verbs and clauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from pellucid.corpora.course.course_words import (
    ACTS,
    ALONE,
    FRENCH,
    MODALS,
    NAMED,
    future,
    infinitive,
    pool,
)
from pellucid.corpora.course.drawing import Drawing, Slot
from pellucid.corpora.course.noun_slots import draw_subject, fill_from_table
from pellucid.corpora.french import Word
from pellucid.corpora.open.open_words import (
    AT_BE,
    HAVE,
    MOTIONS,
    FreeVerb,
    French,
    Tense,
    english_of,
)
from pellucid.corpora.open.phrases import say_free_phrase
from pellucid.corpora.open.predicates import object_role, say_open_predicate, settle, takes
from pellucid.corpora.open.verbs import CLITICS, Manner, say_be, say_verb, standing_for
from pellucid.corpora.open.where import say_where

_BE = english_of("be is was being")
_VERBS = {"act": ACTS, "move": MOTIONS, "alone": ALONE}
_STATES = ("", "être", "avoir", "pouvoir")
"""French verbs of a form of *be* that has any tense; *is going to* is present only."""


def _draw_manner(drawing: Drawing, slot: Slot) -> Manner:
    """Draw a tense, unless the pattern names it, and sometimes a negation."""
    tense = slot.tense
    if tense in ("", "any"):
        tense = drawing.pick.of("past 2, present 3")
    drawing.is_negated = not slot.positive and drawing.pick.chance(0.15)
    negation = drawing.pick.of("not 3, n't 2") if drawing.is_negated else ""
    return Manner(cast("Tense", tense), negation)


def say_named(drawing: Drawing, slot: Slot) -> None:
    """Say a verb that the pattern names."""
    english, french = NAMED[slot.name]
    manner = settle(_draw_manner(drawing, slot), drawing.subject, FreeVerb(english, french))
    clitic = standing_for(drawing.entities[-1]) if slot.it else None
    say_verb(drawing.sentence, drawing.subject, english, french, manner, clitic=clitic)


def say_form_of_be(drawing: Drawing, slot: Slot) -> None:
    """Say a form of *be*, in French another verb if the pattern names one."""
    place = len(drawing.sentence.french)
    french = FRENCH[slot.name or "être"]
    if slot.name not in _STATES:
        slot = slot._replace(tense="present")
    say_be(drawing.sentence, drawing.subject, _draw_manner(drawing, slot), french)
    if slot.said:
        _link(drawing, place, french, len(drawing.sentence.english))
        drawing.sentence.english.append(slot.said)


def _link(drawing: Drawing, place: int, french: French, index: int) -> int:
    """Link the first finite verb from a place on to an English word; return the verb's place."""
    forms = {*french.present, *(french.imperfect(person) for person in range(5))}
    # The first verb is the auxiliary in *a mangé*.
    forms |= {*HAVE.present, *AT_BE.present}
    words = drawing.sentence.french
    at = next(i for i in range(place, len(words)) if words[i].text in forms)
    words[at] = words[at]._replace(links=(*words[at].links, index))
    return at


def say_modal(drawing: Drawing, slot: Slot) -> None:
    """Say *can*, *cannot*, *must not*."""
    english, negations, french = MODALS[slot.name]
    sentence = drawing.sentence
    start = len(sentence.english)
    drawing.is_negated = not slot.positive and drawing.pick.chance(0.2)
    form = Word(french.present[drawing.subject.person], (start,))
    if not drawing.is_negated:
        sentence.english.append(english)
        sentence.french.append(form)
        return
    sentence.english += drawing.pick.one(negations).split("_")
    no = (len(sentence.english) - 1,)
    sentence.french += [Word("ne", no), form, Word("pas", no)]


def say_auxiliary(drawing: Drawing, slot: Slot) -> None:
    """Say the auxiliary of a question; its subject gives it its form."""
    drawing.auxiliary = len(drawing.sentence.english)
    drawing.sentence.english.append(slot.name)


def say_infinitive(drawing: Drawing, slot: Slot) -> None:
    """Say an infinitive and what follows it: *go*, *to go*, *going*."""
    english = drawing.sentence.english
    start = len(english)
    place = len(drawing.sentence.french)
    if slot.slot == "TO":
        english.append("to")
    negation = "not" if drawing.is_negated else ""
    verb = _act(drawing, Manner("present", negation, start), infinitive)
    if slot.slot == "TO":
        _link(drawing, place, verb.french, start)
    elif slot.slot == "ING":
        english[start] = verb.english.ing


def say_future(drawing: Drawing, slot: Slot) -> None:
    """Say *will* and a verb, in French the *futur simple*."""
    sentence = drawing.sentence
    place = len(sentence.french)
    index = len(sentence.english)
    no: tuple[int, ...] = ()
    if slot.slot == "FUTQ":
        index = cast("int", drawing.auxiliary)
    elif drawing.pick.chance(0.15) and not slot.positive:
        sentence.english += drawing.pick.one(("won't", "will not")).split()
        no = (len(sentence.english) - 1,)
    else:
        sentence.english.append("will")
    manner = Manner("present", "not" if no else "", index)
    verb = _act(drawing, manner, future, only=slot.name)
    at = _link(drawing, place, verb.french, index)
    if no:
        sentence.french.insert(at + 1, Word("pas", no))
        sentence.french.insert(place, Word("ne", no))


def say_doing(drawing: Drawing, slot: Slot) -> None:
    """Say an action in a tense."""
    manner = _draw_manner(drawing, slot._replace(tense=slot.tense or slot.name))
    # What someone does now, or did then, is often being done.
    if drawing.pick.chance(0.25):
        lasting: Tense = "past progressive" if manner.tense == "past" else "progressive"
        manner = Manner(lasting, "not" if drawing.is_negated else "")
    _act(drawing, manner)


def say_asked(drawing: Drawing, slot: Slot) -> None:
    """Say an action after the auxiliary of a question."""
    drawing.is_negated = False
    tense: Tense = "perfect" if slot.slot == "PERF" else "present"
    _act(drawing, Manner(tense, "", drawing.auxiliary))


def say_often(drawing: Drawing, slot: Slot) -> None:
    """Say *often* and an action: in French the adverb follows the verb."""
    words = drawing.sentence.french
    place = len(words)
    manner = Manner("present")
    if drawing.pick.chance(0.15):
        drawing.sentence.english.append("has" if drawing.subject.is_third else "have")
        manner = Manner("perfect", "", len(drawing.sentence.english) - 1)
    fill_from_table(drawing, Slot("W", "midperfect" if manner.auxiliary else "midverb"))
    said = words[place:]
    del words[place:]
    drawing.is_negated = False
    verb = _act(drawing, manner)
    at = _link(drawing, place, verb.french, 0)
    words[at] = words[at]._replace(links=words[at].links[:-1])
    words[at + 1 : at + 1] = said


def _act(
    drawing: Drawing,
    manner: Manner,
    form: Callable[[French], French] | None = None,
    *,
    only: str = "",
) -> FreeVerb:
    """Say a verb and what follows it.

    Args:
        drawing: the pattern.
        manner: its tense and negation, and an auxiliary that was already written.
        form: what makes the French forms, if they are not those of the tense.
        only: ``be`` for nothing but *be* and an adjective.

    Returns:
        The verb.
    """
    sentence = drawing.sentence
    pick = drawing.pick
    subject = drawing.subject
    choice = only or pick.of("act 5, move 2, alone 4, be" if form else "act 5, move 2, alone 4")
    if choice == "be" and form:
        verb = FreeVerb(_BE, form(AT_BE))
        drawing.say("be", verb.french.present[subject.person])
        drawing.say_quality()
        return verb
    verb = _draw_verb(drawing, choice, manner)
    if form:
        verb = replace(verb, french=form(verb.french))
    manner = settle(manner, subject, verb)
    clitic = None
    if choice == "act" and pick.chance(0.25) and verb.particle in ("", "on"):
        clitic = pick.one([one for one in CLITICS if takes(verb, one, subject)])
    say_verb(
        sentence,
        subject,
        verb.english,
        verb.french,
        manner,
        clitic=clitic,
        particle=verb.particle,
    )
    if choice == "alone" and pick.chance(0.3):
        say_where(sentence, pick)
    elif choice == "move":
        sentence.french.append(Word(verb.preposition, (len(sentence.english) - 1,)))
        kind = pick.one(verb.kinds)
        is_city = verb.preposition == "à" and pick.chance(0.15)
        noun = pick.one(pool("city" if is_city else kind))
        say_free_phrase(sentence, pick, noun, "place", plural=0.1, described=0.2)
    elif choice == "act" and clitic is None:
        noun = drawing.draw_noun(pick.one(verb.kinds))
        sentence.combine("object", verb.english.base, noun)
        say_free_phrase(sentence, pick, noun, object_role(verb, manner), described=0.25)
    return verb


def _draw_verb(drawing: Drawing, choice: str, manner: Manner) -> FreeVerb:
    """Draw a verb whose English form shows its tense: *I put* may be either."""
    is_shown = manner.auxiliary is not None or drawing.subject.is_third or manner.negation
    verb = drawing.pick.one(_VERBS[choice])
    while verb.english.past == verb.english.base and not is_shown:
        verb = drawing.pick.one(_VERBS[choice])
    return verb


def say_clause(drawing: Drawing, slot: Slot) -> None:
    """Say a subject and a predicate."""
    whole = drawing.subject
    drawing.subject = draw_subject(drawing, slot._replace(name=""))
    choice = drawing.pick.of("act 3, predicate 3, be")
    tense = slot.name or drawing.pick.of("past 3, present 4, future")
    timed = slot._replace(name="", tense=tense)
    if tense == "future":
        say_future(drawing, timed)
    elif choice == "act":
        say_doing(drawing, timed)
    else:
        manner = _draw_manner(drawing, timed)
        say_open_predicate(drawing.sentence, drawing.pick, drawing.subject, manner)
    drawing.subject = whole
