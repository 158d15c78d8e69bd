"""``lets-go``: two words, random weights, and three steps.

The notes print no numbers, but they give the steps and describe the outcome. Embeddings are ours;
the weights are drawn, as those of a model before training.

Source:
    Notes "Self-Attention for Transformer Neural Networks".
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid.attention.positions import sinusoidal_positions
from pellucid.attention.stages import scale, score, weigh
from pellucid.by_hand.example_numbers import read_matrix
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Part,
    WorkedExample,
    attend_by_hand,
    make_given,
    make_step,
    make_weight_step,
    named_matrix,
    write_example,
    write_part,
)
from pellucid.by_hand.written_stages import Product, stage_steps
from pellucid.machine.randomness import generator

NUM_BEGINNINGS = 1000

_WORDS = ("Let's", "go")
_WIDTH = 4


def lets_go() -> WorkedExample:
    """Work out the three steps of the notes, and test their claims about the outcome."""
    embeddings_LD = read_matrix("lets-go.embeddings")
    positions_LD = sinusoidal_positions(2, _WIDTH, dtype=embeddings_LD.dtype)
    x_LD = embeddings_LD + positions_LD
    weights = [_draw(1, name)[0] for name in ("query", "key", "value")]
    query_LK, key_MK, value_ME = (x_LD @ weight for weight in weights)
    attention = attend_by_hand(query_LK, key_MK, value_ME, query_names=_WORDS)
    return write_example(
        "lets-go",
        write_part(
            "lets-go.positions",
            make_given("embedding", named_matrix(_WORDS, embeddings_LD, "e"), "ours"),
            make_step("position", "sines, cosines", named_matrix(_WORDS, positions_LD, "p")),
            make_step("x", "their sum", named_matrix(_WORDS, x_LD, "x")),
        ),
        _weights_part(weights),
        _attention_part(attention, x_LD, weights),
        _table_part(weights[1]),
        _similarity_part(x_LD, float(attention.weights_LM[0, 0])),
    )


def share_of_own_weight_first(x_LD: Tensor) -> float:
    """Find the share of random beginnings in which the first word attends most to itself."""
    # A thousand random beginnings at once.
    query_NDK, key_NDK = (_draw(NUM_BEGINNINGS, name) for name in ("query", "key"))
    weights_NLM = weigh(scale(score(x_LD @ query_NDK, x_LD @ key_NDK), _WIDTH))
    return float((weights_NLM[:, 0].argmax(dim=-1) == 0).double().mean())


def _draw(count: int, name: str) -> Tensor:
    """Draw matrices of tenths; the example works out the first."""
    # Tenths, so that products can be followed by hand.
    tenths = generator(1, "attention by hand", name).integers(-9, 10, (count, _WIDTH, _WIDTH))
    return torch.from_numpy(tenths).double() / 10


def _weights_part(weights: list[Tensor]) -> Part:
    names = ("W^q", "W^k", "W^v")
    steps = [
        make_weight_step(name, weight, "drawn") for name, weight in zip(names, weights, strict=True)
    ]
    return write_part("lets-go.weights", *steps)


def _attention_part(attention: AttentionByHand, x_LD: Tensor, weights: list[Tensor]) -> Part:
    return write_part(
        "lets-go.attention",
        *stage_steps(
            attention,
            products={
                name: Product(_WORDS, x_LD, weight)
                for name, weight in zip(("query", "key", "value"), weights, strict=True)
            },
            formulas={
                "query": "step 1: x · W^q",
                "key": "x · W^k",
                "value": "x · W^v",
                "scores": "step 2: dot product of query and key",
                "context": "step 3: the sum of the values, each times its weight",
            },
        ),
        attention=attention,
    )


def _table_part(key_DK: Tensor) -> Part:
    go_D = read_matrix("lets-go.embeddings")[1]
    positions_LD = sinusoidal_positions(8, _WIDTH, dtype=go_D.dtype)
    # Any places do, as long as they differ.
    places = (1, 3, 7)
    # One word at three places: three different keys.
    keys_LK = torch.stack([(go_D + positions_LD[place]) @ key_DK for place in places])
    keys = named_matrix([f"go ({place})" for place in places], keys_LK, "k")
    return write_part("lets-go.table", make_step("key", "of “go” by its position", keys))


def _similarity_part(x_LD: Tensor, own_weight: float) -> Part:
    unprojected = attend_by_hand(x_LD, x_LD, x_LD, query_names=_WORDS)
    share = share_of_own_weight_first(x_LD)
    beginnings = make_step(
        "other beginnings",
        f"{NUM_BEGINNINGS} draws of W^q and W^k",
        note="Similarity here means relevance, as the notes say themselves, and what is relevant "
        "is learned.",
        lines=[f"“Let's” attends to itself more than to “go” in {100 * share:.1f} % of them."],
    )
    return write_part(
        "lets-go.similarity",
        *stage_steps(unprojected),
        beginnings,
        attention=unprojected,
        own_weight=own_weight,
    )
