"""The splits, each a pure function of its name and a seed.

Sentences are drawn one after another. A hash of the French words, without capitals and marks,
decides the split that a sentence may enter, so that no two splits share an English or a French
sentence, however many are drawn. A hash of everything before the predicate reserves whole frames
for the pronoun test, whose sentences come in pairs that differ only in the predicate.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Literal, get_args

import numpy as np

from pellucid.corpora.constructions import CONSTRUCTIONS
from pellucid.corpora.course.kept_out import is_kept_out
from pellucid.corpora.course.patterns import COURSE, EVERYDAY_NAMES, is_felt
from pellucid.corpora.example import Example, Style, make_example
from pellucid.corpora.french import Word, begins_with_vowel, join_french_words
from pellucid.corpora.lexicon import (
    ADJECTIVES,
    KINDS,
    NATIONALITIES,
    PREDICATES,
    RELATIONAL,
    VERBS,
    WORDS,
    Noun,
    nouns_of,
)
from pellucid.corpora.open.everyday import contract
from pellucid.corpora.open.open_constructions import FREE_CONSTRUCTIONS
from pellucid.corpora.pronouns import FRAMES, Frame
from pellucid.corpora.seeds import is_near_seed, seed_examples
from pellucid.corpora.sentence import Combination, Pick, Sentence
from pellucid.errors import InputError, suggestion
from pellucid.machine.randomness import derive_key, generator

SplitName = Literal["train", "validation", "test", "compositional", "pronoun"]
Grammar = Literal["open", "course"]
"""The constructions to draw from: `pellucid demo`'s, or also those of a beginner's course."""

DEFAULT_COUNTS: dict[SplitName, int] = {
    "train": 120_000,
    "validation": 1_000,
    "test": 2_000,
    "compositional": 2_000,
    "pronoun": 2_000,
}
"""The default number of examples of each split."""

# Frames are drawn more often than anything else: pronouns are what the corpus is about.
_FRAME_WEIGHTS = {
    "subject pronoun, place": 50,
    "subject pronoun, origin": 11,
    "subject pronoun, sound": 8,
    "object pronoun": 58,
}
_KEPT = frozenset(Combination(*row) for row in WORDS["kept"]["rows"])
"""What the example sentences need in training."""
_ONE_IN = 12
_CONSTRUCTIONS = CONSTRUCTIONS | FREE_CONSTRUCTIONS
_TRAIN_SHARE = 0.84
_VALIDATION_SHARE = 0.08
_PRONOUN_SHARE = 0.15
_SHORT = 4
"""Sentences of fewer French words are in training only,"""
_TIMES_SHORT = 8
"""and at most so often."""
# Draws without a new sentence, after which a split counts as exhausted.
_PATIENCE = 30_000
_STYLES = {
    mood: tuple(
        Style(has_capital, mark, bool(is_title))
        for has_capital, mark, times, *is_title in rows
        for _ in range(times)
    )
    for mood, rows in WORDS["styles"].items()
}


def make_split(
    name: SplitName, *, seed: int = 1, count: int | None = None, grammar: Grammar = "open"
) -> list[Example]:
    """Make a split of the English–French corpus.

    A smaller count gives the beginning of a larger one. In the training split the example sentences
    of `seed_sentences` recur regularly, and sentences of two or three words with other capitals and
    marks; no other sentence occurs twice. No sentence of any split differs from one of the example
    sentences in only one word.

    Args:
        name: ``train``, ``validation``, ``test``, ``compositional`` (each sentence has a pair
            of words that training never combines) or ``pronoun`` (minimal pairs: examples 2i and
            2i + 1 differ only in the predicate, and in the pronoun's French gender).
        seed: another seed gives other sentences, held-out pairs and frames.
        count: the number of examples; by default that of `DEFAULT_COUNTS`. If it is odd, the last
            ``pronoun`` example has no partner.
        grammar: ``open``, or ``course`` to draw also from the beginner's course in
            ``course/grammar.toml``.

    Raises:
        InputError: the split is unknown, or has fewer sentences.
    """
    if name not in DEFAULT_COUNTS:
        raise InputError(
            f"The split must be one of the corpus, but is {name!r}. "
            + suggestion(name, get_args(SplitName))
        )
    wanted = DEFAULT_COUNTS[name] if count is None else count
    if wanted < 0:
        raise InputError(f"The count must be at least 0, but is {wanted}.")
    examples = list(islice(iterate_split(name, seed=seed, grammar=grammar), wanted))
    if len(examples) < wanted:
        raise InputError(
            f"The count must be at most about {len(examples):,} for the {name} split, but is "
            f"{wanted:,}. Ask for fewer."
        )
    return examples


def iterate_split(
    name: SplitName, *, seed: int = 1, grammar: Grammar = "open"
) -> Iterator[Example]:
    """Yield the examples of a split one by one, until new ones become too rare."""
    # Python's generator draws the same numbers in every version.
    uniform = random.Random(derive_key(seed, "corpora", name)).random
    pick = Pick(uniform)
    if name == "pronoun":
        return _iterate_minimal_pairs(pick, seed)
    if name == "train":
        return _with_seeds(_iterate(pick, name, seed, grammar))
    return _iterate(pick, name, seed, grammar)


def _with_seeds(examples: Iterator[Example]) -> Iterator[Example]:
    """Insert one of the example sentences before every 149 others."""
    seeds = seed_examples()
    for number, example in enumerate(examples):
        if number % 149 == 0:
            yield seeds[number // 149 % len(seeds)]
        yield example


def _iterate(pick: Pick, name: SplitName, seed: int, grammar: Grammar) -> Iterator[Example]:
    held_out = held_out_combinations(seed)
    # Another seed assigns sentences to other splits.
    salt = derive_key(seed, "corpora split").to_bytes(16, "little")
    drawn = _CONSTRUCTIONS | COURSE if grammar == "course" else _CONSTRUCTIONS
    weights = _FRAME_WEIGHTS | {name: weight for name, (_, weight) in drawn.items()}
    if grammar == "course":
        weights |= {name: 2 * weight for name, weight in weights.items() if name not in COURSE}
    names = _by_weight(weights)
    seen = Counter[str]()
    num_misses = 0
    while num_misses < _PATIENCE:
        num_misses += 1
        construction = pick.one(names)
        if construction in FRAMES:
            frame = FRAMES[construction](pick)
            if name != "compositional" and (
                not held_out.isdisjoint(frame.start.combinations) or _is_reserved(frame, salt)
            ):
                continue
            # Checked before the sentence is complete: a reserved frame must not show any of its
            # predicates in training.
            which = int(pick.chance(0.5))
            sentence = frame.complete(which, pick.one(frame.predicates[which]))
        else:
            sentence = drawn[construction][0](pick)
        # Only these have contractions such as *it's*.
        if construction in FREE_CONSTRUCTIONS or construction in COURSE:
            contract(sentence, pick)
        if grammar == "course" and (is_felt(sentence) or is_kept_out(sentence.english)):
            continue
        # The compositional test takes only sentences with a held-out pair; the others take none.
        if held_out.isdisjoint(sentence.combinations) is (name == "compositional"):
            continue
        # Made-up words teach a model to copy; nothing is judged by them.
        if sentence.has_unknown and name != "train":
            continue
        # Kept out of every split: they show what a model makes of a sentence that it nearly knows.
        if is_near_seed(sentence.english):
            continue
        english = " ".join(sentence.english)
        # Without commas, as a sentence and the same with a pause are one sentence.
        key = " ".join([word.text for word in sentence.french]).replace(",", "")
        # A short sentence may be the only one with its words, as *parlons* is for *let's talk*: it
        # is in training only, and comes back there with other capitals and marks.
        is_short = len(sentence.french) < _SHORT
        # Neither language repeats, whichever of the two would be the same.
        num_seen = max(seen[english], seen[key])
        if num_seen >= (_TIMES_SHORT if is_short and name == "train" else 1):
            continue
        place, number = _hash(key, salt)
        if name != "compositional" and ("train" if is_short else _split_at(place)) != name:
            continue
        pieces = join_french_words(sentence.french)
        if _is_seed(pieces):
            continue
        seen.update((english, key))
        num_misses = 0
        # A short sentence that comes back gets another style.
        yield make_example(sentence, pieces, _style(sentence, number + 5 * num_seen))


def _iterate_minimal_pairs(pick: Pick, seed: int) -> Iterator[Example]:
    held_out = held_out_combinations(seed)
    salt = derive_key(seed, "corpora split").to_bytes(16, "little")
    names = _by_weight(_FRAME_WEIGHTS)
    seen: set[str] = set()
    num_misses = 0
    while num_misses < _PATIENCE:
        num_misses += 1
        frame = FRAMES[pick.one(names)](pick)
        first, second = frame.candidates
        # Only different genders tell in French which noun the pronoun stands for.
        if first.noun.gender == second.noun.gender or not _is_reserved(frame, salt):
            continue
        pair = [frame.complete(which, pick.one(frame.predicates[which])) for which in (0, 1)]
        start = " ".join(frame.start.english)
        # A minimal pair tests pronouns, not unknown combinations.
        is_held_out = any(not held_out.isdisjoint(sentence.combinations) for sentence in pair)
        if start in seen or is_held_out or not all(map(_shows_gender, pair)):
            continue
        joined = [join_french_words(sentence.french) for sentence in pair]
        if any(map(_is_seed, joined)):
            continue
        seen.add(start)
        num_misses = 0
        # One hash for both, so that they get the same style.
        number = _hash(start, salt)[1]
        for sentence, pieces in zip(pair, joined, strict=True):
            yield make_example(sentence, pieces, _style(sentence, number))


def _by_weight(weights: Mapping[str, int]) -> list[str]:
    """Repeat each name as often as its weight says, so that drawing one follows the weights."""
    return [name for name, weight in weights.items() for _ in range(weight)]


def _shows_gender(sentence: Sentence) -> bool:
    """Tell whether the French shows the pronoun's gender: not *les mange*, nor *l'épluche*."""
    role = sentence.pronouns[-1].role
    words = [word.text for word in sentence.french]
    index = next(i for i, word in enumerate(sentence.french) if role in word.roles)
    pronoun = words[index]
    verb = words[index + 1]
    # After *l'a* the participle shows the gender.
    if pronoun not in ("le", "la", "les") or verb in ("a", "ont"):
        return True
    # *Les* has one form for both genders, and *l'* hides it.
    return pronoun != "les" and not begins_with_vowel(verb)


def _split_at(place: float) -> SplitName:
    if place < _TRAIN_SHARE:
        return "train"
    return "validation" if place < _TRAIN_SHARE + _VALIDATION_SHARE else "test"


def _is_reserved(frame: Frame, salt: bytes) -> bool:
    start = " ".join(word.text for word in frame.start.french)
    # By its start only, so that both sentences of a pair are kept out of training.
    return _hash(start, salt)[0] < _PRONOUN_SHARE


def _hash(text: str, salt: bytes) -> tuple[float, int]:
    """Hash a text with the seed's salt, to a number in [0, 1) and an integer."""
    # In small letters, so that a capital does not move a sentence to another split.
    digest = hashlib.blake2b(text.lower().encode(), digest_size=12, key=salt).digest()
    return int.from_bytes(digest[:8], "little") / 2**64, int.from_bytes(digest[8:], "little")


def _style(sentence: Sentence, number: int) -> Style:
    styles = _STYLES[sentence.mood]
    if sentence.construction in EVERYDAY_NAMES:
        # A teacher writes sentences with a capital and a mark.
        styles = tuple(style for style in styles if style.has_capital and style.mark)
    # The hash of a sentence decides, so that a sentence is written alike in every split.
    return styles[number % len(styles)]


def _is_seed(pieces: Sequence[Word]) -> bool:
    return " ".join([piece.text for piece in pieces]) in _seed_texts()


@cache
def _seed_texts() -> frozenset[str]:
    """List the example sentences' French without capital and mark; only training may have it."""
    return frozenset(
        text[0].lower() + text[1:].removesuffix("\u202f!")
        for text in (example.target for example in seed_examples())
    )


@cache
def held_out_combinations(seed: int) -> frozenset[Combination]:
    """Draw the adjective–noun, verb–object and antecedent–predicate pairs kept out of training.

    Each adjective and each verb loses about one noun in twelve, each predicate one; the
    predicates of a kind lose different nouns, so that no noun loses everything said of it.
    """
    return frozenset(_draw_held_out(seed)) - _KEPT


def _draw_held_out(seed: int) -> Iterator[Combination]:
    for adjective in ADJECTIVES:
        yield from _some(seed, "adjective", adjective.english, adjective.nouns)
    for verb in VERBS:
        yield from _some(seed, "object", verb.name, nouns_of(*verb.kinds))
    order = generator(seed, "corpora institutions").permutation(len(KINDS["institution"]))
    for number, adjective in enumerate((*NATIONALITIES, *RELATIONAL)):
        noun = KINDS["institution"][order[number % len(order)]]
        if noun in adjective.nouns:
            yield Combination("adjective", adjective.english, noun.english)
    for kind, phrases in PREDICATES.items():
        order = generator(seed, "corpora predicates", kind).permutation(len(KINDS[kind]))
        # One order for all predicates of a kind: each loses another noun.
        for phrase, place in zip(phrases, order, strict=False):
            yield Combination("predicate", phrase.english, KINDS[kind][place].english)


def _some(
    seed: int, relation: Literal["adjective", "object"], word: str, nouns: tuple[Noun, ...]
) -> list[Combination]:
    """Draw one in twelve of the nouns that go with a word, at least one."""
    order: np.ndarray = generator(seed, f"corpora {relation}", word).permutation(len(nouns))
    combinations = [Combination(relation, word, nouns[place].english) for place in order]
    free = [combination for combination in combinations if combination not in _KEPT]
    return free[: max(1, len(nouns) // _ONE_IN)]
