"""``encoder-layer``: one encoder layer of width 4 with all its arithmetic.

Numbers are ours, small and whole; the steps are those of the notes.

Source:
    Notes "Transformers", sections 3.3 to 3.7, equations 7 to 17.
"""

from __future__ import annotations

from pellucid.by_hand.layer import (
    FeedForward,
    Norm,
    add_step,
    feed_forward_steps,
    head_part,
    joined_steps,
    norm_steps,
)
from pellucid.by_hand.sheet import Example, Part, make_step, matrix, table

LAYER_INPUT = ((1, 0, 2, 0), (0, 1, 0, 1), (1, 1, 0, 2))
LAYER_HEADS = (
    (
        ((1, 0), (0, 1), (1, 0), (0, 1)),
        ((0, 1), (1, 0), (0, 1), (1, 0)),
        ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, -1)),
    ),
    (
        ((0, 1), (1, 0), (0, -1), (1, 0)),
        ((1, 0), (0, 1), (0, 0), (1, -1)),
        ((0, 1, 0), (1, 0, 1), (0, 2, 0), (0, 0, 1)),
    ),
)
"""W^q, W^k (4 × 2) and W^v (4 × 3) of two heads."""

LAYER_OUTPUT = (
    (1, 0, 0, 0),
    (0, 1, 0, 0),
    (0, 0, 1, 0),
    (0, 0, 0, 1),
    (1, 0, -1, 0),
    (0, 1, 0, -1),
)
LAYER_FEED_FORWARD = (
    ((1, 0, 0, -1, 1), (0, 1, 0, 1, -1), (0, 0, 1, 0, 1), (-1, 0, 0, 1, 0)),
    (0, 0.5, 0, -0.5, 0),
    ((1, 0, 0, 0), (0, 1, 0, 1), (0, 0, 1, 0), (1, 0, 0, 1), (0, -1, 1, 0)),
    (0.1, 0, 0, -0.1),
)
"""W₁ (4 × 5), b₁, W₂ (5 × 4) and b₂."""

_WORDS = ("Pizza", "is", "awesome")


def encoder_layer() -> Example:
    """Work out two heads, W⁰, add and norm, the feed-forward network, and add and norm."""
    x_LD = matrix(LAYER_INPUT)
    heads = [
        head_part(
            f"Head {end}: its own queries, keys and values",
            note,
            _WORDS,
            x_LD,
            weights,
            end,
        )
        for weights, end, note in zip(LAYER_HEADS, "₁₂", _HEAD_NOTES, strict=True)
    ]
    attentions = [part.attention for part in heads if part.attention is not None]
    joined, output_LD = joined_steps(_WORDS, attentions, matrix(LAYER_OUTPUT))
    added, total_LD = add_step(_WORDS, x_LD, output_LD, "x + output")
    normed, middle_LD = norm_steps(_WORDS, total_LD, Norm())
    inner, inner_bias, outer, outer_bias = map(matrix, LAYER_FEED_FORWARD)
    network, change_LD = feed_forward_steps(
        _WORDS, middle_LD, FeedForward(inner, outer, inner_bias, outer_bias)
    )
    added_again, second_LD = add_step(_WORDS, middle_LD, change_LD, "norm + feed-forward")
    normed_again, _ = norm_steps(_WORDS, second_LD, Norm())
    words = table(_WORDS, x_LD, "x")
    return Example(
        name="encoder-layer",
        title="One encoder layer, d = 4, with two heads",
        text='Notes "Transformers", sections 3.3 to 3.7',
        note="The notes give the equations of a layer and no numbers. All numbers here are ours. "
        "The sizes differ on purpose: d = 4, d_q = d_k = 2, d_v = 3, and 5 inner features. "
        "--row N writes out every number of one word.",
        parts=(
            Part("The input", _INPUT_NOTE, (make_step("x", "", words, is_given=True),)),
            *heads,
            Part("The heads joined: Concat(h₁, h₂)·W⁰", _JOINED_NOTE, joined),
            Part("Add and norm", _NORM_NOTE, (added, *normed), corrections=(_EQUATION_11,)),
            Part("Feed-forward network", _NETWORK_NOTE, network),
            Part(
                "Add and norm again: the output of the layer",
                _END_NOTE,
                (added_again, *normed_again),
            ),
        ),
    )


_INPUT_NOTE = (
    "One row a word: its embedding with its position already added. (The example positions shows "
    "how.) A layer takes n rows of width d and gives n rows of width d."
)
_HEAD_NOTES = (
    "A head has matrices that no other head has. With them each word gets a query, a key and a "
    "value. The values may be wider than the keys, as here.",
    "The same words with other matrices. The second head compares other features, so its weights "
    "are others. Both heads can be computed at the same time.",
)
_JOINED_NOTE = (
    "Side by side the two contexts are 2 · 3 = 6 wide. W⁰ is (h·d_v) × d, here 6 × 4, and brings "
    "them back to the width of the input. h·d_v need not be d."
)
_NORM_NOTE = (
    "The input is added to what the sub-layer made of it (the residual connection), so nothing "
    "is lost. Then each row is shifted to mean 0 and stretched to variance 1, by itself: a word's "
    "norm does not depend on other words."
)
_EQUATION_11 = (
    "Equation 11, used in both heads, writes the sum of the softmax from k = 1 and leaves its end "
    "out: from k = 1 to n."
)
_NETWORK_NOTE = (
    "Position-wise: each row goes through the same two matrices by itself. Words met in the "
    "attention; here each is worked on separately."
)
_END_NOTE = (
    "The second residual connection adds the network's input. These rows are the input of the "
    "next layer, or, after the last layer, the keys and values of every decoder layer."
)
