"""Import of a model of Marian, whichever kind of folder it is."""

from __future__ import annotations

from pathlib import Path

from pellucid.errors import BundleError, InputError, InputFileNotFoundError
from pellucid.formats.from_hugging_face import import_hugging_face
from pellucid.formats.from_marian import import_marian_archive
from pellucid.formats.imported import ImportedModel


def import_marian(folder: Path) -> ImportedModel:
    """Read a model of Marian, in Hugging Face's form or in Marian's own.

    Args:
        folder: a folder of MarianMT (``config.json``, ``model.safetensors``), or of Marian
            (``decoder.yml``, an ``.npz``).

    Raises:
        InputFileNotFoundError: the folder does not exist.
        InputError: it is a file.
        BundleError: it is damaged, incomplete, or holds another format.
    """
    if not folder.exists():
        raise InputFileNotFoundError(f"The folder {folder} does not exist. Check the name.")
    if not folder.is_dir():
        raise InputError(
            f"FOLDER must be a folder, but {folder} is a file. Unpack it, and give the folder."
        )
    if (folder / "config.json").is_file():
        return import_hugging_face(folder)
    if any(folder.glob("*decoder.yml")) or any(folder.glob("*.npz")):
        return import_marian_archive(folder)
    raise BundleError(
        "FOLDER must hold config.json (a model of Hugging Face's MarianMT) or decoder.yml (one "
        f"of Marian itself), but {folder} holds neither. Give the folder that has the weights."
    )
