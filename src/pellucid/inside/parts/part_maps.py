"""Maps whose rows are parts of the model, and the choice of some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from pellucid.config.head_address import HeadAddress, Part, parse_address
from pellucid.errors import InputError
from pellucid.inside.measures.maps import Map


def map_of_parts(
    name: str,
    source: str,
    parts_PX: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    part: Part | None,
    is_signed: bool = True,
    num_source_columns: int = 0,
    differences: Sequence[float] | None = None,
) -> Map:
    """Label a matrix whose rows are parts of the model."""
    return Map(
        name=name,
        source=source,
        part=part or "model",
        kind="whole",
        layer=None,
        head=None,
        matrix=parts_PX.double().numpy(force=True),
        row_tokens=tuple(rows),
        predicted_tokens=None,
        column_tokens=tuple(columns),
        num_source_columns=num_source_columns,
        is_signed=is_signed,
        differences=None if differences is None else tuple(differences),
    )


def choose_parts(map_: Map, place: HeadAddress) -> Map:
    """Keep the parts that an address names below ``encoder`` and ``decoder``.

    Raises:
        InputError: none is among them.
    """
    if place.depth < 2:
        return map_
    rows = [
        index
        for index, name in enumerate(map_.row_tokens)
        # Embeddings and biases have no address.
        if name.count(".") > 1 and place.holds(parse_address(name))
    ]
    if not rows:
        raise InputError(
            f"{map_.name} has no part {place}. Name one of {map_.row_tokens[0]} to "
            f"{map_.row_tokens[-1]}, or leave the place out."
        )
    # Some of the parts add up to nothing that is known.
    tokens = tuple(np.array(map_.row_tokens)[rows].tolist())
    return replace(map_, matrix=map_.matrix[rows], row_tokens=tokens, differences=None)
