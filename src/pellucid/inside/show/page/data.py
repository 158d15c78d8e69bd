"""The data of a trace's page, as one JSON object with the words of every medium."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from pellucid.errors import InputError
from pellucid.inside.ask import HEAD_STAGES
from pellucid.inside.heads.rows import head_rows
from pellucid.inside.record.data import TraceData
from pellucid.inside.show.colors import BLUE_ORANGE, CIVIDIS
from pellucid.inside.show.view import View, default_view, views_of

__all__ = ["FIGURES", "MOST_BYTES", "page_data"]

MOST_BYTES = 64 * 2**20
"""The most bytes of numbers in a page that browsers open well."""

FIGURES = {
    "entropy": "entropy of a row, in nats, averaged over the rows",
    "confidence": "largest weight of a row, averaged over the rows",
    "end_mass": "weight on the end (or start) token, averaged over the rows",
    "punctuation_mass": "weight on punctuation, averaged over the rows",
    "distance": "mean distance attended over, in tokens, averaged over the rows",
}
"""The figures that heads can be sorted by, and their meanings."""


def page_data(trace: TraceData) -> str:
    """Return everything that the page's script shows, as JSON that is safe within HTML.

    Raises:
        InputError: the trace holds no array of a head, or more than a page may hold.
    """
    arrays = {
        name: array
        for name, array in trace.arrays.items()
        if name.count(".") == 3 and name.rpartition(".")[2] in HEAD_STAGES
    }
    size = sum(array.nbytes for array in arrays.values())
    if size > MOST_BYTES:
        raise InputError(
            f"A page must hold at most {MOST_BYTES / 2**20:.0f} MiB of numbers for a browser to "
            f"open it, but this trace has {size / 2**20:.0f}. Ask for fewer layers, heads or "
            "stages, or save it as .npz."
        )
    start = default_view(trace)
    data = {
        "tokens": {
            "source": trace.source_tokens,
            "target": trace.target_tokens,
            "predicted": trace.predicted_tokens,
        },
        "heads": trace.heads,
        "arrays": {name: _pack(array) for name, array in arrays.items()},
        "views": _describe(views_of(trace)),
        "figures": _figures(trace),
        "start": {"site": start.site, "stage": start.stage, "head": start.head},
        "scales": {"weights": CIVIDIS, "signed": BLUE_ORANGE},
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # ``<`` could end the script element; U+2028 and U+2029 end a line in older JavaScript.
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _pack(array: np.ndarray) -> dict[str, Any]:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {
        "shape": array.shape,
        "bytes": array.dtype.itemsize,
        "data": base64.b64encode(little.tobytes()).decode(),
    }


def _describe(views: Iterable[View]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for view in views:
        entry = found.setdefault(
            view.name,
            {
                "rows": view.rows,
                "predicted": view.predicted,
                "columns": view.columns,
                "isMap": view.is_map,
                "limits": {},
                "captions": {},
                "hatched": {},
            },
        )
        entry["limits"][view.head] = view.largest if view.is_signed else None
        entry["captions"][view.head] = view.caption()
        entry["hatched"][view.head] = bool(view.forbidden.any())
    return found


def _figures(trace: TraceData) -> dict[str, dict[str, float]]:
    """Compute the figures of each head in the trace, without heads whose figures are not finite."""
    if not any(name.endswith(".weights") for name in trace.arrays):
        return {}
    figures = {
        str(row.head): {name: getattr(row, name) for name in FIGURES} for row in head_rows(trace)
    }
    return {
        head: found for head, found in figures.items() if all(map(math.isfinite, found.values()))
    }
