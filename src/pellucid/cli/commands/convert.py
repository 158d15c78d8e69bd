"""``pellucid convert``: a bundle from a model in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pellucid.cli.ending import show_made, warn
from pellucid.cli.options import described


@described(
    out=("BUNDLE", "The bundle to write, a new folder.", {"name": "-o --output"}),
    kind=("", "The format of FOLDER: MarianMT, OPUS-MT or Marian itself.", {"name": "--format"}),
)
def convert(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder of a model, as distributed.")
    ],
    out: Path,
    kind: Literal["marian"] = "marian",
) -> None:
    """Import a model of Marian, OPUS-MT or Firefox Translations.

    FOLDER holds Hugging Face's MarianMT (config.json, model.safetensors), an unpacked zip file
    of OPUS-MT (decoder.yml, an .npz), or a model of Firefox Translations (a .bin and a vocabulary
    .spm, unpacked). No code in it is run. Settings of a translation that a bundle has no form for
    are named on standard error.
    """
    from pellucid.functions.convert_model import convert as convert_model

    made = convert_model(folder, out, format=kind)
    if made.dropped:
        warn(
            "These generation settings are not carried over, so that translations may differ from "
            f"those of the program that made the model: {'; '.join(made.dropped)}."
        )
    show_made(str(out))
