"""The options of ``pellucid align`` that choose views of attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pellucid.cli.options import Option, flag
from pellucid.errors import InputError

__all__ = ["VIEWS", "check_options"]

VIEWS: Mapping[str, Option] = {
    "layer": (int, "L", "Decoder layer, from 0."),
    "head": (int, "H", "Head of that layer, from 0."),
    "map": (
        Literal["head", "layer-mean", "norms"],
        None,
        "A head's weights, the mean over a layer's heads, or the norms of the weighted values.",
    ),
    "convention": (
        Literal["predicts", "reads"],
        None,
        "The token that a decoder row counts for: the one it predicts, or the one it reads.",
    ),
    "links": (
        Literal["best", "both"],
        None,
        "Link each target word to its best source word, or also each source word to its best "
        "target word. The default is both; with --reverse it is best.",
    ),
    "reverse": (str, "MODEL", "A model that translates the target into the source."),
    "reverse_layer": (int, "L", "Decoder layer of the --reverse model."),
    "reverse_head": (int, "H", "Head of that layer."),
    "symmetrize": (
        Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"],
        None,
        "How to join the links of the two directions; grow-diag-final by default.",
    ),
    "history": (
        bool,
        "",
        "With --gold: show error and entropy of each head at every checkpoint of the run folder "
        "MODEL.",
    ),
}


def check_options(options: Mapping[str, Any], *, has_gold: bool) -> None:
    """Refuse options that contradict or lack each other.

    Raises:
        InputError: some do.
    """
    if options["history"]:
        if not has_gold:
            raise InputError("--history needs gold links. Add --gold FILE.")
        for name in VIEWS:
            if options[name] is not None and name not in ("history", "convention", "links"):
                raise InputError(
                    f"--history cannot be combined with {flag(name)}: it shows all heads of one "
                    f"run. Leave {flag(name)} out."
                )
    for name in ("symmetrize", "reverse_layer", "reverse_head"):
        if options["reverse"] is None and options[name] is not None:
            raise InputError(f"{flag(name)} needs a second model. Add --reverse MODEL.")
    if options["map"] == "layer-mean":
        for name in ("head", "reverse_head"):
            if options[name] is not None:
                raise InputError(
                    f"--map layer-mean cannot be combined with {flag(name)}: it is the mean over "
                    "heads. Leave one out."
                )
