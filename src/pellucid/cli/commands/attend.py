"""``pellucid attend``: attention by hand, step by step."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pellucid.cli.ending import warn
from pellucid.cli.lines.streams import to_json_line
from pellucid.cli.options import Json
from pellucid.errors import InputError, suggestion

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from pellucid.by_hand.printed import WorkedNumber
    from pellucid.by_hand.sheet import Example, Step, Table

__all__ = ["ENDINGS", "NAMES", "attend"]

NAMES = (
    "toy-four",
    "pizza",
    "not-on-your-life",
    "help-me",
    "room-number",
    "show-me-the-money",
    "lets-go",
)
"""Spelled out, because asking for the examples would make ``--help`` import PyTorch."""

ENDINGS = (".toml", ".csv", ".toml.gz", ".csv.gz")
_WIDEST_NAME = 16
_NARROWEST = 24
_MOST_ROWS_NAMED = 8


def attend(
    example: Annotated[
        str,
        typer.Argument(
            metavar="EXAMPLE", help=f"One of {', '.join(NAMES)}; or a file, .toml or .csv."
        ),
    ],
    row: Annotated[
        int | None,
        typer.Option("--row", metavar="N", help="Follow one row, from 0, number by number."),
    ] = None,
    d_key: Annotated[
        int | None,
        typer.Option(
            "--d-key",
            metavar="N",
            help="The d_k of not-on-your-life, which its text leaves out; 64.",
        ),
    ] = None,
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Sentences instead of tables, for a screen reader."),
    ] = False,
    json: Json = False,
) -> None:
    """Work attention out by hand, step by step: a text's example, or your own matrices.

    Every number is computed, in float64. Where a text prints another one, the difference and its
    cause are shown.

    A TOML file has x, one row a token, and any of w_query, w_key and w_value (left out: the
    identity); or query, key and value as they are. It may have tokens = ["a", "b"] and key_tokens;
    mask = "causal", or rows of true and false (true = may attend); and scale = false, or a number
    to divide the scores by instead of √d_k.

    A CSV file has one matrix that is queries, keys and values at once, a token a line. Its first
    line may name the tokens.
    """
    if json and plain:
        warn("--plain has no effect with --json.")
    worked = _find(example, d_key)
    if row is not None:
        from pellucid.by_hand.row import follow_row_of

        worked = follow_row_of(worked, row)
    if json:
        sys.stdout.write(to_json_line(_to_record(worked)))
    elif plain:
        sys.stdout.writelines(f"{_clean(_spoken(line))}\n" for line in _say(worked))
    else:
        _draw(worked, has_hint=row is None)


def _find(name: str, d_key: int | None) -> Example:
    """The example of a name, or the one that a file holds."""
    if d_key is not None and name != "not-on-your-life":
        warn("--d-key has no effect except on not-on-your-life.")
    if name not in NAMES and not name.lower().endswith(ENDINGS):
        raise InputError(
            f"EXAMPLE must be a known example or a .toml or .csv file, but is {name!r}. "
            + suggestion(name, NAMES)
        )
    if name not in NAMES:
        from pellucid.by_hand.matrices import read_example

        return read_example(Path(name))
    if name == "not-on-your-life" and d_key is not None:
        from pellucid.by_hand.examples.not_on_your_life import not_on_your_life

        return not_on_your_life(d_key)
    from pellucid.by_hand.examples.by_name import EXAMPLES

    return EXAMPLES[name]()


def _draw(example: Example, *, has_hint: bool) -> None:
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
            _write(console, Text.assemble((step.name, "bold"), _after("  ", step.formula)))
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

    place, cause = _unquoted(number.place), _unquoted(number.cause)
    if number.is_right:
        said = f"printed {' '.join(number.printed)} ({place}): right"
        _write(console, Text(said + _after("; ", cause)), "  ", "      ")
        return
    _write(console, Text.assemble(("differs ", "bold yellow"), f"({place})"), "  ", "      ")
    rows = (number.printed, _numbers(number.computed), _differences(number))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, texts in zip(("printed", "computed", "off by"), rows, strict=True):
        cells = (text.rjust(width) for text, width in zip(texts, widths, strict=True))
        _write(console, Text(f"{name:<9} {' '.join(cells)}"), "      ", "          ")
    _write(console, Text(f"why: {cause}"), "      ", "          ")


def _differences(number: WorkedNumber) -> list[str]:
    """Printed minus computed."""
    return _numbers(
        [float(text) - value for text, value in zip(number.printed, number.computed, strict=True)]
    )


def _draw_table(table: Table, width: int, *, is_shaded: bool) -> Iterator[Text]:
    """Lines of a table, in blocks of columns that fit into the width."""
    from rich.cells import cell_len
    from rich.text import Text

    rows, columns = _names(table.rows), _names(table.columns)
    values = table.values_LX.tolist()
    cells = _align(values)
    label = max(map(cell_len, rows))
    widths = [
        max(cell_len(name), *(len(row[index]) for row in cells))
        for index, name in enumerate(columns)
    ]
    for start, end in _blocks(widths, width - label):
        block = range(start, end)
        heads = "".join("  " + _right(columns[index], widths[index]) for index in block)
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
    written = [[_number(value) for value in row] for row in values]
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
        return _number(value) + " " * (decimals + 1 if decimals else 0)
    return f"{value:.{decimals}f}".replace("-", "−")


def _say(example: Example) -> Iterator[str]:
    """Write for people who listen: one thing a line, names beside numbers."""
    yield f"{example.title}."
    if example.text:
        yield f"From: {example.text}."
    yield example.note
    for part in example.parts:
        yield ""
        yield f"{part.title}."
        if part.note:
            yield part.note
        for step in part.steps:
            yield from _say_step(step)


def _say_step(step: Step) -> Iterator[str]:
    yield f"{step.name}{_after(': ', step.formula)}."
    if step.note:
        yield step.note
    yield from step.lines
    for table in step.tables:
        for name, row in zip(table.rows, table.values_LX.tolist(), strict=True):
            pairs = zip(table.columns, _numbers(row), strict=True)
            numbers = "; ".join(f"{column} {number}".strip() for column, number in pairs)
            yield f"{step.name}{_after(' ', table.title)}, {name}: {numbers}."
    for number in step.printed:
        cause = _unquoted(number.cause)
        start = f"{_unquoted(number.place)}: printed {', '.join(number.printed)}"
        if number.is_right:
            yield f"{start}, which is right{_after('; ', cause)}."
            continue
        computed = ", ".join(_numbers(number.computed))
        apart = _number(number.largest_difference)
        yield f"{start}, computed {computed}: differs by up to {apart}, because {cause}."


def _spoken(line: str) -> str:
    return line.replace("−∞", "minus infinity").replace("−", "-")


def _to_record(example: Example) -> dict[str, Any]:
    parts = [
        {
            "title": part.title,
            "note": part.note,
            "steps": [_step_record(step) for step in part.steps],
        }
        for part in example.parts
    ]
    record = {"name": example.name, "title": example.title, "text": example.text}
    return {**record, "note": example.note, "parts": parts}


def _step_record(step: Step) -> dict[str, Any]:
    return {
        "name": step.name,
        "formula": step.formula,
        "note": step.note,
        "tables": [
            {
                "title": table.title,
                "rows": table.rows,
                "columns": table.columns,
                "values": table.values_LX.tolist(),
            }
            for table in step.tables
        ],
        "lines": step.lines,
        "printed": [
            {
                "place": number.place,
                "printed": number.printed,
                "computed": number.computed,
                "is_right": number.is_right,
                "largest_difference": number.largest_difference,
                "cause": number.cause,
            }
            for number in step.printed
        ],
    }


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
    text.plain = _clean(text.plain)
    indent = first if later is None else later
    room = max(_width(console) - max(len(first), len(indent)), 1)
    for index, line in enumerate(text.wrap(console, room)):
        line.rstrip()
        start = indent if index else first
        console.print(type(line)(start) + line, no_wrap=True, overflow="ignore", crop=False)


def _width(console: Console) -> int:
    return max(console.width, _NARROWEST)


def _names(names: Sequence[str]) -> list[str]:
    """Names fit for a table: printable, and not too wide."""
    from rich.cells import cell_len, set_cell_size

    clean = [_clean(name) for name in names]
    return [
        name if cell_len(name) <= _WIDEST_NAME else set_cell_size(name, _WIDEST_NAME - 1) + "…"
        for name in clean
    ]


def _right(name: str, width: int) -> str:
    from rich.cells import cell_len

    return " " * (width - cell_len(name)) + name


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _unquoted(text: str) -> str:
    """Without the marks of Markdown, which the pages have and a terminal does not show."""
    return text.replace("`", "")


def _after(separator: str, text: str) -> str:
    return f"{separator}{text}" if text else ""


def _number(value: float) -> str:
    from pellucid.by_hand.sheet import write_number

    return write_number(value)


def _numbers(values: Sequence[float]) -> list[str]:
    return [_number(value) for value in values]
