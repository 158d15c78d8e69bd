"""The format of an input file: plain lines or JSON Lines; documents are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import typer

from pellucid.cli.lines.streams import is_special
from pellucid.cli.options import Option
from pellucid.errors import InputError

Format = Literal["lines", "jsonl"]

FileFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="What the input holds: lines of text, whatever its name ends in, or JSON Lines. "
        "[default: by its name]",
    ),
]
KEYS: Mapping[str, Option] = {
    "column": (
        str,
        "KEY",
        "Key of the text in JSON Lines, such as text or translation.en. [default: text, source, "
        "or the code of the source language]",
    ),
    "into": (
        str,
        "KEY",
        "Key of the translation in JSON Lines. [default: translation, or the code of the target "
        "language next to that of the source]",
    ),
}
"""Options for the keys of JSON Lines."""


def is_json_lines(path: str) -> bool:
    """Tell whether a file's name says that it holds JSON Lines."""
    return path.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson"))


def choose_format(path: str, file_format: Format | None) -> Format:
    """Choose the format of the input.

    A file whose keywords, tags or time codes would be translated as if they were text is refused.

    Args:
        path: the input; streams, pipes and devices may have any name.
        file_format: the format that the user named; None if the name decides.

    Raises:
        InputError: the name is that of a document.
    """
    from pellucid.text.reading.rows import kind_of_document

    if file_format is not None:
        return file_format
    if is_json_lines(path):
        return "jsonl"
    kind = kind_of_document(path)
    if kind is not None and not is_special(path):
        raise InputError(
            f"The input must be lines of text or JSON Lines, but {path} is {kind} by its name. "
            "Write its texts into a file of lines first, or add --format lines to translate every "
            "line as it is."
        )
    return "lines"
