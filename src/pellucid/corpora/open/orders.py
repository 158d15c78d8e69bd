"""Orders and suggestions: *do not eat the soup*, *give him the book*, *let's open the door*."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.corpora.french import Word
from pellucid.corpora.lexicon import KINDS, WORDS
from pellucid.corpora.open.open_words import (
    CITIES,
    COMMON,
    DITRANSITIVES,
    INTRANSITIVES,
    MOTIONS,
    PEOPLE,
    TIMES,
    TRANSITIVES,
    FreeVerb,
    english_of,
    french_of,
)
from pellucid.corpora.open.phrases import say_free_phrase
from pellucid.corpora.open.predicates import draw_object, object_role, say_receiver
from pellucid.corpora.open.subjects import Subject, draw_noun
from pellucid.corpora.open.verbs import Manner
from pellucid.corpora.open.where import say_company, say_where
from pellucid.corpora.sentence import Pick, Sentence

_NOBODY = Subject(1, "m", "person")
_Pronouns = tuple[tuple[str, str, str], ...]
_DIRECT: _Pronouns = tuple(map(tuple, WORDS["orders"]["direct"]))
_INDIRECT: _Pronouns = tuple(map(tuple, WORDS["orders"]["indirect"]))
_IT: _Pronouns = tuple(map(tuple, WORDS["orders"]["things"]))
_OTHERS = (*_DIRECT[2:4], *_IT)
_DO = tuple(verb for verb in TRANSITIVES if not verb.french.lasts)
_COMMON = tuple(verb for verb in TRANSITIVES if verb.english.base in COMMON)
_ALONE = (
    *INTRANSITIVES,
    *[verb for verb in _DO if not verb.particle and verb not in DITRANSITIVES],
    FreeVerb(english_of("play"), french_of("jouer")),
    FreeVerb(english_of("talk"), french_of("parler")),
)
"""Verbs after *let's* without an object."""
_MOTIONS = tuple(verb for verb in MOTIONS if verb.particle != "at")


def draw_free_order(pick: Pick) -> Sentence:
    """Draw an order to one person, with *tu*, sometimes with *please*."""
    sentence = Sentence("open order", mood="order")
    _say_order(sentence, pick)
    return _end_politely(sentence, pick, 0.08)


def _end_politely(sentence: Sentence, pick: Pick, likely: float) -> Sentence:
    if pick.chance(likely):
        sentence.pause()
        sentence.say("please", "s'il:0 te:0 plaît:0")
    return sentence


def _say_order(sentence: Sentence, pick: Pick) -> None:
    start = _begin(sentence, pick)
    choice = pick.of("act 3, give 2, pronoun 6, go, simple")
    if choice == "act":
        verb = pick.one(_DO)
        if pick.chance(0.15):
            verb = pick.one([one for one in _DO if "person" in one.kinds])
            _say(sentence, verb, start, verb.french.imperative)
            name = pick.one((*PEOPLE, *CITIES))
            sentence.combine("object", verb.english.base, name)
            say_free_phrase(sentence, pick, name, "object")
            return
        _say(sentence, verb, start, verb.french.imperative)
        _say_object(sentence, pick, verb, is_negated=bool(start))
    elif choice == "give":
        _say_giving(sentence, pick, start)
    elif choice == "pronoun":
        verb = pick.one(_COMMON)
        pronouns = _DIRECT if "person" in verb.kinds or pick.chance(0.2) else _IT
        _say_with_pronoun(sentence, pick.one(pronouns), verb, start, verb.french.imperative)
        if pick.chance(0.5):
            say_where(sentence, pick)
    elif choice == "go":
        _say_going(sentence, pick, start, person=1)
    else:
        verb = pick.one(INTRANSITIVES)
        _say(sentence, verb, start, verb.french.imperative)
        if pick.chance(0.7):
            say_where(sentence, pick)


