"""Where, with whom and for whom: *in the house*, *behind her*, *with them*, *under it*."""

from __future__ import annotations

from pellucid.corpora.lexicon import KINDS, NounKind
from pellucid.corpora.open.open_words import (
    BEFORE_IT,
    CITIES,
    COMPANY,
    HERE,
    PEOPLE,
    PLACE_WORDS,
)
from pellucid.corpora.open.phrases import say_free_phrase
from pellucid.corpora.open.subjects import draw_noun
from pellucid.corpora.sentence import Pick, Sentence

_AFTER = (
    ("me", "moi"),
    ("you", "toi"),
    ("him", "lui"),
    ("her", "elle"),
    ("us", "nous"),
    ("them", "eux"),
)


def say_where(sentence: Sentence, pick: Pick) -> None:
    """Say a preposition and what follows it: *in the house*, *behind her*, *in Paris*."""
    english, french = pick.one(PLACE_WORDS)
    if english == "in" and pick.chance(0.1):
        sentence.say("in", "à:0")
        say_free_phrase(sentence, pick, pick.one(CITIES), "place")
        return
    if pick.chance(0.05):
        sentence.say(*pick.one(HERE))
        return
    if pick.chance(0.14):
        say_company(sentence, pick)
        return
    if pick.chance(0.07):
        sentence.say(*pick.one(BEFORE_IT))
        return
    sentence.say(english, french)
    if english not in ("in", "on", "under") and pick.chance(0.15):
        sentence.say(*pronoun_after(pick))
        return
    if english in ("in", "on", "under"):
        choices: dict[str, tuple[NounKind, ...]] = {
            "in": ("building", "vehicle", "container", "measure", "institution", "text", "food"),
            "on": ("furniture", "vehicle", "part", "container", "detail", "text"),
            "under": ("furniture", "vehicle", "part", "container", "clothes"),
        }
        noun = pick.one(KINDS[pick.one(choices[english])]) if pick.chance(0.8) else draw_noun(pick)
    else:
        noun = draw_noun(pick, animate=0.35)
    say_free_phrase(sentence, pick, noun, "place", plural=0.15, described=0.3)


def say_company(sentence: Sentence, pick: Pick) -> None:
    """Say *with them*, *without my brother*, *for Anna*."""
    sentence.say(*pick.one(COMPANY))
    if pick.chance(0.5):
        sentence.say(*pronoun_after(pick))
        return
    noun = pick.one((*PEOPLE, *KINDS["person"], *KINDS["person"], *KINDS["animal"]))
    say_free_phrase(sentence, pick, noun, "place", plural=0.15, described=0.3)


def pronoun_after(pick: Pick) -> tuple[str, str]:
    """Draw a pronoun after a preposition: *him*, in French *lui*."""
    english, french = pick.one(_AFTER)
    return english, f"{french}:0"
