"""A vocabulary of whole words, and pairs of sentences as batches of their numbers."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import torch
from torch import Tensor

from pellucid.data import Batch, make_source_batch

Words = tuple[tuple[str, ...], ...]
"""Rows of a word, its translation, and its gender or feminine form."""

PAD = 0
UNKNOWN = 1
START = 2
END = 3
_SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")

Pair = tuple[str, str]
"""A sentence and its translation, words between spaces."""


@cache
def read_tiny_words(name: str) -> Words:
    """Read a list of ``tiny-words.toml``."""
    source = files("pellucid.lessons.why.tiny").joinpath("tiny-words.toml")
    rows = tomllib.loads(source.read_text(encoding="utf-8"))[name]
    return tuple(map(tuple, rows))


@dataclass(frozen=True)
class TinyVocabulary:
    """The words of one language; a word's number is its place."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, sentences: Iterable[str]) -> TinyVocabulary:
        """Collect the words of some sentences, in alphabetical order behind the special tokens."""
        found = {word for sentence in sentences for word in sentence.split()}
        # In one order, so that numbers do not depend on that of the sentences.
        return cls((*_SPECIAL, *sorted(found)))

    def __len__(self) -> int:
        """Count the words, special tokens included."""
        return len(self.words)

    def encode(self, sentence: str) -> list[int]:
        """Turn a sentence into numbers that end in the end token."""
        places = {word: place for place, word in enumerate(self.words)}
        return [*(places.get(word, UNKNOWN) for word in sentence.split()), END]

    def encode_all(self, sentences: Sequence[str]) -> list[list[int]]:
        """Turn sentences into numbers."""
        places = {word: place for place, word in enumerate(self.words)}
        return [[*(places.get(w, UNKNOWN) for w in s.split()), END] for s in sentences]

    def decode(self, ids: Iterable[int]) -> str:
        """Turn numbers back into a sentence, up to the end token."""
        found = []
        for id_ in ids:
            if id_ == END:
                break
            found.append(self.words[id_])
        return " ".join(found)


def make_pair_batch(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """Pad pairs for teacher forcing: the decoder reads the target, shifted by one."""
    source_BS, source_mask_BS = make_source_batch(sources, pad_id=PAD)
    target_out_BT, target_mask_BT = make_source_batch(targets, pad_id=PAD)
    start_B1: Tensor = torch.full_like(target_out_BT[:, :1], START)
    target_in_BT = torch.cat((start_B1, target_out_BT[:, :-1]), dim=1)
    # The shift moved each end token into the padding of shorter targets.
    target_in_BT = target_in_BT.masked_fill(~target_mask_BT, PAD)
    return Batch(
        source_BS=source_BS,
        source_mask_BS=source_mask_BS,
        target_in_BT=target_in_BT,
        target_out_BT=target_out_BT,
        target_mask_BT=target_mask_BT,
        num_source_tokens=int(source_mask_BS.sum()),
        num_target_tokens=int(target_mask_BT.sum()),
    )
