"""Sentences with a pronoun whose antecedent only the predicate decides.

Each starts as a *frame*, which holds two nouns and everything up to the predicate. Whichever
predicate is added fits one of the two alone, so the frame makes minimal pairs: the same
sentence but for its end, and another antecedent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pellucid.corpora.french import Word
from pellucid.corpora.lexicon import (
    KINDS,
    NOUNS,
    PREDICATES,
    SOUNDS,
    VERBS,
    Kind,
    Noun,
    Phrase,
    Verb,
    nouns_of,
)
from pellucid.corpora.picking import Pick, adjective_for
from pellucid.corpora.sentence import Article, Combination, Entity, Sentence

__all__ = [
    "FRAMES",
    "PLACES",
    "Frame",
    "draw_found_beside_person",
    "draw_told",
    "say_object_pronoun",
    "say_predicate",
]

PLACES = (
    ("next to", "à:0 côté:0 de:1"),
    ("behind", "derrière:0"),
    ("in front of", "devant:0,1,2"),
    ("near", "près:0 de:0"),
)
_CHASES = (("followed", "^a:0 suivi:0"), ("saw", "^a:0 vu:0"), ("chased", "^a:0 poursuivi:0"))
_WHOLES = KINDS["container"][:-1]

# Kinds that can stand side by side and of which no predicate fits both. A building is never
# what stands next to something.
_BESIDE: tuple[tuple[Kind, Kind], ...] = (
    ("food", "animal"),
    ("food", "instrument"),
    ("food", "text"),
    ("food", "clothes"),
    ("food", "container"),
    ("fruit", "animal"),
    ("fruit", "instrument"),
    ("fruit", "text"),
    ("fruit", "clothes"),
    ("fruit", "container"),
    ("animal", "food"),
    ("animal", "fruit"),
    ("animal", "vehicle"),
    ("animal", "building"),
    ("animal", "clothes"),
    ("animal", "container"),
    ("vehicle", "animal"),
    ("vehicle", "building"),
    ("instrument", "food"),
    ("instrument", "fruit"),
    ("instrument", "text"),
    ("instrument", "clothes"),
    ("instrument", "container"),
    ("text", "food"),
    ("text", "fruit"),
    ("text", "instrument"),
    ("text", "clothes"),
    ("clothes", "food"),
    ("clothes", "fruit"),
    ("clothes", "animal"),
    ("clothes", "instrument"),
    ("clothes", "text"),
    ("container", "food"),
    ("container", "fruit"),
    ("container", "animal"),
    ("container", "instrument"),
)
# A person may well eat a hen, so that food and animals are kept apart where somebody acts.
_FOUND_BESIDE = (
    *(pair for pair in _BESIDE if set(pair) not in ({"food", "animal"}, {"fruit", "animal"})),
    ("text", "vehicle"),
    ("text", "building"),
    ("clothes", "building"),
    ("instrument", "building"),
    ("clothes", "vehicle"),
)
_LEADS = tuple(verb for verb in VERBS if verb.name in ("find", "see"))
# Verbs whose object can be of one kind only; food and fruit are never in one frame.
_TELLING: dict[Kind, tuple[Verb, ...]] = {
    kind: tuple(
        verb for verb in VERBS if kind in verb.kinds and set(verb.kinds) <= {kind, "food", "fruit"}
    )
    for kind in KINDS
}
_PEOPLE = tuple(noun for noun in KINDS["person"] if noun.english != "baby")
_MEN_AND_WOMEN = tuple(noun for noun in _PEOPLE if noun.english != "child")
_TELLERS = tuple(NOUNS[name] for name in ("bank", "school", "hospital"))
_STATES: tuple[Phrase, ...] = (
    Phrase("was bankrupt", "^était:0 en:1 faillite:1"),
    Phrase("was late", "^était:0 en:1 retard:1"),
    Phrase("was right", "^avait:0 raison:1"),
    Phrase("was wrong", "^avait:0 tort:1"),
    Phrase("was tired", "^était:0 @fatigué:1"),
    Phrase("was sick", "^était:0 @malade:1"),
)
_STATE_ADJECTIVES = ("tired", "sick")


@dataclass(frozen=True, slots=True)
class Frame:
    """The start of a sentence, the nouns a pronoun may stand for, and how it may go on.

    ``ways[i]`` are the predicates that fit ``candidates[i]`` alone; ``finish`` adds one.
    """

    start: Sentence
    candidates: tuple[Entity, Entity]
    ways: tuple[tuple[Phrase | Verb, ...], tuple[Phrase | Verb, ...]]
    finish: Callable[[Sentence, Entity, Phrase | Verb], None]

    def complete(self, which: int, way: Phrase | Verb) -> Sentence:
        """The sentence in which the pronoun stands for one of the candidates."""
        sentence = self.start.copy()
        self.finish(sentence, self.candidates[which], way)
        return sentence


def say_predicate(sentence: Sentence, subject: Entity, phrase: Phrase) -> None:
    """Say what a noun did or was; *was* becomes *were* in the plural."""
    english = phrase.english
    if subject.is_plural and english.startswith("was "):
        english = "were " + english.removeprefix("was ")
    sentence.predicate_of(phrase.english, subject)
    sentence.say(english, phrase.french, subject)


def say_object_pronoun(
    sentence: Sentence, antecedent: Entity, verb: Verb, *, is_past: bool, agent: Entity
) -> None:
    """Say what somebody did with it: *and read it*, in French *et l'a lue*, *et la lit*."""
    sentence.combinations.append(Combination("object", verb.name, antecedent.noun.english))
    index = len(sentence.english)
    english = "them" if antecedent.is_plural else "it"
    french = "les" if antecedent.is_plural else "le" if antecedent.noun.gender == "m" else "la"
    sentence.english.append(verb.past if is_past else verb.english_third)
    sentence.pronoun(english, french, antecedent)
    links = "0"
    if verb.particle:
        sentence.english.append(verb.particle)
        links = "0,2"
    forms = f"{'ont' if agent.is_plural else 'a'}:0 @{verb.participle}:{links}"
    # The phrase's words are there already: the pronoun stands before the verb in French.
    said = Sentence("")
    said.say("", forms if is_past else f"{verb.il}:{links}", antecedent)
    sentence.french += [
        word._replace(links=tuple(index + link for link in word.links)) for word in said.french
    ]


