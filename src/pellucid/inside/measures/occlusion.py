r"""Occlusion: take a source word away, and score each target token again.

$$\Delta_{tj} = \log p(y_t \mid x, y_{<t}) - \log p(y_t \mid x \setminus x_j, y_{<t})$$

Above 0, the word makes the token likelier; below 0, the token is likelier without it. This needs
no theory of the model, only two runs. But the model may never have seen a sentence that lacks a
word in this way, and of two words that say the same, each can be taken away without effect.

Source:
    Zeiler and Fergus 2014, "Visualizing and Understanding Convolutional Networks", section 2;
    Li et al. 2016, "Understanding Neural Networks through Representation Erasure", section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from pellucid.data import make_source_batch
from pellucid.errors import InputError, suggestion
from pellucid.inside.changes.change import cut_source_word
from pellucid.inside.measures.maps import Map, make_map, source_words
from pellucid.inside.pair import PairData

How = Literal["remove", "unknown", "cut"]
HOWS = ("remove", "unknown", "cut")
MOST_LOGITS_AT_ONCE = 1 << 25


@torch.inference_mode()
def occlusion(
    pair: PairData, *, how: How = "remove", words: Sequence[Sequence[int]] | None = None
) -> Map:
    r"""Compute the difference that each source word makes to each target log-probability.

    Args:
        pair: the sentence.
        how: ``remove`` the word's tokens, so that later ones move up; put the ``unknown`` token in
            their place; or ``cut`` every edge to them, so that no position attends to them.
        words: the tokens of each word; by default those of `source_words`.

    Returns:
        A signed map in nats, decoder rows by words.

    Raises:
        InputError: the way does not exist, or a word is the whole source.
    """
    if how not in HOWS:
        raise InputError(
            f"The way to take a word away must be one of {', '.join(HOWS)}, but is {how!r}. "
            f"{suggestion(how, HOWS)}"
        )
    words = source_words(pair) if words is None else words
    # In one run; each word then takes one more.
    before_T = pair.log_probabilities()
    if how == "cut":
        # One run for each word, since a probe changes all rows of a batch alike.
        after_XT = torch.stack(
            [pair.log_probabilities(probe=cut_source_word(word)) for word in words]
        )
    else:
        put = None if how == "remove" else pair.tokenizer.config.unk_id
        after_XT = log_probabilities_of(pair, [_without(pair, word, put) for word in words])
    return make_map(
        pair,
        "occlusion",
        "Li et al. 2016, section 3",
        (before_T - after_XT).T.numpy(force=True),
        part="decoder",
        kind="whole",
        is_signed=True,
        note=f"words {_VERBS[how]}",
        words=words,
    )


_VERBS = {"remove": "removed", "unknown": "unknown", "cut": "cut off"}


def _without(pair: PairData, word: Sequence[int], put: int | None) -> list[int]:
    """Return the source without a word, or with an id in place of each of its tokens."""
    ids = [
        put if place in word else id_
        for place, id_ in enumerate(pair.source_ids)
        if put is not None or place not in word
    ]
    return [id_ for id_ in ids if id_ is not None]


@torch.inference_mode()
def log_probabilities_of(pair: PairData, sources: Sequence[Sequence[int]]) -> Tensor:
    """Score the pair's target after each of some other sources: ``logs_BT``.

    Raises:
        InputError: a source is empty.
    """
    if not all(sources):
        raise InputError(
            "A source must keep a token when words are taken away, but one is empty. Put the "
            "unknown token in their place, or cut the edges to them."
        )
    num_rows = len(pair.target_ids)
    target_T1 = pair.to_tensor(pair.target_ids)[:, None]
    numbers_each = num_rows * pair.model.config.target_vocabulary_size
    # Logits are the largest result: sources times rows times the vocabulary.
    size = max(1, MOST_LOGITS_AT_ONCE // numbers_each)
    found = []
    for start in range(0, len(sources), size):
        batch = make_source_batch(
            [list(source) for source in sources[start : start + size]],
            pad_id=pair.tokenizer.config.pad_id,
        )
        source_BS, mask_BS = map(pair.to_tensor, batch)
        read_BT = pair.to_tensor([pair.read_ids]).expand(len(source_BS), -1)
        logs_BTV = pair.model(source_BS, read_BT, mask_BS).log_softmax(dim=-1)
        found.append(logs_BTV.gather(2, target_T1.expand(len(source_BS), -1, -1))[:, :, 0])
    return torch.cat(found)
