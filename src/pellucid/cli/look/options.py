"""The options of ``pellucid look`` beside those of a search."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pellucid.cli.lines.streams import STANDARD
from pellucid.cli.options import SEARCH, Option, flag
from pellucid.errors import InputError
from pellucid.files import is_device, is_packed

if TYPE_CHECKING:
    from pellucid.inside.ask import Ask

__all__ = [
    "COMPARED",
    "FILES",
    "PLACE",
    "SHOWN",
    "check_options",
    "is_compared",
    "to_ask",
    "to_files",
]

PLACE: Mapping[str, Option] = {
    "part": (Literal["encoder", "decoder"], None, "One half of the model."),
    "layer": (list[int], "L", "From 0; may be repeated."),
    "kind": (Literal["self", "cross", "feed_forward"], None, "Which sub-layer."),
    "head": (list[int], "H", "From 0; may be repeated."),
    "stage": (
        list[str],
        "S",
        "query, key, value, scores, scaled, masked, weights, context, output, or what is around: "
        "input, residual, norm, inner, activated, embedding, positions, logits.",
    ),
    "all": (bool, "", "Everything from token to token; says its size first."),
}
"""Which arrays."""

SHOWN: Mapping[str, Option] = {
    "row": (int, "R", "Follow this position, number by number, through one head."),
    "column": (int, "C", "With --row: whose product is shown in full."),
    "words": (int, "N", "With --row in layer 0: the N words whose keys match best."),
    "verify": (bool, "", "With --row: recompute the weight from the bundle alone."),
    "heads": (bool, "", "A table of all layers and heads."),
    "sort": (
        str,
        "FIGURE",
        "With --heads: entropy, confidence, end_mass, punctuation_mass, distance, cut_effect or "
        "alignment_error.",
    ),
    "gold": (
        str,
        "LINKS",
        "With --heads: the right word links, such as '0-0 1-2', for each head's alignment error.",
    ),
    "convention": (
        Literal["predicts", "reads"],
        None,
        "With --gold: which token a decoder row counts for; predicts unless given.",
    ),
    "change": (
        list[str],
        "CHANGE",
        "What if: 'cut decoder.1.cross.0' (a head), 'cut encoder.0.self.2:4>7' (an edge), "
        "'cut word pizza', 'average …', 'force decoder.1.cross.0:3>2=0.8'; may be repeated.",
    ),
    "random": (int, "N", "With --change: the same for N other heads drawn at random."),
    "measure": (
        list[str],
        "NAME",
        "weights, norms, residual-norms, alti, rollout, gradients, value-zeroing or occlusion; of "
        "several also how alike they are.",
    ),
    "trust": (
        list[str],
        "NAME",
        "How far such a map can be trusted here: words taken away in its order, and at random.",
    ),
    "lens": (bool, "", "What would be predicted from each layer."),
    "compare": (str, "TEXT", "The head's weights less those on another line."),
    "compare_head": (str, "HEAD", "Less those of another head, such as decoder.1.cross.3."),
    "compare_model": (str, "MODEL", "Less those of another model, such as RUN/untrained."),
    "plain": (bool, "", "Sentences instead of pictures, for screen readers."),
}
"""What the terminal shows instead of one map."""

FILES: Mapping[str, Option] = {
    "html": (str, "FILE", "A page that needs no network; '-' is standard output."),
    "svg": (str, "FILE", "A picture of one head, or of all."),
    "png": (str, "FILE", "The same."),
    "pdf": (str, "FILE", "The same."),
    "npz": (str, "FILE", "The arrays, for NumPy."),
    "json": (str, "FILE", "The arrays, as JSON."),
}
"""What is written instead."""

WAYS = ("row", "heads", "change", "measure", "trust", "lens")
COMPARED = ("compare", "compare_head", "compare_model")

NEEDED = {
    "column": "row",
    "words": "row",
    "verify": "row",
    "sort": "heads",
    "gold": "heads",
    "convention": "gold",
    "random": "change",
}


def check_options(
    options: Mapping[str, Any], *, is_target_given: bool, is_prefix_given: bool
) -> None:
    """Find options that contradict or lack each other.

    Raises:
        InputError: there are some.
    """
    for name, needed in NEEDED.items():
        is_given = options[name] is not None and options[name] is not False
        if is_given and options[needed] is None:
            raise InputError(f"{flag(name)} must be given with {flag(needed)}, but there is none.")
    for name in ("words", "random"):
        if options[name] is not None and options[name] < 1:
            raise InputError(f"{flag(name)} must be at least 1, but is {options[name]}.")
    searched = [name for name in SEARCH if options[name] is not None]
    if is_target_given and searched:
        raise InputError(
            f"With --target nothing is searched, but {flag(searched[0])} is given. Leave one of "
            "them out."
        )
    if is_target_given and is_prefix_given and not options["change"]:
        raise InputError(
            "With --target nothing is decoded but under --change, so --prefix would do nothing. "
            "Leave one of them out."
        )
    if is_target_given and options["compare"] is not None:
        raise InputError(
            "With --target both lines must be one, but --compare names another. Leave one out."
        )
    ways = [flag(name) for name in WAYS if options[name] not in (None, [])]
    ways += [flag(name) for name in COMPARED if options[name] is not None][:1]
    drawn = ("svg", "png", "pdf") if is_compared(options) else ()
    files = [flag(name) for name in FILES if options[name] is not None and name not in drawn]
    if len(ways) > 1 or (ways and files):
        raise InputError(
            f"One thing must be asked for at a time, but {' and '.join([*ways, *files][:2])} are. "
            "Leave one of them out."
        )


def is_compared(options: Mapping[str, Any]) -> bool:
    """Whether a difference is asked for."""
    return any(options[name] is not None for name in COMPARED)


def to_ask(options: Mapping[str, Any]) -> Ask:
    """Which arrays the options ask for."""
    from pellucid.inside.ask import Ask

    part, kind = options["part"], options["kind"]
    return Ask(
        parts=None if part is None else (part,),
        layers=options["layer"],
        kinds=None if kind is None else (kind,),
        heads=options["head"],
        stages=tuple(options["stage"] or ("weights",)),
        everything=bool(options["all"]),
    )


def to_files(options: Mapping[str, Any]) -> dict[str, Path]:
    """Which kinds of file the options ask for, and where each goes.

    Raises:
        InputError: two things would go to one place.
    """
    found: dict[str, Path] = {}
    for name in FILES:
        if options[name] is None:
            continue
        path = Path("/dev/stdout" if options[name] == STANDARD else options[name])
        others = [flag(other) for other in found if found[other] == path]
        if others:
            raise InputError(
                f"Each must have a file of its own, but {others[0]} and {flag(name)} are both "
                f"{options[name]}. Give another name to one."
            )
        if name == "npz" and is_packed(path):
            raise InputError(
                f"--npz must name a file that ends in .npz, but is {options[name]}: NumPy does not "
                "unpack. Take .gz off, or ask for --json, which may have it."
            )
        if is_device(path) and (options["n_best"] or 1) > 1:
            raise InputError(
                f"With --n-best there are several files, but {flag(name)} {options[name]} is one "
                "place. Name a file; the others are numbered."
            )
        found[name] = path
    return found
