"""Two clauses with *and*, *but*, *because* or *when*, and pronouns for nouns of the first."""

from __future__ import annotations

from dataclasses import replace

from pellucid.corpora.french import Word, agree
from pellucid.corpora.lexicon import KINDS, PREDICATES, STATES, Adjective
from pellucid.corpora.open.open_words import (
    ANIMATE,
    CONDITIONS,
    PEOPLE,
    PLACE_WORDS,
    PREDICATE_ADJECTIVES,
    TRANSITIVES,
    Tense,
    english_of,
    french_of,
)
from pellucid.corpora.open.phrases import say_free_phrase
from pellucid.corpora.open.predicates import (
    Say,
    object_role,
    say_act,
    say_action,
    say_condition,
    say_motion,
    say_open_predicate,
    say_place,
    say_quality,
    say_simple,
    settle,
)
from pellucid.corpora.open.subjects import Subject, say_open_subject, say_referring, subject_of
from pellucid.corpora.open.verbs import (
    INDIRECT,
    Manner,
    say_be,
    say_state,
    say_verb,
    standing_for,
)
from pellucid.corpora.sentence import Entity, Pick, Sentence

_JOINTS = (
    ("and", "et:0"),
    ("and", "et:0"),
    ("but", "mais:0"),
    ("because", "parce:0 que:0"),
    ("because", "parce:0 que:0"),
    ("when", "quand:0"),
    ("so", "donc:0"),
)
_TENSES: tuple[Tense, ...] = ("past", "past", "past", "present", "present", "past progressive")
_OF_BEINGS = frozenset({"clever", "tired", "sick", "happy", "young"})
_OF_FOOD = frozenset(
    {"delicious", "salty", "ripe", "juicy", "rotten", "good", "cold", "hot", "awesome", "expensive"}
)


def draw_two_clauses(pick: Pick) -> Sentence:
    """Draw two clauses, each with a subject: *the man sang and the dog barked*."""
    sentence = Sentence("two clauses")
    tense = pick.one(_TENSES)
    if pick.chance(0.15):
        sentence.say("when", "quand:0")
        _say_clause(sentence, pick, tense)
        sentence.pause()
        _say_clause(sentence, pick, tense)
        return sentence
    _say_clause(sentence, pick, tense)
    _say_joint(sentence, pick)
    _say_clause(sentence, pick, pick.one((tense, tense, *_TENSES)))
    return sentence


def _say_joint(sentence: Sentence, pick: Pick) -> str:
    english, french = pick.one(_JOINTS)
    if english == "but" and pick.chance(0.3):
        sentence.pause()
    sentence.say(english, french)
    return english


def _manner(pick: Pick, tense: Tense) -> Manner:
    negation = pick.one(("not", "not", "n't")) if pick.chance(0.12) else ""
    return Manner(tense, negation)


def _say_clause(sentence: Sentence, pick: Pick, tense: Tense) -> None:
    subject = say_open_subject(sentence, pick, pronoun=0.4, described=0.2)
    while subject.english == "it":
        sentence.english.pop()
        sentence.french.pop()
        subject = say_open_subject(sentence, pick, pronoun=0.0, described=0.2)
    say_open_predicate(sentence, pick, subject, _manner(pick, tense))


def draw_with_pronoun(pick: Pick) -> Sentence:
    """Draw an action, and a pronoun for one of its two nouns in the second clause.

    The second clause is true of only one of the two: only a cat is hungry, only a pizza is salty,
    and *he* cannot be a pizza.
    """
    sentence = Sentence("open pronoun")
    tense = pick.one(_TENSES)
    noun = pick.one(PEOPLE) if pick.chance(0.15) else pick.one(KINDS[pick.one(ANIMATE)])
    agent = say_free_phrase(sentence, pick, noun, "subject", plural=0.2, described=0.2)
    subject = subject_of(agent)
    verb = pick.one(_VERBS)
    manner = settle(_manner(pick, tense), subject, verb)
    say_verb(sentence, subject, verb.english, verb.french, manner, particle=verb.particle)
    thing = pick.one(KINDS[pick.one(verb.kinds)])
    while thing.kind in ANIMATE:
        thing = pick.one(KINDS[pick.one(verb.kinds)])
    sentence.combine("object", verb.english.base, thing)
    found = say_free_phrase(sentence, pick, thing, object_role(verb, manner), described=0.2)
    _say_second(sentence, pick, subject, agent, found, pick.one((tense, *_TENSES)))
    return sentence


