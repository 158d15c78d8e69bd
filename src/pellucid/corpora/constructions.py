"""The sentences of the corpus: each construction draws one at random.

Together they show where French differs from English word by word: the order of adjectives,
agreement, elision, contraction, partitives, two words for one and one for two.
"""

from __future__ import annotations

from collections.abc import Callable

from pellucid.corpora.french import Word, agree
from pellucid.corpora.lexicon import (
    AGENTS,
    INSTITUTION_PREDICATES,
    KINDS,
    NATIONALITIES,
    NOUNS,
    PREDICATES,
    RELATIONAL,
    SOUNDS,
    VERBS,
    WORDS,
    NounKind,
    Verb,
    adjectives_of,
    nouns_of,
    verbs_named,
)
from pellucid.corpora.pronouns import draw_found_near_person, draw_told
from pellucid.corpora.sentence import (
    Article,
    Entity,
    Pick,
    Sentence,
    say_adjective,
    say_object,
    say_predicate,
    say_subject,
)

_DESCRIBED = tuple(
    noun
    for kind in KINDS
    if adjectives_of(kind, is_predicative=True)
    for noun in KINDS[kind]
    if kind != "part"
)
_WITH_PREDICATES: tuple[NounKind, ...] = tuple(PREDICATES)
_IN_GENERAL = tuple(
    noun for noun in KINDS["food"] if noun.is_mass or noun.english in ("pizza", "soup", "cake")
)
_GENERAL_ADJECTIVES = ("awesome", "expensive", "good")
_EATEN = verbs_named("buy", "find", "eat", "drink")
_OPPOSITES = tuple(frozenset(words.split()) for words in WORDS["opposites"].values())


def _say_institution(pick: Pick, sentence: Sentence) -> Entity:
    """Say *the European economic area*; in French both adjectives follow, in reverse order."""
    nationality = pick.one(NATIONALITIES)
    relational = pick.one(RELATIONAL)
    noun = pick.one(relational.nouns)
    is_plural = pick.chance(0.4)
    start = len(sentence.english)
    name = noun.english_plural if is_plural else noun.english
    sentence.english += ["the", nationality.english, relational.english, name]
    article = "les" if is_plural else "le" if noun.gender == "m" else "la"
    sentence.num_roles += 1
    # French: article, noun, relational adjective, nationality.
    sentence.french += [
        Word(article, (start,)),
        Word(noun.french_plural if is_plural else noun.french, (start + 3,), (sentence.num_roles,)),
        Word(agree(relational.french, noun.gender, is_plural=is_plural), (start + 2,)),
        Word(agree(nationality.french, noun.gender, is_plural=is_plural), (start + 1,)),
    ]
    # Both may be held out with a noun.
    for adjective in (nationality, relational):
        sentence.combine("adjective", adjective.english, noun)
    return Entity(noun, is_plural, sentence.num_roles, start + 3)


def _clash(one: str, other: str) -> bool:
    """Tell whether two adjectives exclude each other, as in *the blue table is red*."""
    return one == other or any(one in group and other in group for group in _OPPOSITES)


def _draw_institution(pick: Pick) -> Sentence:
    """Draw a sentence such as *the French national bank has changed*, or only the name."""
    sentence = Sentence("institution")
    if pick.chance(0.4):
        agent = say_subject(sentence, pick, pick.one(AGENTS), is_plural=pick.chance(0.25))
        sentence.say("talked about", "^a:0 parlé:0 de:1", agent)
        _say_institution(pick, sentence)
        return sentence
    subject = _say_institution(pick, sentence)
    # Only the name, as titles have it.
    if pick.chance(0.12):
        sentence.mood = "name"
        return sentence
    phrase = pick.one(INSTITUTION_PREDICATES)
    english = phrase.english
    if subject.is_plural:
        first, _, rest = english.partition(" ")
        plural = {"is": "are", "has": "have"}[first]
        english = f"{plural} {rest}"
    sentence.say(english, phrase.french, subject)
    return sentence


