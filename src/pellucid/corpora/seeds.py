"""The example sentences of texts on attention, as sentences of the corpus."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from operator import ne

from pellucid.corpora.example import Example, Style, make_example
from pellucid.corpora.french import Word, join_french_words
from pellucid.corpora.lexicon import NOUNS, PREDICATES, STATES, verbs_named
from pellucid.corpora.sentence import Sentence, say_object_pronoun, say_predicate

_CAPITAL = Style(True, "")
_PLAIN = Style(False, "")


def seed_sentences() -> list[tuple[str, str]]:
    """List the example sentences and their translations."""
    return [(example.source, example.target) for example in seed_examples()]


def is_near_seed(words: Sequence[str]) -> bool:
    """Tell whether English words are an example sentence, or one with another word in one place.

    Such sentences are in no split, so that they show what a model makes of a sentence that it only
    nearly knows. The same holds for the sentences of ``apart.txt``, by which models are judged; of
    those with fewer than four words only the sentence itself is left out.
    """
    lowered = tuple(word.lower().rstrip(",") for word in words)
    # Looked up by halves, instead of comparing each drawn sentence with all of them.
    near = (other for half in _halves(lowered) for other in _near_halves().get(half, ()))
    return any(
        # Of a short sentence for judging, one other word would leave out too much.
        sum(map(ne, lowered, other)) <= (len(other) > 3 or is_seed)
        for other, is_seed in near
    )


def _halves(words: tuple[str, ...]) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """Return both halves of a sentence: with one other word it still has one of them."""
    middle = len(words) // 2
    return (len(words), 0, words[:middle]), (len(words), 1, words[middle:])


@cache
def _near_halves() -> dict[tuple[int, int, tuple[str, ...]], list[tuple[tuple[str, ...], bool]]]:
    """List the sentences by each of their halves, with whether they are example sentences."""
    found: dict[tuple[int, int, tuple[str, ...]], list[tuple[tuple[str, ...], bool]]] = {}
    seeds = [example.source for example in seed_examples()]
    apart = files("pellucid.corpora").joinpath("apart.txt").read_text(encoding="utf-8").splitlines()
    for text in (*seeds, *apart):
        words = tuple(re.sub("[.,!?]", "", text.lower()).split(" "))
        for half in _halves(words):
            found.setdefault(half, []).append((words, text in seeds))
    return found


@cache
def seed_examples() -> tuple[Example, ...]:
    """List the example sentences with links and antecedents."""
    # The adjectives change places, hence the links.
    area = _phrase("the European economic area", "la:0 zone:3 économique:2 européenne:1")
    return tuple(
        make_example(sentence, join_french_words(sentence.french), style)
        for sentence, style in (
            (area, Style(True, "", is_title=True)),
            (_pizza_and_oven(), _CAPITAL),
            (_phrase("pizza is awesome", "la:0 pizza:0 est:1 géniale:2"), _CAPITAL),
            (_phrase("show me the money", "montre-moi:0,1 le:2 argent:3"), _CAPITAL),
            (_phrase("not on your life", "jamais:0 de:1 la:2 vie:3"), Style(True, "!")),
            (_phrase("help me", "aide-moi:0,1"), Style(False, "!")),
            (_phrase("let's go", "allons-y:0,1"), _CAPITAL),
            (_dog_and_baby(), _CAPITAL),
            (_bank(is_later=False), _PLAIN),
            (_bank(is_later=True), _PLAIN),
        )
    )


def _phrase(english: str, french: str) -> Sentence:
    sentence = Sentence("seed")
    sentence.say(english, french)
    return sentence


def _pizza_and_oven() -> Sentence:
    sentence = Sentence("seed")
    pizza = sentence.noun_phrase("the", NOUNS["pizza"])
    sentence.say("came out of", "^est:0 @sorti:0,1 de:2", pizza)
    sentence.noun_phrase("the", NOUNS["oven"])
    sentence.say("and", "et:0")
    sentence.pronoun("it", "elle", pizza)
    say_predicate(sentence, pizza, PREDICATES["food"][0])
    return sentence


def _dog_and_baby() -> Sentence:
    sentence = Sentence("seed")
    dog = sentence.noun_phrase("the", NOUNS["dog"])
    sentence.say("found", "^a:0 trouvé:0", dog)
    pizza = sentence.noun_phrase("some", NOUNS["pizza"])
    sentence.combine("object", "find", pizza.noun)
    sentence.say("next to", "à:0 côté:0 de:1")
    sentence.noun_phrase("the", NOUNS["baby"])
    sentence.say("and", "et:0")
    (eat,) = verbs_named("eat")
    say_object_pronoun(sentence, pizza, eat, is_past=True, agent=dog)
    return sentence


def _bank(*, is_later: bool) -> Sentence:
    sentence = Sentence("seed")
    if is_later:
        sentence.say("then", "puis:0")
    bank = sentence.noun_phrase("the", NOUNS["bank"])
    sentence.say("told", "^a:0 dit:0 à:0", bank)
    man = sentence.noun_phrase("the", NOUNS["man"])
    # French needs *que* where English says nothing: it has no link.
    sentence.french.append(Word("que", ()))
    sentence.pronoun("he", "il", man)
    say_predicate(sentence, man, STATES["was bankrupt"])
    return sentence