def draw_animal(pick: Pick) -> Sentence:
    """Draw *the hen was tired and it slept*: *it* is the animal, whatever else the sentence has."""
    sentence = Sentence("animal")
    tense = pick.one(_TENSES)
    animal = pick.one(KINDS["animal"])
    agent = say_free_phrase(sentence, pick, animal, "place", plural=0.2, described=0.2)
    pick.one(_BEGINNINGS)(sentence, pick, subject_of(agent), _manner(pick, tense))
    _say_joint(sentence, pick)
    other = say_referring(sentence, agent)
    manner = _manner(pick, pick.one((tense, tense, *_TENSES)))
    choice = pick.of("eat 3, simple 2, condition")
    if choice == "eat":
        say_act(sentence, pick, other, manner, verb=pick.one(_OF_ANIMALS))
    else:
        (say_simple if choice == "simple" else say_condition)(sentence, pick, other, manner)
    return sentence


def _say_second(
    sentence: Sentence, pick: Pick, subject: Subject, agent: Entity, found: Entity, tense: Tense
) -> None:
    """Say the second clause, about the agent or what it acted on."""
    joint = _say_joint(sentence, pick)
    # *They* may be both, *it* an animal or a thing.
    is_clear = agent.noun.kind == "person" and not (agent.is_plural and found.is_plural)
    choice = pick.one(("agent", "thing", "thing", "object", "object"))
    manner = _manner(pick, tense)
    if choice == "object" and joint in ("and", "but") and agent.is_plural is False:
        _say_again(sentence, pick, subject, found, manner, has_subject=pick.chance(0.4))
        return
    if choice == "agent":
        other = say_referring(sentence, agent)
        if is_clear and pick.chance(0.5):
            say_action(sentence, pick, replace(other, english="he"), manner)
            return
        if pick.chance(0.5) and say_state(sentence, other, pick.one(CONDITIONS[:2]), manner):
            return
        options = [a for a in PREDICATE_ADJECTIVES[agent.noun.kind] if a.english in _OF_BEINGS]
        say_quality(sentence, pick, other, manner, adjective=pick.one(options))
        return
    other = say_referring(sentence, found)
    phrases = PREDICATES.get(found.noun.kind, ())
    if phrases and pick.chance(0.4) and say_state(sentence, other, pick.one(phrases), manner):
        return
    options = _telling(found, is_clear=is_clear)
    if not options:
        say_state(sentence, other, pick.one(phrases), replace(manner, negation=""))
        return
    say_be(sentence, other, manner)
    if pick.chance(0.15):
        sentence.say(*pick.one((("very", "très:0"), ("too", "trop:0"))))
    adjective = pick.one(options)
    sentence.combine("adjective", adjective.english, found.noun)
    form = agree(adjective.french, other.gender, is_plural=other.is_plural)
    sentence.french.append(Word(form, (len(sentence.english),)))
    sentence.english.append(adjective.english)


def _telling(found: Entity, *, is_clear: bool) -> list[Adjective]:
    """List the adjectives that fit a thing and not an animal next to it."""
    options = PREDICATE_ADJECTIVES[found.noun.kind]
    if is_clear:
        return list(options)
    if found.noun.kind in ("food", "fruit", "drink"):
        return [adjective for adjective in options if adjective.english in _OF_FOOD]
    return [
        adjective
        for adjective in options
        if "animal" not in adjective.kinds and adjective.english not in _OF_BEINGS
    ]


def _say_again(
    sentence: Sentence,
    pick: Pick,
    subject: Subject,
    found: Entity,
    manner: Manner,
    *,
    has_subject: bool,
) -> None:
    """Say another verb whose object is a pronoun: *and (he) ate it*, *et l'a mangée*."""
    if has_subject and subject.kind == "person" and subject.entity is not None:
        subject = replace(say_referring(sentence, subject.entity), noun=subject.noun)
    said = {*sentence.english}
    verbs = [verb for verb in TRANSITIVES if found.noun.kind in verb.kinds]
    verb = pick.one([verb for verb in verbs if verb.english.past not in said] or verbs)
    manner = settle(manner, subject, verb)
    clitic = standing_for(found)
    sentence.combine("object", verb.english.base, found.noun)
    say_verb(
        sentence, subject, verb.english, verb.french, manner, particle=verb.particle, clitic=clitic
    )


_VERBS = (
    tuple(verb for verb in TRANSITIVES if set(verb.kinds) - set(ANIMATE))
    + tuple(verb for verb in TRANSITIVES if verb.english.base in ("eat", "drink", "buy")) * 3
)


_BEGINNINGS: tuple[Say, ...] = (*[say_condition] * 2, say_quality, say_place, say_motion, say_act)
_OF_ANIMALS = tuple(
    verb
    for name in ("eat", "drink", "drink", "see", "find", "chase", "like", "follow")
    for verb in TRANSITIVES
    if verb.english.base == name
)


