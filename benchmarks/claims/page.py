"""Judges the kept results again, and writes their verdicts, pictures and log.

    python benchmarks/claims/page.py                  # both pages and all pictures
    python benchmarks/claims/page.py --tables memory  # print every number behind a claim

Parts that are missing are measured, but no times: `run.py` does that. Writes the answers and
verdicts in ``docs/claims.md``, the log in ``benchmarks/results/claims/README.md``, and
``docs/pictures/claims/CLAIM.svg``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pellucid.cli.commands.claim import write_cell
from pellucid.lessons.why.figure import draw_measurement
from pellucid.lessons.why.known_claims import CLAIMS, measure_claim
from pellucid.lessons.why.result import MeasuredClaim, Measurement, ResultTable, Verdict, to_record
from pellucid.lessons.why.setting import KeptCells, MeasurementSetting

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "claims"
PAGE = ROOT / "docs" / "claims.md"
LOG = RESULTS / "README.md"
PICTURES = ROOT / "docs" / "pictures" / "claims"

OPENING = """# The claims, measured

Five texts explain self-attention and the Transformer, and what they claim can be measured. Here are
18 questions with their answers. The table under each answer has what the texts say about it, a
verdict on each statement, and the number that decided it.

The texts are the notes "Transformers", the notes "Self-Attention for Transformer Neural Networks",
the slides "Self-Attention", "Self-attention mechanism: objectives", and a lecture on
self-attention, which is not quoted since nothing of it was printed. Words in brackets are added to
a quotation. Three of these brackets add what we think the text means: *[which saves time]*, *[so
that each one is needed]* and *[instead of one head with larger ones]*.

**Verdicts.** An answer begins with *yes*, *no*, *only if* and a condition, or *open*. A statement
*holds*, *fails*, *holds only if* the condition is met, or is *open*. Each verdict follows from
numbers by a rule with fixed limits. *To hold* begins what must be true for a plain *holds*. If it
is true in one case only, the statement *holds only if* that case is given, or *fails* if the rule
says so. The answer to a question is the verdict on the first statement under it; the others are
about the same matter.

**Seeds.** Random numbers decide with which weights a training begins, and which sentences are in a
test. They all follow from one number, the *seed*. Each measurement was repeated with three seeds,
or with five if it takes only seconds. **Open** means that the verdict depends on the seed. All
other verdicts are the same with every seed. Numbers are averages over the seeds, unless they are
given *seed by seed*.

**Shares and counts.** A percentage is a share of what was tested, such as letters or sentences.
*1 of 3 trainings* counts trained networks.

**Networks.** `demo` is the small translator from English to French that comes with Pellucid. All
others that were trained are *tiny*, most of them on a few dozen words of English and French.
Networks of the size in the paper are only timed. *New* sentences were not in the training. A
*recurrent* network reads word by word, or letter by letter. A recurrent network *with one vector*
hands its decoder nothing but the encoder's last state. In one *with attention*, the decoder may
look back at every word.

**Measure it yourself.** `pellucid claim memory` measures one claim in about a minute, with one
seed. `pellucid claim memory --full` measures it with all seeds and more sizes, in up to 25 minutes.
The numbers on this page are those of `--full`. Times are those of one machine. The log of each
claim names that machine, and has the rules, the method, and a picture with a dot for each seed.
[The guide](guides/claim.md) explains more.

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
    """Write all questions with the beginnings of their answers, then a section for each."""
    lines = ["| claim | question | answer |", "| --- | --- | --- |"]
    for measurement in measured:
        name = measurement.claim
        answer = _cell(measurement.findings[0].verdict.answer)
        lines.append(f"| [`{name}`](#{name}) | {_cell(measurement.question)} | {answer} |")
    for measurement in measured:
        lines += ["", *_write_answer(measurement)]
    return "\n".join(lines) + "\n"


def _write_answer(measurement: Measurement) -> list[str]:
    """Write the answer of a claim, and a table of its statements with verdicts and reasons."""
    name = measurement.claim
    return [
        f"## {name}",
        "",
        f"**{measurement.question}**",
        "",
        measurement.number,
        "",
        "| the texts say | verdict | because |",
        "| --- | --- | --- |",
        *map(_say_verdict, measurement.findings),
        "",
        f"[Rules, method and picture](../benchmarks/results/claims/README.md#{name})",
    ]


def _say_verdict(finding: MeasuredClaim) -> str:
    """Write a statement of the texts with its verdict; the log says what each seed says."""
    statement, verdict = finding.statement, finding.verdict
    said = "open" if verdict.outcome == "open" else verdict.sentence
    place = f"{statement.text}, {statement.place}".removesuffix(", ")
    cells = (f"“{statement.says}” ({place})", f"**{said}**", verdict.reason)
    return f"| {' | '.join(map(_cell, cells))} |"


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
