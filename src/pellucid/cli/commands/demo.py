"""``pellucid demo``: the main job on the built-in corpus."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

import typer

from pellucid.cli.options import Changes


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder for everything it writes.")
    ] = Path("demo-run"),
    model: Annotated[
        Literal["transformer", "recurrent"],
        typer.Option(
            "--model",
            help="The kind of translator: a Transformer, or the recurrent model of 2015 with "
            "attention. --set model.recurrent_attention=none takes its attention away.",
        ),
    ] = "transformer",
    changes: Changes = None,
) -> None:
    """Train a small translator on the built-in corpus and look inside it.

    This writes DIR/bundle, a report, and a page to open. The same command again resumes an
    interrupted run, or shows what a finished one found.
    """
    from pellucid.demo import run_demo

    name = "demo.toml" if model == "transformer" else "demo-recurrent.toml"
    recipe = Path(str(files("pellucid") / "recipes" / name))
    run_demo(out, recipe_file=recipe, changes=changes or ())
