"""Arithmetic that a training step needs in any system: only the matrix products."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def products_per_target_token(
    size: Mapping[str, int], vocabulary: int, lengths: Iterable[tuple[int, int]]
) -> float:
    r"""Count the floating-point operations of training, per target token.

    A weight costs two operations for each token that it is multiplied with, and as many again for
    each of the two gradients. The scores of all heads, and the contexts, cost two operations per
    unit of d_model for each pair of positions:

    $$6 \sum_{\text{matrices}} |W| \, n_W + 12 \, d \sum_{\text{attention}} L M$$

    Embeddings are looked up; dropout, norms and the softmax do not count.

    Args:
        size: of the model, as `pellucid.config.NAMED_SIZES` has it.
        vocabulary: number of tokens that the output chooses from.
        lengths: tokens of source and target of every pair, without padding.
    """
    d_model, d_ff = size["d_model"], size["d_ff"]
    encoder, decoder = size["num_encoder_layers"], size["num_decoder_layers"]
    square, feed_forward = d_model * d_model, 2 * d_model * d_ff
    # Cross-attention makes its keys and values from the source, queries and outputs of the target.
    per_source = encoder * (4 * square + feed_forward) + decoder * 2 * square
    per_target = decoder * (6 * square + feed_forward) + d_model * vocabulary
    operations = tokens = 0
    for source, target in lengths:
        pairs = encoder * source * source + decoder * (target * target + source * target)
        operations += 6 * (per_source * source + per_target * target) + 12 * d_model * pairs
        tokens += target
    return operations / tokens
