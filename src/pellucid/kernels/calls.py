"""The arguments of the compiled kernels, field by field as their C structures have them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

__all__ = [
    "AttentionCall",
    "Dropping",
    "EmbeddingCall",
    "LinearCall",
    "LossCall",
    "NormCall",
    "OrthogonalCall",
    "OuterCall",
]

_POINTER, _INTEGER, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float


class Dropping(ctypes.Structure):
    """What dropout drew for a matrix."""

    _fields_ = (("drawn", _POINTER), ("threshold", _INTEGER), ("factor", _FLOAT))


def _fields(**names: Any) -> Sequence[tuple[str, Any]]:
    """Fields of one type after the other: ``integers="rows width"``; a digit tells them apart."""
    found = []
    for kind, listed in names.items():
        kinds = {"pointers": _POINTER, "integers": _INTEGER, "floats": _FLOAT, "drops": Dropping}
        found += [(name, kinds[kind.rstrip("0123456789")]) for name in listed.split()]
    return found


class LinearCall(ctypes.Structure):
    """``linear_call`` of rows.c."""

    _fields_ = _fields(
        integers="rows inner outer x_length",
        pointers="x packed bias",
        integers2="has_relu",
        drops="dropout",
        pointers2="gate",
        floats="gate_factor",
        pointers3="add gain shift",
        floats2="epsilon",
        pointers4="normal inverse out",
    )


class NormCall(ctypes.Structure):
    """``norm_call`` of rows.c."""

    _fields_ = _fields(
        integers="rows width",
        pointers="grad normal inverse gain add",
        drops="dropout",
        pointers2="entering dropped grad_gain grad_shift",
    )


class OuterCall(ctypes.Structure):
    """``outer_call`` of rows.c."""

    _fields_ = (
        *_fields(integers="rows inner outer parts x_length grad_length", pointers="x grad"),
        ("weight", _POINTER * 3),
        ("bias", _POINTER * 3),
    )


class AttentionCall(ctypes.Structure):
    """``attention_call`` of attention.c."""

    _fields_ = _fields(
        integers="sentences heads key_width value_width",
        pointers="start memory_start",
        integers2="query_length key_length value_length",
        pointers2="query key value",
        floats="factor",
        integers3="is_causal context_length",
        pointers3="context grad_context grad_query grad_key grad_value",
    )


class LossCall(ctypes.Structure):
    """``loss_call`` of loss.c."""

    _fields_ = _fields(
        integers="rows width vocabulary",
        pointers="states table packed_turned packed table_sum target",
        floats="smoothing factor agreement",
        integers2="chunk_rows",
        pointers2="chunk scaled plain grad_states grad_table",
    )


class OrthogonalCall(ctypes.Structure):
    """``orthogonal_call`` of orthogonal.c."""

    _fields_ = _fields(integers="count rows columns", pointers="matrices", floats="a b c")


class EmbeddingCall(ctypes.Structure):
    """``embedding_call`` of embedding.c."""

    _fields_ = _fields(
        integers="rows width",
        pointers="id position table",
        floats="scale",
        pointers2="token_factor positions",
        drops="dropout",
        pointers3="out grad grad_table grad_positions",
    )
