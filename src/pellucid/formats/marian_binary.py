"""Marian's binary file of weights: arrays one after the other, some in int8 with a multiplier.

After the version, 1, and the number of arrays come four numbers of eight bytes for each: the length
of its name, its type, its number of axes, and its length in bytes. Then come all names, all axes,
zeros up to a multiple of 256, and the data.

Source:
    Marian's ``common/binary.cpp`` and ``tensors/cpu/expression_graph_packable.h``; Bergamot's fork
    numbers the type of int8 differently.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pellucid.errors import BundleError
from pellucid.files import read_bytes

_VERSION = b"\1" + bytes(7)
_PLAIN = {0x101: "<i1", 0x201: "<u1", 0x402: "<f2", 0x404: "<f4", 0x408: "<f8"}
"""Types of numbers, by Marian's codes."""

_INT8 = (0x4101, 0x10001)
"""Codes of int8 for every processor: of Bergamot's fork, and of Marian since version 1.10."""

MULTIPLIER = "_QuantMultA"
"""The end of the name of a number that says how far a product's input reaches. Rows are measured
when they are computed here, so it is not needed."""


def is_marian_binary(path: Path) -> bool:
    """Tell whether a file begins as Marian's binary files do."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(_VERSION)) == _VERSION
    except OSError:
        return False


def read_marian_binary(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file, those in int8 as float32.

    Raises:
        BundleError: it is damaged, or an array is packed for one kind of processor.
    """
    data = read_bytes(path)
    try:
        return _read(data, path)
    except BundleError:  # which is a ValueError, too
        raise
    # Lengths that lead out of the file, and bytes that are no text.
    except (struct.error, ValueError, OverflowError, MemoryError):
        raise BundleError(
            f"{path.name} must be a binary file of Marian, version 1, but is damaged or cut off "
            f"({path}). Copy it again."
        ) from None


def _read(data: bytes, path: Path) -> dict[str, NDArray[Any]]:
    version, count = struct.unpack_from("<QQ", data)
    if version != 1 or 32 * count > len(data):
        raise ValueError(version)
    headers = [struct.unpack_from("<QQQQ", data, 16 + 32 * place) for place in range(count)]
    at = 16 + 32 * count
    names = []
    for name_length, _, _, _ in headers:
        names.append(_cut(data, at, name_length).rstrip(b"\0").decode("utf-8"))
        at += name_length
    shapes = []
    for _, _, axes, _ in headers:
        shapes.append(struct.unpack_from(f"<{axes}i", data, at))
        at += 4 * axes
    (padding,) = struct.unpack_from("<Q", data, at)
    at += 8 + padding
    arrays = {}
    for name, shape, (_, code, _, length) in zip(names, shapes, headers, strict=True):
        arrays[name] = _to_array(_cut(data, at, length), name, shape, code, path)
        at += length
    return arrays


def _cut(data: bytes, start: int, length: int) -> bytes:
    if start + length > len(data):
        raise ValueError(length)
    return data[start : start + length]


def _to_array(
    data: bytes, name: str, shape: tuple[int, ...], code: int, path: Path
) -> NDArray[Any]:
    if min(shape, default=1) < 1:
        raise ValueError(shape)
    size = math.prod(shape)
    if code in _PLAIN:
        # A copy, because PyTorch wants arrays that could be written to.
        return np.frombuffer(data, _PLAIN[code], size).reshape(shape).copy()
    if code not in _INT8:
        raise BundleError(
            f"Arrays must be float32, or int8 for every processor (intgemm8), but {name} is packed "
            f"in another way (type 0x{code:x}, {path}). Take the model's .npz, or one that "
            "marian-conv wrote with --gemm-type intgemm8."
        )
    values = np.frombuffer(data, np.int8, size)
    (multiplier,) = struct.unpack_from("<f", data, size)
    if not 0 < multiplier < math.inf:
        raise ValueError(multiplier)
    # A table of embeddings is stored as it is, every other matrix with a row for each output.
    if "Wemb" not in name and len(shape) == 2:
        values = values.reshape(shape[::-1]).T
    return values.reshape(shape).astype(np.float32) / np.float32(multiplier)
