"""``pellucid help``: the help of a command."""

from __future__ import annotations

from typing import Annotated

import typer

from pellucid.cli.overview import show_overview


def help(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="A command, as in bulk run.")
    ] = None,
) -> None:
    """Show the help of a command; without one, the list of commands.

    pellucid help COMMAND is pellucid COMMAND --help.
    """
    # With a command, `pellucid.cli.app.dispatch` shows its help.
    show_overview()
