"""Measures of the reasons for a word against what really happens when a word is exchanged.

    python benchmarks/exchanged_words.py [--model demo] [--count 240]

In sentences of the pronoun test each English word is exchanged for others that the test has between
the same two neighbors, and the sentence is translated again. The question is why the French has one
form of a word and not its other gender: for each pronoun, and for each adjective and participle
that agrees. The truth about an English word is the mean fall of log p(form) - log p(other form)
that its exchanges bring. A measure is judged by

- *first*: the word that it puts first turns the form in at least half of its exchanges;
- *order*: Kendall's tau between its numbers and the truth, over the words of a sentence;
- *sign*: of the words whose exchange moves the odds by a factor of 2 or more, the share whose
  number has the same sign.

Each measure takes a word away: it *removes* the word, puts the *unknown* one in its place, or
*cuts* every edge to it. The beginning of the translation is *kept*, or the sentence is translated
*again*, and the form is looked for there. Integrated gradients take no word away.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side.results import write_result

import pellucid
from pellucid import Translator
from pellucid.corpora import make_split
from pellucid.corpora.rival_forms import RivalForms
from pellucid.inside import Pair
from pellucid.inside.changes.change import cut_source_word
from pellucid.inside.changes.what_if import decode_under
from pellucid.inside.measures.agreement import kendall
from pellucid.inside.measures.occlusion import HOWS, occlusion

PRONOUNS = {"il", "elle", "ils", "elles"}
MOST_EXCHANGED = 4
MOST_TOKENS = 60
MOVED = np.log(2)
Score = tuple[float, float, int, int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--count", type=int, default=240)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    translator = pellucid.load(given.model, precision="float32")
    judged: dict[str, dict[str, list[Score]]] = {"pronoun": {}, "agreement": {}}
    for source, exchanges in make_cases(given.count):
        pair = translator.pair(source)
        places = [at for at, token in enumerate(pair.source_tokens[:-1]) if token[0] != JOINER]
        if len(places) != len(source.split()):
            continue
        written = exchange(translator, source, exchanges)
        for question in Question.of(pair):
            truth, turns = question.truth(written)
            if not (turns >= 0.5).any():
                continue
            group = judged["pronoun" if question.own in PRONOUNS else "agreement"]
            for name, numbers in question.measure(places).items():
                score = judge(np.asarray(numbers), truth, turns)
                group.setdefault(name, []).append(score)
    record: dict[str, object] = {}
    for group, measures in judged.items():
        for name, found in measures.items():
            first, order, same, of = np.array(found).T
            row = {
                "questions": len(found),
                "first": round(float(first.mean()), 3),
                "order": round(float(order.mean()), 3),
                "sign": round(float(same.sum() / of.sum()), 3),
            }
            record[f"{group}: {name}"] = row
            print(f"{group:10} {name:22}", row, flush=True)
    write_result("exchanged-words", record, (), given.out)


def make_cases(count: int) -> list[tuple[str, list[list[str]]]]:
    """Return sentences, and for each of their words the ones it is exchanged for."""
    sources = [one.source for one in make_split("pronoun", count=4000)]
    between: dict[tuple[str, str], set[str]] = defaultdict(set)
    for source in sources:
        words = ["", *source.split(), ""]
        for before, word, after in zip(words, words[1:], words[2:], strict=False):
            between[before, after].add(word)
    chosen = random.Random(1)
    cases = []
    for source in chosen.sample(sources, count):
        words = ["", *source.split(), ""]
        exchanges = []
        for before, word, after in zip(words, words[1:], words[2:], strict=False):
            others = sorted(between[before, after] - {word})
            exchanges.append(chosen.sample(others, min(MOST_EXCHANGED, len(others))))
        cases.append((source, exchanges))
    return cases


def exchange(translator: Translator, source: str, exchanges: list[list[str]]) -> list[list[Pair]]:
    """Translate the sentence with each of its words exchanged."""
    words = source.split()
    return [
        [translator.pair(" ".join([*words[:at], other, *words[at + 1 :]])) for other in others]
        for at, others in enumerate(exchanges)
    ]


class Question:
    """Why one form of a word and not its other gender."""

    def __init__(self, pair: Pair, row: int, own: str, other: str) -> None:
        self.pair = pair
        self.row = row
        self.own = own
        self.other = other
        self.ids = {word: id_ for id_, word in enumerate(pair.tokenizer.vocabulary("target"))}
        self.odds = self.odds_in(pair)

    @classmethod
    def of(cls, pair: Pair) -> Iterator[Question]:
        """Yield the questions of a translation: a pronoun or a word that agrees, and its rival."""
        agreement = RivalForms(pair.tokenizer.vocabulary("target"))
        for row, token in enumerate(pair.predicted_tokens[:-1]):
            own = token.rpartition("'")[2].lower()
            others = agreement.rivals(own)
            is_asked = own in PRONOUNS or len(own) > SHORTEST
            # Only a gender has one other form; *était* has another number.
            if len(others) == 1 and is_asked and not own.endswith(("t", "nt")):
                yield cls(pair, row, own, others[0])

    def odds_in(self, pair: Pair, probe: Any = None) -> float:
        """Return the odds of the two forms where one of them now stands; NaN if neither does."""
        forms = (self.own, self.other)
        rows = [
            row
            for row, token in enumerate(pair.predicted_tokens)
            if token.rpartition("'")[2].lower() in forms
        ]
        if not rows:
            return float("nan")
        row = min(rows, key=lambda one: abs(one - self.row))
        token = pair.predicted_tokens[row]
        begin = token[: len(token) - len(token.rpartition("'")[2])]
        ids = [self.ids.get(begin + form) for form in forms]
        if None in ids:
            return float("nan")
        logits = pair.logits(probe=probe)[row]
        return float(logits[ids[0]] - logits[ids[1]])

    def truth(self, written: list[list[Pair]]) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean fall of the odds for each word, and the share of exchanges that turn."""
        falls = np.full(len(written), np.nan)
        turns = np.zeros(len(written))
        for number, pairs in enumerate(written):
            after = np.array([self.odds_in(one) for one in pairs])
            after = after[~np.isnan(after)]
            # Where the form is gone, an exchange is no answer to the question.
            if len(after):
                falls[number] = self.odds - after.mean()
                turns[number] = (after < 0).mean()
        return falls, turns

    def measure(self, places: list[int]) -> dict[str, list[float]]:
        """Measure each word of the source."""
        contrast = self.pair.why(
            str(self.number), self.pair.predicted_tokens[self.row].replace(self.own, self.other)
        )
        words = [[place] for place in places]
        found = {}
        for how in HOWS:
            first, second = (
                occlusion(one, how=how, words=words).matrix[contrast.start]
                for one in (contrast.why, contrast.other)
            )
            found[f"{how}, kept"] = list(first - second)
            found[f"{how}, again"] = [self.again(how, place) for place in places]
        integrated = contrast.measure("integrated-gradients").matrix[0]
        found["integrated-gradients"] = [integrated[place] for place in places]
        return found

    @property
    def number(self) -> int:
        """The number of the word in the French text, whose marks are no words."""
        tokens = self.pair.predicted_tokens[: self.row]
        return sum(token[0] != JOINER for token in tokens)

    def again(self, how: str, place: int) -> float:
        """Take a word away, translate again, and return how far the odds fall."""
        ids = list(self.pair.source_ids)
        probe = None
        if how == "remove":
            del ids[place]
        elif how == "unknown":
            ids[place] = self.pair.tokenizer.config.unk_id
        else:
            probe = cut_source_word([place])
        source = replace(self.pair, source_ids=tuple(ids))
        written = decode_under(source, probe, max_length=MOST_TOKENS)
        return self.odds - self.odds_in(replace(source, target_ids=tuple(written.ids)), probe)


def judge(numbers: np.ndarray, truth: np.ndarray, turns: np.ndarray) -> Score:
    known = ~np.isnan(truth)
    # Without such a word there is no form to choose, which says nothing about which one.
    numbers = np.where(np.isnan(numbers), 0.0, numbers)
    first = int(np.argmax(np.where(known, numbers, -np.inf)))
    order = np.nan_to_num(kendall(numbers[known], truth[known]))
    moved = known & (np.abs(truth) > MOVED)
    same = int((np.sign(numbers[moved]) == np.sign(truth[moved])).sum())
    return float(turns[first] >= 0.5), float(order), same, int(moved.sum())


JOINER = "￭"
SHORTEST = 3

if __name__ == "__main__":
    main()
