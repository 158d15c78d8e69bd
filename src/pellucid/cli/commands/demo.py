"""``pellucid demo``: the main job on the built-in corpus."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from pellucid.cli.options import Changes

__all__ = ["demo"]


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder for everything it writes.")
    ] = Path("demo-run"),
    changes: Changes = None,
) -> None:
    """Train a small translator on the built-in corpus and look inside it.

    This writes DIR/bundle, a report, and a page to open. The same command again resumes an
    interrupted run, or shows what a finished one found.
    """
    from pellucid.demo import run_demo

    recipe = Path(str(files("pellucid") / "recipes" / "demo.toml"))
    run_demo(out, recipe_file=recipe, changes=changes or ())
