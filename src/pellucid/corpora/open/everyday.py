"""Everyday ways of speaking: states, two pronouns, answers, times, words written as one."""

from __future__ import annotations

from dataclasses import replace

from pellucid.corpora.lexicon import KINDS, NOUNS, Adjective
from pellucid.corpora.open.open_words import (
    ANSWERS,
    CONTRACTED,
    DITRANSITIVES,
    PEOPLE,
    STATES_OF,
    TIMES,
    TRANSITIVES,
    Tense,
)
from pellucid.corpora.open.orders import draw_order_of_two
from pellucid.corpora.open.phrases import say_free_phrase
from pellucid.corpora.open.predicates import (
    object_role,
    say_agreeing,
    say_open_predicate,
    say_quality,
    settle,
    takes,
)
from pellucid.corpora.open.subjects import say_open_subject, subject_of
from pellucid.corpora.open.verbs import (
    CLITICS,
    INDIRECT,
    Manner,
    draw_manner,
    say_be,
    say_verb,
    standing_for,
)
from pellucid.corpora.sentence import Pick, PronounLink, Sentence

_THEM = tuple(clitic for clitic in CLITICS if clitic.english in ("it", "them"))
_CLOSING = tuple(verb for verb in TRANSITIVES if verb.english.base in ("open", "close"))
_CLOSED = (Adjective("open", "ouvert", False, ()), Adjective("closed", "fermé", False, ()))
_CLOSED_NOUNS = (
    *KINDS["building"],
    *KINDS["part"],
    *(NOUNS[name] for name in ("bank", "market", "shop", "drawer", "box")),
)
_GETTING = tuple(verb for verb in TRANSITIVES if verb.english.base in ("find", "buy", "take"))


def draw_state(pick: Pick) -> Sentence:
    """Draw a state, *the house is sold*, or its opposite: *the school closed*."""
    sentence = Sentence("state")
    choice = pick.of("participle 5, closed 4, closing 3")
    verb = pick.one(STATES_OF if choice == "participle" else _CLOSING)
    noun = pick.one(verb.objects)
    if choice != "participle":
        noun = pick.one(_CLOSED_NOUNS)
    subject = subject_of(say_free_phrase(sentence, pick, noun, "subject", described=0.2))
    if choice == "closing":
        tense: Tense = pick.one(("past", "past", "present", "perfect"))
        say_verb(sentence, subject, verb.english, verb.french, Manner(tense))
        return _end_with_time(sentence, pick, tense)
    manner = Manner(pick.one(("present", "past")), pick.of("not, n't") if pick.chance(0.1) else "")
    say_be(sentence, subject, manner)
    state = Adjective(verb.english.participle, verb.french.participle, False, ())
    say_agreeing(sentence, subject, state if choice == "participle" else pick.one(_CLOSED))
    return _end_with_time(sentence, pick, manner.tense)


def _end_with_time(sentence: Sentence, pick: Pick, tense: Tense) -> Sentence:
    if pick.chance(0.2):
        say_time(sentence, pick, tense)
    return sentence


def say_time(sentence: Sentence, pick: Pick, tense: Tense) -> None:
    """Say *yesterday* or *every day*, as the tense allows."""
    is_past = tense.startswith("past") or tense == "perfect"
    sentence.say(*pick.one(TIMES["past" if is_past else "present"]))


def draw_timed(pick: Pick) -> Sentence:
    """Draw a statement with a time or an answer: *no, the hen is here today*."""
    sentence = Sentence("timed")
    tense: Tense = pick.one(("past", "present", "present"))
    if pick.chance(0.3):
        sentence.say(*pick.one(ANSWERS))
        sentence.pause()
    choice = pick.of("before, after 4, none 2")
    if choice == "before":
        say_time(sentence, pick, tense)
        if pick.chance(0.4):
            sentence.pause()
    subject = say_open_subject(sentence, pick, described=0.2)
    manner = replace(draw_manner(pick, subject, is_stative=True), tense=tense)
    if subject.english == "it":
        sentence.french[-1] = sentence.french[-1]._replace(text="ce")
        say_quality(sentence, pick, subject, manner)
    else:
        say_open_predicate(sentence, pick, subject, manner)
    if choice == "after":
        say_time(sentence, pick, tense)
    return sentence


def draw_two_pronouns(pick: Pick) -> Sentence:
    """Draw *she gave it to him*, *he bought a hat and gave it to her*, *bring it to me*."""
    sentence = Sentence("two pronouns")
    if pick.chance(0.4):
        return draw_order_of_two(pick)
    verb = pick.one(DITRANSITIVES)
    subject = say_open_subject(sentence, pick, pronoun=0.6, animate=1.0, described=0.15)
    tense: Tense = pick.one(("past", "past", "present"))
    clitic = pick.one(_THEM)
    manner = draw_manner(pick, subject)
    if pick.chance(0.4):
        first = pick.one(_GETTING)
        manner = settle(Manner(tense), subject, first)
        say_verb(sentence, subject, first.english, first.french, manner)
        noun = pick.one(verb.objects)
        sentence.combine("object", first.english.base, noun)
        found = say_free_phrase(sentence, pick, noun, object_role(first, manner), described=0.2)
        sentence.say("and", "et:0")
        clitic = standing_for(found)
        sentence.combine("object", verb.english.base, noun)
    if pick.chance(0.25):
        say_verb(sentence, subject, verb.english, verb.french, manner, clitic=clitic)
        sentence.say("to", "à:0")
        say_free_phrase(sentence, pick, pick.one((*PEOPLE, *KINDS["person"])), "place", plural=0.15)
        return sentence
    receivers = [one for one in INDIRECT if takes(TRANSITIVES[0], one, subject)]
    say_verb(
        sentence,
        subject,
        verb.english,
        verb.french,
        manner,
        clitic=clitic,
        receiver=pick.one(receivers),
    )
    return sentence


_BEFORE_PRONOUNS = frozenset(("and", "or", "but", "because", "when", "then"))


def contract(sentence: Sentence, pick: Pick) -> None:
    """Write *he is* as *he's*, and the like, wherever it stands."""
    words = sentence.english
    for place in reversed(range(len(words) - 2)):
        before = words[place - 1] if place else "then"
        is_start = before in _BEFORE_PRONOUNS or before.endswith(",")
        is_one = words[place] in CONTRACTED.get(words[place + 1], ()) and is_start
        if is_one and pick.chance(0.4):
            words[place] += "'" + {"am": "m", "is": "s", "are": "re"}[words.pop(place + 1)]
            _close_gap(sentence, place)


def _close_gap(sentence: Sentence, place: int) -> None:
    """Count the English words again after the one behind ``place`` was joined to it."""

    def moved(index: int) -> int:
        return index - (index > place)

    for at, word in enumerate(sentence.french):
        links = tuple(dict.fromkeys(map(moved, word.links)))
        sentence.french[at] = word._replace(links=links)
    for at, (pronoun, antecedent, *roles) in enumerate(sentence.pronouns):
        sentence.pronouns[at] = PronounLink(moved(pronoun), moved(antecedent), *roles)