def _finish_subject(sentence: Sentence, subject: Entity, way: Phrase | Verb) -> None:
    assert isinstance(way, Phrase)
    sentence.say("and", "et:0")
    if subject.is_plural:
        sentence.pronoun("they", "ils" if subject.noun.gender == "m" else "elles", subject)
    else:
        sentence.pronoun("it", "il" if subject.noun.gender == "m" else "elle", subject)
    say_predicate(sentence, subject, way)


def _described(
    sentence: Sentence, pick: Pick, noun: Noun, *, is_plural: bool, article: Article = "the"
) -> Entity:
    adjective = adjective_for(pick, noun) if pick.chance(0.15) else None
    return sentence.noun_phrase(article, noun, is_plural=is_plural, adjective=adjective)


def _two_nouns(pick: Pick, kinds: tuple[Kind, Kind]) -> tuple[Noun, Noun, bool]:
    first, second = pick.one(KINDS[kinds[0]]), pick.one(KINDS[kinds[1]])
    is_plural = pick.chance(0.5) and not first.is_mass and not second.is_mass
    return first, second, is_plural


def _draw_place(pick: Pick) -> Frame:
    """Such as *The guitar was next to the coat and it was out of tune.*."""
    kinds = pick.one(_BESIDE)
    first, second, is_plural = _two_nouns(pick, kinds)
    sentence = Sentence("subject pronoun, place")
    one = _described(sentence, pick, first, is_plural=is_plural)
    sentence.say("were" if is_plural else "was", "^était:0", one)
    sentence.say(*pick.one(PLACES))
    other = _described(sentence, pick, second, is_plural=is_plural)
    ways = PREDICATES[kinds[0]], PREDICATES[kinds[1]]
    return Frame(sentence, (one, other), ways, _finish_subject)


def _draw_oven(pick: Pick) -> Frame:
    """Such as *The pizza came out of the oven and it tasted good.*."""
    first, second = pick.one(KINDS["food"]), pick.one(_WHOLES)
    is_plural = pick.chance(0.35) and not first.is_mass
    sentence = Sentence("subject pronoun, origin")
    one = _described(sentence, pick, first, is_plural=is_plural)
    sentence.say("came out of", "^est:0 @sorti:0,1 de:2", one)
    other = _described(sentence, pick, second, is_plural=is_plural)
    ways = PREDICATES["food"], PREDICATES["container"]
    return Frame(sentence, (one, other), ways, _finish_subject)


