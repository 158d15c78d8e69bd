"""``pellucid keys``: the keys of a server's clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pellucid.cli.ending import note, show_made
from pellucid.errors import InputError


def _refuse_standard(file: Path) -> Path:
    """Refuse ``-``: serve reads standard input with it, but here the file is changed."""
    if str(file) == "-":
        raise InputError("FILE must be a file, which is changed, but is '-'. Name one.")
    return file


KeyFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The key file that serve --key-file reads.",
        callback=_refuse_standard,
    ),
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Who has the key: a note next to its hash.")
]


def keys_add(file: KeyFile, name: Name) -> None:
    """Make a key, write it to standard output, and add its hash to a key file.

    FILE is made if it does not exist, readable by its owner only.
    """
    from pellucid.serve.settings import make_key

    show_made(make_key(file, name))
    note(f"The hash of this key is now in {file}. The key itself is kept nowhere: copy it.")


def keys_list(file: KeyFile) -> None:
    """List the names of the keys in a key file."""
    from pellucid.serve.settings import list_keys

    for name in list_keys(file):
        show_made(name)


def keys_remove(file: KeyFile, name: Name) -> None:
    """Remove the keys of a name from a key file; a running server has read it already."""
    from pellucid.serve.settings import remove_keys

    remove_keys(file, name)
    note(f"The key of {name} is no longer in {file}. Restart servers that have read it.")
