"""``pellucid attend``: attention by hand, step by step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pellucid.cli.ending import warn
from pellucid.cli.lines.streams import to_json_line
from pellucid.cli.options import Json
from pellucid.errors import InputError, suggestion

if TYPE_CHECKING:
    from pellucid.by_hand.sheet import Example

from pellucid.cli.attend.draw import draw_example
from pellucid.cli.attend.record import example_to_record
from pellucid.cli.attend.say import make_speakable, say_example
from pellucid.cli.attend.words import make_printable

__all__ = [
    "ENDINGS",
    "NAMES",
    "attend",
]

NAMES = (
    "toy-four",
    "pizza",
    "not-on-your-life",
    "help-me",
    "room-number",
    "show-me-the-money",
    "lets-go",
)
"""Spelled out, because asking for the examples would make ``--help`` import PyTorch."""

ENDINGS = (".toml", ".csv", ".toml.gz", ".csv.gz")


def attend(
    example: Annotated[
        str,
        typer.Argument(
            metavar="EXAMPLE", help=f"One of {', '.join(NAMES)}; or a file, .toml or .csv."
        ),
    ],
    row: Annotated[
        int | None,
        typer.Option("--row", metavar="N", help="Follow one row, from 0, number by number."),
    ] = None,
    d_key: Annotated[
        int | None,
        typer.Option(
            "--d-key",
            metavar="N",
            help="The d_k of not-on-your-life, which its text leaves out; 64.",
        ),
    ] = None,
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Sentences instead of tables, for a screen reader."),
    ] = False,
    json: Json = False,
) -> None:
    """Work attention out by hand, step by step: a text's example, or your own matrices.

    Every number is computed, in float64. Where a text prints another one, the difference and its
    cause are shown.

    A TOML file has x, one row a token, and any of w_query, w_key and w_value (left out: the
    identity); or query, key and value as they are. It may have tokens = ["a", "b"] and key_tokens;
    mask = "causal", or rows of true and false (true = may attend); and scale = false, or a number
    to divide the scores by instead of √d_k.

    A CSV file has one matrix that is queries, keys and values at once, a token a line. Its first
    line may name the tokens.
    """
    if json and plain:
        warn("--plain has no effect with --json.")
    worked = _find(example, d_key)
    if row is not None:
        from pellucid.by_hand.row import follow_row_of

        worked = follow_row_of(worked, row)
    if json:
        sys.stdout.write(to_json_line(example_to_record(worked)))
    elif plain:
        sys.stdout.writelines(
            f"{make_printable(make_speakable(line))}\n" for line in say_example(worked)
        )
    else:
        draw_example(worked, has_hint=row is None)


def _find(name: str, d_key: int | None) -> Example:
    """The example of a name, or the one that a file holds."""
    if d_key is not None and name != "not-on-your-life":
        warn("--d-key has no effect except on not-on-your-life.")
    if name not in NAMES and not name.lower().endswith(ENDINGS):
        raise InputError(
            f"EXAMPLE must be a known example or a .toml or .csv file, but is {name!r}. "
            + suggestion(name, NAMES)
        )
    if name not in NAMES:
        from pellucid.by_hand.matrices import read_example

        return read_example(Path(name))
    if name == "not-on-your-life" and d_key is not None:
        from pellucid.by_hand.examples.not_on_your_life import not_on_your_life

        return not_on_your_life(d_key)
    from pellucid.by_hand.examples.by_name import EXAMPLES

    return EXAMPLES[name]()
