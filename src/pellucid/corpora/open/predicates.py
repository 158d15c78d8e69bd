"""Predicates: actions, motions, places, qualities, possessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pellucid.corpora.french import Word, agree
from pellucid.corpora.lexicon import KINDS, PREDICATES, SOUNDS, WORDS, Adjective, Noun, nouns_of
from pellucid.corpora.open.open_words import (
    CITIES,
    CONDITIONS,
    DITRANSITIVES,
    HAVE,
    INTRANSITIVES,
    MOTIONS,
    PEOPLE,
    PREDICATE_ADJECTIVES,
    SOUND_VERBS,
    TRANSITIVES,
    English,
    FreeVerb,
    english_of,
    french_of,
    make_up_noun,
)
from pellucid.corpora.open.phrases import draw_adjectives, say_free_phrase, say_of, say_phrase
from pellucid.corpora.open.subjects import Subject, draw_noun, say_serial_comma
from pellucid.corpora.open.verbs import (
    CLITICS,
    INDIRECT,
    Clitic,
    Manner,
    draw_manner,
    say_be,
    say_state,
    say_verb,
)
from pellucid.corpora.open.where import pronoun_after, say_where
from pellucid.corpora.sentence import Entity, Pick, Sentence

_EVERY = tuple(
    {one.english: one for options in PREDICATE_ADJECTIVES.values() for one in options}.values()
)
_HAVE_VERB = English("have", "has", "had", "having", "had")
_PLAY = (english_of("play"), french_of("jouer"))
_TALK = (english_of("talk"), french_of("parler"))
_SPEAKABLE = (*KINDS["person"], *KINDS["institution"], *nouns_of("text", "animal", "food"), *PEOPLE)
_DRAWN = tuple(
    verb for verb in TRANSITIVES for _ in range(WORDS["often"].get(verb.english.base, 1))
)


def draw_verb(pick: Pick) -> FreeVerb:
    """Draw a transitive verb, the common ones more often."""
    return pick.one(_DRAWN)


def _is_hidden_past(subject: Subject, verb: FreeVerb) -> bool:
    """Tell whether only the context tells the tense: *they put*, *I read*."""
    return not subject.is_third and verb.english.past == verb.english.base


def say_open_predicate(
    sentence: Sentence, pick: Pick, subject: Subject, manner: Manner | None = None
) -> None:
    """Draw and say a predicate.

    Args:
        sentence: the sentence, whose last words are the subject.
        pick: the choices.
        subject: the subject.
        manner: the tense and negation; drawn if None.
    """
    choices = _OF_ANIMATE if subject.is_animate and subject.english != "it" else _OF_THINGS
    pick.one(choices)(sentence, pick, subject, manner)


def say_action(
    sentence: Sentence, pick: Pick, subject: Subject, manner: Manner | None = None
) -> None:
    """Draw and say what a subject does, or what it has."""
    pick.one(_ACTIONS)(sentence, pick, subject, manner)


def say_act(
    sentence: Sentence,
    pick: Pick,
    subject: Subject,
    manner: Manner | None = None,
    *,
    verb: FreeVerb | None = None,
    may_have_place: bool = True,
) -> Entity | None:
    """Say a transitive verb and its object, a noun or a pronoun.

    Returns:
        The object, if it is a noun.
    """
    verb = verb or draw_verb(pick)
    manner = manner or draw_manner(pick, subject, is_stative=verb.is_stative)
    manner = settle(manner, subject, verb)
    if pick.chance(0.22):
        clitic = pick.one(CLITICS)
        if takes(verb, clitic, subject):
            say_verb(
                sentence,
                subject,
                verb.english,
                verb.french,
                manner,
                clitic=clitic,
                particle=verb.particle,
            )
            return None
    noun = draw_object(pick, verb, subject)
    if not verb.has_article:
        manner = _or_no(pick, manner, noun, 0.15)
    say_verb(sentence, subject, verb.english, verb.french, manner, particle=verb.particle)
    sentence.combine("object", verb.english.base, noun)
    role = object_role(verb, manner)
    entity = say_free_phrase(sentence, pick, noun, role)
    if not manner.negation and pick.chance(0.16):
        _say_more_objects(sentence, pick, verb, subject, role)
        return None
    if noun.english != noun.english_plural and pick.chance(0.05):
        say_of(sentence, pick, draw_noun(pick, animate=0.4))
        return None
    if may_have_place and pick.chance(0.12):
        say_where(sentence, pick)
        return None
    return entity


def _or_no(pick: Pick, manner: Manner, noun: Noun, likely: float) -> Manner:
    """Change *did not eat any bread* to *ate no bread* sometimes."""
    is_simple = manner.tense in ("present", "past") and manner.auxiliary is None
    is_name = noun.english == noun.english_plural
    if manner.has_do and is_simple and not is_name and pick.chance(likely):
        return replace(manner, negation="no")
    return manner


def _say_more_objects(
    sentence: Sentence, pick: Pick, verb: FreeVerb, subject: Subject, role: str
) -> None:
    """Say *and a cake*, *or a cake*, *, a cake and some bread*."""
    joints = [pick.one((("and", "et:0"), ("and", "et:0"), ("or", "ou:0")))]
    if pick.chance(0.4):
        joints.insert(0, ("", ""))
    for english, french in joints:
        if english:
            sentence.say(english, french)
        else:
            sentence.pause()
        other = draw_object(pick, verb, subject)
        sentence.combine("object", verb.english.base, other)
        say_free_phrase(sentence, pick, other, role, described=0.2)
        if not english:
            say_serial_comma(sentence, pick)


def settle(manner: Manner, subject: Subject, verb: FreeVerb) -> Manner:
    """Change a manner that a verb does not have."""
    if verb.is_stative and manner.tense.endswith("progressive"):
        manner = replace(manner, tense="past" if manner.tense.startswith("past") else "present")
    is_bare = not manner.negation and manner.auxiliary is None
    if is_bare and manner.tense == "present" and _is_hidden_past(subject, verb):
        # *Is having* and *has had* mean something else.
        manner = replace(manner, tense="past")
    return manner


def takes(verb: FreeVerb, clitic: Clitic, subject: Subject) -> bool:
    """Tell whether a pronoun can be the verb's object: not *eat me*, nor *I see me*."""
    same = (("me", "I"), ("us", "we"), ("you", "you"), ("us", "I"), ("me", "we"))
    if (clitic.english, subject.english) in same:
        return False
    if verb in DITRANSITIVES:
        return clitic.english in ("it", "them")
    is_of_people = "person" in verb.kinds or verb.english.base == "like"
    return is_of_people or clitic.english in ("it", "them")


