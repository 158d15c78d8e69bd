"""``heads``: one head against two, and what joining them means.

Numbers are ours: each word has a feature for its class, so that a head can be read.

Source:
    Notes "Transformers", section 3.4, equations 12 to 14.
"""

from __future__ import annotations

from dataclasses import replace

from pellucid.by_hand.matrices import packaged_example
from pellucid.by_hand.sheet import (
    AttentionByHand,
    NamedMatrix,
    Part,
    WorkedExample,
    make_step,
    named_matrix,
    write_number,
)
from pellucid.by_hand.written_stages import make_product_step


def heads() -> WorkedExample:
    """Work out two heads over the same words, and compare them with one."""
    example = packaged_example("heads")
    attentions = [part.attention for part in example.parts if part.attention is not None]
    more = _shares_part(example.parts[-1], attentions), _one_head_part(*attentions)
    return replace(example, parts=(*example.parts, *more))


def _shares_part(joined: Part, attentions: list[AttentionByHand]) -> Part:
    """Write the output as a sum of what each head gives."""
    output_XD, output_LD = (step.tables[0].values_LX for step in joined.steps[1:])
    names = attentions[0].query_names
    shares = [
        make_product_step(
            f"share of head {end}", f"h{end} · its rows of W⁰", names, context_LE, rows_XD, "o"
        )
        for attention, rows_XD, end in zip(attentions, output_XD.chunk(2), "₁₂", strict=True)
        if (context_LE := attention.context_LE) is not None
    ]
    total_LD = shares[0].tables[0].values_LX + shares[1].tables[0].values_LX
    apart = write_number(float((total_LD - output_LD).abs().max()))
    total = make_step(
        "sum",
        "share of head ₁ + share of head ₂",
        named_matrix(names, total_LD, "o"),
        note=f"Largest difference from the output of the page before: {apart}.",
    )
    return Part("The same as a sum of shares", _SHARES_NOTE, (*shares, total))


def _one_head_part(first: AttentionByHand, second: AttentionByHand) -> Part:
    # One head with both pairs of matrices side by side adds the scores before the softmax.
    scores_LM = first.scores_LM + second.scores_LM
    names = first.query_names
    scores = NamedMatrix(names, names, scores_LM)
    title = "one head of d_k = 4 with the same matrices side by side"
    one = NamedMatrix(names, names, (scores_LM / 2).softmax(dim=-1), title)
    average_LM = (first.weights_LM + second.weights_LM) / 2
    average = NamedMatrix(names, names, average_LM, "the average of the two heads")
    steps = (
        make_step("scores", "scores of head ₁ + scores of head ₂", scores),
        make_step("weights", "softmax of the scores ÷ √4", one),
        make_step("average", "of both heads' weights", average),
    )
    return Part("Why not one wide head?", _ONE_NOTE, steps)


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
