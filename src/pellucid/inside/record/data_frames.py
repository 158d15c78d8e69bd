"""Arrays of a trace with named axes: as a pandas data frame, and as xarray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pellucid.errors import need_library
from pellucid.inside.ask import MAP_STAGES
from pellucid.inside.record.trace_data import TraceData, has_heads

Axis = tuple[str, Sequence[int], dict[str, tuple[str, ...]]]
"""The name of an axis, its numbers, and tokens along it by their name."""


def named_array(trace: TraceData, name: str) -> tuple[list[Axis], np.ndarray]:
    """Name the axes of an array: ``head``, ``source`` and ``target`` positions, ``width``.

    The keys of self-attention, which has one side twice, are ``source_key`` and ``target_key``.
    Decoder rows have the tokens that they read and those that they predict.

    Args:
        trace: holds the array.
        name: as ``trace[name]`` takes it; of a single head there is no axis ``head``.

    Returns:
        The axes, and the array.

    Raises:
        InputError: the trace does not hold the array.
    """
    array_name, head = trace.find(name)
    array = trace.arrays[array_name] if head is None else trace[name]
    part, *place, stage = array_name.split(".")
    kind = place[-1] if place else ""
    sides: dict[str, dict[str, tuple[str, ...]]] = {
        "source": {"source_token": trace.source_tokens},
        "target": {"reads": trace.target_tokens, "predicts": trace.predicted_tokens},
    }
    own = "source" if part == "encoder" else "target"
    other = "source" if kind == "cross" else own
    is_of_heads = has_heads(array_name)
    # Keys and values are of the side that is attended to.
    side = other if is_of_heads and stage in ("key", "value") else own
    axes: list[Axis] = [("head", trace.heads, {})] if is_of_heads and head is None else []
    rows = array.shape[len(axes)]
    # A recurrent model has arrays with one row, such as the initial state.
    is_whole = rows == len(next(iter(sides[side].values())))
    axes.append((side, range(rows), sides[side]) if is_whole else ("row", range(rows), {}))
    if is_of_heads and stage in MAP_STAGES:
        keys = sides[other] if other != own else {f"{other}_key_token": trace.query_tokens(part)}
        label = other if other != own else f"{other}_key"
        axes.append((label, range(array.shape[-1]), keys))
    else:
        axes.append(("width", range(array.shape[-1]), {}))
    return axes, array


def axes_of_map(row_labels: Sequence[str], column_labels: Sequence[str]) -> list[Axis]:
    """Name the axes of a map: ``row`` and ``column``, with their words."""
    return [
        ("row", range(len(row_labels)), {"row_word": tuple(row_labels)}),
        ("column", range(len(column_labels)), {"column_word": tuple(column_labels)}),
    ]


def to_frame(axes: Sequence[Axis], array: np.ndarray) -> Any:
    """Write an array as a pandas data frame: a row for each number, with its place and tokens.

    Raises:
        InputError: pandas is not installed.
    """
    columns: dict[str, Any] = {}
    for index, (axis, numbers, tokens) in zip(np.indices(array.shape), axes, strict=True):
        places = index.ravel()
        columns[axis] = np.array(numbers)[places]
        columns |= {label: np.array(words)[places] for label, words in tokens.items()}
    return need_library("pandas", "This table").DataFrame({**columns, "value": array.ravel()})


def to_labeled(axes: Sequence[Axis], array: np.ndarray, name: str) -> Any:
    """Write an array as an xarray array with named axes, and tokens along them.

    Raises:
        InputError: xarray is not installed.
    """
    coordinates: dict[str, Any] = {axis: np.array(numbers) for axis, numbers, _ in axes}
    for axis, _, tokens in axes:
        coordinates |= {label: (axis, np.array(words)) for label, words in tokens.items()}
    dims = [axis for axis, *_ in axes]
    xarray = need_library("xarray", "This table")
    return xarray.DataArray(array, coords=coordinates, dims=dims, name=name)
