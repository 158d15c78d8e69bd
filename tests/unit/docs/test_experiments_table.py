"""The table of experiments, made of the log's verdicts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "docs"))

from make_experiments import HEADING, LOG, made_pages, read_verdicts, with_table

ENTRY = (
    "# Log\n\n## 2026-11-24, a *trial* (`x`, 2 cores)\n\n> - An idea · not kept · 7 instead of 5\n"
)
TABLE = f"\n{HEADING}\n| --- | --- | --- | --- |\n| | | | |\n"


def test_both_pages_hold_the_verdicts_of_the_log() -> None:
    differing = [
        path.name for path, text in made_pages().items() if path.read_text("utf-8") != text
    ]
    assert not differing, "run `python docs/make_experiments.py`"


def test_every_entry_of_the_log_has_a_verdict() -> None:
    log = LOG.read_text(encoding="utf-8")
    sections = re.split(r"^## (?=\d{4})", log, flags=re.MULTILINE)[1:]
    assert len(sections) > 10
    assert not [one.partition("\n")[0] for one in sections if "\n> - " not in one]


def test_a_verdict_gets_the_date_and_the_anchor_of_its_heading() -> None:
    (found,) = read_verdicts(ENTRY)
    assert found == ("An idea", "not kept", "7 instead of 5", "2026-11-24", found.anchor)
    assert found.anchor == "2026-11-24-a-trial-x-2-cores"


def test_a_part_of_an_entry_keeps_its_date() -> None:
    (_, found) = read_verdicts(f"{ENTRY}\n### More\n\n> - Another · kept · 11\n")
    assert (found.date, found.anchor) == ("2026-11-24", "more")


def test_guard_a_changed_verdict_changes_the_table() -> None:
    page = with_table(TABLE, ENTRY, "log.md")
    assert "| An idea | not kept | 7 instead of 5 | [2026-11-24](log.md#2026" in page
    assert with_table(page, ENTRY.replace("7 instead", "13 instead"), "log.md") != page


@pytest.mark.parametrize("line", ["> - An idea · kept", "> - An idea · maybe · 7"])
def test_a_verdict_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="must be `idea · verdict · figure`"):
        list(read_verdicts(line))
