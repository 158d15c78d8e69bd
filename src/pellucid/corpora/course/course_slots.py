"""The slots of the course's patterns: each says its words in both languages.

`$S` says a subject, `$V:want` a verb in a tense, `$TO` and `$INF` an infinitive with what follows,
`$ING` a gerund, `$FUT` the future, `$DO` an action, `$C` a clause, `$N:food=the` a noun with a
determiner (`+` for the plural), `$A` an adjective of the subject, `$AN` one of the noun said last,
`$CMP` and `$SUP` its degrees, `$BE:avoir` a form of *be* that is another verb in French, `$M:can` a
modal, `$AUX:do` the auxiliary of a question, `$W:weather` a phrase of ``phrases.toml``, `$NUM` a
number, `$REF` the pronoun of the noun said first. `$R:do` says one of the ways of a rule, `$D:eat`
a verb of everyday life and `$I` a form of *be* in the form of the clause, `$POSS` the possessive of
the subject. After the name: ``.past`` a tense or form, ``!`` no negation, ``@last`` the noun said
last as the subject (``@first``, ``@one`` of them, or a pronoun), ``&`` with an object pronoun for
it, ``/going`` a word after the verb; of a rule ``/often`` an adverb with its verb, of a verb
``/it``, ``/who`` and ``/to`` an object pronoun, ``/there`` *y*, ``/some`` *en*, ``/moved`` an
object mentioned before. Forms that are a tense in only one of the languages are in
`verb_forms`.
"""

from __future__ import annotations

from collections.abc import Callable

from pellucid.corpora.course import noun_slots, verb_forms, verb_slots
from pellucid.corpora.course.drawing import Drawing, Slot
from pellucid.corpora.open.subjects import Subject, subject_of

_SAY: dict[str, Callable[[Drawing, Slot], None]] = {
    "S": noun_slots.fill_subject,
    "REF": noun_slots.say_reference,
    "N": noun_slots.fill_noun,
    "POSS": noun_slots.say_possessive,
    "NUM": noun_slots.say_number,
    "W": noun_slots.fill_from_table,
    "A": noun_slots.fill_adjective,
    "AN": noun_slots.say_of_noun,
    "CMP": noun_slots.say_degree,
    "SUP": noun_slots.say_degree,
    "SUPN": noun_slots.say_degree,
    "V": verb_slots.say_named,
    "D": verb_forms.say_in_form,
    "I": verb_forms.say_in_form,
    "BE": verb_slots.say_form_of_be,
    "M": verb_slots.say_modal,
    "AUX": verb_slots.say_auxiliary,
    "INF": verb_slots.say_infinitive,
    "TO": verb_slots.say_infinitive,
    "ING": verb_slots.say_infinitive,
    "FUT": verb_slots.say_future,
    "FUTQ": verb_slots.say_future,
    "DO": verb_slots.say_doing,
    "DOQ": verb_slots.say_asked,
    "PERF": verb_slots.say_asked,
    "OFTEN": verb_slots.say_often,
    "C": verb_slots.say_clause,
}


def say_slot(drawing: Drawing, slot: Slot) -> None:
    """Say one slot."""
    set_subject(drawing, slot)
    _SAY[slot.slot](drawing, slot)


_PERSONS = {
    "who": Subject(2, "m", "person", "who"),
    "nobody": Subject(2, "m", "person", "nobody"),
    "you": Subject(1, "m", "person", "you"),
    "i": Subject(0, "m", "person", "i"),
    "he": Subject(2, "m", "person", "he"),
    "she": Subject(2, "f", "person", "she"),
    "we": Subject(3, "m", "person", "we", is_plural=True),
    "they": Subject(4, "m", "person", "they", is_plural=True),
}


def set_subject(drawing: Drawing, slot: Slot) -> None:
    """Make the subject that a slot names the subject of its verb: `@last`, `@who`, `@one`."""
    if slot.who in _PERSONS:
        drawing.subject = _PERSONS[slot.who]
    elif slot.who == "one":
        noun = drawing.noun_said
        # *One of my sisters* is one.
        drawing.subject = Subject(2, noun.gender, noun.kind, noun=noun)
    elif slot.who == "first":
        drawing.subject = subject_of(drawing.entities[0])
    elif slot.who:
        drawing.subject = subject_of(drawing.entities[-1])
    elif slot.tense == "order":
        drawing.subject = Subject(1, "m", "person", "you")
    elif slot.tense == "lets":
        drawing.subject = Subject(3, "m", "person", "we", is_plural=True)
