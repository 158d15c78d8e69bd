"""Subjects: pronouns, names, noun phrases and pairs of them."""

from __future__ import annotations

from dataclasses import dataclass

from pellucid.corpora.french import Gender, Word
from pellucid.corpora.lexicon import KINDS, Noun, NounKind, nouns_of
from pellucid.corpora.open.open_words import ANIMATE, CITIES, PEOPLE, make_up_noun
from pellucid.corpora.open.phrases import say_free_phrase
from pellucid.corpora.sentence import Entity, Pick, Sentence

PRONOUNS: tuple[tuple[str, str, int, Gender], ...] = (
    ("I", "je", 0, "m"),
    ("you", "tu", 1, "m"),
    ("he", "il", 2, "m"),
    ("she", "elle", 2, "f"),
    ("we", "nous", 3, "m"),
    ("they", "ils", 4, "m"),
    ("he", "il", 2, "m"),
    ("she", "elle", 2, "f"),
    ("I", "je", 0, "m"),
    ("we", "nous", 3, "m"),
    ("it", "il", 2, "m"),
)
"""English, French, person and gender; without an antecedent *they* and *it* are masculine."""

_STRESSED = (("you", "toi:0"), ("you", "toi:0"), ("he", "lui:0"), ("she", "elle:0"))
_FIRST: tuple[NounKind, ...] = tuple(kind for kind in KINDS if kind not in ANIMATE)


@dataclass(frozen=True)
class Subject:
    """A subject as its verb sees it.

    Attributes:
        person: 0 to 4, see `conjugation`.
        gender: in French.
        kind: of its noun; ``person`` for pronouns other than *it*.
        english: its English pronoun, or "".
        entity: its noun, if a later pronoun may stand for it.
        is_plural: True for *we*, *they* and plural nouns.
        noun: its noun, if there is one.
    """

    person: int
    gender: Gender
    kind: NounKind | None
    english: str = ""
    entity: Entity | None = None
    is_plural: bool = False
    noun: Noun | None = None

    @property
    def is_animate(self) -> bool:
        """True for people and animals."""
        return self.kind in ANIMATE

    @property
    def is_third(self) -> bool:
        """True if its English verb ends in *s*."""
        return self.person == 2


def subject_of(entity: Entity) -> Subject:
    """Make the subject that a noun phrase is."""
    noun = entity.noun
    person = 4 if entity.is_plural else 2
    return Subject(
        person, noun.gender, noun.kind, "", entity, is_plural=entity.is_plural, noun=noun
    )


def draw_noun(pick: Pick, *, animate: float = 0.6) -> Noun:
    """Draw a noun: often a person or an animal, otherwise any noun."""
    if pick.chance(0.018):
        return make_up_noun(pick, is_name=pick.chance(0.3))
    if pick.chance(animate):
        return pick.one(PEOPLE) if pick.chance(0.15) else pick.one(nouns_of(*ANIMATE))
    kind = pick.one(_FIRST)
    # A city takes the place of some buildings, as a name without an article.
    if kind == "building" and pick.chance(0.1):
        return pick.one(CITIES)
    return pick.one(KINDS[kind])


def say_pronoun(sentence: Sentence, pronoun: tuple[str, str, int, Gender]) -> Subject:
    """Say a pronoun that stands for nothing said before."""
    english, french, person, gender = pronoun
    index = len(sentence.english)
    sentence.english.append(english)
    sentence.french.append(Word(french, (index,)))
    kind: NounKind | None = "person" if english != "it" else None
    return Subject(person, gender, kind, english, is_plural=person > 2)


def say_open_subject(
    sentence: Sentence,
    pick: Pick,
    *,
    pronoun: float = 0.3,
    animate: float = 0.6,
    described: float = 0.35,
) -> Subject:
    """Draw and say a subject."""
    if pick.chance(pronoun):
        if pick.chance(0.04):
            sentence.say(*pick.one(_STRESSED))
            return _say_and_i(sentence)
        return say_pronoun(sentence, pick.one(PRONOUNS))
    noun = draw_noun(pick, animate=animate)
    entity = say_free_phrase(sentence, pick, noun, "subject", described=described)
    if pick.chance(0.09):
        return _say_group(sentence, pick, entity, animate=animate)
    return subject_of(entity)


def _say_and_i(sentence: Sentence) -> Subject:
    """Say *and I* after a part of the subject, in French *et moi*."""
    sentence.say("and I", "et:0 moi:1")
    # Whoever is with me: the verb is that of *we*.
    return Subject(3, "m", "person", "we", is_plural=True)


def _say_group(sentence: Sentence, pick: Pick, first: Entity, *, animate: float) -> Subject:
    """Say more parts of a subject: *and the cat*, *or the cat*, *, the cat and I*."""

    def say_one() -> Entity:
        noun = draw_noun(pick, animate=animate)
        return say_free_phrase(sentence, pick, noun, "subject", described=0.2)

    parts = [first]
    if pick.chance(0.4):
        sentence.pause()
        parts.append(say_one())
        say_serial_comma(sentence, pick)
    is_or = pick.chance(0.2)
    if not is_or and pick.chance(0.2):
        return _say_and_i(sentence)
    sentence.say(*(("or", "ou:0") if is_or else ("and", "et:0")))
    parts.append(say_one())
    # *The cat or the dog sleeps*: one of them does.
    is_plural = not is_or or any(part.is_plural for part in parts)
    # French agrees in the masculine as soon as one part is.
    gender: Gender = "f" if all(part.noun.gender == "f" for part in parts) else "m"
    # What is said of the group must fit all of its parts.
    kind = first.noun.kind if len({part.noun.kind for part in parts}) == 1 else None
    return Subject(4 if is_plural else 2, gender, kind, is_plural=is_plural)


def say_serial_comma(sentence: Sentence, pick: Pick) -> None:
    """Write *A, B, and C* sometimes; French has no comma there."""
    if pick.chance(0.25):
        sentence.english[-1] += ","


def say_referring(sentence: Sentence, entity: Entity) -> Subject:
    """Say a subject pronoun that stands for a noun said before."""
    noun = entity.noun
    is_feminine = noun.gender == "f"
    if entity.is_plural:
        english = "they"
        french = "elles" if is_feminine else "ils"
    else:
        french = "elle" if is_feminine else "il"
        english = "it" if noun.kind != "person" else "she" if is_feminine else "he"
    sentence.pronoun(english, french, entity)
    return Subject(
        4 if entity.is_plural else 2,
        noun.gender,
        noun.kind,
        english,
        None,
        is_plural=entity.is_plural,
        noun=noun,
    )
