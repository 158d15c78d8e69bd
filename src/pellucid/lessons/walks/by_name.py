"""The walks by name. Each is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from pellucid.errors import InputError, suggestion
from pellucid.lessons.walks.statement import Walk

TITLES: Mapping[str, str] = {
    "lecture": "A lecture on self-attention",
    "slides": "Slides: Self-Attention",
    "notes": "Notes: Transformers",
    "objectives": "Self-attention mechanism: objectives",
    "study-notes": "Notes: Self-Attention for Transformer Neural Networks",
}
"""The texts, from the first to read to the last."""


def load_walk(name: str) -> Walk:
    """Load a walk.

    Raises:
        InputError: it does not exist.
    """
    if name not in TITLES:
        raise InputError(f"The lesson {name!r} does not exist. {suggestion(name, TITLES)}")
    module = import_module(f"pellucid.lessons.walks.{name.replace('-', '_')}")
    walk = module.WALK
    assert isinstance(walk, Walk)
    return walk
