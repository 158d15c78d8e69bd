"""The legend of axis letters: one meaning for each letter in the whole package.

A tensor's name ends in its axes, in the order batch, head, position, width:
``scores_BHLM`` is a batch of heads of queries by keys. A test reads these names while the
package trains and decodes, and checks them against the real shapes.
"""

from __future__ import annotations

import textwrap
from dataclasses import fields
from typing import Any

AXES: dict[str, str] = {
    "B": "batch rows",
    "L": "positions that attend (queries)",
    "M": "positions attended to (keys)",
    "S": "source length",
    "T": "target length",
    "D": "d_model, the width of the model",
    "H": "heads",
    "K": "width of queries and keys per head (d_k)",
    "E": "width of values per head (d_v)",
    "F": "d_ff, the inner width of the feed-forward network",
    "V": "vocabulary",
    "N": "layers",
    "W": "beam width",
    "A": "rows of a batch whose sentence is still growing",
    "P": "target positions of a whole batch, without padding",
    "C": "rows of one chunk of those positions",
    "J": "all positions of a batch as rows, with padding; those that attend",
    "I": "all positions of a batch as rows, with padding; those attended to",
    "R": "requests of a search",
    "G": "groups of a beam, or different sets of phrases",
    "Q": "phrases of a request",
    "X": "columns of a small table, such as candidates",
    "1": "broadcast, always one",
}


class Brief:
    """A dataclass with a short ``repr``: of arrays type and shape, of long tuples the length.

    The dataclass must be made with ``repr=False``, or it writes all that it holds.
    """

    def __repr__(self) -> str:
        """Write the class and its fields, in about two lines."""
        named: Any = self
        written = (f"{one.name}={_in_short(getattr(self, one.name))}" for one in fields(named))
        return f"{type(self).__name__}({', '.join(written)})"


def _in_short(value: Any) -> str:
    # Arrays and tensors alike, without importing PyTorch here.
    if getattr(value, "ndim", 0):
        return f"{value.dtype} {tuple(value.shape)}"
    if isinstance(value, tuple) and len(value) > 3:
        return f"<{len(value)} items>"
    return textwrap.shorten(str(value), 60, placeholder=" ...")
