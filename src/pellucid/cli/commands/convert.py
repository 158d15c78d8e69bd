"""``pellucid convert``: a bundle from a model in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pellucid.cli.ending import show_made, warn
from pellucid.cli.options import described


@described(
    out=("BUNDLE", "The bundle to write, a new folder.", {"name": "-o --output"}),
    kind=(
        "",
        "The format, which a folder shows by itself; or a checkpoint of PyTorch's nn.Transformer.",
        {"name": "--format"},
    ),
    config=(
        "FILE",
        "With --format nn-transformer: what the weights do not say, as TOML. A draft is written "
        "there if it does not exist.",
    ),
)
def convert(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The folder of a model, as distributed; or a checkpoint."
        ),
    ],
    out: Path,
    kind: Literal["auto", "marian", "nn-transformer"] = "auto",
    config: Path | None = None,
) -> None:
    """Import a model of another program into a bundle.

    FOLDER holds Hugging Face's MarianMT, M2M100, NLLB, SMaLL-100, mBART-50 or BART (config.json,
    model.safetensors), an unpacked zip file of OPUS-MT (decoder.yml, an .npz), or a model of
    Firefox Translations (a .bin and a vocabulary .spm, unpacked). No code in it is run. Settings of
    a translation that a bundle has no form for are named on standard error.

    With --format nn-transformer it is a checkpoint that torch.save wrote of a model built on
    PyTorch's nn.Transformer, and --config describes the rest.
    """
    from pellucid.functions.convert_model import convert as convert_model

    made = convert_model(folder, out, format=kind, config=config)
    if made.dropped:
        warn(
            "These generation settings are not carried over, so that translations may differ from "
            f"those of the program that made the model: {'; '.join(made.dropped)}."
        )
    show_made(str(out))
