"""Judges the kept results again, and writes their verdicts, pictures and log.

    python benchmarks/claims/page.py                  # both pages and all pictures
    python benchmarks/claims/page.py --tables memory  # print every number behind a claim

Parts that are missing are measured, but no times: `run.py` does that. Writes the table of verdicts
in ``docs/claims.md``, the log in ``benchmarks/results/claims/README.md``, and
``docs/pictures/claims/CLAIM.svg``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pellucid.cli.commands.claim import write_cell
from pellucid.lessons.why.figure import draw_measurement
from pellucid.lessons.why.kept_results import KeptCells
from pellucid.lessons.why.known_claims import CLAIMS, measure_claim
from pellucid.lessons.why.record import to_record
from pellucid.lessons.why.result import MeasuredClaim, Measurement, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "claims"
PAGE = ROOT / "docs" / "claims.md"
LOG = RESULTS / "README.md"
PICTURES = ROOT / "docs" / "pictures" / "claims"

OPENING = """# The claims, measured

What five texts on self-attention and the Transformer claim, measured with `pellucid claim CLAIM
--full`. Each measurement is repeated with three or five *seeds*: a seed fixes the random numbers
with which a training begins, or the sentences of a test. Numbers are averages over the seeds.

The answer comes first: yes, no, or only under a condition. **Open** means that the seeds
disagree. Then come the numbers. The last column has what the texts say, with a verdict on each
statement. `demo` is the small translator from English to French that comes with Pellucid. A
*recurrent* network reads word by word, or letter by letter, and can keep what it has read in one
vector.

Each name leads to the log: the numbers of each verdict, the rule that it follows from, and the
seeds as dots. [The guide](guides/claim.md) explains how to measure an answer on your machine.

"""

LOG_OPENING = """# The claims, measured: the log

The statements behind [the answers](../../../docs/claims.md), with the numbers and the rule that
each verdict follows from. The pictures have every seed as a dot. The files in this folder have
every number, and `python benchmarks/claims/page.py --tables CLAIM` prints them as tables.
`python benchmarks/claims/run.py --all` measures what is missing, and
`python benchmarks/claims/page.py` judges again and writes both pages.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", choices=CLAIMS, metavar="CLAIM", help="print a claim's tables")
    name = parser.parse_args().tables
    if name is not None:
        measurement, _ = judge(name)
        for table in measurement.tables:
            print("\n".join([*write_table(table), ""]))
        return
    write_pages()


def write_pages() -> None:
    """Judge every claim that has results, and write its picture and both pages."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    measured: list[Measurement] = []
    sections: list[str] = []
    for name in CLAIMS:
        if not (RESULTS / f"{name}.json").exists():
            continue
        measurement, kept = judge(name)
        kept.finish(to_record(measurement))
        draw_measurement(measurement, PICTURES / f"{name}.svg")
        record = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        measured.append(measurement)
        sections.append(write_section(measurement, record["cells"]))
    PAGE.write_text(OPENING + write_answers(measured), encoding="utf-8")
    LOG.write_text(LOG_OPENING + "\n".join(sections), encoding="utf-8")
    missing = set(CLAIMS) - {measurement.claim for measurement in measured}
    print(f"{len(measured)} claims; without results: {', '.join(sorted(missing)) or 'none'}")


def judge(name: str) -> tuple[Measurement, KeptCells]:
    """Judge a claim again by what is kept of it."""
    kept = KeptCells(RESULTS / f"{name}.json", name, is_judged_again=True)
    return measure_claim(name, MeasurementSetting(size="full", kept=kept)), kept


def write_answers(measured: list[Measurement]) -> str:
    """Write the table of all answers: each claim's sentence, and the verdict on each statement."""
    lines = ["| claim | answer | what the texts say, and the verdict |", "| --- | --- | --- |"]
    for measurement in measured:
        place = f"../benchmarks/results/claims/README.md#{measurement.claim}"
        name = f"[`{measurement.claim}`]({place})"
        said = "<br>".join(map(_say_verdict, measurement.findings))
        asked = f"*{_cell(measurement.question)}* {_cell(measurement.number)}"
        lines.append(f"| {name} | {asked} | {said} |")
    return "\n".join(lines) + "\n"


def _say_verdict(finding: MeasuredClaim) -> str:
    """Write a statement of the texts with its verdict; the log says what each seed says."""
    verdict = finding.verdict
    said = "open" if verdict.outcome == "open" else verdict.sentence
    return f"“{_cell(finding.statement.says)}”: **{_cell(said)}**"


def write_section(measurement: Measurement, cells: dict[str, Any]) -> str:
    """Write the log of a claim: its statements with their rules, the method, notes and machines."""
    name = measurement.claim
    picture = f"../../../docs/pictures/claims/{name}.svg"
    lines = [f"## {name}", "", f"![{_cell(measurement.question)}]({picture})", ""]
    shown: list[Verdict] = []
    for finding in measurement.findings:
        statement, verdict = finding.statement, finding.verdict
        place = f", {statement.place}" if statement.place else ""
        lines += [f"“{statement.says}” ({statement.text}{place}): **{verdict.sentence}**.", ""]
        if verdict not in shown:  # Otherwise its numbers and its rule stand above.
            lines += [f"- Numbers: {verdict.numbers}.", f"- Rule: {verdict.rule}.", ""]
        shown.append(verdict)
    lines += [measurement.method, ""]
    for note in measurement.notes:
        lines += [note, ""]
    seconds = sum(cell["seconds"] for cell in cells.values())
    dates = sorted({cell["date"] for cell in cells.values()})
    days = " to ".join(dates[:1] + dates[1:][-1:])
    machines = sorted({cell["machine"] for cell in cells.values()})
    lines.append(
        f"`pellucid claim {name} --full`; "
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
