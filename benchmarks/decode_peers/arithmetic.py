"""Arithmetic that decoding needs in any system: the matrix products, and the weights to read."""

from __future__ import annotations

from typing import Protocol

BYTES = {"float32": 4, "bfloat16": 2, "int8": 1}
"""Bytes of a stored weight."""


class Sizes(Protocol):
    """What of a model's configuration decides the arithmetic."""

    d_model: int
    d_ff: int
    num_encoder_layers: int
    num_decoder_layers: int
    target_vocabulary_size: int


def operations_per_token(sizes: Sizes, source: int, target: int, beam: int) -> float:
    r"""Count the operations of the products for each target token of one sentence.

    A weight costs two operations for each position that it is multiplied with; scores and contexts
    cost two operations per unit of d_model for each pair of positions. The first step of a beam
    has one hypothesis, every other step has all.

    Args:
        sizes: of the model.
        source: tokens of the source.
        target: tokens of the translation.
        beam: number of hypotheses.
    """
    encoder, decoder = sizes.num_encoder_layers, sizes.num_decoder_layers
    rows = 1 + beam * (target - 1)
    # The row of step t looks at t + 1 target positions, itself included.
    pairs = 1 + beam * (target * (target + 1) // 2 - 1) + rows * source
    once = source * (_encoder_weights(sizes) + decoder * 2 * sizes.d_model**2)
    products = once + rows * _step_weights(sizes)
    attention = 2 * sizes.d_model * (encoder * source * source + decoder * pairs)
    return 2 * (products + attention) / target


def bytes_per_token(sizes: Sizes, target: int, precision: str) -> float:
    """Count the bytes of weights that one sentence at a time reads for each target token.

    Every step reads the weights of the decoder and the output, whatever the beam; those of the
    encoder, and of the cross-attention's keys and values, are read once for a sentence.

    Args:
        sizes: of the model.
        target: tokens of the translation.
        precision: of the weights.
    """
    once = _encoder_weights(sizes) + sizes.num_decoder_layers * 2 * sizes.d_model**2
    return BYTES[precision] * (once / target + _step_weights(sizes))


def _encoder_weights(sizes: Sizes) -> int:
    return sizes.num_encoder_layers * (4 * sizes.d_model**2 + 2 * sizes.d_model * sizes.d_ff)


def _step_weights(sizes: Sizes) -> int:
    layer = 6 * sizes.d_model**2 + 2 * sizes.d_model * sizes.d_ff
    return sizes.num_decoder_layers * layer + sizes.d_model * sizes.target_vocabulary_size