def draw_order_of_two(pick: Pick) -> Sentence:
    """Draw *give it to me now*, in French *donne-le-moi*, or *don't give it to Anna, please*."""
    sentence = Sentence("two pronouns", mood="order")
    _say_order_of_two(sentence, pick)
    if pick.chance(0.3):
        sentence.say(*pick.one(TIMES["present"]))
    elif pick.chance(0.3):
        say_where(sentence, pick)
    return _end_politely(sentence, pick, 0.2)


def _say_order_of_two(sentence: Sentence, pick: Pick) -> None:
    negation = _begin(sentence, pick)
    verb = pick.one(DITRANSITIVES)
    english, after, clitic = pick.one(_IT)
    form = verb.french.imperative
    index = len(sentence.english)
    if pick.chance(0.25):
        _say_with_pronoun(sentence, (english, after, clitic), verb, negation, form)
        sentence.say("to", "à:0")
        say_free_phrase(sentence, pick, pick.one((*PEOPLE, *KINDS["person"])), "place")
        return
    person, stressed, receiver = pick.one(_INDIRECT)
    sentence.english += [verb.english.base, english, "to", person]
    to = (index + 2, index + 3)
    # An order puts its pronouns behind the verb, with hyphens; a negated one before it.
    if not negation:
        # *Donne-le-moi* is one piece for four English words.
        links = (index, index + 1, *to)
        sentence.french.append(Word(f"{form}-{after}-{stressed}", links))
        return
    pair = [Word(clitic, (index + 1,)), Word(receiver, to)]
    # *Me le*, but *le lui*.
    pair = pair if receiver in ("lui", "leur") else pair[::-1]
    _say_form(sentence, form, (index,), negation, pair)


def draw_free_suggestion(pick: Pick) -> Sentence:
    """Draw a sentence with *let's* or *let's not*, in French the form of *nous*."""
    sentence = Sentence("open suggestion", mood="order")
    sentence.english.append("let's")
    links = (0,)
    negation: tuple[int, ...] = ()
    if pick.chance(0.25):
        negation = (1,)
        sentence.english.append("not")
    choice = pick.of("act 2, pronoun 2, go 2, leave, simple")
    if choice == "leave":
        return _say_leaving(sentence, pick, negation)
    if choice == "go":
        _say_going(sentence, pick, negation, person=3, before=links)
        return sentence
    if choice == "simple":
        verb = pick.one(_ALONE if pick.chance(0.5) else INTRANSITIVES)
        _say(sentence, verb, negation, verb.french.present[3], before=links)
        if pick.chance(0.6):
            say_where(sentence, pick)
        return sentence
    verb = pick.one(_COMMON if choice == "pronoun" else _DO)
    if choice == "pronoun":
        pronoun = pick.one(_OTHERS if "person" in verb.kinds else _IT)
        _say_with_pronoun(sentence, pronoun, verb, negation, verb.french.present[3], before=links)
        if pick.chance(0.5):
            say_where(sentence, pick)
        return sentence
    _say(sentence, verb, negation, verb.french.present[3], before=links)
    _say_object(sentence, pick, verb, is_negated=bool(negation))
    return sentence


def _say_leaving(sentence: Sentence, pick: Pick, negation: tuple[int, ...]) -> Sentence:
    """Say *let's go now*, in French *allons-y maintenant*, or *let's not go with him*."""
    links = (0, len(sentence.english))
    sentence.english.append("go")
    if negation:
        _say_form(sentence, "allons", links, negation, [Word("y", links[1:])])
    else:
        sentence.french.append(Word("allons-y", links))
    if pick.chance(0.5):
        say_company(sentence, pick)
    elif not negation or pick.chance(0.7):
        sentence.say(*pick.one(TIMES["present"]))
    return sentence


def _begin(sentence: Sentence, pick: Pick) -> tuple[int, ...]:
    """Say *do not* or *don't*, or nothing; return the English indices of the negation."""
    if pick.chance(0.75):
        return ()
    if pick.chance(0.4):
        sentence.english.append("don't")
        return (0,)
    sentence.english += ["do", "not"]
    return (0, 1)


