"""Random numbers as pure functions of (seed, purpose, indices).

Nothing here keeps state: the same arguments give the same numbers on every machine, in every
process and in any order of calls. A checkpoint therefore needs a step number and no generator
state, and an interrupted run can resume bit for bit.
"""

from __future__ import annotations

import hashlib

import numpy as np


def derive_key(seed: int, purpose: str, *indices: int | str) -> int:
    """Derive a 128-bit key that no other (seed, purpose, indices) shares.

    Args:
        seed: the run's seed.
        purpose: the use of the numbers, such as ``"dropout"`` or ``"order"``.
        indices: the place of use: epoch, step, name.

    Returns:
        An integer in [0, 2^128).
    """
    # U+001F separates the parts, so that ("a", "bc") and ("ab", "c") differ.
    text = "\x1f".join([str(seed), purpose, *(str(index) for index in indices)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")


def generator(seed: int, purpose: str, *indices: int | str) -> np.random.Generator:
    """Make a fresh NumPy generator for one place (SFC64, chosen for its speed)."""
    return np.random.Generator(np.random.SFC64(derive_key(seed, purpose, *indices)))


def generator_state(seed: int, purpose: str, *indices: int | str) -> np.ndarray:
    """Return the four 64-bit words from which all numbers of a fresh generator follow."""
    fresh = np.random.SFC64(derive_key(seed, purpose, *indices))
    state: np.ndarray = fresh.state["state"]["state"]
    return state


def random_bytes(count: int, seed: int, purpose: str, *indices: int | str) -> np.ndarray:
    """Draw uniformly random bytes, cut from 64-bit numbers.

    Args:
        count: number of bytes.
        seed: the run's seed.
        purpose: their use.
        indices: their place of use.

    Returns:
        ``uint8`` array of ``count`` values. The order of bytes is little-endian everywhere.
    """
    bits = np.random.SFC64(derive_key(seed, purpose, *indices))
    words = bits.random_raw(-(-count // 8)).astype("<u8", copy=False)
    return words.view(np.uint8)[:count]
