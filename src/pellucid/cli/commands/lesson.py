"""``pellucid lesson``: the five texts as walks."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Annotated

import typer

from pellucid.cli.app import dispatch
from pellucid.cli.lines.streams import to_json_line
from pellucid.cli.options import Json, described
from pellucid.errors import InputError, PellucidError
from pellucid.terminal.text import count_of, wrap

if TYPE_CHECKING:
    from pellucid.lessons.walks.walk import Statement, Walk

INDENT = "  "
# Columns of the output, so that it stands indented in a terminal of 80.
WIDTH = "78"


@described(
    list_=("", "List the statements of the text.", {"name": "--list"}),
    statement=("N", "Begin at statement N, from 1."),
)
def lesson(
    name: Annotated[
        str | None,
        typer.Argument(metavar="LESSON", help="The text; without one they are listed."),
    ] = None,
    list_: bool = False,
    statement: int = 1,
    json: Json = False,
) -> None:
    """Walk through a text on self-attention, statement by statement.

    Each screen has what the text says, a question, the command that answers it with its output,
    the number, where the text errs, and what to try. On a terminal Enter continues and q ends.

    Most answers come at once. Those that are measured (pellucid claim) take up to a minute each,
    and without a terminal nothing waits between them; the first screen and --list say which.
    """
    from pellucid.lessons.walks.walk import NAMES, load_walk

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

    if list_:
        for line in list_statements(found):
            typer.echo(line)
        return
    if not 1 <= statement <= len(found.statements):
        raise InputError(
            f"--statement must be from 1 to {len(found.statements)}, the statements of {name}, but "
            f"is {statement}."
        )
    # Without a person at both ends, waiting for Enter would wait for ever.
    is_walked = sys.stdin.isatty() and sys.stdout.isatty()
    for line in walk(found, statement, wait=ask_for_enter if is_walked else None):
        typer.echo(line)


def list_statements(lesson: Walk) -> Iterator[str]:
    """Yield the contents of a walk, a line for each statement."""
    yield lesson.title
    for number, one in enumerate(lesson.statements, start=1):
        yield f"{number:3}{'*' if one.is_measured else ' '} {one.place}: {one.says}"
    yield "* is measured on this machine, up to a minute."


def walk(lesson: Walk, first: int, *, wait: Callable[[], bool] | None) -> Iterator[str]:
    """Yield the lines of a walk.

    Args:
        lesson: the text.
        first: the number of the first statement, from 1.
        wait: waits for the reader; returns False to end the walk. None never waits.
    """
    statements = lesson.statements
    measured = [str(number) for number, one in enumerate(statements, start=1) if one.is_measured]
    yield lesson.title
    yield ""
    if first == 1:
        yield from _fill(lesson.about)
        yield ""
    yield from _fill(
        "Most answers come at once. Measured on this machine, some by training small models, up to "
        f"a minute each: {count_of(len(measured), 'statement')} ({', '.join(measured)})."
    )
    # Several statements may read one command's output, which is then made once.
    shown: dict[str, str] = {}
    for number, one in enumerate(statements[first - 1 :], start=first):
        yield ""
        yield f"── {number} of {len(statements)} · {one.place} "
        yield from _fill(one.says)
        yield ""
        yield from _fill(f"What do you expect? {one.expect}")
        if wait is not None and not wait():
            return
        yield ""
        if one.command in shown:
            yield "Further down in the same output:"
        else:
            yield f"$ {one.command}"
            if one.is_measured:
                # Shown at once, since the next line is asked for only after this one is written.
                yield f"{INDENT}(measuring, up to a minute …)"
            shown[one.command] = output_of(one)
        yield from answer(one, shown[one.command])
        if wait is not None and number < len(statements) and not wait():
            return


def answer(statement: Statement, output: str) -> Iterator[str]:
    """Yield what answers a statement's question, from what its command wrote."""
    shown = statement.excerpt(output)
    yield from (f"{INDENT}{line}".rstrip() for line in shown)
    left_out = len(output.splitlines()) - len(shown)
    if left_out > 0:
        yield f"{INDENT}({left_out} more lines: give the command yourself)"
    yield ""
    yield from _fill(statement.answer(output))
    if statement.errs:
        yield ""
        yield from _fill(f"Where the text errs: {statement.errs}")
    if further := statement.write_next():
        yield ""
        yield from _fill(f"Try: {further}")


def ask_for_enter() -> bool:
    """Wait for Enter on the terminal; return False if the reader ends the walk with q."""
    sys.stderr.write("[Enter: continue; q: end] ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    # Nothing at all is the end of the input, as after Ctrl-D.
    return bool(line) and line.strip().lower() not in ("q", "quit")


def _fill(text: str) -> list[str]:
    width = min(80, shutil.get_terminal_size().columns)
    return wrap(text, max(width, 20))


def output_of(statement: Statement, *, is_toy: bool = False) -> str:
    """Run a statement's command and return what it writes to standard output.

    Args:
        statement: the statement.
        is_toy: True to measure at the smallest size, for tests.

    Raises:
        PellucidError: the command failed.
    """
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with _written_to(stream):
        small = ["--size", "toy"] if is_toy and statement.is_measured else []
        code = dispatch([*statement.arguments, *small])
    text = stream.buffer.getvalue().decode()
    if code:
        raise PellucidError(f"{statement.command} ended with exit code {code}.")
    return str(text)


@contextmanager
def _written_to(stream: io.TextIOWrapper) -> Iterator[None]:
    """Collect standard output in a stream, and drop standard error."""
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    try:
        with redirect_stdout(stream), redirect_stderr(io.StringIO()):
            yield
    finally:
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
