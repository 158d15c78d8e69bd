"""The structures that C reads, field by field as its headers have them.

Below are those of the engine, as in model.h and search.h. Fields that are not given are 0.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

DONE, NO_MEMORY, STOPPED, WRONG = range(4)
"""What a call returns, as in model.h."""

TurnFunction = ctypes.CFUNCTYPE(None)
"""The function that a job calls now and then, in the thread that called C."""

_TYPES: dict[str, Any] = {
    "pointer": ctypes.c_void_p,
    "integer": ctypes.c_int64,
    "number": ctypes.c_double,
    "float": ctypes.c_float,
}


def array_address(array: np.ndarray) -> int:
    """Give the address of an array's numbers; it does not keep the array alive."""
    # C takes numbers to be neighbors; a view with steps would be read wrongly.
    assert array.flags.c_contiguous
    return int(array.__array_interface__["data"][0])  # faster than array.ctypes.data


def flatten(lists: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Join lists of ids; return the ids, and the start of each list with the end of the last."""
    # C reads ids in 32 bits, and places in 64.
    ids = np.array([one for ids in lists for one in ids], np.int32)
    starts = np.concatenate([[0], np.cumsum([len(ids) for ids in lists])]).astype(np.int64)
    return ids, starts


def fields(layout: str, **types: Any) -> Sequence[tuple[str, Any]]:
    """Read lines of a type and the names of its fields, as in C.

    Args:
        layout: the lines.
        types: those of this structure only, by the names that the lines use.
    """
    known = _TYPES | types
    lines = (line.split() for line in layout.strip().splitlines())
    return [(name, known[kind]) for kind, *names in lines for name in names]


class Linear(ctypes.Structure):
    """``linear``: a product with packed weights."""

    _fields_ = fields(
        """
        integer inputs outputs precision offset
        pointer weights bias scale sums
        """
    )


class NormStruct(ctypes.Structure):
    """``norm``: the gains and biases of a layer norm."""

    _fields_ = fields("pointer gain bias")


class Layer(ctypes.Structure):
    """``layer`` of the encoder or the decoder."""

    _fields_ = fields(
        """
        norms norms
        linear project_in self_out cross_query cross_key_value cross_out inner outer
        """,
        norms=NormStruct * 3,
        linear=Linear,
    )


class Embedding(ctypes.Structure):
    """``embedding``: the vectors of tokens and positions."""

    _fields_ = fields(
        """
        pointer rows bytes scale positions
        norm norm
        integer size num_positions
        """,
        norm=NormStruct,
    )


class Model(ctypes.Structure):
    """``model``: sizes, switches and all weights."""

    _fields_ = fields(
        """
        integer d_model d_ff num_heads d_key d_value num_encoder_layers num_decoder_layers
        integer norm_place activation has_residual has_projections has_units
        number epsilon embedding_factor query_factor
        pointer encoder decoder
        norm encoder_norm decoder_norm
        linear output
        embedding source target
        """,
        norm=NormStruct,
        linear=Linear,
        embedding=Embedding,
    )


class JobStruct(ctypes.Structure):
    """``job``: requests, options, and where the results go."""

    _fields_ = fields(
        """
        pointer model
        integer num_requests
        pointer source_ids source_starts given limits min_lengths prefix_ids prefix_starts never
        integer num_never start_id eos_id width num_best stopping
        pointer penalties uniforms
        number temperature top_p epsilon
        integer top_k
        integer slots threads shares_products longest_source longest_limit
        pointer stop turn counts lengths finished scores result_starts ids logs
        """
    )


class Encoding(ctypes.Structure):
    """``encoding``: sentences to encode, and where their keys and values go."""

    _fields_ = fields(
        """
        pointer model
        integer count threads
        pointer ids starts given memories offsets
        """
    )
