"""Every way to patch by its name, with its paper and its meaning."""

from __future__ import annotations

from pellucid.inside.measures.registry import Measure
from pellucid.inside.patches.causal_tracing import causal_trace
from pellucid.inside.patches.patching import SOURCES, patch

_MEANINGS = {
    "patching": "the share of the difference between two sentences that a vector restores",
    "path-patching": "the share that a vector restores through its readers only",
    "attribution-patching": "the share that a vector restores, to first order",
    "causal-tracing": "what a vector restores of the answer when words are spoiled with noise",
}

PATCHINGS: dict[str, Measure] = {
    name: Measure(
        name,
        SOURCES[name],
        meaning,
        ("encoder.whole", "decoder.whole"),
        causal_trace if name == "causal-tracing" else patch,
        is_signed=True,
        is_of_word=True,
        takes_changes=True,
        is_of_parts=True,
    )
    for name, meaning in _MEANINGS.items()
}
"""Every way to patch, by the name that its map has; `patch` and `causal_trace` make them."""
