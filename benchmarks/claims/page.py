"""Judges the kept results again, and makes the page of claims: answers, pictures, rules, tables.

    python benchmarks/claims/page.py

Parts that are missing are measured, but no times: `run.py` does that. Writes ``docs/claims.md`` and
``docs/pictures/claims/CLAIM.svg``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pellucid.cli.commands.why import write_cell
from pellucid.lessons.why.claim import CLAIMS, measure_claim
from pellucid.lessons.why.figure import draw_measurement
from pellucid.lessons.why.kept_results import KeptCells
from pellucid.lessons.why.record import to_record
from pellucid.lessons.why.result import Measurement, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "claims"
PAGE = ROOT / "docs" / "claims.md"
PICTURES = ROOT / "docs" / "pictures" / "claims"
OPENING = """# The claims, measured

What five texts on self-attention and the Transformer claim, measured with `pellucid why CLAIM
--full`: three seeds, or five where a run takes seconds. Each claim has an answer in one sentence,
then its seeds as dots, then the rule that the verdict follows from. A verdict is **open** if one
seed by itself, or all but one, would be judged otherwise: then the runs do not say. Tables list
each seed (1 · 2 · 3), or the middle and the ends of five (2 (1 to 3)).

`python benchmarks/claims/run.py --all` measures what is missing, and
`python benchmarks/claims/page.py` judges and makes this page. `pellucid why CLAIM` has a short form
of each with one seed, in a minute or two; [Why](guides/why.md) explains how to read an answer.

"""


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    found: list[tuple[Measurement, dict[str, Any]]] = []
    for name in CLAIMS:
        path = RESULTS / f"{name}.json"
        if path.exists():
            kept = KeptCells(path, name, is_judged_again=True)
            measurement = measure_claim(name, MeasurementSetting(size="full", kept=kept))
            kept.finish(to_record(measurement))
            draw_measurement(measurement, PICTURES / f"{name}.svg")
            found.append((measurement, json.loads(path.read_text(encoding="utf-8"))["cells"]))
    measured = [measurement for measurement, _ in found]
    sections = [write_section(*each) for each in found]
    PAGE.write_text("\n".join([OPENING + write_answers(measured), *sections]), encoding="utf-8")
    missing = set(CLAIMS) - {measurement.claim for measurement in measured}
    print(f"{len(found)} claims; without results: {', '.join(sorted(missing)) or 'none'}")


def write_answers(measured: list[Measurement]) -> str:
    """Write the table of all answers: each claim's sentence, and the verdict on each statement."""
    lines = ["| claim | answer | verdicts |", "| --- | --- | --- |"]
    for measurement in measured:
        name = f"[`{measurement.claim}`](#{measurement.claim})"
        said = "; ".join(finding.verdict.outcome for finding in measurement.findings)
        asked = f"*{_cell(measurement.question)}* {_cell(measurement.number)}"
        lines.append(f"| {name} | {asked} | {said} |")
    return "\n".join(lines) + "\n"


def write_section(measurement: Measurement, cells: dict[str, Any]) -> str:
    """Write everything that was found about a claim."""
    name = measurement.claim
    lines = [f"## {name}", "", f"**{measurement.question}** {measurement.number}", ""]
    lines += [f"![{_cell(measurement.question)}](pictures/claims/{name}.svg)", ""]
    shown: list[Verdict] = []
    for finding in measurement.findings:
        statement, verdict = finding.statement, finding.verdict
        place = f", {statement.place}" if statement.place else ""
        lines += [f"“{statement.says}” ({statement.text}{place}): **{verdict.sentence}**.", ""]
        if verdict not in shown:  # Otherwise its numbers and its rule stand above.
            lines += [f"- Numbers: {verdict.numbers}.", f"- Rule: {verdict.rule}.", ""]
        shown.append(verdict)
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
        f"`pellucid why {name} --full`; "
        f"{len(cells)} parts in {seconds / 60:.0f} minutes, {days}; {'; '.join(machines)}."
    )
    return "\n".join([*lines, ""])


def write_table(table: ResultTable) -> list[str]:
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


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    main()