def draw_object(pick: Pick, verb: FreeVerb, subject: Subject) -> Noun:
    """Draw an object: mostly what the verb is made for, sometimes any noun."""
    kind = pick.one(verb.kinds)
    if pick.chance(0.015):
        return make_up_noun(pick, is_name=False)
    if pick.chance(0.08):
        noun = draw_noun(pick, animate=0.3)
    elif kind == "person" and pick.chance(0.2):
        noun = pick.one(PEOPLE)
    else:
        noun = pick.one(KINDS[kind])
    if noun is subject.noun and noun in PEOPLE:
        noun = pick.one(KINDS["person"])
    return noun


def object_role(verb: FreeVerb, manner: Manner) -> str:
    """Name the role of a noun that is a verb's object."""
    if verb.has_article:
        return "liked"
    if manner.negation == "no":
        return "no"
    return "negated" if manner.negation else "object"


def say_place(
    sentence: Sentence, pick: Pick, subject: Subject, manner: Manner | None = None
) -> None:
    """Say *is in the house*."""
    say_be(sentence, subject, manner or draw_manner(pick, subject, is_stative=True))
    say_where(sentence, pick)


def qualities_of(subject: Subject) -> tuple[Adjective, ...]:
    """List the adjectives that fit a subject after *is*."""
    return PREDICATE_ADJECTIVES[subject.kind] if subject.kind else _EVERY


