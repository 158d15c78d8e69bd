"""Random options of a command, from its own declaration, with values that few would give."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, Literal, get_args, get_origin

from fuzzing.mutations import HOSTILE_NUMBERS, HOSTILE_TEXTS

__all__ = ["random_options"]

SMALL_NUMBERS = ("0", "1", "2", "3", "0.5", "1.0")
WORDS = ("le", "le chien", "en", "fra", "decoder.0.cross.0", "cut decoder.0.cross.0", "source", "0")
INPUTS = ("validation.en", "validation.fr", "train.align", "glossary.tsv", "train.jsonl", "missing")
OUTPUTS = ("out.txt", "missing/out", ".", "/dev/full", "train.en", "out.npz", "x" * 300)
"""None leads out of the folder: a user may name any place, and it would be written."""

LEFT_OUT = frozenset({"--help", "--version"})
"""Workers are new processes, which have no limits and take seconds to start."""


def random_options(command: str, dice: random.Random) -> list[str]:
    """Choose some options of a command, and a value for each.

    Args:
        command: its name.
        dice: decides which.
    """
    known = _declared(command)
    chosen = dice.sample(known, min(len(known), dice.choice((1, 1, 2, 3, 5))))
    found: list[str] = []
    for parameter in chosen:
        name = dice.choice((*parameter.opts, *parameter.secondary_opts))
        if name == "--threads":
            found += [name, dice.choice(("0", "1", "-3", "x", "100000"))]
        elif parameter.is_flag:
            found.append(name)
        else:
            found += [name, *(_value(parameter, dice) for _ in range(parameter.nargs))]
    return found


@cache
def _declared(command: str) -> list[Any]:
    """List the options that a command declares."""
    from pellucid.cli.app import load_command

    options = [one for one in load_command(command).params if hasattr(one, "is_flag")]
    return [one for one in options if LEFT_OUT.isdisjoint(one.opts)]


def _value(parameter: Any, dice: random.Random) -> str:
    """Choose a value, mostly of the option's own type."""
    kind, metavar = parameter.type_descriptor.annotation, str(parameter.metavar)
    if get_origin(kind) is Literal and dice.random() < 0.8:
        return str(dice.choice(get_args(kind)))
    if dice.random() < 0.15:
        return dice.choice(HOSTILE_TEXTS)
    if kind in (int, float):
        return dice.choice(dice.choice((SMALL_NUMBERS, HOSTILE_NUMBERS)))
    if parameter.name.startswith("output") or metavar in ("RUN", "BUNDLE", "DIR", "FOLDER"):
        return dice.choice(OUTPUTS)
    if metavar in ("FILE", "MODEL", "LINKS"):
        is_made = parameter.name.startswith(("html", "svg", "png", "pdf", "npz", "json"))
        return dice.choice(OUTPUTS if is_made else INPUTS)
    return dice.choice((*WORDS, *SMALL_NUMBERS))