def _draw_sound(pick: Pick) -> Frame:
    """Such as *The dog followed the cow and it mooed.*."""
    names = tuple(SOUNDS)
    first = pick.one(names)
    second = pick.one([name for name in names if name != first])
    is_plural = pick.chance(0.3)
    sentence = Sentence("subject pronoun, sound")
    one = _described(sentence, pick, NOUNS[first], is_plural=is_plural)
    sentence.say(*pick.one(_CHASES), one)
    other = _described(sentence, pick, NOUNS[second], is_plural=is_plural)
    ways = (SOUNDS[first],), (SOUNDS[second],)
    return Frame(sentence, (one, other), ways, _finish_subject)


def _draw_found(pick: Pick) -> Frame:
    """Such as *The man found the letter next to the cake and read it.*."""
    kinds = pick.one(_FOUND_BESIDE)
    first, second, is_plural = _two_nouns(pick, kinds)
    is_past = pick.chance(0.6)
    sentence = Sentence("object pronoun")
    agent = sentence.noun_phrase("the", pick.one(_PEOPLE), is_plural=is_past and pick.chance(0.2))
    lead = pick.one(_LEADS)
    if is_past:
        sentence.say(lead.past, f"^a:0 {lead.participle}:0", agent)
    else:
        sentence.say(lead.english_third, f"{lead.il}:0")
    article: Article = "the"
    if pick.chance(0.4):
        article = "some" if first.is_mass or is_plural else "a"
    one = _described(sentence, pick, first, is_plural=is_plural, article=article)
    sentence.combinations.append(Combination("object", lead.name, first.english))
    sentence.say(*pick.one(PLACES))
    other = sentence.noun_phrase("the", second, is_plural=is_plural)
    sentence.say("and", "et:0")

    def finish(said: Sentence, antecedent: Entity, way: Phrase | Verb) -> None:
        assert isinstance(way, Verb)
        say_object_pronoun(said, antecedent, way, is_past=is_past, agent=agent)

    return Frame(sentence, (one, other), (_TELLING[kinds[0]], _TELLING[kinds[1]]), finish)


def draw_told(pick: Pick) -> Sentence:
    """*Then the bank told the man he was bankrupt*: *qu'il*, *qu'elle*."""
    sentence = Sentence("told")
    if pick.chance(0.3):
        sentence.say("then", "puis:0")
    person = pick.one(_MEN_AND_WOMEN)
    others = tuple(noun for noun in _MEN_AND_WOMEN if noun.gender != person.gender)
    teller = pick.one((pick.one(others), pick.one(_TELLERS)))
    first = sentence.noun_phrase("the", teller)
    sentence.say("told", "^a:0 dit:0 à:0", first)
    second = sentence.noun_phrase("the", person)
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
    if adjective in _STATE_ADJECTIVES:
        sentence.combinations.append(Combination("adjective", adjective, antecedent.noun.english))
    sentence.say(state.english, state.french, antecedent)
    return sentence


def draw_found_beside_person(pick: Pick) -> Sentence:
    """*The dog found some pizza next to the baby and ate it*: nobody eats the baby."""
    sentence = Sentence("object pronoun, animal")
    agent = sentence.noun_phrase("the", pick.one(KINDS["animal"]))
    food = pick.one(nouns_of("food", "fruit"))
    is_plural = not food.is_mass and pick.chance(0.3)
    sentence.say("found", "^a:0 trouvé:0", agent)
    article: Article = pick.one(("the", "some"))
    if article == "some" and not food.is_mass and not is_plural and food.english != "pizza":
        article = "a"
    eaten = sentence.noun_phrase(article, food, is_plural=is_plural)
    sentence.combinations.append(Combination("object", "find", food.english))
    sentence.say(*pick.one(PLACES))
    sentence.noun_phrase("the", pick.one(KINDS["person"]))
    sentence.say("and", "et:0")
    verb = next(verb for verb in VERBS if verb.name == "eat")
    say_object_pronoun(sentence, eaten, verb, is_past=True, agent=agent)
    return sentence


FRAMES: dict[str, Callable[[Pick], Frame]] = {
    "subject pronoun, place": _draw_place,
    "subject pronoun, origin": _draw_oven,
    "subject pronoun, sound": _draw_sound,
    "object pronoun": _draw_found,
}
