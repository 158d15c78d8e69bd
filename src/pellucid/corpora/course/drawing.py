"""A pattern of the course that is being said: its slots, and what later ones refer to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from pellucid.corpora.course.course_words import (
    DESCRIBING,
    NEW_ADJECTIVES,
    QUALITIES,
    new_in,
    pool,
)
from pellucid.corpora.french import Word, agree
from pellucid.corpora.lexicon import NOUNS, Adjective, Noun
from pellucid.corpora.open.open_words import ANIMATE
from pellucid.corpora.open.subjects import Subject
from pellucid.corpora.sentence import Entity, Pick, Sentence

_SLOT = re.compile(
    r"\$(?P<slot>[A-Z]+)(?::(?P<name>[\w']+))?(?:=(?P<determiner>\w+))?(?P<plural>\+)?"
    r"(?:\.(?P<tense>\w+))?(?P<positive>!)?(?:@(?P<who>\w+))?(?P<it>&)?(?:/(?P<said>\w+))?$"
)
_COLD = ("froid", "chaud")


class Slot(NamedTuple):
    """A slot of a pattern: ``$V:want.past!``; see `pellucid.corpora.course.patterns`."""

    slot: str
    name: str = ""
    determiner: str = ""
    plural: str = ""
    tense: str = ""
    positive: str = ""
    who: str = ""
    it: str = ""
    said: str = ""


def read_slot(text: str) -> Slot | None:
    """Read a slot; return None for a plain word."""
    found = _SLOT.match(text)
    return Slot(**found.groupdict("")) if found else None


@dataclass
class Drawing:
    """A pattern that is being said.

    Attributes:
        sentence: the words so far; in French only the words of the present slot.
        pick: the choices.
        subject: the subject of the next verb.
        entities: the nouns so far, for pronouns.
        noun_said: the noun that the last `$N` said, for words that agree with it.
        auxiliary: the place of a question's auxiliary.
        is_negated: True if the last verb was.
        form: the form of the next verb: a tense, ``inf``, ``order``, ``asked``.
        is_positive: True where the next verb takes no negation.
        is_often: True where an adverb such as *often* stands with the next verb.
    """

    sentence: Sentence
    pick: Pick
    subject: Subject = field(default_factory=lambda: Subject(2, "m", None))
    entities: list[Entity] = field(default_factory=list)
    noun_said: Noun = NOUNS["hat"]
    auxiliary: int | None = None
    is_negated: bool = False
    form: str = "present"
    is_positive: bool = False
    is_often: bool = False

    def say(self, english: str, french: str) -> None:
        """Say an English word and the French one that translates it."""
        self.sentence.french.append(Word(french, (len(self.sentence.english),)))
        self.sentence.english.append(english)

    def draw_noun(self, name: str) -> Noun:
        """Draw a noun, the course's own more often: they are fewer and occur nowhere else."""
        nouns = pool(name)
        return self.pick.one(new_in(nouns) if self.pick.chance(0.4) else nouns)

    def describe(self, noun: Noun, likely: float) -> tuple[Adjective, ...]:
        """Draw no adjective or one."""
        if not self.pick.chance(likely):
            return ()
        # The course's own words are fewer than the others.
        some = NEW_ADJECTIVES if self.pick.chance(0.4) else DESCRIBING
        options = some[noun.kind]
        # People say *a heavy box* more often than *a heavy restaurant*.
        usual = [one for one in options if noun.kind in one.kinds] or options
        return (self.pick.one(usual if self.pick.chance(0.8) else options),)

    def qualities(self) -> list[Adjective]:
        """List the adjectives that fit the subject."""
        kind = self.subject.kind or "person"
        # *He is cold* is *il a froid*, a feeling.
        return [one for one in QUALITIES[kind] if kind not in ANIMATE or one.french not in _COLD]

    def say_quality(self) -> None:
        """Say an adjective of the subject."""
        adjective = self.pick.one(self.qualities())
        if self.subject.noun:
            self.sentence.combine("adjective", adjective.english, self.subject.noun)
        form = agree(adjective.french, self.subject.gender, is_plural=self.subject.is_plural)
        self.say(adjective.english, form)
