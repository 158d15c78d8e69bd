"""Sentences with known antecedents, and how often a map points at the right one.

Some nouns precede each pronoun, and one of them is its antecedent. A reading gives every noun a
number, and points at the noun with the highest. How often that noun is the antecedent tells how
well the reading follows the pronoun. It does not tell that the model decides by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from pellucid.bundle import Bundle
from pellucid.corpora import Example, Pronoun
from pellucid.corpora.lexicon import NOUNS
from pellucid.corpora.pronouns import FRAMES
from pellucid.errors import InputError
from pellucid.inside import Pair
from pellucid.inside.pair import make_pair
from pellucid.machine.randomness import generator
from pellucid.text.token_words import is_punctuation, split_pieces, words_of_tokens

Reading = Callable[["Case"], Mapping[str, Sequence[float]]]
"""A function that returns, by the name of each map, a number for each noun of a case."""

_SHOWING = re.compile(r"(?:.*['’])?(?:ils?|elles?|le|la)", re.IGNORECASE)
_HIDING = re.compile(r"(?:l['’].*|les)", re.IGNORECASE)
_AUXILIARY = re.compile(r"(?:l['’])?(?:a|ont)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Case:
    """One pronoun of one sentence, whose French form shows the antecedent.

    Attributes:
        pair: the sentence and its translation in the corpus.
        group: the number of its minimal pair; intervals draw whole groups.
        words: the nouns before the pronoun, in order, as the lexicon lists them.
        nouns: the source tokens of each noun.
        target_nouns: the target tokens that each noun is linked to.
        answer: the number of the noun that is the antecedent.
        pronoun: the source tokens of the pronoun.
        predicate: the source tokens of the clause's other words, which decide the antecedent.
        rows: the target tokens that show the gender: those of *il*, *elle*, *le*, *la*, or of the
            participle if the pronoun is *l'* or *les*. Decoder row t predicts target token t.
        gender: the antecedent's, in French.
        distance: words from the antecedent to the pronoun.
    """

    pair: Pair
    group: int
    words: tuple[str, ...]
    nouns: tuple[tuple[int, ...], ...]
    target_nouns: tuple[tuple[int, ...], ...]
    answer: int
    pronoun: tuple[int, ...]
    predicate: tuple[int, ...]
    rows: tuple[int, ...]
    gender: str
    distance: int

    @property
    def num_between(self) -> int:
        """The number of nouns between the antecedent and the pronoun."""
        return len(self.nouns) - 1 - self.answer


@dataclass(frozen=True)
class Share:
    """The share of cases in which a reading points at the antecedent.

    Attributes:
        name: of the reading.
        share: from 0 to 1; a case that points at several nouns equally counts in part.
        low: the lower end of the 95 % bootstrap interval over minimal pairs.
        high: its upper end.
        num_cases: the number of cases.
        both_right: the share of minimal pairs with both cases right; None without pairs. It is 0
            for every rule that reads only the words up to the pronoun.
    """

    name: str
    share: float
    low: float
    high: float
    num_cases: int
    both_right: float | None


def make_cases(bundle: Bundle, examples: Sequence[Example], *, is_paired: bool) -> list[Case]:
    """Make a case of each pronoun whose French form shows its antecedent.

    Only the constructions of the pronoun test are taken, in which only the predicate decides.

    Args:
        bundle: the model.
        examples: of the built-in corpus.
        is_paired: True if examples 2i and 2i + 1 are a minimal pair, as in the pronoun test.
    """
    cases = []
    for index, example in enumerate(examples):
        if example.construction not in FRAMES:
            continue
        for pronoun in example.pronouns:
            group = index // 2 if is_paired else index
            case = _make_case(bundle, example, pronoun, group)
            if case is not None:
                cases.append(case)
    return cases


def count_hits(cases: Iterable[Case], readings: Sequence[Reading]) -> dict[str, np.ndarray]:
    """Tell for every case and every map whether it points at the antecedent.

    Args:
        cases: as `make_cases` returns them.
        readings: the readings to test.

    Returns:
        By the name of each map and of each of `RULES`, a number from 0 to 1 for each case.
    """
    found: dict[str, list[float]] = {}
    for case in cases:
        for reading in (_rules, *readings):
            for name, scores in reading(case).items():
                found.setdefault(name, []).append(_hit(scores, case.answer))
    return {name: np.array(hits) for name, hits in found.items()}


def choose_reading(hits: Mapping[str, np.ndarray], names: Iterable[str]) -> str:
    """Choose the map that points at the antecedent most often, to test it on other cases.

    Args:
        hits: as `count_hits` returns them, of cases that are not in the test.
        names: the maps to choose from; the first of equal ones is chosen.
    """
    return max(names, key=lambda name: float(hits[name].mean()))


def share_of_hits(
    name: str, hits: np.ndarray, cases: Sequence[Case], *, num_resamples: int = 1000, seed: int = 1
) -> Share:
    """Turn hits into a share with an interval.

    Args:
        name: of the reading.
        hits: for each case.
        cases: the same cases.
        num_resamples: the number of bootstrap samples, each of as many minimal pairs, drawn with
            replacement.
        seed: decides the draws.

    Raises:
        InputError: no case was given.
    """
    if not len(cases):
        raise InputError("No case was given to count. Take more sentences.")
    _, groups, sizes = np.unique(
        [case.group for case in cases], return_inverse=True, return_counts=True
    )
    sums = np.bincount(groups, weights=hits)
    rng = generator(seed, "antecedents", len(sums))
    drawn = rng.integers(len(sums), size=(num_resamples, len(sums)))
    shares = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(shares, (0.025, 0.975))
    is_pair = sizes == 2
    both = float((sums[is_pair] == 2).mean()) if is_pair.any() else None
    return Share(name, float(hits.mean()), float(low), float(high), len(cases), both)


def share_by(
    name: str, hits: np.ndarray, cases: Sequence[Case], key: Callable[[Case], int]
) -> dict[int, Share]:
    """Compute the share for each value of a property of the cases, such as their distance.

    Args:
        name: of the reading.
        hits: for each case.
        cases: the same cases.
        key: returns the property of a case.
    """
    keys = np.array([key(case) for case in cases])
    return {
        int(value): share_of_hits(
            name,
            hits[keys == value],
            [case for case, one in zip(cases, keys, strict=True) if one == value],
        )
        for value in np.unique(keys)
    }


def _rules(case: Case) -> dict[str, Sequence[float]]:
    places = [float(place) for place in range(len(case.nouns))]
    return {"random noun": [0.0] * len(places), "nearest noun": places, "first noun": places[::-1]}


RULES = ("random noun", "nearest noun", "first noun")
"""Readings without a model: any noun, the last before the pronoun, the sentence's first."""


