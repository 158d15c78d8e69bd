"""The format of an input file: plain lines, unless its name says that it is a document."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from pellucid.cli.lines.streams import is_special
from pellucid.errors import InputError

__all__ = ["FileFormat", "check_is_lines"]

FileFormat = Annotated[
    Literal["lines"] | None,
    typer.Option("--format", help="Translate every line, whatever the input's name ends in."),
]


def check_is_lines(path: str, file_format: str | None) -> None:
    """Refuse a file whose keywords, tags or time codes would be translated as if they were text.

    Args:
        path: the input; streams, pipes and devices may have any name.
        file_format: the format that the user named; None if the name decides.

    Raises:
        InputError: the name is that of a document.
    """
    from pellucid.text.documents import kind_of_document

    kind = kind_of_document(path)
    if file_format is None and kind is not None and not is_special(path):
        raise InputError(
            f"The input must be lines of text, but {path} is {kind} by its name. Write its texts "
            "into a file of lines first, or add --format lines to translate every line as it is."
        )
