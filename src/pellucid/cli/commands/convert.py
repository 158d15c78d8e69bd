"""``pellucid convert``: a bundle from a model in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pellucid.cli.ending import note

__all__ = ["convert"]


def convert(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder of a model, as distributed.")
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="BUNDLE", help="The bundle to write, a new folder.")
    ],
    kind: Annotated[
        Literal["marian"],
        typer.Option("--from", help="The format: MarianMT, OPUS-MT or Marian itself."),
    ] = "marian",
) -> None:
    """Import a Marian or OPUS-MT model into a bundle.

    FOLDER holds Hugging Face's MarianMT (config.json, model.safetensors) or an unpacked zip file
    of OPUS-MT (decoder.yml, an .npz). No code in it is run.
    """
    from pellucid.formats import check_place, import_marian

    check_place(out)
    {"marian": import_marian}[kind](folder).save(out)
    note(str(out))
