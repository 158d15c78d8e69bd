"""Measures of a recorded sentence, for the page of a model that it does not run itself."""

from __future__ import annotations

from typing import Any

from pellucid.bundle import Bundle
from pellucid.inside.measures import MEASURES, measure
from pellucid.inside.measures.agreement import on_words
from pellucid.inside.pair import make_pair
from pellucid.inside.record.data import TraceData

MOST_CELLS = 2500
"""The most decoder rows times source tokens: measures of longer sentences take minutes."""

LEFT_OUT = ("integrated-gradients",)
"""An integral of 128 steps for each row takes too long for a page."""


def carry_measures(bundle: Bundle, trace: TraceData, text: str) -> dict[str, Any] | None:
    """Measure a trace's sentence as the page shows it: decoder rows by source words.

    Returns:
        The words, and by name the layer and the rows of each measure. None if the sentence is
        too long or something was changed while the trace was made.
    """
    size = len(trace.source_ids) * len(trace.predicted_ids)
    if size > MOST_CELLS or trace.decoding.get("changes") or trace.problems:
        return None
    pair = make_pair(bundle, text, trace.predicted_ids)
    if tuple(pair.source_ids) != tuple(trace.source_ids):
        return None
    maps: dict[str, Any] = {}
    words: list[str] = []
    for name, one in MEASURES.items():
        # A recurrent model has no layers of a Transformer, and perhaps no attention.
        is_possible = not bundle.config.model.is_recurrent or name == "occlusion"
        if name in LEFT_OUT or not is_possible:
            continue
        is_whole = "decoder.whole" in one.kinds
        found = measure(pair, name) if is_whole else measure(pair, name, kind="cross")
        rows = [[round(float(value), 6) for value in row] for row in on_words(pair, found)]
        maps[name] = {"layer": None if is_whole else found.layer, "rows": rows}
        if name == "occlusion":
            words = list(found.column_tokens[: found.num_source_columns])
    return {"words": words, "maps": maps}
