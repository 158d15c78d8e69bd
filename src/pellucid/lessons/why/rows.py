"""Rows of attention: how often the diagonal is highest, and whether similar words get more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pellucid.attention import attend_with_embeddings
from pellucid.inside.pair import Keeper
from pellucid.model import EncoderDecoder

_LEAST = 3
"""The other words that a row must have for a rank correlation."""


@dataclass(frozen=True)
class OwnWeight:
    """The weight of words on themselves and on similar ones in one attention.

    Attributes:
        place: the head, or another name.
        highest: the share of words whose own weight is the highest of their row.
        own: the average weight on oneself.
        ranks: the rank correlation of the weights on other words with the cosines of the
            embeddings, averaged over words that see three others or more.
        first: the share of those words that give the most similar other word the most.
        chance: the share of words whose own weight were the highest if it were so for every word
            equally often.
        chance_first: the same for the most similar other word.
    """

    place: str
    highest: float
    own: float
    ranks: float
    first: float
    chance: float = 0.0
    chance_first: float = 0.0


class _Sums:
    """Adds up the rows of one attention with H heads."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._sums_4H = np.zeros((4, len(names)))
        self._chances = np.zeros(2)
        self._rows = self._ranked = 0

    def add(self, weights_HLM: Tensor, vectors_LD: Tensor, *, is_causal: bool) -> None:
        """Add the rows of a sentence whose words have these embeddings."""
        length = weights_HLM.shape[-1]
        highest_H, own_H = count_rows(weights_HLM)
        self._sums_4H[0] += highest_H.numpy()
        self._sums_4H[1] += own_H.numpy()
        self._rows += length
        unit_LD = torch.nn.functional.normalize(vectors_LD, dim=-1)
        similar_LL = (unit_LD @ unit_LD.T).numpy()
        for row in range(length):
            seen = row + 1 if is_causal else length
            self._chances[0] += 1 / seen
            if seen - 1 < _LEAST:
                continue
            others = [column for column in range(seen) if column != row]
            given_HO = weights_HLM[:, row, others].numpy()
            ranks_H, is_first_H = rank_with(given_HO, similar_LL[row, others])
            self._sums_4H[2] += ranks_H
            self._sums_4H[3] += is_first_H
            self._chances[1] += 1 / len(others)
            self._ranked += 1

    def finish(self) -> list[OwnWeight]:
        """Divide the sums by the numbers of rows."""
        ranked = max(1, self._ranked)
        numbers = self._sums_4H / np.array([self._rows, self._rows, ranked, ranked])[:, None]
        chances = (self._chances[0] / self._rows, self._chances[1] / ranked)
        return [
            OwnWeight(name, *(float(number) for number in column), *map(float, chances))
            for name, column in zip(self._names, numbers.T, strict=True)
        ]


def count_rows(weights_HLM: Tensor) -> tuple[Tensor, Tensor]:
    """Count for each head the rows whose diagonal is highest, and sum the diagonal."""
    own_HL = weights_HLM.diagonal(dim1=-2, dim2=-1)
    is_highest_HL = weights_HLM.argmax(dim=-1) == torch.arange(own_HL.shape[-1])
    return is_highest_HL.sum(dim=-1), own_HL.sum(dim=-1)


def rank_with(
    given_HO: NDArray[np.floating], similar_O: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """Compute Spearman's rank correlation of each head's weights with similarities.

    Args:
        given_HO: the weights of each head on O other words.
        similar_O: the similarity of those words.

    Returns:
        The correlations, 0 if all ranks are the same, and whether the most similar word has the
        largest weight.
    """
    a_HO, b_O = _ranks(given_HO), _ranks(similar_O[None])[0]
    a_HO, b_O = a_HO - a_HO.mean(axis=1, keepdims=True), b_O - b_O.mean()
    norms_H = np.sqrt((a_HO**2).sum(axis=1) * (b_O**2).sum())
    ranks_H = np.divide(a_HO @ b_O, norms_H, out=np.zeros(len(a_HO)), where=norms_H > 0)
    best_H = given_HO.argmax(axis=1)
    return ranks_H, similar_O[best_H] >= similar_O.max() - 1e-6


def _ranks(x_HO: NDArray[np.floating]) -> NDArray[np.floating]:
    """Rank along the last axis, equal numbers with their mean rank."""
    below_HO = (x_HO[:, :, None] > x_HO[:, None, :]).sum(axis=-1)
    equal_HO = (x_HO[:, :, None] == x_HO[:, None, :]).sum(axis=-1)
    return np.asarray(below_HO + (equal_HO - 1) / 2)


@torch.inference_mode()
def look_at_heads(
    model: EncoderDecoder,
    sentences: Sequence[tuple[Sequence[int], Sequence[int]]],
    part: str = "encoder",
) -> list[OwnWeight]:
    """Look at the self-attention of every head of one part of a model.

    Args:
        model: it reads the sentences.
        sentences: the source, and what the decoder reads.
        part: ``encoder`` or ``decoder``, whose words see only those before them.
    """
    config = model.config
    is_causal = part == "decoder" and config.look_ahead_mask
    layers = range(getattr(config, f"num_{part}_layers"))
    sites = [f"{part}.{layer}.self" for layer in layers]
    embedding = model.embedding_of("source" if part == "encoder" else "target")
    sums = _Sums(
        [f"layer {layer} head {head}" for layer in layers for head in range(config.num_heads)]
    )
    for source, read in sentences:
        keeper = Keeper(("weights",), sites)
        memory_1SD = model.encode(torch.tensor([list(source)]), probe=keeper)
        if part == "decoder":
            model.decode(torch.tensor([list(read)]), memory_1SD, probe=keeper)
        weights_XLM = torch.cat([keeper.found[f"{site}.weights"][0] for site in sites])
        words = torch.tensor(list(source if part == "encoder" else read))
        sums.add(weights_XLM, embedding(words), is_causal=is_causal)
    return sums.finish()


@torch.inference_mode()
def look_at_inputs(
    model: EncoderDecoder, sentences: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> OwnWeight:
    """Look at attention in which the encoder's inputs, with positions, are queries and keys."""
    sums = _Sums(["without projections"])
    for source, _ in sentences:
        keeper = Keeper(("input",), ("encoder.0.self",))
        words = torch.tensor([list(source)])
        model.encode(words, probe=keeper)
        steps = attend_with_embeddings(keeper.found["encoder.0.self.input"][0])
        embeddings_LD = model.embedding_of("source")(words[0])
        sums.add(steps.weights[None], embeddings_LD, is_causal=False)
    return sums.finish()[0]
