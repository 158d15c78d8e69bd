"""A model with the minimal pairs that it is asked about, in batches of one length.

One sentence of each pair is the *recipient*: everything is changed in its run, and its margin is
measured, the logit of its own pronoun minus that of the other sentence's. A *donor* is a sentence
whose vectors a patch takes. There are two for each recipient:

- **choice**: the other sentence of the pair. Its nouns are the same, its predicate fits the other.
- **gender**: the recipient with both nouns replaced by nouns of the same kind and the other gender.
  Its predicate is the same and chooses the same place.

A vector that holds the gender which was decided passes it on in both. One that only holds a reason
for it, such as the meaning of the predicate or the gender of a noun, passes it on in one of them.

Recipients are by turns the sentence whose antecedent is the first noun and the one whose antecedent
is the second, so that no rule about places can win.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gender.probes import Keep
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.corpora.lexicon import KINDS, NOUNS, Noun
from pellucid.inside import Pair, Probe
from pellucid.inside.pair import make_pair
from pellucid.model import EncoderDecoder

ROLES = ("pronoun", "predicate", "antecedent", "rival", "end", "rest")
"""The parts of a source: the rival is the other noun, the end the last mark and ``</s>``."""
DONORS = ("choice", "gender")
PRONOUNS = {"il", "elle", "ils", "elles"}
MOST = 250
"""Sentences of a batch, at most."""


@dataclass(frozen=True, eq=False)
class Run:
    """A recipient with its donor, as ids.

    Attributes:
        source: the recipient's ids.
        donors: those of each donor, equally many. Without a donor of the other gender, as for
            *it mooed*, which only cows do, the recipient stands in its place.
        read: the ids that the decoder reads, up to the row that predicts the pronoun.
        answers: the recipient's own pronoun, and the donor's.
        roles: the positions of each part of the source.
        read_nouns: the rows that read one of the two nouns in French, or the word before it, such
            as its article.
        is_feminine: whether the recipient's antecedent is.
        nouns: the recipient's antecedent and the rival, as words.
    """

    source: tuple[int, ...]
    donors: dict[str, tuple[int, ...]]
    read: tuple[int, ...]
    answers: tuple[int, int]
    roles: dict[str, list[int]]
    read_nouns: list[int]
    is_feminine: bool
    nouns: tuple[str, str]


@dataclass(frozen=True, eq=False)
class Batch:
    """Runs of one length.

    Attributes:
        numbers: of the runs.
        source_BS: the recipients' ids.
        donors: those of each kind of donor.
        read_BT: what the decoder reads, padded on the right.
        is_row_BT: True for the row that predicts the pronoun.
        answers_B2: the own and the other pronoun.
        roles: for each part of the source, True where it is: ``is_role_BS``.
        reads_noun_BT: True for the rows of `Run.read_nouns`.
        is_feminine_B: of the recipients' antecedents.
    """

    numbers: np.ndarray
    source_BS: Tensor
    donors: dict[str, Tensor]
    read_BT: Tensor
    is_row_BT: Tensor
    answers_B2: Tensor
    roles: dict[str, Tensor]
    reads_noun_BT: Tensor
    is_feminine_B: Tensor


Condition = Callable[[int], Probe]
"""A function from the number of a batch to a probe that changes its run."""


class Subject:
    """A model, its batches, and what was kept of unchanged runs."""

    def __init__(self, bundle: Bundle, pairs: Sequence[Sequence[dict[str, Any]]]) -> None:
        self.model = bundle.model
        self.config = bundle.config.model
        self.runs = [make_run(bundle, *pair, number=number) for number, pair in enumerate(pairs)]
        self.batches = list(make_batches(self.runs))
        self.sites = [f"encoder.{layer}.self" for layer in range(self.config.num_encoder_layers)]
        for layer in range(self.config.num_decoder_layers):
            self.sites += [f"decoder.{layer}.self", f"decoder.{layer}.cross"]
        numbers = range(self.config.num_heads)
        self.heads = [(site, head) for site in self.sites for head in numbers]

    @cached_property
    def memories(self) -> list[Tensor]:
        """Unchanged results of the encoder, by batch."""
        with torch.inference_mode():
            return [self.model.encode(batch.source_BS) for batch in self.batches]

    @torch.inference_mode()
    def keep(
        self, stages: set[str], donor: str | None = None, *, sites: Sequence[str] = ()
    ) -> list[Keep]:
        """Keep some stages of unchanged runs of the donors, or else of the recipients."""
        found = []
        for batch in self.batches:
            keeper = Keep(stages, sites)
            source_BS = batch.source_BS if donor is None else batch.donors[donor]
            memory_BSD = self.model.encode(source_BS, probe=keeper)
            self.model.decode(batch.read_BT, memory_BSD, probe=keeper)
            found.append(keeper)
        return found

    @torch.inference_mode()
    def donor_margins(self, donor: str) -> np.ndarray:
        """Measure the recipients' margins when the decoder reads the donor's source."""
        found = np.empty(len(self.runs), dtype=np.float32)
        for batch in self.batches:
            memory_BSD = self.model.encode(batch.donors[donor])
            states_BTD = self.model.decode(batch.read_BT, memory_BSD)
            found[batch.numbers] = margins_of(self.model, states_BTD, batch).numpy()
        return found

    @torch.inference_mode()
    def margins(self, condition: Condition | None = None, *, in_encoder: bool = True) -> np.ndarray:
        """Measure the margin of every run, as it is or under a condition: ``margins_N``."""
        found = np.empty(len(self.runs), dtype=np.float32)
        for number, batch in enumerate(self.batches):
            probe = None if condition is None else condition(number)
            memory_BSD = self.memories[number]
            if probe is not None and in_encoder:
                memory_BSD = self.model.encode(batch.source_BS, probe=probe)
            states_BTD = self.model.decode(batch.read_BT, memory_BSD, probe=probe)
            found[batch.numbers] = margins_of(self.model, states_BTD, batch).numpy()
        return found


def margins_of(model: EncoderDecoder, states_BTD: Tensor, batch: Batch) -> Tensor:
    """Subtract the logit of the other pronoun from that of the own: ``margins_B``."""
    logits_B1V = model.logits(states_BTD[batch.is_row_BT][:, None])
    logits_B2 = logits_B1V[:, 0].gather(1, batch.answers_B2)
    return logits_B2[:, 0] - logits_B2[:, 1]


def load_pairs(text: Path) -> list[list[dict[str, Any]]]:
    """Load the pairs that `gender.pairs.write_text` wrote."""
    found: list[list[dict[str, Any]]] = json.loads((text / "pairs.json").read_text("utf-8"))
    return found


def make_run(bundle: Bundle, a: dict[str, Any], b: dict[str, Any], *, number: int) -> Run:
    """Turn a minimal pair into a recipient and its donors."""
    records = (a, b) if number % 2 == 0 else (b, a)
    own, other = (make_pair(bundle, one["source"], one["target"]) for one in records)
    differ = [x != y for x, y in zip(own.target_ids, other.target_ids, strict=False)]
    row = differ.index(True)
    answers = own.target_ids[row], other.target_ids[row]
    own_word = own.predicted_tokens[row]
    assert {own_word, other.predicted_tokens[row]} < PRONOUNS, (own, other)
    nouns = [record["antecedent"] for record in records]
    words = records[0]["source"].split()
    swapped = own.source_ids
    # A predicate such as *it mooed* fits no other animal.
    if records[0]["construction"] != "subject pronoun, sound":
        swapped = _swap_nouns(bundle, own, nouns, number)
    return Run(
        source=own.source_ids,
        donors={"choice": other.source_ids, "gender": swapped},
        read=own.read_ids[: row + 1],
        answers=answers,
        roles=_roles(own, records[0]["pronoun"], nouns, len(words)),
        read_nouns=_rows_of_nouns(own, [words[at] for at in nouns], row),
        is_feminine=own_word.startswith("elle"),
        nouns=(words[nouns[0]], words[nouns[1]]),
    )


def _roles(pair: Pair, pronoun: int, nouns: Sequence[int], num_words: int) -> dict[str, list[int]]:
    """Find the parts of a source whose tokens are its words, then a mark, then the end."""
    tokens = pair.source_tokens
    assert tokens[pronoun] in {"it", "they"}, tokens
    assert num_words + 1 <= len(tokens) <= num_words + 2, tokens
    return {
        "pronoun": [pronoun],
        "predicate": list(range(pronoun + 1, num_words)),
        "antecedent": [nouns[0]],
        "rival": [nouns[1]],
        "end": list(range(num_words, len(tokens))),
        "rest": [at for at in range(pronoun) if at not in nouns],
    }


def _noun_of(word: str) -> Noun:
    """Look up an English noun, singular or plural."""
    return next(noun for noun in NOUNS.values() if word in {noun.english, noun.english_plural})


def _rows_of_nouns(pair: Pair, words: Sequence[str], row: int) -> list[int]:
    """Find the rows that read the French nouns of some English ones, and the words before them."""
    nouns = [_noun_of(word) for word in words]
    forms = {form for noun in nouns for form in (noun.french, noun.french_plural)}
    # The row after a token is the one that reads it, since the first reads the start.
    found = [
        at + 1
        for at, token in enumerate(pair.predicted_tokens[:row])
        # An article without its vowel is written with the noun: *l'orange*.
        if re.split("['’]", token)[-1] in forms
    ]
    assert len(found) == len(nouns), (pair, forms)
    return sorted({one for at in found for one in (at - 1, at) if one > 0})


def _swap_nouns(bundle: Bundle, pair: Pair, nouns: Sequence[int], number: int) -> tuple[int, ...]:
    """Replace both nouns by others of the same kind and number, and of the other gender."""
    ids = list(pair.source_ids)
    for at in nouns:
        token = pair.source_tokens[at]
        noun = _noun_of(token)
        is_plural = token != noun.english
        others = [
            other.english_plural if is_plural else other.english
            for other in KINDS[noun.kind]
            if other.gender != noun.gender and not (is_plural and other.is_mass)
        ]
        found = [bundle.tokenizer.encode_source(word) for word in others]
        known = [
            one[0] for one in found if len(one) == 2 and one[0] != bundle.tokenizer.config.unk_id
        ]
        ids[at] = known[number % len(known)]
    return tuple(ids)


def make_batches(runs: Sequence[Run]) -> Iterator[Batch]:
    """Join runs whose sources have equally many tokens."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for number, run in enumerate(runs):
        groups[len(run.source)].append(number)
    for _, group in sorted(groups.items()):
        for start in range(0, len(group), MOST):
            numbers = group[start : start + MOST]
            chosen = [runs[number] for number in numbers]
            length = len(chosen[0].source)
            num_rows = max(len(run.read) for run in chosen)
            # No row before the padding sees it.
            read = [run.read + (0,) * (num_rows - len(run.read)) for run in chosen]
            yield Batch(
                numbers=np.array(numbers),
                source_BS=torch.tensor([run.source for run in chosen]),
                donors={
                    name: torch.tensor([run.donors[name] for run in chosen]) for name in DONORS
                },
                read_BT=torch.tensor(read),
                is_row_BT=_mask([[len(run.read) - 1] for run in chosen], num_rows),
                answers_B2=torch.tensor([run.answers for run in chosen]),
                roles={role: _mask([run.roles[role] for run in chosen], length) for role in ROLES},
                reads_noun_BT=_mask([run.read_nouns for run in chosen], num_rows),
                is_feminine_B=torch.tensor([run.is_feminine for run in chosen]),
            )


def _mask(positions: Sequence[Sequence[int]], length: int) -> Tensor:
    mask_BS = torch.zeros(len(positions), length, dtype=torch.bool)
    for row, chosen in enumerate(positions):
        mask_BS[row, list(chosen)] = True
    return mask_BS