def _say(
    sentence: Sentence,
    verb: FreeVerb,
    negation: tuple[int, ...],
    form: str,
    *,
    before: tuple[int, ...] = (),
) -> None:
    """Say the verb; in French between *ne* and *pas* if there is a negation."""
    index = len(sentence.english)
    sentence.english.append(verb.english.base)
    links = (*before, index)
    words = verb.particle.split()
    own = words[:-1] if len(words) > 1 else words if verb.particle == "on" else []
    links += tuple(index + 1 + i for i in range(len(own)))
    sentence.english += words
    _say_form(sentence, form, links, negation)


def _say_form(
    sentence: Sentence,
    form: str,
    links: tuple[int, ...],
    negation: tuple[int, ...],
    pronouns: Sequence[Word] = (),
) -> None:
    if negation:
        sentence.french += [Word("ne", negation), *pronouns, Word(form, links)]
        sentence.french.append(Word("pas", negation[-1:]))
    else:
        sentence.french.append(Word(form, links))


def _say_with_pronoun(
    sentence: Sentence,
    pronoun: tuple[str, str, str],
    verb: FreeVerb,
    negation: tuple[int, ...],
    form: str,
    *,
    before: tuple[int, ...] = (),
) -> None:
    """Say *eat it*, in French *mange-le* or *ne le mange pas*."""
    english, after, clitic = pronoun
    index = len(sentence.english)
    sentence.english += [verb.english.base, english, *verb.particle.split()]
    links = (*before, index, *((index + 2,) if verb.particle else ()))
    if negation:
        _say_form(sentence, form, links, negation, [Word(clitic, (index + 1,))])
        return
    sentence.french.append(Word(f"{form}-{after}", (*links, index + 1)))


def _say_object(sentence: Sentence, pick: Pick, verb: FreeVerb, *, is_negated: bool) -> None:
    noun = draw_object(pick, verb, _NOBODY)
    sentence.combine("object", verb.english.base, noun)
    manner = Manner(negation="not" if is_negated else "")
    say_free_phrase(sentence, pick, noun, object_role(verb, manner))
    if pick.chance(0.1):
        say_where(sentence, pick)


def _say_giving(sentence: Sentence, pick: Pick, negation: tuple[int, ...]) -> None:
    """Say *give me the money*, *show the book to Anna*, *give the man a coat*."""
    verb = pick.one(DITRANSITIVES)
    if pick.chance(0.75):
        pronoun = pick.one(_INDIRECT)
        _say_with_pronoun(sentence, pronoun, verb, negation, verb.french.imperative)
        _say_object(sentence, pick, verb, is_negated=bool(negation))
        return
    receiver = pick.one((*PEOPLE, *KINDS["person"], *KINDS["person"]))
    _say(sentence, verb, negation, verb.french.imperative)
    noun = draw_object(pick, verb, _NOBODY)
    sentence.combine("object", verb.english.base, noun)
    say_receiver(sentence, pick, noun, receiver, "negated" if negation else "object")


def _say_going(
    sentence: Sentence,
    pick: Pick,
    negation: tuple[int, ...],
    *,
    person: int,
    before: tuple[int, ...] = (),
) -> None:
    """Say *go to the hotel*, *come out of the car*."""
    verb = pick.one(_MOTIONS)
    form = verb.french.imperative if person == 1 else verb.french.present[3]
    _say(sentence, verb, negation, form, before=before)
    sentence.french.append(Word(verb.preposition, (len(sentence.english) - 1,)))
    if verb.preposition != "dans" and pick.chance(0.12):
        say_free_phrase(sentence, pick, pick.one(CITIES), "place")
        return
    noun = pick.one(verb.objects) if pick.chance(0.85) else draw_noun(pick, animate=0.2)
    say_free_phrase(sentence, pick, noun, "place", plural=0.15)
