r"""Sinusoidal positions: a token's place written as a vector, and the offset between two places.

$$\text{PE}_{i,2j} = \sin\left(i / 10000^{2j/d}\right) \qquad
\text{PE}_{i,2j+1} = \cos\left(i / 10000^{2j/d}\right)$$

The pair (2j, 2j + 1) turns by $\omega_j = 10000^{-2j/d}$ radians per position: the first pair
turns fastest and tells neighbors apart, the last turns slowest and tells far from near. Every pair
is a point on a circle, so a step of δ positions is one rotation, the same from everywhere, and the
offset can be read off two encodings.

Source:
    Vaswani et al. 2017, section 3.5; notes "Transformers", equations 2 and 3, and 4 (offsets).
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from pellucid.errors import InputError


def sinusoidal_positions(
    num_positions: int,
    d_model: int,
    *,
    offset: int = 0,
    halves: bool = False,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Encode the positions ``offset``, ``offset + 1``, … as sines and cosines.

    Computed in float64 and rounded once, since float32 cannot hold the angle of a far position.
    With ``halves`` all sines stand before all cosines, as in Marian, instead of interleaved.

    Returns:
        ``positions_LD``, values in [−1, 1].

    Raises:
        InputError: the width is odd, or the number of positions is negative.
    """
    if d_model < 2 or d_model % 2:
        raise InputError(
            f"The width must be even, for pairs of a sine and a cosine, but is {d_model}. "
            "Choose an even d_model."
        )
    if num_positions < 0:
        raise InputError(f"The number of positions must not be negative, but is {num_positions}.")
    place_L1 = torch.arange(offset, offset + num_positions, dtype=torch.float64)[:, None]
    two_j = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = place_L1 / 10000 ** (two_j / d_model)
    pair = (angles.sin(), angles.cos())
    positions_LD = torch.cat(pair, dim=1) if halves else torch.stack(pair, dim=2).flatten(1)
    # Rounded before it moves, because some devices have no float64.
    return positions_LD.to(dtype=dtype).to(device=device)


def position_rows(start: int, end: int, *, like: Tensor, halves: bool) -> Tensor:
    """Take the encodings of positions ``start`` to ``end`` from a kept table: ``positions_LD``.

    Tables have powers of two as lengths, so that they are few. All are kept: what a GPU has
    recorded reads them where they are.
    """
    length = 1 << max(6, (end - 1).bit_length())
    return _position_table(length, like.shape[-1], halves, like.dtype, like.device)[start:end]


@functools.cache
def _position_table(
    length: int, d_model: int, halves: bool, dtype: torch.dtype, device: torch.device
) -> Tensor:
    # Kept for later calls, which may be training: it must not be an inference tensor.
    with torch.inference_mode(False):
        return sinusoidal_positions(length, d_model, halves=halves, dtype=dtype, device=device)


def offset_matrix(offset: int, d_model: int, *, dtype: torch.dtype = torch.float32) -> Tensor:
    r"""Write a step of δ positions as a matrix: $M(\delta)\,\text{PE}_i = \text{PE}_{i+\delta}$.

    Block diagonal, one rotation by $\delta\omega_j$ for each pair; it does not depend on i.

    Raises:
        InputError: the width is odd.
    """
    # The encoding of δ holds the sines and cosines of its own angles.
    step_D = sinusoidal_positions(1, d_model, offset=offset, dtype=torch.float64)[0]
    sines = step_D[0::2]
    cosines = step_D[1::2]
    even = torch.arange(0, d_model, 2)
    odd = torch.arange(1, d_model, 2)
    matrix_DD = torch.zeros(d_model, d_model, dtype=torch.float64)
    matrix_DD[even, even] = matrix_DD[odd, odd] = cosines
    matrix_DD[even, odd] = sines
    matrix_DD[odd, even] = -sines
    return matrix_DD.to(dtype=dtype)
