"""``pellucid lesson``: the five texts as walks."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pellucid.cli.lines.streams import to_json_line
from pellucid.cli.options import Json, Threads, described
from pellucid.errors import InputError


@described(
    list_=("", "List the statements of the text.", {"name": "--list"}),
    first=("N", "Begin at statement N, from 1.", {"name": "--from"}),
    plain=("", "Write everything without waiting for Enter: with all measurements many minutes."),
)
def lesson(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="The text; without one they are listed."),
    ] = None,
    list_: bool = False,
    first: int = 1,
    plain: bool = False,
    json: Json = False,
    threads: Threads = None,
) -> None:
    """Walk through a text on self-attention, statement by statement.

    Each screen has what the text says, a question, the command that answers it with its output,
    the number, where the text errs, and what to try. On a terminal Enter continues and q ends.

    Most answers come at once. Those that are measured (pellucid why) take up to a minute each, and
    --plain does not pause between them; the first screen and --list say which they are.
    """
    from pellucid.lessons.walks.walk import NAMES, load_walk
    from pellucid.machine.hardware import use_threads

    # Only planned here: PyTorch is loaded by the first answer that needs it.
    use_threads(threads)

    if name is None:
        for one in map(load_walk, NAMES):
            size = len(one.statements)
            record = {"name": one.name, "title": one.title, "statements": size}
            line = f"{one.name:12} {one.title} ({size} statements)\n"
            sys.stdout.write(to_json_line(record) if json else line)
        if not json:
            typer.echo("\nBegin with: pellucid lesson lecture")
        return
    found = load_walk(name)
    if json:
        sys.stdout.write(to_json_line(found.to_record()))
        return

    from pellucid.cli.lesson_walk import ask_for_enter, list_statements, walk

    if list_:
        for line in list_statements(found):
            typer.echo(line)
        return
    if not 1 <= first <= len(found.statements):
        raise InputError(
            f"--from must be from 1 to {len(found.statements)}, the statements of {name}, but is "
            f"{first}."
        )
    # Without a person at both ends, waiting for Enter would wait for ever.
    is_walked = sys.stdin.isatty() and sys.stdout.isatty() and not plain
    for line in walk(found, first, wait=ask_for_enter if is_walked else None):
        typer.echo(line)
