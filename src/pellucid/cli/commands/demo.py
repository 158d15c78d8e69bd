"""``pellucid demo``: the main job on the built-in corpus."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal

from pellucid.cli.options import Changes, Threads, described


@described(
    out=("DIR", "The folder for everything it writes.", {"name": "-o --output"}),
    architecture=(
        "",
        "The kind of translator: a Transformer, or the recurrent model of 2015 with attention. "
        "--set model.recurrent_attention=none takes its attention away.",
    ),
)
def demo(
    out: Path = Path("demo-run"),
    architecture: Literal["transformer", "recurrent"] = "transformer",
    threads: Threads = None,
    changes: Changes = None,
) -> None:
    """Train a small translator on the built-in corpus and look inside it.

    This writes DIR/bundle, a report, and a page to open. The same command again resumes an
    interrupted run, or shows what a finished one found.
    """
    from pellucid.demo import run_demo

    name = "tiny-en-fr.toml" if architecture == "transformer" else "tiny-en-fr-recurrent.toml"
    recipe = Path(str(files("pellucid") / "recipes" / name))
    run_demo(out, recipe_file=recipe, changes=changes or ())
