"""``pellucid demo``: the main job on the built-in corpus."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where everything goes.")
    ] = Path("demo-run"),
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="SECTION.KEY=VALUE", help="Change one setting; may be repeated."
        ),
    ] = None,
) -> None:
    """Train a small translator on the built-in corpus and look inside it.

    Leaves DIR/bundle, a report and a page to open. The same command again goes on where it was
    stopped, or shows what is there.
    """
    from pellucid.demo import run_demo

    recipe = Path(str(files("pellucid") / "recipes" / "demo.toml"))
    run_demo(out, recipe_file=recipe, changes=changes or ())
