"""What is given in the place of a model: other programs' models, their parts, text, and runs.

``foreign.toml`` has the kinds. Only names and the ends of files are looked at, and nothing in them
is unpickled or run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from shlex import quote

from pellucid.config.parsing import read_json_text, read_toml_text
from pellucid.files import reading

_END = 1 << 20
"""Bytes of a file that are looked at, from its beginning and from its end."""


def identify_foreign(path: Path) -> tuple[str, str]:
    """Tell what a path is that holds no bundle, and what to do about it.

    Args:
        path: an existing file or folder.

    Returns:
        What it is, to follow "is", and a sentence.

    Raises:
        PellucidError: it cannot be read.
    """
    kinds = read_toml_text(files("pellucid").joinpath("foreign.toml").read_text("utf-8"))
    folder = path if path.is_dir() else path.parent
    with reading(path):
        text = "".join(_describe(path))
        is_of_model = any((folder / name).is_file() for name in ("config.json", "decoder.yml"))
        # A folder of a foreign model is one thing; in others a model may lie one level down.
        inner = sorted(path.iterdir()) if folder == path and not is_of_model else []
    places = (place for one in inner for place in (one, one / "bundle"))
    models = [one for one in places if read_kind(one) == "ours"]
    for kind in kinds["kind"]:
        match = re.search(kind["fits"], text, re.DOTALL)
        # Who gives a folder with a model and text in it wants the model.
        if match is None or (models and kind["advice"] == "TRAIN"):
            continue
        if kind["advice"] == "PART" and folder != path and is_of_model:
            what, advice = identify_foreign(folder)
            return f"one file of {what}", advice
        advice = kinds["advice"].get(kind["advice"], kind["advice"])
        return match.expand(kind["is"]), advice.format(folder=quote(str(folder)))
    if models:
        return "a folder with a model in it", f"Name that one: {quote(str(models[0]))}"
    return "a folder of something else", kinds["advice"]["OTHER"]


def read_kind(folder: Path) -> str:
    """Read the kind of model that a folder's config.json names; ``ours``, or empty if none."""
    with suppress(OSError, ValueError):
        if (folder / "config.json").is_file():
            values = read_json_text(_read_ends(folder / "config.json"))
            if isinstance(values, dict):
                is_ours = {"model", "tokenizer"} <= values.keys()
                return "ours" if is_ours else str(values.get("model_type") or "")
    return ""


def _describe(path: Path) -> Iterator[str]:
    """Describe a path in the form that ``foreign.toml`` expects."""
    if path.is_dir():
        shown = [one for one in path.iterdir() if not one.name.startswith(".")]
        names = sorted(f"\n/{one.name}/" if one.is_dir() else f"\n/{one.name}" for one in shown)
        yield "".join(["folder", *names, "\n" if names else ""])
        yield f"kind {kind}\n" if (kind := read_kind(path)) else ""
    else:
        yield f"file /{path.name}\n"
        # Latin-1 has a character for every byte, so no file fails here.
        yield _read_ends(path).decode("latin-1") if path.is_file() else ""


def _read_ends(path: Path) -> bytes:
    """Read a file's beginning and its end, which lists the files of a zip archive."""
    with path.open("rb") as stream:
        beginning = stream.read(_END)
        # Not before the end of the first part, so that no byte is read twice.
        stream.seek(max(_END, path.stat().st_size - _END))
        return beginning + stream.read()
