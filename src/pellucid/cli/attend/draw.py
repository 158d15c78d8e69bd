"""A worked example as tables on a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from pellucid.by_hand.printed import WorkedNumber
    from pellucid.by_hand.sheet import Example, Step, Table
from pellucid.cli.attend.words import (
    align_right,
    drop_backquotes,
    format_number,
    format_numbers,
    make_printable,
    prefix_unless_empty,
    shorten_names,
)

__all__ = [
    "draw_example",
]


_NARROWEST = 24


_MOST_ROWS_NAMED = 8


def draw_example(example: Example, *, has_hint: bool) -> None:
    """Write for people who look: aligned tables, colors where there are any."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    _write(console, Text(example.title, "bold"))
    if example.text:
        _write(console, Text(f"From: {example.text}"))
    _write(console, Text(example.note))
    for part in example.parts:
        console.print()
        _write(console, Text(part.title, "bold underline"))
        if part.note:
            _write(console, Text(part.note))
        for step in part.steps:
            console.print()
            _write(
                console, Text.assemble((step.name, "bold"), prefix_unless_empty("  ", step.formula))
            )
            _draw_step(console, step)
    if has_hint and (hint := _hint(example)):
        console.print()
        _write(console, Text(hint))


def _draw_step(console: Console, step: Step) -> None:
    from rich.text import Text

    if step.note:
        _write(console, Text(step.note), "  ")
    for line in step.lines:
        _write(console, Text(line), "  ", "      ")
    for table in step.tables:
        if table.title:
            _write(console, Text(table.title), "  ")
        for line_text in _draw_table(table, _width(console) - 2, is_shaded=step.name == "weights"):
            console.print(Text("  ") + line_text, no_wrap=True, overflow="ignore", crop=False)
    for number in step.printed:
        _draw_number(console, number)


def _draw_number(console: Console, number: WorkedNumber) -> None:
    """What a text prints, what it should be, how far apart they are, and why."""
    from rich.text import Text

    place, cause = drop_backquotes(number.place), drop_backquotes(number.cause)
    if number.is_right:
        said = f"printed {' '.join(number.printed)} ({place}): right"
        _write(console, Text(said + prefix_unless_empty("; ", cause)), "  ", "      ")
        return
    _write(console, Text.assemble(("differs ", "bold yellow"), f"({place})"), "  ", "      ")
    rows = (number.printed, format_numbers(number.computed), _differences(number))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, texts in zip(("printed", "computed", "off by"), rows, strict=True):
        cells = (text.rjust(width) for text, width in zip(texts, widths, strict=True))
        _write(console, Text(f"{name:<9} {' '.join(cells)}"), "      ", "          ")
    _write(console, Text(f"why: {cause}"), "      ", "          ")


def _differences(number: WorkedNumber) -> list[str]:
    """Printed minus computed."""
    return format_numbers(
        [float(text) - value for text, value in zip(number.printed, number.computed, strict=True)]
    )


def _draw_table(table: Table, width: int, *, is_shaded: bool) -> Iterator[Text]:
    """Lines of a table, in blocks of columns that fit into the width."""
    from rich.cells import cell_len
    from rich.text import Text

    rows, columns = shorten_names(table.rows), shorten_names(table.columns)
    values = table.values_LX.tolist()
    cells = _align(values)
    label = max(map(cell_len, rows))
    widths = [
        max(cell_len(name), *(len(row[index]) for row in cells))
        for index, name in enumerate(columns)
    ]
    for start, end in _blocks(widths, width - label):
        block = range(start, end)
        heads = "".join("  " + align_right(columns[index], widths[index]) for index in block)
        yield Text(" " * label + heads, "bold")
        for name, row, numbers in zip(rows, cells, values, strict=True):
            line = Text(name + " " * (label - cell_len(name)))
            for index in block:
                line.append("  ")
                style = _shade(numbers[index]) if is_shaded else ""
                line.append(row[index].rjust(widths[index]), style)
            if not is_shaded:
                line.rstrip()
            yield line


def _blocks(widths: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """Which columns stand side by side: as many as fit, one at least."""
    start, used = 0, 0
    for index, width in enumerate(widths):
        if index > start and used + width + 2 > room:
            yield start, index
            start, used = index, 0
        used += width + 2
    yield start, len(widths)


def _shade(weight: float) -> str:
    """The color of a weight, and black or white on it."""
    from pellucid.inside.show.colors import ink_on, shade

    color = shade(weight)
    return f"{ink_on(color)} on #{color[0]:02x}{color[1]:02x}{color[2]:02x}"


def _align(values: Sequence[Sequence[float]]) -> list[list[str]]:
    """Write numbers with one count of decimals, so that the points stand below each other."""
    written = [[format_number(value) for value in row] for row in values]
    is_wild = any("e" in text for row in written for text in row)
    decimals = max(
        6 if "e" in text else len(text.partition(".")[2]) for row in written for text in row
    )
    if is_wild and any(abs(v) >= 1e9 for row in values for v in row if math.isfinite(v)):
        return written
    return [[_fix(value, decimals=decimals) for value in row] for row in values]


def _fix(value: float, *, decimals: int) -> str:
    """With a fixed count of decimals; a whole zero or infinity leaves theirs blank."""
    if value == 0 or math.isinf(value):
        return format_number(value) + " " * (decimals + 1 if decimals else 0)
    return f"{value:.{decimals}f}".replace("-", "−")


def _hint(example: Example) -> str:
    """Which rows can be followed."""
    names = [part.attention.query_names for part in example.parts if part.attention]
    if not names:
        return ""
    longest = max(map(len, names))
    rows = [
        f"{index} {'/'.join(dict.fromkeys(row[index] for row in names if index < len(row)))}"
        for index in range(min(longest, _MOST_ROWS_NAMED))
    ]
    rows += ["…"] if longest > len(rows) else []
    return f"Number by number: pellucid attend {example.name} --row N ({', '.join(rows)})."


def _write(console: Console, text: Text, first: str = "", later: str | None = None) -> None:
    """Write words that wrap, with what each line begins with."""
    text.plain = make_printable(text.plain)
    indent = first if later is None else later
    room = max(_width(console) - max(len(first), len(indent)), 1)
    for index, line in enumerate(text.wrap(console, room)):
        line.rstrip()
        start = indent if index else first
        console.print(type(line)(start) + line, no_wrap=True, overflow="ignore", crop=False)


def _width(console: Console) -> int:
    return max(console.width, _NARROWEST)
