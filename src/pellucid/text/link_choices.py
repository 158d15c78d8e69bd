"""The choices that word links leave, in a module that imports nothing heavy.

The command line lists them in its help, which must not load NumPy or PyTorch.
"""

from __future__ import annotations

from typing import Literal, get_args

MapName = Literal["head", "layer-mean", "norms"]
MAPS: tuple[MapName, ...] = get_args(MapName)
"""The maps that links are read from: see `pellucid.inside.align.link_views.View`."""

Convention = Literal["predicts", "reads"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
"""The token that a decoder row counts for: the one it predicts, or the one it reads."""

LinkRule = Literal["best", "both", "all"]
LINK_RULES: tuple[LinkRule, ...] = get_args(LinkRule)
"""The links to take from a map: see `pellucid.inside.align.linked_units.link_words`."""

WordRule = Literal["auto", "spaces", "script"]
"""The ways to cut a line into words: see `pellucid.text.line_words.line_words`."""

UnitRule = Literal["auto", "spaces", "script", "subwords"]
"""The same, or the tokens of the model."""

Symmetrization = Literal[
    "intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"
]
SYMMETRIZATIONS: tuple[Symmetrization, ...] = get_args(Symmetrization)
"""The ways to join two directions: see `pellucid.evaluation.word_links.symmetrize`."""
