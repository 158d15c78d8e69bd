"""``pellucid claim``: one-minute measurements of what the texts claim."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from pellucid.cli.ending import note, warn
from pellucid.cli.lines.streams import to_json_line
from pellucid.cli.options import Json, Threads, described
from pellucid.cli.outputs import Files, OverwriteFiles, choose_outputs, shown_path
from pellucid.errors import InputError, suggestion
from pellucid.files import write_text, writing

if TYPE_CHECKING:
    from pellucid.lessons.why import MeasurementSetting
    from pellucid.lessons.why.result import Cell, MeasuredClaim, Measurement, Verdict
    from pellucid.lessons.why.setting import KeptCells
    from pellucid.terminal.printing import Printer

# The folder for finished parts of full measurements, in the current folder.
KEPT_IN = Path("claim-results")

_STYLES = {
    "holds": "bold green",
    "holds only if": "bold yellow",
    "fails": "bold red",
    "open": "bold blue",
}


@described(
    full=(
        "",
        "Measure more sizes with three seeds, in up to 25 minutes. Finished parts are kept in "
        "claim-results, or in the folder that -o FOLDER/ names, and not measured again.",
    ),
    seed=("N", "Seed of everything drawn.", {"min": 0}),
    # For tests: at the size toy a measurement takes a moment, and its numbers mean nothing.
    size=("", "", {"hidden": True}),
)
def claim(
    name: Annotated[
        str | None,
        typer.Argument(metavar="CLAIM", help="The claim to measure; without one they are listed."),
    ] = None,
    full: bool = False,
    seed: int = 1,
    json: Json = False,
    output: Files = None,
    overwrite: OverwriteFiles = False,
    threads: Threads = None,
    size: str = "quick",
) -> None:
    """Measure a claim of the texts on this machine, in a minute or two.

    --full takes longer: more sizes, and three seeds, or five if a run takes seconds. Press
    Ctrl-C at any time: the same command continues after the last finished part.

    The answer comes first, in one sentence; then the statements of the texts with a verdict each:
    holds, holds only if, fails, or open if the seeds of --full disagree; then the tables behind
    them. The verdict follows from the numbers by a rule that is shown. Times
    are those of this machine, everything else depends on the seed. The minute is that
    of two cores.
    """
    from pellucid.lessons.why.known_claims import CLAIMS

    if name is None:
        # The default seed is not told from one that was given.
        given = {"output": output, "full": full, "seed": seed != 1}
        _list_claims(json, threads=threads, **given)
        return
    if name not in CLAIMS:
        raise InputError(
            f"CLAIM must be one of those that pellucid claim lists, but is {name!r}. "
            + suggestion(name, CLAIMS)
        )
    if size not in ("quick", "toy"):
        raise InputError(f"--size must be quick or toy, but is {size!r}. Leave it out.")
    folders = [path for path in output or () if path.endswith("/") or Path(path).is_dir()]
    if folders and (not full or len(folders) > 1):
        raise InputError(
            f"-o {folders[-1]} is a folder for the parts of a full measurement, of which there is "
            "one. Add --full, or name a file."
        )
    results = Path(folders[0]) if folders else KEPT_IN
    files = [path for path in output or () if path not in folders]
    # Before a minute of measuring.
    outputs = choose_outputs(files, ("svg", "png", "pdf", "json"), overwrite=overwrite, json=json)

    from pellucid.lessons.why.result import to_record
    from pellucid.machine.hardware import set_threads

    # A folder that cannot be written to must show before the first minute.
    kept = _open_kept(name, results) if full else None
    set_threads(threads)
    started = time.monotonic()
    setting, measurement = _measure(name, "full" if full else size, seed, kept)
    if kept is not None:
        kept.finish(to_record(measurement))
    seconds = time.monotonic() - started
    for path, form in outputs.files.items():
        if form == "json":
            write_text(path, to_json_line(to_record(measurement)), follows_link=True)
        else:
            from pellucid.lessons.why.figure import draw_measurement

            draw_measurement(measurement, path)
    if outputs.standard == "json":
        sys.stdout.write(to_json_line(to_record(measurement)))
    elif outputs.standard == "text":
        _draw(measurement)
    for path in outputs.files:
        if not shown_path(path).startswith("-."):
            note(f"The result is in {path}.")
    seeds = f"seed {seed}" if kept is None else f"seeds {', '.join(map(str, setting.seeds))}"
    note(f"Measured in {seconds:.0f} s with {seeds}.")
    if kept is not None:
        note(f"The parts are in {results / name}.json.")


def _list_claims(is_json: bool, **given: object) -> None:
    """Write the names of all claims with their questions; options that were given do nothing."""
    from pellucid.lessons.why.known_claims import CLAIMS

    for option, value in given.items():
        if value:
            name = "-o" if option == "output" else f"--{option}"
            warn(f"{name} has no effect without a claim to measure.")
    if is_json:
        claims = [
            {
                "claim": one.name,
                "question": one.question,
                "is_timed": one.is_timed,
                "is_trained": one.is_trained,
            }
            for one in CLAIMS.values()
        ]
        sys.stdout.write(to_json_line({"claims": claims}))
        return
    width = max(map(len, CLAIMS))
    for claim in CLAIMS.values():
        sys.stdout.write(f"{claim.name:{width}}  {claim.question}\n")
    sys.stdout.write(
        "\nMeasure one: pellucid claim scale -o scale.png\n"
        "Each takes a minute or two; with --full up to 25 minutes.\n"
    )


def _measure(
    claim: str, size: str, seed: int, kept: KeptCells | None
) -> tuple[MeasurementSetting, Measurement]:
    from pellucid.lessons.why import MeasurementSetting, measure_claim
    from pellucid.terminal.progress import ProgressLine

    with ProgressLine() as line:
        setting = MeasurementSetting(
            size=size,  # type: ignore[arg-type]
            seed=seed,
            say=lambda doing: line.show(f"{doing} …"),
            kept=kept,
        )
        return setting, measure_claim(claim, setting)


def _open_kept(name: str, folder: Path) -> KeptCells:
    from pellucid.lessons.why.setting import KeptCells

    if folder.exists() and not folder.is_dir():
        raise InputError(f"The folder of parts must be a folder, but {folder} is a file. Move it.")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return KeptCells(folder / f"{name}.json", name)


def _draw(measurement: Measurement) -> None:
    """Show the statement, the number, the verdict and the tables."""
    from pellucid.terminal.printing import Printer
    from pellucid.terminal.text import lay_out

    printer = Printer(widest=80)
    printer.paragraph(measurement.question, "bold")
    printer.paragraph(measurement.number)
    shown: list[Verdict] = []
    for finding in measurement.findings:
        printer.line()
        _draw_finding(printer, finding, is_new=finding.verdict not in shown)
        shown.append(finding.verdict)
    printer.line()
    printer.paragraph(measurement.method)
    for table in measurement.tables:
        printer.line()
        suffix = ", on this machine" if table.is_of_this_machine else ""
        printer.paragraph(table.title + suffix, "bold")
        rows = [
            [write_cell(cell, form) for cell, form in zip(row, table.forms, strict=True)]
            for row in table.rows
        ]
        for line in lay_out([table.columns, *rows], list(map(bool, table.forms))):
            printer.line(f"  {line}")
    for remark in measurement.notes:
        printer.line()
        printer.paragraph(remark)
    printer.line()
    if measurement.machine:
        printer.paragraph(f"Times are those of this machine: {measurement.machine}.")
    printer.paragraph("Try: " + " · ".join(measurement.to_try))


def _draw_finding(printer: Printer, finding: MeasuredClaim, *, is_new: bool) -> None:
    from rich.text import Text

    statement = finding.statement
    verdict = finding.verdict
    place = f", {statement.place}" if statement.place else ""
    printer.paragraph(f"“{statement.says}”")
    printer.paragraph(f"{statement.text}{place}", first="  ")
    outcome = (verdict.outcome, _STYLES[verdict.outcome])
    rest = verdict.sentence.removeprefix(verdict.outcome)
    printer.paragraph(Text.assemble(outcome, rest), first="  ")
    printer.paragraph(verdict.reason, first="  ")
    if is_new:  # Otherwise the numbers and the rule stand above.
        printer.paragraph(f"numbers: {verdict.numbers}", first="  ", later="    ")
        printer.paragraph(f"rule: {verdict.rule}", first="  ", later="    ")


def write_cell(cell: Cell, form: str) -> str:
    """Write a cell of a table; a number that does not exist is a dash."""
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    return format(cast(float, cell), form).replace("-", "−")
