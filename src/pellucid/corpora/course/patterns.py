"""Patterns of the course, read and drawn, with their slots.

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

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from pellucid.corpora.course import noun_slots, verb_forms, verb_slots
from pellucid.corpora.course.course_words import BRITISH, EVERYDAY, FRENCH, GRAMMAR, RULES, pool
from pellucid.corpora.course.drawing import Drawing, Slot, read_slot
from pellucid.corpora.french import Word, agree
from pellucid.corpora.lexicon import Noun
from pellucid.corpora.open.subjects import Subject, subject_of
from pellucid.corpora.sentence import Pick, Sentence


class Pattern(NamedTuple):
    """A pattern: English words and slots, French words, and how often it is drawn."""

    english: tuple[str | Slot, ...]
    french: tuple[str, ...]
    times: int


def read_pattern(line: str) -> Pattern:
    """Read one line of a construction's patterns."""
    english, french = (side.split() for side in line.split(" = "))
    times = int(english.pop(0)) if english[0].isdigit() else 1
    return Pattern(tuple(read_slot(word) or word for word in english), tuple(french), times)


@cache
def patterns_of(name: str) -> tuple[Pattern, ...]:
    """List the patterns of a construction, each as often as it is drawn."""
    read = [read_pattern(line) for line in GRAMMAR[name]["patterns"].strip().splitlines()]
    return tuple(pattern for pattern in read for _ in range(pattern.times))


@cache
def ways_of(name: str) -> tuple[Pattern, ...]:
    """List the patterns of a rule, each as often as it is drawn."""
    read = [read_pattern(line) for line in RULES[name].strip().splitlines()]
    return tuple(pattern for pattern in read for _ in range(pattern.times))


def draw_course(pick: Pick, name: str) -> Sentence:
    """Draw a sentence of a construction."""
    sentence = Sentence(name, mood=GRAMMAR[name].get("mood", "statement"))
    say_pattern(sentence, pick, pick.one(patterns_of(name)))
    for place, word in enumerate(sentence.english):
        bare = word.removesuffix(",").removesuffix("'s")
        if bare in BRITISH and pick.chance(0.35):
            sentence.english[place] = word.replace(bare, BRITISH[bare])
    return sentence


def say_pattern(sentence: Sentence, pick: Pick, pattern: Pattern) -> None:
    """Say a pattern: its English in order, then the French of each slot where it belongs."""
    _say_parts(Drawing(sentence, pick), pattern)
    _move_adverbs(sentence.french)


_AFTER_NEGATION = ("before", "without", "instead", "because", "so", "if", "when", "although")
"""Words behind which nothing is negated anymore."""


def _say_parts(drawing: Drawing, pattern: Pattern) -> None:
    sentence = drawing.sentence
    subject: Subject | None = None
    noun: Noun | None = None
    places: list[int] = []
    said: list[list[Word]] = []
    for part in pattern.english:
        places.append(len(sentence.english))
        said.append([])
        if part in (",", "'s"):
            sentence.english[-1] += part
        elif isinstance(part, str):
            sentence.english.append(part)
            drawing.is_negated &= part not in _AFTER_NEGATION
            # *Tried not to eat any bread* has *de* for *du*.
            drawing.is_negated |= sentence.english[-2:] == ["not", "to"]
        else:
            if part.slot == "R":
                _say_rule(drawing, part)
            else:
                say_slot(drawing, part)
            said[-1] = sentence.french.copy()
            sentence.french.clear()
            if part.slot == "N":
                noun = drawing.noun_said
            # A later clause has its own subject; the words of the pattern have the first.
            if subject is None and part.slot == "S":
                subject = drawing.subject
    for part in pattern.french:
        if part[0] == "$":
            sentence.french += said[int(part[1:])]
        elif part == ",":
            last = sentence.french[-1]
            sentence.french[-1] = last._replace(text=last.text + ",")
        else:
            word = _say_word(part, places, noun or drawing.noun_said, subject or drawing.subject)
            sentence.french.append(word)
    if drawing.is_negated and pattern.french[0] == "$0" and _begins_with(pattern, "D"):
        _negate_article(sentence, len(said[0]))


def _begins_with(pattern: Pattern, slot: str) -> bool:
    first = pattern.english[0]
    return not isinstance(first, str) and first.slot == slot


def _negate_article(sentence: Sentence, place: int) -> None:
    """Change *ne boit pas un verre* to *ne boit pas de verre*."""
    words = sentence.french
    here = [word.text for word in words[place : place + 2]]
    if here[:1] in (["un"], ["une"], ["des"]):
        words[place] = words[place]._replace(text="de")
    elif here in (["de", "la"], ["de", "le"]):
        said = [sentence.english[link] for link in words[place].links]
        # *Du piano* of *the piano* keeps its article.
        if "the" not in said and words[place].links == words[place + 1].links:
            del words[place + 1]


_DOING = (
    *("order", "lets", "ing", "progressive", "past_progressive", "perfect", "pluperfect"),
    *("just", "having", "gerund", "already", "not_yet", "not_perfect"),
)
"""Forms of an action, not of a state: *want milk* is not an order."""