def say_quality(
    sentence: Sentence,
    pick: Pick,
    subject: Subject,
    manner: Manner | None = None,
    *,
    adjective: Adjective | None = None,
) -> None:
    """Say *is red*, *was very old*, *is big and green*, *was too small*."""
    manner = manner or draw_manner(pick, subject, is_stative=True)
    options = qualities_of(subject)
    if adjective is None:
        # What is usual of a kind comes more often than what is only possible.
        usual = [one for one in options if subject.kind in (*one.kinds, *one.predicative_kinds)]
        adjective = pick.one(usual if usual and pick.chance(0.6) else options)
    say_be(sentence, subject, manner)
    if pick.chance(0.15):
        sentence.say(*pick.one((("very", "très:0"), ("too", "trop:0"))))
    say_agreeing(sentence, subject, adjective)
    if pick.chance(0.1):
        other = pick.one(options)
        if other is not adjective and other.french != adjective.french:
            third = pick.one(options)
            if pick.chance(0.3) and third.french not in (adjective.french, other.french):
                sentence.pause()
                say_agreeing(sentence, subject, third)
                say_serial_comma(sentence, pick)
            sentence.say(*pick.one((("and", "et:0"), ("and", "et:0"), ("but", "mais:0"))))
            say_agreeing(sentence, subject, other)


def say_agreeing(sentence: Sentence, subject: Subject, adjective: Adjective) -> None:
    """Say an adjective or a participle that agrees with the subject."""
    form = agree(adjective.french, subject.gender, is_plural=subject.is_plural)
    sentence.french.append(Word(form, (len(sentence.english),)))
    sentence.english.append(adjective.english)
    if subject.noun is not None:
        sentence.combine("adjective", adjective.english, subject.noun)


def _say_identity(
    sentence: Sentence, pick: Pick, subject: Subject, manner: Manner | None = None
) -> None:
    """Say *is a clever actress*: the noun has the subject's gender and number."""
    is_speaker = subject.english in ("I", "you")
    options = [
        noun
        for noun in KINDS[subject.kind or "detail"]
        if (is_speaker or noun.gender == subject.gender)
        and not noun.is_mass
        and noun is not subject.noun
    ]
    # *He is a king* is *c'est un roi*, see `open_constructions`.
    if not options or ((subject.noun is None or subject.english) and not is_speaker):
        say_quality(sentence, pick, subject, manner)
        return
    noun = pick.one(options)
    manner = manner or draw_manner(pick, subject, is_stative=True)
    say_be(sentence, subject, replace(manner, negation=""))
    determiner = "bare" if subject.is_plural else pick.one(("a", "a", "the", "my"))
    say_phrase(
        sentence,
        noun,
        determiner,
        is_plural=subject.is_plural,
        adjectives=draw_adjectives(pick, noun),
    )


def say_condition(
    sentence: Sentence, pick: Pick, subject: Subject, manner: Manner | None = None
) -> None:
    """Say *was hungry*, *tastes good*, *is out of tune*, *had thick walls*."""
    phrases = CONDITIONS if subject.is_animate else PREDICATES.get(subject.kind or "detail", ())
    manner = manner or draw_manner(pick, subject, is_stative=True)
    if phrases and say_state(sentence, subject, pick.one(phrases), manner):
        return
    say_quality(sentence, pick, subject, manner)


def _say_possession(
    sentence: Sentence, pick: Pick, subject: Subject, manner: Manner | None = None
) -> None:
    """Say *has a red car*, *did not have any money*."""
    manner = manner or draw_manner(pick, subject, is_stative=True)
    if manner.tense not in ("present", "past"):
        manner = replace(manner, tense="past")
    noun = draw_noun(pick, animate=0.25)
    manner = _or_no(pick, manner, noun, 0.35)
    say_verb(sentence, subject, _HAVE_VERB, HAVE, manner)
    role = "no" if manner.negation == "no" else "negated" if manner.negation else "object"
    say_free_phrase(sentence, pick, noun, role)


def say_motion(
    sentence: Sentence, pick: Pick, subject: Subject, manner: Manner | None = None
) -> None:
    """Say *went to the old church*, *came out of the car*."""
    verb = pick.one(MOTIONS)
    manner = manner or draw_manner(pick, subject)
    say_verb(sentence, subject, verb.english, verb.french, manner, particle=verb.particle)
    # The last word of the particle is the preposition.
    sentence.french.append(Word(verb.preposition, (len(sentence.english) - 1,)))
    if verb.preposition in ("à", "de") and pick.chance(0.12):
        say_free_phrase(sentence, pick, pick.one(CITIES), "place")
        return
    noun = pick.one(verb.objects) if pick.chance(0.85) else draw_noun(pick, animate=0.2)
    say_free_phrase(sentence, pick, noun, "place", plural=0.15)


