"""Makes the page of claims from the kept results: pictures, tables, and the table of verdicts.

    python benchmarks/claims/page.py

Writes ``docs/claims.md``, ``docs/pictures/claims/CLAIM.svg``, and the table of verdicts between the
marks ``<!-- verdicts -->`` and ``<!-- end of verdicts -->`` of ``README.md`` and
``docs/lessons/README.md``, one row a claim.
"""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any

from pellucid.cli.commands.why import write_cell
from pellucid.lessons.why.claim import CLAIMS
from pellucid.lessons.why.figure import draw_measurement
from pellucid.lessons.why.result import (
    Finding,
    Measurement,
    Panel,
    Plot,
    Series,
    Statement,
    Table,
    Verdict,
)

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "claims"
PAGE = ROOT / "docs" / "claims.md"
PICTURES = ROOT / "docs" / "pictures" / "claims"
MARKS = ("<!-- verdicts -->", "<!-- end of verdicts -->")
OPENING = """# The claims, measured

What five texts on self-attention and the Transformer claim, measured with
`pellucid why CLAIM --full`: three seeds, and 95 % intervals over them. The verdict follows from the
numbers by a rule that stands with it, so that you can disagree. `python benchmarks/claims/run.py
--all` measures everything again, and `python benchmarks/claims/page.py` makes this page. `pellucid
why CLAIM` has a short form of each, in less than a minute; [Why](guides/why.md) explains how to
read an answer.

"""


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    found: list[tuple[Measurement, dict[str, Any]]] = []
    for name in CLAIMS:
        path = RESULTS / f"{name}.json"
        record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if record.get("measurement"):
            found.append((from_record(record["measurement"]), record["cells"]))
    for measurement, _ in found:
        draw_measurement(measurement, PICTURES / f"{measurement.claim}.svg")
    measured = [measurement for measurement, _ in found]
    sections = [write_section(*each) for each in found]
    PAGE.write_text("\n".join([OPENING + write_verdicts(measured), *sections]), encoding="utf-8")
    for page in (ROOT / "README.md", ROOT / "docs" / "lessons" / "README.md"):
        replace_verdicts(page, measured)
    missing = set(CLAIMS) - {measurement.claim for measurement in measured}
    print(f"{len(found)} claims; without results: {', '.join(sorted(missing)) or 'none'}")


def from_record(record: dict[str, Any]) -> Measurement:
    """Restore a measurement from its record; null in a plot becomes a number that is not finite."""
    found = dict(record)
    found["findings"] = tuple(_finding(each) for each in record["findings"])
    found["tables"] = tuple(_table(each) for each in record["tables"])
    found["plot"] = Plot(tuple(_panel(each) for each in record["plot"]["panels"]))
    found["notes"], found["to_try"] = tuple(record["notes"]), tuple(record["to_try"])
    return Measurement(**found)


def _finding(record: dict[str, Any]) -> Finding:
    verdict = {key: text for key, text in record["verdict"].items() if key != "sentence"}
    return Finding(Statement(**record["statement"]), Verdict(**verdict))


def _table(record: dict[str, Any]) -> Table:
    return Table(
        record["title"], tuple(record["columns"]), tuple(record["forms"]),
        tuple(map(tuple, record["rows"])), record["is_of_this_machine"],
    )  # fmt: skip


def _panel(record: dict[str, Any]) -> Panel:
    found = dict(record)
    found["series"] = tuple(_series(each) for each in record["series"])
    found["names"] = tuple(record["names"])
    found["y_range"] = record["y_range"] and tuple(record["y_range"])
    return Panel(**found)


def _series(record: dict[str, Any]) -> Series:
    def numbers(name: str) -> tuple[float, ...]:
        return tuple(math.nan if value is None else value for value in record[name])

    return Series(
        record["name"], numbers("x"), numbers("y"), record["role"], numbers("low"),
        numbers("high"),
    )  # fmt: skip


def write_verdicts(measured: list[Measurement]) -> str:
    """Write the table of all verdicts."""
    lines = ["| claim | statement | verdict |", "| --- | --- | --- |"]
    for measurement in measured:
        name = f"[`{measurement.claim}`](#{measurement.claim})"
        for finding in measurement.findings:
            verdict = finding.verdict
            said = f"**{verdict.outcome}** {_cell(verdict.condition)}".strip()
            lines.append(f"| {name} | “{_cell(finding.statement.says)}” | {said} |")
            name = ""
    return "\n".join(lines) + "\n"


def write_summary(measured: list[Measurement], page: Path) -> str:
    """Write one row for each claim: its question and its verdicts."""
    target = os.path.relpath(PAGE, page.parent)
    lines = ["| claim | question | verdicts |", "| --- | --- | --- |"]
    for measurement in measured:
        said = dict.fromkeys(
            f"**{finding.verdict.outcome}** {_cell(finding.verdict.condition)}".strip()
            for finding in measurement.findings
        )
        name = f"[`{measurement.claim}`]({target}#{measurement.claim})"
        lines.append(f"| {name} | {_cell(measurement.question)} | {'; '.join(said)} |")
    return "\n".join(lines) + "\n"


def write_section(measurement: Measurement, cells: dict[str, Any]) -> str:
    """Write everything that was found about a claim."""
    name = measurement.claim
    lines = [f"## {name}", "", f"**{measurement.question}** {measurement.number}", ""]
    lines += [f"![{_cell(measurement.question)}](pictures/claims/{name}.svg)", ""]
    for finding in measurement.findings:
        statement, verdict = finding.statement, finding.verdict
        place = f", {statement.place}" if statement.place else ""
        lines += [f"“{statement.says}” ({statement.text}{place}): **{verdict.sentence}**.", ""]
        lines += [f"- Numbers: {verdict.numbers}.", f"- Rule: {verdict.rule}.", ""]
    lines += [measurement.method, ""]
    for table in measurement.tables:
        lines += [*write_table(table), ""]
    for note in measurement.notes:
        lines += [note, ""]
    seconds = sum(cell["seconds"] for cell in cells.values())
    dates = sorted({cell["date"] for cell in cells.values()})
    days = " to ".join(dates[:1] + dates[1:][-1:])
    machines = sorted({cell["machine"] for cell in cells.values()})
    lines.append(
        f"`pellucid why {name} --full`, seeds {measurement.seed} to {measurement.seed + 2}; "
        f"{len(cells)} parts in {seconds / 60:.0f} minutes, {days}; {'; '.join(machines)}."
    )
    return "\n".join([*lines, ""])


def write_table(table: Table) -> list[str]:
    """Write a table: words to the left, numbers to the right."""
    title = table.title + (", on this machine" if table.is_of_this_machine else "")
    heads = [_cell(column) or " " for column in table.columns]
    rule = [" ---: " if form else " --- " for form in table.forms]
    rows = [
        [_cell(write_cell(cell, form)) for cell, form in zip(row, table.forms, strict=True)]
        for row in table.rows
    ]
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join(rule)}|"]
    return [f"{title}:", "", *lines, *(f"| {' | '.join(row)} |" for row in rows)]


def replace_verdicts(page: Path, measured: list[Measurement]) -> None:
    """Replace the table between the marks of a page; a page without marks stays as it is."""
    text = page.read_text(encoding="utf-8")
    between = re.compile(f"{re.escape(MARKS[0])}.*?{re.escape(MARKS[1])}", re.DOTALL)
    new = f"{MARKS[0]}\n{write_summary(measured, page)}{MARKS[1]}"
    page.write_text(between.sub(lambda _: new, text), encoding="utf-8")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    main()
