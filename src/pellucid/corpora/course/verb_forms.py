"""A verb of the course in every form: *will not eat*, *to eat*, *don't eat it*, *does she eat*."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, cast

from pellucid.corpora.course.course_words import (
    EVERYDAY,
    FRENCH,
    TABLES,
    future,
    infinitive,
    subjunctive,
)
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
    "don't": "present",
    "doesn't": "present",
    "didn't": "past",
    "haven't": "perfect",
    "hasn't": "perfect",
    "won't": "future",
    "isn't": "progressive",
    "aren't": "progressive",
}
"""The form of a question by its auxiliary."""
_TENSES = ("present", "past", "progressive", "past progressive", "perfect", "pluperfect")
_OTHER_FRENCH = {"habit": "past", "coming": "present", "doubted": "present"}
"""Forms in a plain tense in English: *played* every day is *jouait*, *when I am old* a future."""
_NEGATED = {
    "not yet": ("perfect", "not 3, n't 2", "pas encore"),
    "not now": ("present", "not 2, n't 3", "plus"),
    "no longer": ("present", "no_longer", "plus"),
    "not": ("present", "not 3, n't 3", "pas"),
    "not perfect": ("perfect", "not 3, n't 3", "pas"),
    "not thing": ("present", "not 3, n't 3", "rien"),
    "not thing past": ("past", "not 3, n't 3", "rien"),
    "not thing perfect": ("perfect", "not 3, n't 3", "rien"),
    "not future": ("future", "not 3, n't 3", "pas"),
    "not would": ("would", "not 3, n't 3", "pas"),
    "not near": ("near", "not 3, n't 3", "pas"),
    "not one": ("present", "not 3, n't 3", ""),
    "not one past": ("past", "not 3, n't 3", ""),
}
"""Forms that are negated: English tense and negation, and the French for it."""
_AFFIRMED = ("used", "since", "just", "having", "gerund", "already", "subjunctive")
_LOOSE = {
    "there": Clitic("there", "y", is_direct=False),
    "some": Clitic("some", "en", is_direct=False),
}
_MOVED = {"moved": 0, "last": -1}
"""Which noun was the object that a verb's pattern has said before it."""
_SHORT_HAVE = {"I": "'ve", "you": "'ve", "we": "'ve", "they": "'ve", "he": "'s", "she": "'s"}
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
    if form == "plain":
        form = "inf"
    if form in _OTHER_FRENCH:
        verb = verb._replace(french=_french_form(drawing, verb.french, form))
        form = _OTHER_FRENCH[form]
    if form in _AFFIRMED:
        drawing.is_negated = False
    form, no, french_no = _NEGATED.get(form, (form, "", "pas"))
    if asked is not None:
        form = _ASKED[english[asked]]
        drawing.is_negated = english[asked].endswith("n't")
    if form in ("perfect", "already"):
        # *Has always lived here* is over in French, *a toujours habité*, also where *lived* lasts.
        verb = verb._replace(french=replace(verb.french, lasts=False))
    is_often = drawing.is_often and form in ("present", "past", "future")
    if asked is None and form not in ("inf", "to", "ing", *_AFFIRMED):
        may_be = not (drawing.is_positive or slot.positive or is_often or "p" in verb.marks)
        drawing.is_negated = bool(no) or (may_be and drawing.pick.chance(0.17))
    if form == "now":
        # What is happening now: *is eating*, with a verb of a state *wants*.
        form = "present" if "s" in verb.marks or is_be else "progressive"
    if asked is not None and drawing.is_negated:
        no = "asked"
    manner = Manner(
        cast("Tense", form), no and drawing.pick.of(no).replace("_", " "), asked, french_no
    )
    if form == "already":
        _say_already(drawing, verb, slot)
    elif form not in _TENSES:
        _say_later(drawing, verb, slot, form, asked)
    elif is_be and form != "perfect":
        _say_being(drawing, verb, manner)
    else:
        _say_tense(drawing, verb, slot, manner, is_often=is_often)
    if drawing.subject.english == "nobody":
        # *Nobody eats bread* has *de* for *du*, as a negation has.
        drawing.is_negated = True


def _say_being(drawing: Drawing, verb: _Verb, manner: Manner) -> None:
    tense: Tense = "past" if manner.tense.startswith("past") else "present"
    asked = manner.auxiliary
    if asked is not None:
        person = drawing.subject.person
        french = verb.french.imperfect(person) if tense == "past" else verb.french.present[person]
        words = [Word(french, (asked,))]
        if drawing.is_negated:
            words = [Word("ne", (asked,)), *words, Word("pas", (asked,))]
        drawing.sentence.french += words
        return
    negation = manner.negation
    if drawing.is_negated and not negation:
        negation = drawing.pick.of("not 3, n't 2")
    manner = replace(manner, tense=tense, negation=negation)
    say_be(drawing.sentence, drawing.subject, manner, verb.french)
    if drawing.is_often and not drawing.is_negated:
        # After *is*, in both languages.
        drawing.sentence.french += _draw_often(drawing)


def _say_tense(
    drawing: Drawing, verb: _Verb, slot: Slot, manner: Manner, *, is_often: bool
) -> None:
    """Say a simple or progressive tense."""
    form: str = manner.tense
    asked = manner.auxiliary
    if verb.marks.startswith("s") and form.endswith("progressive"):
        form = "past" if form.startswith("past") else "present"
        if asked is not None:
            # *Does she like*, not *is she liking*.
            do = "does" if drawing.subject.is_third else "do"
            no = "n't" if drawing.is_negated else ""
            drawing.sentence.english[asked] = ("did" if form == "past" else do) + no
    negations = "not 3, n't 2" if form.endswith("progressive") else "not 3, n't 3, never 2"
    negation = manner.negation
    if drawing.is_negated and not negation:
        negation = drawing.pick.of(negations)
    english = drawing.sentence.english
    pronoun = drawing.subject.english
    if form == "perfect" and not negation and asked is None and english[-1:] == [pronoun]:
        asked = _shorten(drawing, _SHORT_HAVE.get(pronoun, ""))
    adverb: list[Word] = []
    if is_often:
        adverb = _draw_often(drawing)
    manner = replace(manner, tense=cast("Tense", form), negation=negation, auxiliary=asked)
    at = _say(drawing, verb, slot, manner)
    drawing.sentence.french[at + 1 : at + 1] = adverb


