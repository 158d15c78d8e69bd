"""What ``pellucid look`` shows in the terminal."""

from __future__ import annotations

import locale
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO, cast

import numpy as np
from rich.console import Console
from rich.text import Text

from pellucid.errors import InputError
from pellucid.inside.ask import HEAD_STAGES, Ask
from pellucid.inside.pair import Pair
from pellucid.inside.show.choose import CLEAREST, clearest_head
from pellucid.inside.show.steps import Place, Step, follow
from pellucid.inside.show.terminal.map import draw_matrix, say_matrix
from pellucid.inside.show.terminal.trace import (
    describe_array,
    draw_array,
    draw_step,
    draw_tokens,
    say_array,
    say_step,
)
from pellucid.inside.traces import Trace
from pellucid.inside.verify import verify_cell
from pellucid.inside.vocabulary import best_words
from pellucid.translator import Translator

__all__ = ["Encodable", "Shown", "Writer", "choose", "show"]

PLAINER = str.maketrans("→▁…·÷√Σαᵢⱼ", ">_~*/v+aij")
"""One letter for one, so that columns stay below each other."""


@dataclass(frozen=True)
class Shown:
    """What is shown of a trace.

    Attributes:
        ask: the arrays; where it names nothing, one head is chosen.
        row: the position that is followed number by number.
        column: the position whose product is shown in full.
        verify: whether the weight there is recomputed.
        words: how many words of the vocabulary are listed by their keys.
    """

    ask: Ask
    row: int | None = None
    column: int | None = None
    verify: bool = False
    words: int = 0


def show(translator: Translator, trace: Trace, shown: Shown, writer: Writer) -> None:
    """Show a trace.

    Raises:
        InputError: there is no such row, column, or stage.
    """
    writer.lines(_about(trace))
    if shown.row is not None:
        _follow(translator, trace, shown, shown.row, writer)
        return
    writer.lines(draw_tokens(trace))
    name, head, why = choose(trace, shown.ask)
    writer.lines(["", *([why] if why else [])])
    writer.array(trace, name, head)


class Writer:
    """Writes to the terminal, as pictures or as sentences.

    Args:
        is_plain: sentences instead of pictures.
    """

    def __init__(self, *, is_plain: bool) -> None:
        self.is_plain = is_plain
        self._console = Console(
            file=cast(TextIO, Encodable(sys.stdout)),
            force_terminal=sys.stdout.isatty(),
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=is_plain,
        )

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines of text."""
        for line in lines:
            self._console.print(line)

    def array(self, trace: Trace, name: str, head: int | None) -> None:
        """Write an array of a trace."""
        self.lines(describe_array(trace, name, head))
        if self.is_plain:
            self.lines(say_array(trace, name, head))
        else:
            self._draw(draw_array(trace, name, head, width=self._console.width))

    def matrix(
        self, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], *, is_share: bool
    ) -> None:
        """Write a matrix: of shares from 0 to 1, or of signed numbers."""
        if self.is_plain:
            self.lines(say_matrix(values, rows, columns, is_share=is_share))
        else:
            width = self._console.width
            self._draw(draw_matrix(values, rows, columns, is_share=is_share, width=width))

    def _draw(self, lines: Iterable[Text]) -> None:
        for line in lines:
            self._console.print(line, no_wrap=True, overflow="crop")

    def step(self, step: Step) -> None:
        """Write one step of a row."""
        self.lines([""])
        if self.is_plain:
            self.lines(say_step(step))
        else:
            self._console.print(Text(step.title, "bold"))
            self.lines([step.formula] if step.formula else [])
            self._console.print(draw_step(step))


class Encodable:
    """A stream for a terminal of another encoding than UTF-8: letter by letter what it can show.

    Args:
        stream: where it goes.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        asked = os.environ.get("PYTHONIOENCODING", "").partition(":")[0]
        self._encoding = asked or locale.getencoding()

    def write(self, text: str) -> int:
        """Write text."""
        try:
            text.encode(self._encoding)
        except (UnicodeEncodeError, LookupError):
            text = text.translate(PLAINER).encode("ascii", "replace").decode("ascii")
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _about(trace: Trace) -> Iterator[str]:
    yield f"Source       {' '.join(trace.source_tokens)}"
    yield f"Target       {' '.join(trace.predicted_tokens)}"
    yield f"             log-probability {sum(trace.log_probabilities):.4f}"
    found = ", ".join(f"{name} {value:.1e}" for name, value in trace.checks.items())
    yield f"Checks       largest differences: {found}"