def draw_free_told(pick: Pick) -> Sentence:
    """Draw *my bank told the boy that he is late*: *he* and *she* can stand for one noun only."""
    sentence = Sentence("open told")
    if pick.chance(0.25):
        sentence.say("then", "puis:0")
    listener = pick.one([noun for noun in (*KINDS["person"], *PEOPLE) if noun.english != "baby"])
    options = [noun for noun in (*KINDS["person"], *PEOPLE) if noun.gender != listener.gender]
    if pick.chance(0.6):
        options = [*KINDS["institution"], *KINDS["building"]]
    teller = pick.one(options)
    first = say_free_phrase(sentence, pick, teller, "place", plural=0.12, described=0.1)
    subject = subject_of(first)
    tense: Tense = "past" if pick.chance(0.85) else "present"
    say_verb(sentence, subject, _TELL[0], _TELL[1], Manner(tense))
    if pick.chance(0.3):
        sentence.english.pop()
        del sentence.french[-2 if tense == "past" else -1 :]
        return _say_told_pronoun(sentence, pick, subject, tense)
    sentence.french.append(Word("à", (len(sentence.english) - 1,)))
    second = say_free_phrase(sentence, pick, listener, "place", plural=0.1, described=0.1)
    if pick.chance(0.35):
        sentence.say("that", "que:0")
    else:
        sentence.french.append(Word("que", ()))
    if pick.chance(0.25):
        _say_clause(sentence, pick, pick.one(_TENSES))
        return sentence
    if teller.kind != "person" and not first.is_plural and pick.chance(0.2):
        about = say_referring(sentence, first)
        if pick.chance(0.4):
            say_quality(sentence, pick, about, Manner("past"))
        else:
            state = STATES[f"was {pick.of('bankrupt 2, late, right, wrong')}"]
            say_state(sentence, about, state, Manner("past"))
        return sentence
    is_first = teller.kind == "person" and not second.is_plural and pick.chance(0.3)
    about = say_referring(sentence, first if is_first and not first.is_plural else second)
    then: Tense = pick.one(("past", "past", "past", "present"))
    manner = _manner(pick, then)
    choice = pick.one(("state", "state", "state", "quality", "act"))
    if choice == "act":
        say_action(sentence, pick, about, manner)
    elif choice == "quality" or not say_state(sentence, about, pick.one(CONDITIONS), manner):
        options_of = [a for a in PREDICATE_ADJECTIVES["person"] if a.english in _OF_BEINGS]
        say_quality(sentence, pick, about, manner, adjective=pick.one(options_of))
    return sentence


def _say_told_pronoun(sentence: Sentence, pick: Pick, subject: Subject, tense: Tense) -> Sentence:
    """Say *told me that* and a clause, in French *m'a dit que*."""
    clitic = pick.one(INDIRECT)
    say_verb(sentence, subject, _TELL[0], _TELL[1], Manner(tense), clitic=clitic)
    if pick.chance(0.4):
        sentence.say("that", "que:0")
    else:
        sentence.french.append(Word("que", ()))
    is_about = subject.entity is not None and subject.kind == "person" and pick.chance(0.5)
    # *Told him he* may be both; *told me he* is the teller.
    if is_about and subject.entity is not None and clitic.english in ("me", "you", "us"):
        about = say_referring(sentence, subject.entity)
        say_open_predicate(sentence, pick, about, _manner(pick, "past"))
        return sentence
    _say_clause(sentence, pick, pick.one(_TENSES))
    return sentence


def draw_free_found(pick: Pick) -> Sentence:
    """Draw *my cat saw a cake behind Anna and ate it*: the cake is what is eaten."""
    sentence = Sentence("open found")
    noun = pick.one((*KINDS["animal"], *KINDS["animal"], *KINDS["person"], *PEOPLE))
    agent = say_free_phrase(sentence, pick, noun, "place", plural=0.08, described=0.12)
    subject = subject_of(agent)
    lead = pick.one([verb for verb in TRANSITIVES if verb.english.base in ("find", "see", "buy")])
    say_verb(sentence, subject, lead.english, lead.french, Manner("past"))
    food = pick.one((*KINDS["food"], *KINDS["food"], *KINDS["fruit"], *KINDS["drink"]))
    sentence.combine("object", lead.english.base, food)
    eaten = say_free_phrase(sentence, pick, food, "object", plural=0.15, described=0.12)
    sentence.say(*pick.one(PLACE_WORDS[:4]))
    near = pick.one((*KINDS["person"], *PEOPLE))
    say_free_phrase(sentence, pick, near, "place", is_plural=False, described=0.1)
    sentence.say("and", "et:0")
    eat = ("drink",) if food.kind == "drink" else ("eat", "eat", "eat")
    name = pick.one((*eat, "like", "sell"))
    verb = next(verb for verb in TRANSITIVES if verb.english.base == name)
    sentence.combine("object", name, food)
    say_verb(
        sentence, subject, verb.english, verb.french, Manner("past"), clitic=standing_for(eaten)
    )
    return sentence


_TELL = (english_of("tell tells told telling"), french_of("dis dis dit disons disent dit"))
