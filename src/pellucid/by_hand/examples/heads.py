"""``heads``: one head against two, and what joining them means.

Numbers are ours: each word has a feature for its class, so that a head can be read.

Source:
    Notes "Transformers", section 3.4, equations 12 to 14.
"""

from __future__ import annotations

from pellucid.by_hand.layer import head_part, joined_steps
from pellucid.by_hand.sheet import Example, Part, Table, make_step, matrix, table, write_number
from pellucid.by_hand.sums import make_product_step
from pellucid.by_hand.texts import SHOW_ME_THE_MONEY_TOKENS

HEADS_INPUT = ((1, 0, 0, 0), (0, 1, 0, 1), (0, 0, 1, 0), (0, 0, 0, 1))
"""One row a word; features: verb, pronoun, article, thing or person."""

HEADS_WEIGHTS = (
    (
        ((4, 0), (0, 0), (0, 0), (0, 0)),
        ((0, 0), (0, 0), (0, 0), (1, 0)),
        ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 2, 0)),
    ),
    (
        ((0, 0), (0, 0), (0, 4), (0, 0)),
        ((0, 0), (0, -2), (0, 0), (0, 1)),
        ((0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 3)),
    ),
)
HEADS_OUTPUT = (
    (1, 0, 0, 0),
    (0, 1, 0, 0),
    (0, 0, 1, 0),
    (0, 0, 1, 1),
    (1, 0, 0, 0),
    (0, 1, 0, 1),
)

_WORDS = SHOW_ME_THE_MONEY_TOKENS


def heads() -> Example:
    """Work out two heads over the same words, and compare them with one."""
    x_LD = matrix(HEADS_INPUT)
    parts = [
        head_part(title, note, _WORDS, x_LD, weights, end)
        for weights, end, title, note in zip(
            HEADS_WEIGHTS,
            "₁₂",
            (
                "Head ₁: a verb looks for persons and things",
                "Head ₂: an article looks for its noun",
            ),
            _NOTES,
            strict=True,
        )
    ]
    features = ("verb", "pronoun", "article", "noun")
    words = Table(_WORDS, features, x_LD)
    return Example(
        name="heads",
        title="Two heads: two questions about one sentence",
        text='Notes "Transformers", section 3.4',
        note="The notes say that each head aims to learn its own linguistic feature, and give "
        "equations without numbers. All numbers here are ours. They are chosen, not learned, so "
        "that one can read what each head asks for.",
        parts=(
            Part("The words", _WORDS_NOTE, (make_step("x", "ours", words, is_given=True),)),
            *parts,
            *_joined_parts(parts),
            _one_head_part(parts),
        ),
    )


def _joined_parts(parts: list[Part]) -> tuple[Part, Part]:
    attentions = [part.attention for part in parts if part.attention is not None]
    output_XD = matrix(HEADS_OUTPUT)
    steps, output_LD = joined_steps(_WORDS, attentions, output_XD)
    shares = [
        make_product_step(
            f"share of head {end}",
            f"h{end} · its rows of W⁰",
            _WORDS,
            attention.context_LE,
            output_XD[3 * index : 3 * index + 3],
            "o",
        )
        for index, (attention, end) in enumerate(zip(attentions, "₁₂", strict=True))
        if attention.context_LE is not None
    ]
    total_LD = shares[0].tables[0].values_LX + shares[1].tables[0].values_LX
    apart = write_number(float((total_LD - output_LD).abs().max()))
    total = make_step(
        "sum",
        "share of head ₁ + share of head ₂",
        table(_WORDS, total_LD, "o"),
        note=f"Largest difference from the output of the page before: {apart}.",
    )
    return (
        Part("The heads joined: Concat(h₁, h₂)·W⁰", _JOINED_NOTE, steps),
        Part("The same as a sum of shares", _SHARES_NOTE, (*shares, total)),
    )


def _one_head_part(parts: list[Part]) -> Part:
    first, second = (part.attention for part in parts)
    assert first is not None
    assert second is not None
    # One head with both pairs of matrices side by side adds the scores before the softmax.
    scores_LM = first.scores_LM + second.scores_LM
    one_LM = (scores_LM / 2).softmax(dim=-1)
    average_LM = (first.weights_LM + second.weights_LM) / 2
    tables = (
        Table(_WORDS, _WORDS, one_LM, "one head of d_k = 4 with the same matrices side by side"),
        Table(_WORDS, _WORDS, average_LM, "the average of the two heads"),
    )
    return Part(
        "Why not one wide head?",
        _ONE_NOTE,
        (
            make_step(
                "scores", "scores of head ₁ + scores of head ₂", Table(_WORDS, _WORDS, scores_LM)
            ),
            make_step("weights", "softmax of the scores ÷ √4", tables[0]),
            make_step("average", "of both heads' weights", tables[1]),
        ),
    )


_WORDS_NOTE = (
    "Each word has a feature for its class; “me” is a pronoun and stands for a person, so it has "
    "two. In a trained model no feature has a name; here they do, so that the heads can be read."
)
_NOTES = (
    "W^q makes a query only of the verb feature, W^k makes a key only of the noun feature. So "
    "“show” finds “me” and “money”. A word without a query is indifferent: equal weights.",
    "Now the article asks, nouns answer (1), and a pronoun is pushed away (−2). So “the” finds "
    "“money” and not “me”. The first head could not ask this.",
)
_JOINED_NOTE = (
    "Each word now has two contexts, 3 wide. They stand side by side, 6 wide, and W⁰ "
    "(h·d_v × d, 6 × 4) mixes them into d = 4 again."
)
_SHARES_NOTE = (
    "The first three rows of W⁰ meet only the first head, the last three only the second. So the "
    "output is a sum with one share from each head, and a head can be cut out by leaving its "
    "share out."
)
_ONE_NOTE = (
    "A single head has one row of weights for each word, which sums to 1. It must divide "
    "what two heads give twice. Averaging the weights of heads, as pictures often do, shows a head "
    "that does not exist."
)
