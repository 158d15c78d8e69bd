"""A command of a lesson, run in this process, and its output."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pellucid.cli.app import dispatch
from pellucid.errors import PellucidError
from pellucid.lessons.walks.statement import Statement

WIDTH = "78"
"""Columns of the output, so that it stands indented in a terminal of 80."""


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
