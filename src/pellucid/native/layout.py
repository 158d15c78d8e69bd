"""The structures that the engine in C reads, field by field as model.h and search.h have them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

_TYPES: dict[str, Any] = {
    "pointer": ctypes.c_void_p,
    "integer": ctypes.c_int64,
    "number": ctypes.c_double,
}


def address_of(array: np.ndarray | None) -> int | None:
    """Give the address of an array's numbers; it does not keep the array alive."""
    if array is None:
        return None
    assert array.flags.c_contiguous
    return int(array.__array_interface__["data"][0])  # faster than array.ctypes.data


def _fields(layout: str) -> Sequence[tuple[str, Any]]:
    """Read lines of a type and the names of its fields, as in C."""
    return list(_read(layout))


def _read(layout: str) -> Iterator[tuple[str, Any]]:
    for line in layout.strip().splitlines():
        kind, *names = line.split()
        for name in names:
            yield name, _TYPES[kind]


class Linear(ctypes.Structure):
    """``linear``: a product with packed weights."""

    _fields_ = _fields(
        """
        integer inputs outputs precision offset
        pointer weights bias scale sums
        """
    )


class Norm(ctypes.Structure):
    """``norm``: the gains and biases of a layer norm."""

    _fields_ = _fields("pointer gain bias")


class Layer(ctypes.Structure):
    """``layer`` of the encoder or the decoder."""

    _fields_ = (
        ("norms", Norm * 3),
        *(
            (name, Linear)
            for name in (
                "project_in",
                "self_out",
                "cross_query",
                "cross_key_value",
                "cross_out",
                "inner",
                "outer",
            )
        ),
    )


class Embedding(ctypes.Structure):
    """``embedding``: the vectors of tokens and positions."""

    _fields_ = _fields(
        """
        pointer rows bytes scale positions
        integer size num_positions
        """
    )


class Model(ctypes.Structure):
    """``model``: sizes, switches and all weights."""

    _fields_ = (
        *_fields(
            """
            integer d_model d_ff num_heads d_key d_value num_encoder_layers num_decoder_layers
            integer norm_place activation has_residual has_projections
            number epsilon embedding_factor query_factor
            pointer encoder decoder
            """
        ),
        ("encoder_norm", Norm),
        ("decoder_norm", Norm),
        ("output", Linear),
        ("source", Embedding),
        ("target", Embedding),
    )


class Job(ctypes.Structure):
    """``job``: requests, options, and where the results go."""

    _fields_ = _fields(
        """
        pointer model
        integer num_requests
        pointer source_ids source_starts limits min_lengths prefix_ids prefix_starts never
        integer num_never start_id eos_id width num_best stopping
        pointer penalties uniforms
        number temperature top_p epsilon
        integer top_k
        integer slots threads shares_products longest_source longest_limit
        pointer stop counts lengths finished scores result_starts ids logs
        """
    )


class Encoding(ctypes.Structure):
    """``encoding``: sentences to encode, and where their keys and values go."""

    _fields_ = _fields(
        """
        pointer model
        integer count threads
        pointer ids starts memories offsets
        """
    )
