"""Write the table of experiments, of the verdicts in the log.

    python docs/make_experiments.py

Below a heading of benchmarks/experiments.md stand its verdicts, one a line:

    > - idea · verdict · figure

The table of all of them opens docs/experiments.md and the log itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from page_tables import anchor_of, renew_table

DOCS = Path(__file__).parent
LOG = DOCS.parent / "benchmarks" / "experiments.md"
PAGE = DOCS / "experiments.md"
HEADING = "| idea | verdict | figure | link |"
VERDICTS = ("kept", "kept as an option", "kept, later replaced", "not kept", "not built", "open")


class Verdict(NamedTuple):
    """One idea, as its entry in the log judges it."""

    idea: str
    verdict: str
    figure: str
    date: str
    anchor: str


def read_verdicts(log: str) -> Iterator[Verdict]:
    """Yield the verdicts of the log, in its order.

    Args:
        log: the text of the log.

    Raises:
        ValueError: A line has not three parts, or another verdict than `VERDICTS`.
    """
    date = anchor = ""
    for line in log.splitlines():
        if found := re.match(r"##+ ((\d{4}-\d\d-\d\d)?.*)", line):
            anchor = anchor_of(found[1])
            date = found[2] or date
        if not line.startswith("> - "):
            continue
        parts = line.removeprefix("> - ").split(" · ")
        if len(parts) != 3 or parts[1] not in VERDICTS:
            raise ValueError(
                f"A verdict must be `idea · verdict · figure` with one of {', '.join(VERDICTS)}, "
                f"but is {line!r} (below {anchor})."
            )
        yield Verdict(*parts, date, anchor)


def with_table(page: str, log: str, place: str) -> str:
    """Return a page with the table of the log's verdicts; ``place`` is the log, as it links it."""
    rows = [
        (one.idea, one.verdict, one.figure, f"[{one.date}]({place}#{one.anchor})")
        for one in read_verdicts(log)
    ]
    return renew_table(page, HEADING, rows)


def made_pages() -> dict[Path, str]:
    """Return both pages as they should be."""
    log = LOG.read_text(encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    return {
        PAGE: with_table(page, log, "../benchmarks/experiments.md"),
        LOG: with_table(log, log, ""),
    }


if __name__ == "__main__":
    for path, text in made_pages().items():
        path.write_text(text, encoding="utf-8")