def _draw_statement(pick: Pick) -> Sentence:
    """Draw a noun and a predicate that fits only its kind: *the violins were out of tune*."""
    sentence = Sentence("statement")
    if pick.chance(0.15):
        name = pick.one(tuple(SOUNDS))
        subject = say_subject(sentence, pick, NOUNS[name], is_plural=pick.chance(0.45))
        say_predicate(sentence, subject, SOUNDS[name])
        return sentence
    kind = pick.one(_WITH_PREDICATES)
    noun = pick.one(KINDS[kind])
    if kind == "animal" and pick.chance(0.6):
        # Of persons, only these do what animals do: they would be too rare otherwise.
        noun = NOUNS[pick.one(("baby", "child"))]
    is_plural = not noun.is_mass and pick.chance(0.45)
    subject = say_subject(sentence, pick, noun, is_plural=is_plural)
    say_predicate(sentence, subject, pick.one(PREDICATES[kind]))
    return sentence


def _draw_description(pick: Pick) -> Sentence:
    """Draw a sentence such as *the red car is not fast*, *pizza is awesome*."""
    sentence = Sentence("description")
    is_definite = pick.chance(0.9)
    if not is_definite:
        noun = pick.one(_IN_GENERAL)
        subject = sentence.noun_phrase("", noun)
    else:
        noun = pick.one(_DESCRIBED)
        is_plural = not noun.is_mass and pick.chance(0.5)
        if noun.kind in ("fruit", "drink"):
            # Too few adjectives fit to use one before the noun and still have another for *is*.
            subject = sentence.noun_phrase("the", noun, is_plural=is_plural)
        else:
            subject = say_subject(sentence, pick, noun, is_plural=is_plural)
    used = {combination.word for combination in sentence.combinations}
    options = [
        adjective
        for adjective in adjectives_of(noun.kind, is_predicative=True)
        if not any(_clash(adjective.english, word) for word in used)
        and (is_definite or adjective.english in _GENERAL_ADJECTIVES)
    ]
    adjective = pick.one(options)
    english = "are" if subject.is_plural else "is"
    if pick.chance(0.25):
        sentence.say(f"{english} not", "ne:1 ^est:0 pas:1", subject)
    else:
        sentence.say(english, "^est:0", subject)
    say_adjective(sentence, subject, adjective.english, adjective.french)
    return sentence


def _draw_transitive(pick: Pick) -> Sentence:
    """Draw a person, a verb and its object: *the actress did not buy the old piano*."""
    sentence = Sentence("transitive")
    return _act(sentence, pick, pick.one(VERBS), is_some=False)


def _draw_partitive(pick: Pick) -> Sentence:
    """Draw a sentence such as *the man ate some bread*, in French *du*, *de l'*, *des* or *d'*."""
    return _act(Sentence("partitive"), pick, pick.one(_EATEN), is_some=True)


def _act(sentence: Sentence, pick: Pick, verb: Verb, *, is_some: bool) -> Sentence:
    person = pick.one(AGENTS)
    tense = pick.one(("past", "past", "present", "negative"))
    agent = say_subject(sentence, pick, person, is_plural=tense != "present" and pick.chance(0.25))
    options = nouns_of(*verb.kinds)
    if is_some:
        options = nouns_of(*(kind for kind in verb.kinds if kind in ("food", "fruit", "drink")))
    # A noun that sees itself would need a reflexive pronoun.
    noun = pick.one([noun for noun in options if noun is not person])
    if tense == "past":
        sentence.say(verb.past, f"^a:0 {verb.participle}:0", agent)
    elif tense == "present":
        sentence.say(verb.english_third, f"{verb.il}:0")
    else:
        sentence.say(f"did not {verb.name}", f"ne:1 ^a:0 pas:1 {verb.participle}:2", agent)
    if verb.particle:
        sentence.english.append(verb.particle)
        head = sentence.french[-1]
        # One French verb for two English words: *looked for* is *cherchait*.
        sentence.french[-1] = head._replace(links=(*head.links, len(sentence.english) - 1))
    article: Article = pick.one(("the", "the", "a"))
    # *Likes a soup* and *did not eat a soup* would need *de* or *les* in French.
    if tense == "negative" or verb.name == "like":
        article = "the"
    if is_some:
        article = "no" if tense == "negative" else "some"
    sentence.combine("object", verb.name, noun)
    say_object(sentence, pick, noun, article)
    return sentence


CONSTRUCTIONS: dict[str, tuple[Callable[[Pick], Sentence], int]] = {
    "object pronoun, animal": (draw_found_near_person, 3),
    "told": (draw_told, 4),
    "statement": (_draw_statement, 4),
    "description": (_draw_description, 7),
    "transitive": (_draw_transitive, 10),
    "partitive": (_draw_partitive, 5),
    "institution": (_draw_institution, 8),
}
"""Every construction except the frames of `pronouns`, with its weight in drawing."""
