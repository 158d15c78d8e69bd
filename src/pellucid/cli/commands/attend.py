"""``pellucid attend``: attention by hand, step by step."""

from __future__ import annotations

from typing import Annotated

import typer

from pellucid.cli.ending import warn
from pellucid.cli.options import Json
from pellucid.errors import InputError, suggestion

__all__ = ["ENDINGS", "NAMES", "attend"]

NAMES = (
    "toy-four",
    "pizza",
    "not-on-your-life",
    "help-me",
    "room-number",
    "show-me-the-money",
    "lets-go",
)
"""They are spelled out because importing the examples would make ``--help`` import PyTorch."""

ENDINGS = (".toml", ".csv", ".toml.gz", ".csv.gz")


def attend(
    example: Annotated[
        str,
        typer.Argument(
            metavar="EXAMPLE", help=f"One of {', '.join(NAMES)}; or a .toml or .csv file."
        ),
    ],
    row: Annotated[
        int | None,
        typer.Option("--row", metavar="N", help="Follow row N, from 0, number by number."),
    ] = None,
    d_key: Annotated[
        int | None,
        typer.Option(
            "--d-key",
            metavar="N",
            help="The d_k of not-on-your-life, which its text does not give; 64 by default.",
        ),
    ] = None,
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Write sentences instead of tables, for a screen reader."),
    ] = False,
    json: Json = False,
) -> None:
    """Work out attention by hand: an example from a text, or your own matrices.

    Every number is computed in float64. If a text prints a different number, the difference and
    its cause are shown.

    A TOML file has x, with one row for each token, and any of w_query, w_key and w_value, which
    are the identity by default. Or it has query, key and value directly. It may also have
    tokens = ["a", "b"] and key_tokens; mask = "causal", or rows of true and false (true = may
    attend); and scale = false, or a number to divide the scores by instead of √d_k.

    A CSV file has one matrix, with a token on each line, that is used as queries, keys and values.
    Its first line may name the tokens.
    """
    if json and plain:
        warn("--plain has no effect with --json.")
    if d_key is not None and example != "not-on-your-life":
        warn("--d-key has no effect except on not-on-your-life.")
    if example not in NAMES and not example.lower().endswith(ENDINGS):
        raise InputError(
            f"EXAMPLE must be a known example or a .toml or .csv file, but is {example!r}. "
            + suggestion(example, NAMES)
        )

    from pellucid.cli.attend.show import show_example

    show_example(example, row=row, d_key=d_key, is_json=json, is_plain=plain)
