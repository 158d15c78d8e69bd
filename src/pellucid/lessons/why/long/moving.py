"""Attention maps of one sentence and of the same sentence with a word before it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid.inside.pair import Keeper
from pellucid.lessons.why.packaged import load_packaged, write_examples_of
from pellucid.lessons.why.tiny.learn import Tiny
from pellucid.model import EncoderDecoder


def distance_of_maps(first_HLM: Tensor, second_HLM: Tensor) -> tuple[float, float]:
    """Compare the weights of a sentence with those after one word was put before it.

    Both maps are cut to the tokens that they share, and rows sum to 1 again. The distance is half
    the sum of absolute differences of a row: 0 if they are equal, 1 if they share nothing.

    Args:
        first_HLM: the sentence's weights.
        second_HLM: with the new word, one longer on both axes.

    Returns:
        The mean distance of rows that belong to the same tokens, and of rows that stand at the
        same places (whose tokens are one apart).
    """
    length = first_HLM.shape[-1]
    by_word = _total_variation(first_HLM, second_HLM[:, 1:, 1:])
    by_place = _total_variation(first_HLM, second_HLM[:, :length, :length])
    return by_word, by_place


def movement_of_tiny(tiny: Tiny, sentences: Sequence[str], word: str) -> tuple[float, float]:
    """Average the distances in a tiny model's encoder, over sentences, layers and heads."""
    pairs = [(tiny.source.encode(one), tiny.source.encode(f"{word} {one}")) for one in sentences]
    return _movement(tiny.model, pairs)


def movement_of_packaged(count: int, *, seed: int) -> dict[str, object]:
    """Average the distances in the packaged model, over new sentences of the same kind.

    Returns:
        ``sentences`` that were compared, ``by_word``, ``by_place``, and the distance ``by_word``
        of ``the bank told the man he was bankrupt``.
    """
    bundle = load_packaged()
    encode = bundle.tokenizer.encode_source
    written = [one.source for one in write_examples_of(count, seed=seed)]
    told = [one for one in written if one.startswith("the ") and " told " in one]
    pairs = [(encode(one), encode(f"then {one}")) for one in told]
    pairs = [pair for pair in pairs if pair[1][1:] == pair[0]]
    bank = "the bank told the man he was bankrupt"
    by_word, by_place = _movement(bundle.model, pairs)
    own, _ = _movement(bundle.model, [(encode(bank), encode(f"then {bank}"))])
    return {"sentences": len(pairs), "by_word": by_word, "by_place": by_place, "bank": own}


@torch.no_grad()
def _movement(
    model: EncoderDecoder, pairs: Sequence[tuple[list[int], list[int]]]
) -> tuple[float, float]:
    found = []
    for pair in pairs:
        keepers = []
        for ids in pair:
            keeper = Keeper(("weights",))
            model.encode(torch.tensor([ids]), probe=keeper)
            keepers.append(keeper.found)
        first, second = keepers
        found += [distance_of_maps(first[site][0], second[site][0]) for site in first]
    by_word, by_place = zip(*found, strict=True)
    return sum(by_word) / len(found), sum(by_place) / len(found)


def _total_variation(first_HLM: Tensor, second_HLM: Tensor) -> float:
    second_HLM = second_HLM / second_HLM.sum(dim=-1, keepdim=True)
    return float((first_HLM - second_HLM).abs().sum(dim=-1).mean()) / 2
