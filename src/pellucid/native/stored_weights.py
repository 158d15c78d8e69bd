"""Reading a bundle's weights without PyTorch, as views of the file in memory."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pellucid.config import BundleConfig
from pellucid.config.parsing import read_json_text
from pellucid.native.loading import find_library
from pellucid.native.quantization import SCALE, is_quantizable, is_quantized
from pellucid.native.weight_shapes import find_obstacle, find_wrong_shape
from pellucid.native.weights import StoredWeights

TYPES: dict[str, type] = {"F32": np.float32, "BF16": np.uint16, "I8": np.int8}
_LONGEST_HEADER = 100_000_000
"""The bound of the library safetensors."""

_FAULTS = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""Errors of reading a file in which a stranger may have written anything."""


def read_stored(path: Path, config: BundleConfig) -> StoredWeights | None:
    """Read a safetensors file whose weights the engine can use.

    float32 and int8 weights are views of the file, so that the system shares and drops their pages;
    bfloat16 ones become float32.

    Args:
        path: the file.
        config: the configuration of its bundle.

    Returns:
        The weights by name, or None if the engine cannot be used, or a weight is not as the
        configuration describes it or not finite.
    """
    if isinstance(find_library(), str) or find_obstacle(config.model, "float32") is not None:
        return None
    try:
        weights = _read(path)
    except _FAULTS:  # PyTorch's loading says what is wrong.
        return None
    if find_wrong_shape(config.model, weights) is not None:
        return None
    is_int8 = config.precision == "int8"
    for name, weight in weights.items():
        if (weight.dtype == np.int8) != (is_int8 and is_quantizable(name, weight.ndim)):
            return None
        if weight.dtype == np.int8:
            scale_O = weights.get(name + SCALE)
            if scale_O is None or not is_quantized(weight, scale_O):
                return None
        if weight.dtype == np.float32 and not np.isfinite(weight).all():
            return None
    # The checks have read every page; what packing needs comes back from the system's cache.
    weights.release_pages()
    return weights


def _read(path: Path) -> StoredWeights:
    with path.open("rb") as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = 8 + int.from_bytes(memory[:8], "little")
    if start > _LONGEST_HEADER:
        raise ValueError("the header is too long")
    header: dict[str, Any] = read_json_text(memory[8:start])
    # The one entry of the format that is no tensor.
    header.pop("__metadata__", None)
    offsets = [entry["data_offsets"] for entry in header.values()]
    if start + sum(end - first for first, end in offsets) != len(memory):
        raise ValueError("some bytes belong to no tensor, or to several")
    found = {name: _view(memory, start, entry) for name, entry in header.items()}
    return StoredWeights(found, memory)


def _view(memory: mmap.mmap, start: int, entry: Mapping[str, Any]) -> np.ndarray:
    dtype = TYPES[entry["dtype"]]
    shape = tuple(map(int, entry["shape"]))
    first, end = entry["data_offsets"]
    # A stranger's header may claim anything, so sizes are compared before memory is read.
    count = int(np.prod(shape, dtype=np.int64))
    if end - first != count * np.dtype(dtype).itemsize or not 0 <= first <= end:
        raise ValueError("the offsets do not fit the shape")
    array: np.ndarray = np.frombuffer(memory, dtype, count, start + first).reshape(shape)
    if dtype is np.uint16:
        # A bfloat16 number is the upper half of a float32.
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array
