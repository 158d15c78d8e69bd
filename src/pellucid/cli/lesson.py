"""``pellucid lesson``: a walk on a terminal, which runs the command of each statement."""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pellucid.cli.app import dispatch
from pellucid.errors import PellucidError
from pellucid.lessons.walks.walk import Statement, Walk

INDENT = "  "
WIDTH = "78"
"""Columns of the output, so that it stands indented in a terminal of 80."""


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
        f"Most answers come at once. {len(measured)} are measured on this machine, some by "
        f"training small models, up to a minute each: statements {', '.join(measured)}."
    )
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
    if statement.vary:
        yield ""
        yield from _fill(f"Try: {statement.tried}")


def ask_for_enter() -> bool:
    """Wait for Enter on the terminal; return False if the reader ends the walk with q."""
    sys.stderr.write("[Enter: continue; q: end] ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    return bool(line) and line.strip().lower() not in ("q", "quit")


def _fill(text: str) -> list[str]:
    width = min(80, shutil.get_terminal_size().columns)
    return textwrap.wrap(text, max(width, 20), break_long_words=False, break_on_hyphens=False)


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
    before = sys.stdout, sys.stderr, os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    sys.stdout, sys.stderr = stream, io.StringIO()
    try:
        yield
    finally:
        sys.stdout, sys.stderr, columns = before
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
