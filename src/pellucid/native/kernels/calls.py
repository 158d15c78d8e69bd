"""The arguments of the compiled kernels, field by field as their C structures have them."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import NamedTuple

from torch import Tensor

from pellucid.native.structures import fields


class DropoutBytes(NamedTuple):
    """The random bytes of a dropout mask, one per number.

    Attributes:
        random_bytes: numbers whose byte is below the threshold are dropped.
        threshold: from 0 to 255.
        factor: multiplies the numbers that stay.
    """

    random_bytes: Tensor
    threshold: int
    factor: float


class DropoutMask(ctypes.Structure):
    """``dropout_mask`` of vectors.h; empty, nothing is dropped."""

    _fields_ = fields("""
        pointer bytes
        integer threshold
        float factor
    """)


# Fields that are not given are 0, and without bytes C drops nothing.
_NOTHING_DROPPED = DropoutMask()

# Up to three layers share an input: those of query, key and value.
_fields = partial(fields, dropout_mask=DropoutMask, pointers=ctypes.c_void_p * 3)


def tensor_address(tensor: Tensor | None) -> int | None:
    """Give a tensor's address; a call does not keep the tensor alive."""
    return None if tensor is None else tensor.data_ptr()


def mask_of(dropout: DropoutBytes | None) -> DropoutMask:
    """Describe a dropout mask to a kernel."""
    if dropout is None:
        return _NOTHING_DROPPED
    return DropoutMask(dropout.random_bytes.data_ptr(), dropout.threshold, dropout.factor)


class LinearCall(ctypes.Structure):
    """``linear_call`` of rows.c."""

    _fields_ = _fields("""
        integer rows in_features out_features x_stride
        pointer x packed bias
        integer has_relu
        dropout_mask dropout
        pointer gate
        float gate_factor
        pointer add gain shift
        float epsilon
        pointer normal inverse out
    """)


class NormCall(ctypes.Structure):
    """``norm_call`` of rows.c."""

    _fields_ = _fields("""
        integer rows width
        pointer grad normal inverse gain add
        dropout_mask dropout
        pointer grad_input grad_dropped grad_gain grad_shift
    """)


class WeightGradientCall(ctypes.Structure):
    """``weight_gradient_call`` of rows.c."""

    _fields_ = _fields("""
        integer rows in_features out_features parts x_stride grad_stride
        pointer x grad
        pointers weight bias
    """)


class AttentionCall(ctypes.Structure):
    """``attention_call`` of attention.c."""

    _fields_ = _fields("""
        integer sentences heads key_width value_width
        pointer start key_start
        integer query_stride key_stride value_stride
        pointer query key value
        float scale
        integer is_causal context_stride
        pointer context grad_context grad_query grad_key grad_value
    """)


class LossCall(ctypes.Structure):
    """``loss_call`` of loss.c."""

    _fields_ = _fields("""
        integer rows width vocabulary
        pointer states table packed_transposed packed table_sum target
        float smoothing factor half_alpha
        integer chunk_rows
        pointer chunk scaled_states nll grad_states grad_table
    """)


class OrthogonalCall(ctypes.Structure):
    """``orthogonal_call`` of orthogonal.c."""

    _fields_ = _fields("""
        integer count rows columns
        pointer matrices
        float a b c
    """)


class EmbeddingCall(ctypes.Structure):
    """``embedding_call`` of embedding.c."""

    _fields_ = _fields("""
        integer rows width
        pointer id position table
        float scale
        pointer token_factor positions
        dropout_mask dropout
        pointer out grad grad_table grad_positions
    """)