def _shorten(drawing: Drawing, short: str) -> int | None:
    """Hang *'ll* or *'ve* on a pronoun, sometimes; return its place."""
    english = drawing.sentence.english
    if not short or english[-1:] != [drawing.subject.english] or not drawing.pick.chance(0.3):
        return None
    english[-1] += short
    return len(english) - 1


def _say_already(drawing: Drawing, verb: _Verb, slot: Slot) -> None:
    """Say *has already eaten*."""
    english = drawing.sentence.english
    has = _shorten(drawing, _SHORT_HAVE.get(drawing.subject.english, ""))
    if has is None:
        has = len(english)
        english.append("has" if drawing.subject.is_third else "have")
    adverb = _draw_often(drawing, "midperfect")
    at = _say(drawing, verb, slot, Manner("perfect", "", has))
    drawing.sentence.french[at + 1 : at + 1] = adverb


def _draw_often(drawing: Drawing, table: str = "midverb") -> list[Word]:
    """Say an adverb before an English verb; return its French words, which stand behind it."""
    english, french = drawing.pick.one(TABLES[table])
    start = len(drawing.sentence.english)
    drawing.sentence.english += english.split()
    return [
        Word(word.text, tuple(start + link for link in word.links))
        for word in read_lexicon_words(french)
    ]


def _draw_clitic(drawing: Drawing, slot: Slot) -> Clitic | None:
    if slot.it:
        return standing_for(drawing.entities[-1])
    if not slot.said or slot.said in _MOVED:
        return None
    if slot.said in _LOOSE:
        loose = _LOOSE[slot.said]
        is_any = slot.said == "some" and drawing.is_negated
        return replace(loose, english="any") if is_any else loose
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
        moved=drawing.entities[_MOVED[slot.said]] if slot.said in _MOVED else None,
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
    is_negated = drawing.is_negated and form in ("future", "would", "near", "order", "lets")
    if asked is None and form in ("future", "would") and not is_negated:
        asked = _shorten(drawing, "'ll" if form == "future" else "'d")
    if asked is None:
        english += _before(drawing, form, is_state=verb.english is _BE or "s" in verb.marks)
    before = tuple(range(start, len(english))) if asked is None else (asked,)
    no = before[-1:] if is_negated else ()
    if form == "near":
        no = before[1:2] if len(before) == 4 else before[:1] if is_negated else ()
        words.append(Word(FRENCH["aller"].present[drawing.subject.person], (before[0], before[-2])))
    if form == "just":
        come = FRENCH["venir"].present[drawing.subject.person]
        words += [Word(come, before), Word("de", before[-1:])]
    verb = verb._replace(french=_french_form(drawing, verb.french, form))
    tense: Tense = "perfect" if form == "having" else "present"
    at = _say(drawing, verb, slot, Manner(tense, "", start))
    if form == "having":
        helper = "être" if verb.french.with_etre or "r" in verb.marks else "avoir"
        words[at] = words[at]._replace(text=helper)
    links = {"near": before[-1:], "just": ()}.get(form, before if not no else before[:1])
    words[at] = words[at]._replace(links=(*links, *words[at].links))
    if form in ("ing", "having", "gerund"):
        english[start] = verb.english.ing
    if form == "just":
        english[start + len(before)] = verb.english.participle
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


def _before(drawing: Drawing, form: str, *, is_state: bool) -> list[str]:
    """Draw the English words before the verb in a form."""
    pick = drawing.pick
    no = drawing.is_negated
    if form == "future":
        return pick.one((["won't"], ["will", "not"])) if no else ["will"]
    if form == "would":
        return pick.one((["wouldn't"], ["would", "not"])) if no else ["would"]
    if form == "just":
        return ["has" if drawing.subject.is_third else "have", "just"]
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
        # *Has known*, *has been*: a state is not being done.
        return [has] if is_state else pick.one(([has], [has, "been"]))
    return {"used": ["used", "to"], "to": ["to"]}.get(form, [])


def _french_form(drawing: Drawing, french: French, form: str) -> French:
    """Give a verb the French forms of *will*, of an order, of an infinitive."""
    if form == "habit":
        return replace(french, lasts=True, with_etre=False)
    if form == "having":
        return replace(french, lasts=False)
    if form in ("future", "coming"):
        return future(french)
    if form == "would":
        stem = future(french).present[0][:-2]
        ends = ("ais", "ais", "ait", "ions", "aient")
        return replace(french, present=tuple(stem + end for end in ends))
    if form in ("subjunctive", "doubted"):
        return subjunctive(french)
    if form == "gerund":
        return replace(french, present=(french.imperfect(0)[:-3] + "ant",) * 5)
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
        if pronoun.text == "en" and verb.text[-1] in "ea":
            # *Manges-en*.
            verb = verb._replace(text=verb.text + "s")
        text = f"{verb.text}-{_BEHIND.get(pronoun.text, pronoun.text)}"
        links = dict.fromkeys((*verb.links, *pronoun.links))
        verb = Word(text, tuple(links), (*verb.roles, *pronoun.roles))
    words[place : at + 1] = [verb]
