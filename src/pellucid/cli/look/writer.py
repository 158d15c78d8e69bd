"""Output to the terminal, as pictures or as sentences."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Sequence

import numpy as np
from rich.console import Console
from rich.text import Text

from pellucid.inside.show.steps import NumberTable
from pellucid.inside.show.terminal import (
    describe_array,
    draw_matrix,
    draw_table,
    likeliest,
    matrix_of,
    say_matrix,
    say_table,
)
from pellucid.inside.traces import Trace
from pellucid.terminal.text import styled_output, wants_sentences
from pellucid.text.tokenizers.whole_words import without_joiners

_VISIBLE = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"}
_VISIBLE |= {0x7F: 0x2421}
_VISIBLE |= dict.fromkeys((*range(0x80, 0xA0), 0x061C, 0x200E, 0x200F), 0xFFFD)
_VISIBLE |= dict.fromkeys((*range(0x2028, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)
"""Control characters to pictures of them, and marks of direction: a model's tokens may hold them,
and a terminal would obey."""


class LookWriter:
    """A writer to the terminal."""

    def __init__(self) -> None:
        self.is_plain = wants_sentences()
        # An encoding that the user asked for holds for pipes too.
        asked = os.environ.get("PYTHONIOENCODING", "").partition(":")[0]
        if asked and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding=asked, errors="letters")
        self._console = Console(
            file=styled_output(),
            # Whatever FORCE_COLOR says: a file must hold no color codes.
            force_terminal=sys.stdout.isatty(),
            highlight=False,
            markup=False,
            emoji=False,
            # A screen reader wants whole sentences; the terminal breaks them.
            soft_wrap=self.is_plain,
        )

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines of text."""
        for line in lines:
            self._console.print(_visible(line))

    def array(self, trace: Trace, name: str, head: int | None) -> None:
        """Write an array of a trace."""
        self.lines(describe_array(trace, name, head))
        if name != "decoder.logits":
            self.matrix(*matrix_of(trace, name, head), is_share=name.endswith(".weights"))
        elif self.is_plain:
            self.lines(likeliest(trace))
        else:
            self._draw(map(Text, likeliest(trace)))

    def matrix(
        self, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], *, is_share: bool
    ) -> None:
        """Write a matrix of shares from 0 to 1, or of signed numbers."""
        # Before columns are measured.
        rows = list(map(_visible, rows))
        columns = list(map(_visible, columns))
        if self.is_plain:
            self.lines(say_matrix(values, rows, columns, is_share=is_share))
        else:
            width = self._console.width
            self._draw(draw_matrix(values, rows, columns, is_share=is_share, width=width))

    def table(self, table: NumberTable) -> None:
        """Write a table, in several parts if it is wider than the window."""
        self.lines([""])
        if self.is_plain:
            self.lines(say_table(table))
        else:
            rows = tuple(
                tuple(_visible(cell) if isinstance(cell, str) else cell for cell in row)
                for row in table.rows
            )
            header = tuple(map(_visible, table.header))
            table = NumberTable(_visible(table.title), _visible(table.formula), header, rows)
            self._console.print(Text(table.title, "bold"))
            self.lines([table.formula] if table.formula else [])
            for number, part in enumerate(draw_table(table, width=self._console.width)):
                self.lines([""] if number else [])
                self._console.print(part)

    def _draw(self, lines: Iterable[Text]) -> None:
        for line in lines:
            line.plain = _visible(line.plain)
            self._console.print(line, no_wrap=True, overflow="crop")


def _visible(text: str) -> str:
    """Write a text as a reader sees it: ``￭.`` is a full stop."""
    return without_joiners(text).translate(_VISIBLE)
