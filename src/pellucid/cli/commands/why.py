"""``pellucid why``: one-minute measurements of what the texts claim."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pellucid.cli.ending import warn
from pellucid.cli.options import Json, Threads
from pellucid.errors import InputError, suggestion


def why(
    claim: Annotated[
        str | None,
        typer.Argument(
            metavar="[CLAIM]", help="The claim to measure; without one they are listed."
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the claims.")] = False,
    png: Annotated[
        Path | None,
        typer.Option("--png", metavar="FILE", help="Draw it: FILE ends in .png, .svg or .pdf."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Measure more sizes with three seeds, in up to 25 minutes."),
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            metavar="DIR",
            help="With --full, keep finished parts here (default why-results): they are not "
            "measured again.",
        ),
    ] = None,
    json: Json = False,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Seed of everything drawn.")
    ] = 1,
    threads: Threads = None,
    size: Annotated[str, typer.Option("--size", hidden=True)] = "quick",
) -> None:
    """Measure a claim of the texts on this machine, in less than a minute.

    --full takes longer: more sizes, three seeds, and 95 % intervals. Press Ctrl-C at any time: the
    same command continues after the last finished part.

    The answer has the statement of the text, a number, the tables behind it, and a verdict: holds,
    holds only if, or fails. The verdict follows from the numbers by a rule that is shown. Times
    are those of this machine, everything else depends on the seed. The minute is that
    of two cores.
    """
    from pellucid.lessons.why.claim import CLAIMS

    if claim is None or list_:
        _warn_of_useless(png=png, full=full, results=results, seed=seed != 1, threads=threads)
        from pellucid.cli.why.show import list_claims

        list_claims(is_json=json)
        return
    if claim not in CLAIMS:
        raise InputError(
            f"CLAIM must be one of those that pellucid why lists, but is {claim!r}. "
            + suggestion(claim, CLAIMS)
        )
    if size not in ("quick", "toy"):
        raise InputError(f"--size must be quick or toy, but is {size!r}. Leave it out.")
    if results is not None and not full:
        raise InputError("--results keeps the parts of a full measurement. Add --full.")

    from pellucid.cli.why.show import answer

    answer(
        claim,
        size="full" if full else size,
        kept_in=results,
        seed=seed,
        threads=threads,
        picture=png,
        is_json=json,
    )


def _warn_of_useless(**given: object) -> None:
    """Report options that do nothing if no claim is measured."""
    for name, value in given.items():
        if value:
            warn(f"--{name} has no effect without a claim to measure.")
