"""Arguments that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Json", "Model", "Threads"]

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A bundle folder, a run folder (its best bundle), or the word demo.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", help="Processor threads; all unless given."),
]
