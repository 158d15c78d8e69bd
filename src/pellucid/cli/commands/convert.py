"""``pellucid convert``: models of others into a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pellucid.cli.ending import note

__all__ = ["convert"]


def convert(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A model on disk, as it was distributed.")
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="BUNDLE", help="The bundle to write; a new folder.")
    ],
    kind: Annotated[
        Literal["marian"],
        typer.Option("--from", help="What FOLDER holds: MarianMT, OPUS-MT or Marian itself."),
    ] = "marian",
) -> None:
    """Import a Marian or OPUS-MT model into a bundle.

    FOLDER is that of Hugging Face's MarianMT (config.json, model.safetensors), or an unpacked
    zip file of OPUS-MT (decoder.yml, an .npz). Nothing in it can run code.
    """
    from pellucid.formats import check_place, import_marian

    check_place(out)
    {"marian": import_marian}[kind](folder).save(out)
    note(str(out))
