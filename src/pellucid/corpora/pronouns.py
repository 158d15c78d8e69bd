"""Sentences with a pronoun whose antecedent depends only on the predicate.

Each starts as a *frame*: two nouns and everything up to the predicate. Each predicate fits only one
of the two, so that a frame makes minimal pairs: two sentences that differ only in their end, and
have different antecedents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pellucid.corpora.french import Word
from pellucid.corpora.lexicon import (
    AGENTS,
    KINDS,
    NOUNS,
    PLACES,
    PREDICATES,
    SOUNDS,
    STATES,
    VERBS,
    WORDS,
    Noun,
    NounKind,
    Phrase,
    Verb,
    nouns_of,
    verbs_named,
)
from pellucid.corpora.sentence import (
    Article,
    Entity,
    Pick,
    Sentence,
    say_noun,
    say_object_pronoun,
    say_predicate,
)

_CHASES = (("followed", "^a:0 suivi:0"), ("saw", "^a:0 vu:0"), ("chased", "^a:0 poursuivi:0"))
_WHOLES = KINDS["container"][:-1]

_SIDE_BY_SIDE: tuple[tuple[NounKind, NounKind], ...] = tuple(
    (kind, other) for kind, others in WORDS["neighbors"].items() for other in others.split()
)
# A person may eat a hen, so food and animals are kept apart in sentences with a person.
_FOUND: tuple[tuple[NounKind, NounKind], ...] = (
    *(pair for pair in _SIDE_BY_SIDE if set(pair) not in ({"food", "animal"}, {"fruit", "animal"})),
    ("text", "vehicle"),
    ("text", "building"),
    ("clothes", "building"),
    ("instrument", "building"),
    ("clothes", "vehicle"),
)
_LEADS = verbs_named("see", "find")
# Verbs whose object must be of this kind; food and fruit are never in one frame.
_VERBS_OF_KIND: dict[NounKind, tuple[Verb, ...]] = {
    kind: tuple(
        verb for verb in VERBS if kind in verb.kinds and set(verb.kinds) <= {kind, "food", "fruit"}
    )
    for kind in KINDS
}
_MEN_AND_WOMEN = tuple(noun for noun in AGENTS if noun.english != "child")
_TELLERS = tuple(NOUNS[name] for name in ("bank", "school", "hospital"))
_STATES = tuple(
    STATES[f"was {name}"] for name in ("bankrupt", "late", "right", "wrong", "tired", "sick")
)
_STATE_ADJECTIVES = ("tired", "sick")


@dataclass(frozen=True, slots=True)
class Frame:
    """The start of a sentence, the two nouns its pronoun may stand for, and possible predicates.

    ``predicates[i]`` fit only ``candidates[i]``; ``finish`` adds one of them.
    """

    start: Sentence
    candidates: tuple[Entity, Entity]
    predicates: tuple[tuple[Phrase | Verb, ...], tuple[Phrase | Verb, ...]]
    finish: Callable[[Sentence, Entity, Phrase | Verb], None]

    def complete(self, which: int, predicate: Phrase | Verb) -> Sentence:
        """Make the sentence in which the pronoun stands for one of the candidates."""
        # Both sentences of a pair grow from one start.
        sentence = self.start.copy()
        self.finish(sentence, self.candidates[which], predicate)
        return sentence


def _finish_subject(sentence: Sentence, subject: Entity, predicate: Phrase | Verb) -> None:
    assert isinstance(predicate, Phrase)
    sentence.say("and", "et:0")
    if subject.is_plural:
        sentence.pronoun("they", "ils" if subject.noun.gender == "m" else "elles", subject)
    else:
        sentence.pronoun("it", "il" if subject.noun.gender == "m" else "elle", subject)
    say_predicate(sentence, subject, predicate)


def _described(
    sentence: Sentence, pick: Pick, noun: Noun, *, is_plural: bool, article: Article = "the"
) -> Entity:
    return say_noun(sentence, pick, noun, is_plural=is_plural, described=0.15, article=article)


def _two_nouns(pick: Pick, kinds: tuple[NounKind, NounKind]) -> tuple[Noun, Noun, bool]:
    first = pick.one(KINDS[kinds[0]])
    second = pick.one(KINDS[kinds[1]])
    # Both in one number, or *it* and *they* would tell them apart.
    is_plural = pick.chance(0.5) and not first.is_mass and not second.is_mass
    return first, second, is_plural


def _draw_place(pick: Pick) -> Frame:
    """Draw a start such as *the guitar was next to the coat*, before *and it was out of tune*."""
    kinds = pick.one(_SIDE_BY_SIDE)
    first, second, is_plural = _two_nouns(pick, kinds)
    sentence = Sentence("subject pronoun, place")
    one = _described(sentence, pick, first, is_plural=is_plural)
    sentence.say("were" if is_plural else "was", "^était:0", one)
    sentence.say(*pick.one(PLACES))
    other = _described(sentence, pick, second, is_plural=is_plural)
    predicates = PREDICATES[kinds[0]], PREDICATES[kinds[1]]
    return Frame(sentence, (one, other), predicates, _finish_subject)


def _draw_oven(pick: Pick) -> Frame:
    """Draw a start such as *the pizza came out of the oven*, before *and it tasted good*."""
    first = pick.one(KINDS["food"])
    second = pick.one(_WHOLES)
    is_plural = pick.chance(0.35) and not first.is_mass
    sentence = Sentence("subject pronoun, origin")
    one = _described(sentence, pick, first, is_plural=is_plural)
    sentence.say("came out of", "^est:0 @sorti:0,1 de:2", one)
    other = _described(sentence, pick, second, is_plural=is_plural)
    predicates = PREDICATES["food"], PREDICATES["container"]
    return Frame(sentence, (one, other), predicates, _finish_subject)


def _draw_sound(pick: Pick) -> Frame:
    """Draw a start such as *the dog followed the cow*, before *and it mooed*."""
    names = tuple(SOUNDS)
    first = pick.one(names)
    # Two of one kind would make the same sound.
    second = pick.one([name for name in names if name != first])
    # Both animals, for the same reason.
    is_plural = pick.chance(0.3)
    sentence = Sentence("subject pronoun, sound")
    one = _described(sentence, pick, NOUNS[first], is_plural=is_plural)
    sentence.say(*pick.one(_CHASES), one)
    other = _described(sentence, pick, NOUNS[second], is_plural=is_plural)
    predicates = (SOUNDS[first],), (SOUNDS[second],)
    return Frame(sentence, (one, other), predicates, _finish_subject)


def _draw_found(pick: Pick) -> Frame:
    """Draw a start such as *the man found the letter next to the cake*, before *and read it*."""
    kinds = pick.one(_FOUND)
    first, second, is_plural = _two_nouns(pick, kinds)
    is_past = pick.chance(0.6)
    sentence = Sentence("object pronoun")
    # In the present, the lexicon has the singular of verbs only.
    agent = sentence.noun_phrase("the", pick.one(AGENTS), is_plural=is_past and pick.chance(0.2))
    lead = pick.one(_LEADS)
    if is_past:
        sentence.say(lead.past, f"^a:0 {lead.participle}:0", agent)
    else:
        sentence.say(lead.english_third, f"{lead.il}:0")
    article: Article = "the"
    if pick.chance(0.4):
        article = "some" if first.is_mass or is_plural else "a"
    one = _described(sentence, pick, first, is_plural=is_plural, article=article)
    sentence.combine("object", lead.name, first)
    sentence.say(*pick.one(PLACES))
    other = sentence.noun_phrase("the", second, is_plural=is_plural)
    sentence.say("and", "et:0")

    def finish(start: Sentence, antecedent: Entity, predicate: Phrase | Verb) -> None:
        assert isinstance(predicate, Verb)
        say_object_pronoun(start, antecedent, predicate, is_past=is_past, agent=agent)

    return Frame(
        sentence, (one, other), (_VERBS_OF_KIND[kinds[0]], _VERBS_OF_KIND[kinds[1]]), finish
    )


def draw_told(pick: Pick) -> Sentence:
    """Draw a sentence such as *then the bank told the man he was bankrupt*."""
    sentence = Sentence("told")
    if pick.chance(0.3):
        sentence.say("then", "puis:0")
    person = pick.one(_MEN_AND_WOMEN)
    # Of another gender, so that *he* or *she* tells which of the two is meant.
    others = tuple(noun for noun in _MEN_AND_WOMEN if noun.gender != person.gender)
    teller = pick.one((pick.one(others), pick.one(_TELLERS)))
    first = sentence.noun_phrase("the", teller)
    sentence.say("told", "^a:0 dit:0 à:0", first)
    second = sentence.noun_phrase("the", person)
    # A bank is no *he*, though it may be bankrupt.
    can_be_first = teller.kind == "person"
    antecedent = first if can_be_first and pick.chance(0.5) else second
    if pick.chance(0.3):
        sentence.say("that", "que:0")
    else:
        sentence.french.append(Word("que", ()))
    is_man = antecedent.noun.gender == "m"
    sentence.pronoun("he" if is_man else "she", "il" if is_man else "elle", antecedent)
    state = pick.one(_STATES)
    adjective = state.english.removeprefix("was ")
    # The other states are no adjectives of the lexicon, and nothing of them is held out.
    if adjective in _STATE_ADJECTIVES:
        sentence.combine("adjective", adjective, antecedent.noun)
    sentence.say(state.english, state.french, antecedent)
    return sentence


def draw_found_near_person(pick: Pick) -> Sentence:
    """Draw a sentence such as *the dog found some pizza next to the baby and ate it*, the pizza."""
    sentence = Sentence("object pronoun, animal")
    agent = sentence.noun_phrase("the", pick.one(KINDS["animal"]))
    food = pick.one(nouns_of("food", "fruit"))
    is_plural = not food.is_mass and pick.chance(0.3)
    sentence.say("found", "^a:0 trouvé:0", agent)
    article: Article = pick.one(("the", "some"))
    # *Some pizza* is said, *some apple* is not.
    if article == "some" and not food.is_mass and not is_plural and food.english != "pizza":
        article = "a"
    eaten = sentence.noun_phrase(article, food, is_plural=is_plural)
    sentence.combine("object", "find", food)
    sentence.say(*pick.one(PLACES))
    sentence.noun_phrase("the", pick.one(KINDS["person"]))
    sentence.say("and", "et:0")
    (eat,) = verbs_named("eat")
    say_object_pronoun(sentence, eaten, eat, is_past=True, agent=agent)
    return sentence


FRAMES: dict[str, Callable[[Pick], Frame]] = {
    "subject pronoun, place": _draw_place,
    "subject pronoun, origin": _draw_oven,
    "subject pronoun, sound": _draw_sound,
    "object pronoun": _draw_found,
}
