"""A measurement on the terminal: the statement, the number, the tables, the verdict."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from pellucid.cli.ending import warn
from pellucid.cli.lines.streams import check_target, to_json_line
from pellucid.cli.why.progress import Doing
from pellucid.errors import InputError
from pellucid.files import writing
from pellucid.lessons.why.claim import CLAIMS
from pellucid.lessons.why.result import Cell, Finding, Measurement, Table, Verdict

if TYPE_CHECKING:
    from pellucid.lessons.why.kept import KeptCells

KEPT_IN = Path("why-results")
"""The folder for finished parts of full measurements, in the current folder."""

_WIDTH = 80
_STYLES = {"holds": "bold green", "holds only if": "bold yellow", "fails": "bold red"}


def list_claims(*, is_json: bool) -> None:
    """Write the names of all claims with their questions."""
    if is_json:
        claims = [
            {"claim": one.name, "question": one.question, "is_timed": one.is_timed,
             "is_trained": one.is_trained}
            for one in CLAIMS.values()
        ]  # fmt: skip
        sys.stdout.write(to_json_line({"claims": claims}))
        return
    width = max(map(len, CLAIMS))
    for claim in CLAIMS.values():
        sys.stdout.write(f"{claim.name:{width}}  {claim.question}\n")
    sys.stdout.write(
        "\nMeasure one: pellucid why scale --png scale.png\n"
        "Each takes less than a minute on two cores; with --full up to 25 minutes.\n"
    )


def answer(
    name: str, *, size: str, kept_in: Path | None, seed: int, threads: int | None,
    picture: Path | None, is_json: bool,
) -> None:  # fmt: skip
    """Measure a claim and show what was found.

    Args:
        name: the claim.
        size: ``quick``, ``toy`` or ``full``.
        kept_in: the folder for finished parts of a full measurement; None takes `KEPT_IN`.
        seed: of everything drawn.
        threads: of the processor; None takes all.
        picture: the file to draw into, if any.
        is_json: True to write JSON.
    """
    if picture is not None:
        from pellucid.inside.show.figures.style import check_ending

        check_ending(picture)  # Before a minute of measuring.
        check_target(str(picture), may_overwrite=True)

    from pellucid.lessons.why import Setting, measure_claim
    from pellucid.lessons.why.record import to_record
    from pellucid.machine.hardware import set_threads

    kept = _open_kept(name, kept_in or KEPT_IN) if size == "full" else None
    set_threads(threads)
    started = time.monotonic()
    with Doing() as doing:
        setting = Setting(size=size, seed=seed, say=doing.say, kept=kept)  # type: ignore[arg-type]
        measurement = measure_claim(name, setting)
    if kept is not None:
        kept.finish(to_record(measurement))
    seconds = time.monotonic() - started
    if picture is not None:
        from pellucid.lessons.why.figure import draw_measurement

        draw_measurement(measurement, picture)
    if is_json:
        sys.stdout.write(to_json_line(to_record(measurement)))
    else:
        _draw(measurement)
    if picture is not None:
        warn(f"The picture is in {picture}.")
    seeds = f"seed {seed}" if kept is None else f"seeds {', '.join(map(str, setting.seeds))}"
    warn(f"Measured in {seconds:.0f} s with {seeds}.")
    if kept is not None:
        warn(f"The parts are in {(kept_in or KEPT_IN) / name}.json.")


def _open_kept(name: str, folder: Path) -> KeptCells:
    from pellucid.lessons.why.kept import KeptCells

    if folder.exists() and not folder.is_dir():
        raise InputError(f"--results must be a folder, but {folder} is a file. Name another.")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return KeptCells(folder / f"{name}.json", name)


def _draw(measurement: Measurement) -> None:
    console = Console(highlight=False, soft_wrap=True)
    _print(console, Text(measurement.question, "bold"))
    _print(console, Text(measurement.number))
    shown: list[Verdict] = []
    for finding in measurement.findings:
        console.print()
        _draw_finding(console, finding, is_new=finding.verdict not in shown)
        shown.append(finding.verdict)
    console.print()
    _print(console, Text(measurement.method))
    for table in measurement.tables:
        console.print()
        suffix = ", on this machine" if table.is_of_this_machine else ""
        _print(console, Text(table.title + suffix, "bold"))
        for line in _table_lines(table):
            console.print(Text("  " + line), no_wrap=True, overflow="ignore", crop=False)
    for note in measurement.notes:
        console.print()
        _print(console, Text(note))
    console.print()
    if measurement.machine:
        _print(console, Text(f"Times are those of this machine: {measurement.machine}."))
    _print(console, Text("Try: " + " · ".join(measurement.to_try)))


def _draw_finding(console: Console, finding: Finding, *, is_new: bool) -> None:
    statement, verdict = finding.statement, finding.verdict
    place = f", {statement.place}" if statement.place else ""
    _print(console, Text(f"“{statement.says}”"))
    _print(console, Text(f"{statement.text}{place}"), "  ")
    first = Text.assemble((verdict.outcome, _STYLES[verdict.outcome]), f" {verdict.condition}")
    first.rstrip()
    _print(console, first, "  ")
    if not is_new:
        return  # The numbers and the rule stand above.
    _print(console, Text(f"numbers: {verdict.numbers}"), "  ", "    ")
    _print(console, Text(f"rule: {verdict.rule}"), "  ", "    ")


def _print(console: Console, text: Text, indent: str = "", later: str | None = None) -> None:
    """Print a text, broken into lines of at most 80 columns."""
    width = min(console.width, _WIDTH)
    rest = indent if later is None else later
    lines = textwrap.wrap(
        text.plain, width, initial_indent=indent, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    for index, line in enumerate(lines):
        shown = Text(line, text.style)
        for span in text.spans if index == 0 else ():
            shown.stylize(span.style, span.start + len(indent), span.end + len(indent))
        console.print(shown, no_wrap=True, overflow="ignore", crop=False)


def _table_lines(table: Table) -> Iterator[str]:
    """Lay out a table: words to the left, numbers to the right, two spaces between columns."""
    rows = [
        [write_cell(cell, form) for cell, form in zip(row, table.forms, strict=True)]
        for row in table.rows
    ]
    widths = [
        max(cell_len(text) for text in column)
        for column in zip(table.columns, *rows, strict=True)
    ]  # fmt: skip
    yield _row(table.columns, widths, table.forms)
    for row in rows:
        yield _row(row, widths, table.forms)


def write_cell(cell: Cell, form: str) -> str:
    """Write a cell of a table; a number that does not exist is a dash."""
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    return format(cast(float, cell), form).replace("-", "−")


def _row(texts: Sequence[str], widths: Sequence[int], forms: Sequence[str]) -> str:
    cells = []
    for text, width, form in zip(texts, widths, forms, strict=True):
        room = " " * (width - cell_len(text))
        cells.append(room + text if form else text + room)
    return "  ".join(cells).rstrip()
