"""A verb of the course in every form: *will not eat*, *to eat*, *don't eat it*, *does she eat*."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, cast

from pellucid.corpora.course.course_words import EVERYDAY, FRENCH, TABLES, future, infinitive
from pellucid.corpora.course.drawing import Drawing, Slot
from pellucid.corpora.french import Word
from pellucid.corpora.open.open_words import English, French, Tense, english_of
from pellucid.corpora.open.verbs import (
    CLITICS,
    INDIRECT,
    Clitic,
    Manner,
    be_form,
    say_be,
    say_verb,
    standing_for,
)
from pellucid.corpora.sentence import read_lexicon_words

_BE = english_of("be is was being been")
_REFLEXIVE = ("me", "te", "se", "nous", "se")
_BEHIND = {"me": "moi", "te": "toi"}
_ASKED = {
    "do": "present",
    "does": "present",
    "did": "past",
    "will": "future",
    "have": "perfect",
    "has": "perfect",
    "am": "progressive",
    "is": "progressive",
    "are": "progressive",
    "was": "past progressive",
    "were": "past progressive",
}
"""The form of a question by its auxiliary."""
_TENSES = ("present", "past", "progressive", "past progressive", "perfect")
_IRREGULAR_ORDERS = {"es": ("sois", "soyons"), "as": ("aie", "ayons")}
_SELF = {
    ("me", "I"),
    ("us", "we"),
    ("you", "you"),
    ("us", "I"),
    ("me", "we"),
    ("me", "i"),
    ("us", "i"),
}


class _Verb(NamedTuple):
    english: English
    french: French
    marks: str = ""
    particle: str = ""


def say_in_form(drawing: Drawing, slot: Slot) -> None:
    """Say a verb in the form of its clause, or a form of *be*: `$D:eat`, `$I:avoir`."""
    is_be = slot.slot == "I"
    verb = _Verb(_BE, FRENCH[slot.name or "être"]) if is_be else _Verb(*EVERYDAY[slot.name])
    english = drawing.sentence.english
    form = (slot.tense or drawing.form).replace("_", " ")
    asked = drawing.auxiliary if form == "asked" else None
    if form == "habit":
        # *Played* every day is *jouait*.
        form = "past"
        verb = verb._replace(french=replace(verb.french, lasts=True, with_etre=False))
    if asked is not None:
        form = _ASKED[english[asked]]
        drawing.is_negated = False
    is_often = drawing.is_often and form in ("present", "past", "future")
    if asked is None and form not in ("inf", "to", "ing"):
        may_be = not (drawing.is_positive or slot.positive or is_often or "p" in verb.marks)
        drawing.is_negated = may_be and drawing.pick.chance(0.17)
    if form == "now":
        # What is happening now: *is eating*, with a verb of a state *wants*.
        form = "present" if "s" in verb.marks or is_be else "progressive"
    if form not in _TENSES:
        _say_later(drawing, verb, slot, form, asked)
    elif is_be:
        _say_being(drawing, verb, form, asked)
    else:
        _say_tense(drawing, verb, slot, form, asked, is_often=is_often)
    if drawing.subject.english == "nobody":
        # *Nobody eats bread* has *de* for *du*, as a negation has.
        drawing.is_negated = True


def _say_being(drawing: Drawing, verb: _Verb, form: str, asked: int | None) -> None:
    tense: Tense = "past" if form.startswith("past") else "present"
    if asked is not None:
        person = drawing.subject.person
        french = verb.french.imperfect(person) if tense == "past" else verb.french.present[person]
        drawing.sentence.french.append(Word(french, (asked,)))
        return
    negation = drawing.pick.of("not 3, n't 2") if drawing.is_negated else ""
    say_be(drawing.sentence, drawing.subject, Manner(tense, negation), verb.french)
    if drawing.is_often and not drawing.is_negated:
        # After *is*, in both languages.
        drawing.sentence.french += _draw_often(drawing)


def _say_tense(
    drawing: Drawing, verb: _Verb, slot: Slot, form: str, asked: int | None, *, is_often: bool
) -> None:
    """Say a simple or progressive tense."""
    if verb.marks.startswith("s") and form.endswith("progressive"):
        form = "past" if form.startswith("past") else "present"
        if asked is not None:
            # *Does she like*, not *is she liking*.
            do = "does" if drawing.subject.is_third else "do"
            drawing.sentence.english[asked] = "did" if form == "past" else do
    negations = (
        "not 3, n't 3, never 2" if form in ("present", "past", "perfect") else "not 3, n't 2"
    )
    negation = drawing.pick.of(negations) if drawing.is_negated else ""
    adverb: list[Word] = []
    if is_often:
        adverb = _draw_often(drawing)
    manner = Manner(cast("Tense", form), negation, asked)
    at = _say(drawing, verb, slot, manner)
    drawing.sentence.french[at + 1 : at + 1] = adverb


def _draw_often(drawing: Drawing) -> list[Word]:
    """Say an adverb before an English verb; return its French words, which stand behind it."""
    english, french = drawing.pick.one(TABLES["midverb"])
    start = len(drawing.sentence.english)
    drawing.sentence.english += english.split()
    return [
        Word(word.text, tuple(start + link for link in word.links))
        for word in read_lexicon_words(french)
    ]


def _draw_clitic(drawing: Drawing, slot: Slot) -> Clitic | None:
    if slot.it:
        return standing_for(drawing.entities[-1])
    if slot.said in ("", "moved"):
        return None
    options = INDIRECT if slot.said == "to" else CLITICS
    subject = drawing.subject.english
    fitting = [
        one
        for one in options
        if (one.english, subject) not in _SELF
        and (
            slot.said == "to"
            or (one.english in ("it", "them")) == (slot.said == "it")
            or one.english == "them"
        )
    ]
    return drawing.pick.one(fitting)


def _say(drawing: Drawing, verb: _Verb, slot: Slot, manner: Manner) -> int:
    """Say a verb, its particle and its pronouns; return the place of the finite French verb."""
    words = drawing.sentence.french
    english = drawing.sentence.english
    place = len(words)
    clitic = _draw_clitic(drawing, slot)
    french = verb.french
    if "r" in verb.marks:
        french = replace(french, with_etre=True)
    subject = drawing.subject
    if "n" in verb.marks:
        # *Elle s'est lavé les mains*: the participle agrees with nothing.
        subject = replace(subject, gender="m", is_plural=False)
    say_verb(
        drawing.sentence,
        subject,
        verb.english,
        french,
        manner,
        clitic=clitic,
        particle=verb.particle,
        moved=drawing.entities[0] if slot.said == "moved" else None,
    )
    if clitic is not None and verb.particle in _BEFORE_PRONOUN:
        _swap_last(drawing, place)
    at = place
    while words[at].text == "ne" or words[at].is_pronoun:
        at += 1
    num_words = len(verb.particle.split())
    last = len(english)
    first = last - num_words - (clitic is not None and verb.particle in _BEFORE_PRONOUN)
    links = dict.fromkeys((*words[at].links, *range(first, first + num_words)))
    words[at] = words[at]._replace(links=tuple(links))
    if "r" in verb.marks:
        reflexive = _REFLEXIVE[drawing.subject.person]
        words.insert(at, Word(reflexive, words[at].links, is_pronoun=True))
        at += 1
    return at


_BEFORE_PRONOUN = ("at", "for", "to", "of")


def _swap_last(drawing: Drawing, place: int) -> None:
    """Change *looks them for* to *looks for them*."""
    english = drawing.sentence.english
    words = drawing.sentence.french
    last = len(english) - 1
    english[-2:] = english[:-3:-1]
    moved = {last: last - 1, last - 1: last}
    for at in range(place, len(words)):
        links = tuple(moved.get(link, link) for link in words[at].links)
        words[at] = words[at]._replace(links=links)


def _say_later(drawing: Drawing, verb: _Verb, slot: Slot, form: str, asked: int | None) -> None:
    """Say what is not a tense in French: an infinitive, a future, an order, *used to*."""
    sentence = drawing.sentence
    english = sentence.english
    words = sentence.french
    start = len(english)
    place = len(words)
    if asked is None:
        english += _before(drawing, form)
    before = tuple(range(start, len(english))) if asked is None else (asked,)
    is_negated = drawing.is_negated and form in ("future", "near", "order", "lets")
    no = before[-1:] if is_negated else ()
    if form == "near":
        no = before[1:2] if len(before) == 4 else before[:1] if is_negated else ()
        words.append(Word(FRENCH["aller"].present[drawing.subject.person], (before[0], before[-2])))
    verb = verb._replace(french=_french_form(drawing, verb.french, form))
    at = _say(drawing, verb, slot, Manner("present", "", start))
    links = {"near": before[-1:], "future": before[:1]}.get(form, before if not no else before[:1])
    words[at] = words[at]._replace(links=(*links, *words[at].links))
    if form == "ing":
        english[start] = verb.english.ing
    if form == "since":
        english[start + len(before)] = (
            verb.english.ing if len(before) > 1 else verb.english.participle
        )
    if form in ("order", "lets") and not no:
        _hang_pronouns(drawing, place, at)
    if no:
        # *Ne va pas le voir*, but *ne le verra pas*.
        words.insert((place if form == "near" else at) + 1, Word("pas", no))
        words.insert(place, Word("ne", no))


def _before(drawing: Drawing, form: str) -> list[str]:
    """Draw the English words before the verb in a form."""
    pick = drawing.pick
    no = drawing.is_negated
    if form == "future":
        return pick.one((["won't"], ["will", "not"])) if no else ["will"]
    if form == "near":
        be = be_form(drawing.subject, is_past=False)
        if no and be != "am" and pick.chance(0.4):
            return [be + "n't", "going", "to"]
        return [be, *["not"] * no, "going", "to"]
    if form == "order":
        return pick.one((["don't"], ["do", "not"])) if no else []
    if form == "lets":
        return ["let's", *["not"] * no]
    if form == "since":
        has = "has" if drawing.subject.is_third else "have"
        return pick.one(([has], [has, "been"]))
    return {"used": ["used", "to"], "to": ["to"]}.get(form, [])


def _french_form(drawing: Drawing, french: French, form: str) -> French:
    """Give a verb the French forms of *will*, of an order, of an infinitive."""
    if form == "future":
        return future(french)
    if form == "since":
        return french
    if form == "used":
        return replace(french, present=tuple(french.imperfect(person) for person in range(5)))
    if form in ("order", "lets"):
        orders = _IRREGULAR_ORDERS.get(french.present[1], (french.imperative, french.present[3]))
        return replace(french, present=(orders[form == "lets"],) * 5)
    return infinitive(french)


def _hang_pronouns(drawing: Drawing, place: int, at: int) -> None:
    """Hang the pronouns on an order: *lève-toi*, *aide-moi*."""
    words = drawing.sentence.french
    verb = words[at]
    for pronoun in words[place:at]:
        text = f"{verb.text}-{_BEHIND.get(pronoun.text, pronoun.text)}"
        links = dict.fromkeys((*verb.links, *pronoun.links))
        verb = Word(text, tuple(links), (*verb.roles, *pronoun.roles))
    words[place : at + 1] = [verb]