def say_simple(
    sentence: Sentence, pick: Pick, subject: Subject, manner: Manner | None = None
) -> None:
    """Say a verb without an object: *was sleeping*, *barked near the house*."""
    verb = pick.one(INTRANSITIVES)
    if subject.noun is not None and subject.noun.english in SOUNDS and pick.chance(0.5):
        verb = SOUND_VERBS[subject.noun.english]
    manner = manner or draw_manner(pick, subject)
    say_verb(sentence, subject, verb.english, verb.french, manner)
    if pick.chance(0.3):
        say_where(sentence, pick)


def _say_transfer(
    sentence: Sentence, pick: Pick, subject: Subject, manner: Manner | None = None
) -> None:
    """Say *gave the man the money*, *gave the money to the man*, *gave him the money*."""
    verb = pick.one(DITRANSITIVES)
    manner = manner or draw_manner(pick, subject)
    noun = draw_object(pick, verb, subject)
    role = object_role(verb, manner)
    receiver = pick.one((*PEOPLE, *KINDS["person"], *KINDS["person"]))
    if pick.chance(0.45):
        clitic = pick.one(INDIRECT)
        # *I give me* would be another pronoun.
        if takes(TRANSITIVES[0], clitic, subject):
            say_verb(sentence, subject, verb.english, verb.french, manner, clitic=clitic)
            sentence.combine("object", verb.english.base, noun)
            say_free_phrase(sentence, pick, noun, role)
            return
    say_verb(sentence, subject, verb.english, verb.french, manner)
    sentence.combine("object", verb.english.base, noun)
    say_receiver(sentence, pick, noun, receiver, role)


def say_receiver(sentence: Sentence, pick: Pick, noun: Noun, receiver: Noun, role: str) -> None:
    """Say *a coat to the man*, or *the man a coat*."""
    if pick.chance(0.5):
        say_free_phrase(sentence, pick, noun, role)
        sentence.say("to", "à:0")
        say_free_phrase(sentence, pick, receiver, "place", described=0.2)
        return
    # The receiver comes first in English and last in French.
    place = len(sentence.french)
    say_free_phrase(sentence, pick, receiver, "place", described=0.2)
    said = sentence.french[place:]
    del sentence.french[place:]
    say_free_phrase(sentence, pick, noun, role)
    # English says no *to* here: the article's word stands for it.
    sentence.french += [Word("à", said[0].links), *said]


def _say_pastime(
    sentence: Sentence, pick: Pick, subject: Subject, manner: Manner | None = None
) -> None:
    """Say *plays the piano*, *talked about the crisis*, *talked to the teacher*."""
    manner = manner or draw_manner(pick, subject)
    choice = pick.of("music 2, about, to")
    english, french = _PLAY if choice == "music" else _TALK
    if choice == "to" and pick.chance(0.5):
        receiver = pick.one([one for one in INDIRECT if takes(TRANSITIVES[0], one, subject)])
        say_verb(sentence, subject, english, french, manner, receiver=receiver)
        return
    say_verb(sentence, subject, english, french, manner)
    if choice == "music":
        sentence.french.append(Word("de", (len(sentence.english) - 1,)))
        say_phrase(sentence, pick.one(KINDS["instrument"]), "the")
        return
    sentence.say(*(("about", "de:0") if choice == "about" else ("to", "à:0")))
    if choice == "about" and pick.chance(0.3):
        sentence.say(*pronoun_after(pick))
        return
    noun = pick.one(_SPEAKABLE if choice == "about" else (*KINDS["person"], *PEOPLE))
    say_free_phrase(sentence, pick, noun, "place")


Say = Callable[[Sentence, Pick, Subject, "Manner | None"], object]
_OF_ANIMATE: tuple[Say, ...] = (
    *[say_act] * 9,
    *[say_quality] * 4,
    *[say_place] * 2,
    *[say_motion] * 3,
    *[say_simple] * 3,
    *[say_condition] * 2,
    *[_say_transfer] * 2,
    *[_say_possession] * 2,
    _say_pastime,
    _say_identity,
)
_ACTIONS: tuple[Say, ...] = (
    *[say_act] * 6,
    *[say_motion] * 2,
    say_simple,
    _say_transfer,
    _say_possession,
    _say_pastime,
)
_OF_THINGS: tuple[Say, ...] = (
    *[say_quality] * 9,
    *[say_place] * 4,
    *[say_condition] * 4,
    *[say_motion] * 2,
    say_act,
    _say_possession,
    _say_identity,
)