def _hit(scores: Sequence[float], answer: int) -> float:
    """Return 1 if the answer has the highest score, less if others share it, otherwise 0."""
    best = max(scores)
    return 1 / list(scores).count(best) if scores[answer] == best else 0.0


def _make_case(bundle: Bundle, example: Example, pronoun: Pronoun, group: int) -> Case | None:
    decisive = _decisive_piece(split_pieces(example.target), pronoun.target)
    if decisive is None:
        return None
    pair = make_pair(bundle, example.source, example.target)
    lexicon = _lexicon()
    pieces = [piece.lower() for piece in split_pieces(example.source)]
    places = [place for place in range(pronoun.source) if pieces[place] in lexicon]
    words = tuple(lexicon[pieces[place]] for place in places)
    answer = places.index(pronoun.source_antecedent)
    # In the constructions of the test, the pronoun's clause begins after the last "and" before it.
    clause = pronoun.source - pieces[pronoun.source :: -1].index("and") + 1
    linked = [{j for i, j in example.alignment if i == place} for place in places]
    source = words_of_tokens(bundle.tokenizer, "source", example.source, pair.source_ids)
    target = words_of_tokens(bundle.tokenizer, "target", example.target, pair.target_ids)

    def read(wanted: Iterable[int]) -> tuple[int, ...]:
        return _tokens_of(source, pair.source_tokens, wanted)

    def written(wanted: Iterable[int]) -> tuple[int, ...]:
        return _tokens_of(target, pair.predicted_tokens, wanted)

    return Case(
        pair,
        group,
        words=words,
        nouns=tuple(read([place]) for place in places),
        target_nouns=tuple(written(links) for links in linked),
        answer=answer,
        pronoun=read([pronoun.source]),
        predicate=read({*range(clause, len(pieces))} - {pronoun.source}),
        rows=written([decisive]),
        gender=NOUNS[words[answer]].gender,
        distance=pronoun.source - pronoun.source_antecedent,
    )


def _decisive_piece(pieces: Sequence[str], pronoun: int) -> int | None:
    """Find the French piece whose form shows the antecedent's gender, if any.

    It is *elle*, *qu'il*, *la*; the participle after *l'a* or *les ont*; none in *les mange*.
    """
    if _SHOWING.fullmatch(pieces[pronoun]):
        return pronoun
    if not _HIDING.fullmatch(pieces[pronoun]):
        return None
    has_own_auxiliary = pieces[pronoun].lower() != "les"
    auxiliary = pronoun if has_own_auxiliary else pronoun + 1
    if auxiliary + 1 < len(pieces) and _AUXILIARY.fullmatch(pieces[auxiliary]):
        return auxiliary + 1
    return None


def _tokens_of(
    words: Sequence[range], tokens: Sequence[str], wanted: Iterable[int]
) -> tuple[int, ...]:
    """Return the tokens of some words, without the punctuation at their end."""
    chosen = set(wanted)
    places = [place for place, owners in enumerate(words) if chosen & set(owners)]
    while places and is_punctuation(tokens[places[-1]]):
        places.pop()
    return tuple(places)


@cache
def _lexicon() -> dict[str, str]:
    """Map every English noun form to the name of its noun."""
    return {
        form: name for name, noun in NOUNS.items() for form in (noun.english, noun.english_plural)
    }