def _is_unusual(way: Pattern, form: str) -> bool:
    """Tell whether a way begins with a verb that hardly has the form: *know!*, *to want to go*."""
    first = way.english[0]
    if isinstance(first, str) or first.slot != "D":
        return False
    marks = EVERYDAY[first.name][2]
    if "g" in marks:
        # *Has got* is present only.
        return form not in ("present", "now")
    if "o" in marks and form in ("order", "lets"):
        return True
    if first.said == "there" and form in ("future", "would", "coming", "order"):
        # *J'irai* has no *y*.
        return True
    if form == "plain" and ("r" in marks or first.said or _names(way, "do")):
        # Of another than the subject: *asked him to wait*, not *asked him to help him*.
        return True
    return ("s" in marks and form in _DOING) or ("w" in marks and form in _BARE)


def _names(way: Pattern, rule: str) -> bool:
    return any(not isinstance(part, str) and part.name == rule for part in way.english)


_BARE = ("inf", "to", "subjunctive", "plain")
_SHORT = ("bien", "mal", "beaucoup", "trop")
_HELPERS = frozenset((*FRENCH["avoir"].present, *FRENCH["être"].present))
_PARTICIPLES = frozenset(french.participle for _, french, *_ in EVERYDAY.values())


def _move_adverbs(words: list[Word]) -> None:
    """Put a short adverb before a participle: *a bien chanté*, *a très bien chanté*.

    One that a pattern marks with + stands there too, wherever the pattern has it: *a déjà mangé*.
    """
    for at in range(len(words)):
        if words[at].text[0] == "+":
            word = words.pop(at)
            words.insert(_before_participle(words, at), word._replace(text=word.text[1:]))
    for at in range(2, len(words)):
        start = at - (words[at - 1].text == "très")
        before = {word.text for word in words[max(0, start - 3) : start - 1]}
        is_past = words[start - 1].text in _PARTICIPLES and before & _HELPERS
        # *A mangé beaucoup de pain* keeps it with its noun.
        is_amount = at + 1 < len(words) and words[at + 1].text == "de"
        if words[at].text in _SHORT and is_past and not is_amount:
            words.insert(at, words.pop(start - 1))


def _before_participle(words: list[Word], at: int) -> int:
    """Find the last place before a participle, at or before a place."""
    for place in range(min(at, len(words) - 1), 0, -1):
        text = words[place].text
        stems = {text, text.removesuffix("s"), text.removesuffix("s").removesuffix("e")}
        is_behind = any(word.text in _HELPERS for word in words[max(0, place - 2) : place])
        if is_behind and not stems.isdisjoint(_PARTICIPLES):
            return place
    return at


def _say_rule(drawing: Drawing, slot: Slot) -> None:
    """Say one of the ways of a rule: `$R:do.past`, an action in the past."""
    before = replace(drawing)
    set_subject(drawing, slot)
    drawing.form = slot.tense or drawing.form
    drawing.is_positive = bool(slot.positive) or drawing.is_positive
    drawing.is_often = slot.said == "often" or (drawing.is_often and not slot.tense)
    way = drawing.pick.one(ways_of(slot.name))
    while _is_unusual(way, drawing.form):
        way = drawing.pick.one(ways_of(slot.name))
    _say_parts(drawing, way)
    drawing.subject = before.subject
    drawing.form = before.form
    drawing.is_positive = before.is_positive
    drawing.is_often = before.is_often


def _say_word(part: str, places: list[int], noun: Noun, subject: Subject) -> Word:
    """Make a French word of the pattern itself."""
    text, _, links = part.rpartition(":")
    if text[0] == "^":
        text = FRENCH[text[1:]].present[subject.person]
    elif text[0] == "@":
        text = agree(text[1:], subject.gender, is_plural=subject.is_plural)
    elif text[0] == "~":
        text = agree(text[1:], noun.gender, is_plural=False)
    return Word(text, tuple(places[int(link)] for link in links.split(",") if link))


_COLD = re.compile(
    r"\b(I|you|he|she|we|they|it)(?:'m|'s|'re| am| is| are| was| were)"
    r"(?:n't| not| never)?(?: very| too)? (?:cold|hot|warm)\b"
)
_FELT = frozenset(
    ("ai", "as", "a", "avons", "ont", "avais", "avait", "avions", "avaient", "fait", "faisait")
)
_BEINGS = frozenset(noun.english for noun in pool("animate"))


def is_felt(sentence: Sentence) -> bool:
    """Tell whether someone *is cold* in French words for things: in the course he *a froid*."""
    said = {one.word for one in sentence.combinations if one.noun in _BEINGS}
    if said & {"cold", "hot", "warm"}:
        return True
    found = _COLD.search(" ".join(sentence.english))
    # *It* and *they* may be the soups.
    if found is None or (found[1] in ("it", "they") and sentence.pronouns):
        return False
    return _FELT.isdisjoint(word.text for word in sentence.french)


def _drawer(name: str) -> Callable[[Pick], Sentence]:
    return lambda pick: draw_course(pick, name)


COURSE: dict[str, tuple[Callable[[Pick], Sentence], int]] = {
    name: (_drawer(name), row["weight"]) for name, row in GRAMMAR.items()
}
"""The constructions of the course, with their weights in drawing."""
EVERYDAY_NAMES = frozenset(name for name, row in GRAMMAR.items() if row.get("is_everyday"))
"""The constructions of everyday sentences."""


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