def choose(trace: Trace, ask: Ask) -> tuple[str, int | None, str]:
    """The one array that is shown, its head, and why that one."""
    names = list(trace.arrays)
    with_heads = [name for name in names if name.rsplit(".", 1)[1] in HEAD_STAGES]
    if not with_heads:
        return names[-1], None, _others(names)
    weights = [name for name in with_heads if name.endswith(".weights")]
    if not weights:
        return with_heads[-1], trace.heads[0], _others(with_heads)
    crossing = [name for name in weights if ".cross." in name]
    name, head = clearest_head(trace, crossing or weights)
    if len(weights) * len(trace.heads) == 1:
        return name, head, ""
    return name, head, f"Shown: {CLEAREST}. Name another with --part, --layer, --kind, --head."


def _others(names: Sequence[str]) -> str:
    if len(names) == 1:
        return ""
    return f"Shown: the last of {len(names)}. Name another with --part, --layer, --kind, --stage."


def _place(trace: Trace, ask: Ask, row: int) -> Place:
    """The head that a row is followed through."""
    part = next(iter(ask.parts or ("decoder",)))
    kind = next(iter(ask.kinds or ("cross" if part == "decoder" else "self",)))
    names = [
        name
        for name in trace.arrays
        if name.startswith(f"{part}.") and name.endswith(f".{kind}.weights")
        if ask.layers is None or int(name.split(".")[1]) in ask.layers
    ]
    if not names:
        raise InputError(
            "A row must be followed through an attention of that part, but there is none in "
            f"{part}, {kind}. Name one with --part, --layer and --kind."
        )
    name, head = clearest_head(trace, names, ask.heads)
    return Place(part, int(name.split(".")[1]), kind, head, row)


def _follow(translator: Translator, trace: Trace, shown: Shown, row: int, writer: Writer) -> None:
    place = _place(trace, shown.ask, row)
    column = shown.column
    steps = list(follow(trace, translator.model.config, place, column=column))
    if column is None:
        column = int(trace.head(f"{place.site}.weights", place.head)[row].argmax())
    reads = trace.query_tokens(place.part)[row]
    predicts = f" → predicts {trace.predicted_tokens[row]}" if place.part == "decoder" else ""
    writer.lines(["", f"Row {row} of {place.site}, head {place.head}: reads {reads}{predicts}"])
    if shown.ask.heads is None:
        writer.lines([f"The head: {CLEAREST}."])
    for step in steps:
        writer.step(step)
    if shown.words:
        writer.lines(["", *_say_words(translator, trace, place, column, shown.words)])
    if shown.verify and translator.bundle is not None:
        found = verify_cell(translator.bundle, trace, place.site, place.head, row, column)
        writer.lines(
            [
                "",
                f"Verified: row {row}, column {column} has the weight {found.shown:.8f}; "
                f"recomputed from the bundle's files {found.recomputed:.8f}; difference "
                f"{found.difference:.1e}.",
            ]
        )


def _say_words(
    translator: Translator, trace: Trace, place: Place, column: int, most: int
) -> Iterator[str]:
    if place.layer or place.kind != "self":
        raise InputError(
            "Words must be matched in layer 0's self-attention (--words), but this is "
            f"{place.site}: its keys follow from the whole sentence. Add --layer 0 --kind self."
        )
    pair = Pair(translator.model, translator.tokenizer, trace.source_ids, trace.predicted_ids)
    part: Any = place.part
    yield f"Words whose keys would match this query best at position {column}, scaled product:"
    for match in best_words(pair, part, head=place.head, row=place.row, position=column, most=most):
        yield f"{match.scaled:9.3f}  {match.token}"
