"""The tables of measured figures, made of the files of results."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "docs"))

from make_measured import MARK, PAGES, TABLES, with_tables
from result_files import span, table
from speed_tables import Cell, ratio_of

MEASURED, README, GUIDE = PAGES
BEGINS = re.compile(r"(?<!\|)\n(\|.*\|\n\|[-:| ]+\|\n)")
"""The heading of a table and the line below it."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_hold_what_the_result_files_say(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert with_tables(text) == text, "run `python docs/make_measured.py`"


def test_every_table_of_measured_figures_is_made_or_says_why_not() -> None:
    text = MEASURED.read_text(encoding="utf-8")
    without = [
        found[1]
        for found in BEGINS.finditer(text)
        if not re.search(r"<!-- (made|by hand): [^>]+ -->$", text[: found.start()])
    ]
    assert len(BEGINS.findall(text)) > 12
    assert not without
    quality = README.read_text(encoding="utf-8").partition("## How good, how fast")[2]
    assert len(BEGINS.findall(quality)) == quality.count("<!-- made: ") == 2


def test_every_table_stands_on_a_page() -> None:
    marked = [name for page in PAGES for name in MARK.findall(page.read_text(encoding="utf-8"))]
    assert sorted(marked) == sorted(TABLES)


def test_open_cells_of_more_minutes_are_shown() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert "| captions (Multi30k) | 29,000 | 20 | | 899 | 32.3 [" in text
    assert "| real prose | 230,000 | 240 | | | open | | |" in text


def test_guard_a_changed_figure_is_found() -> None:
    text = README.read_text(encoding="utf-8")
    changed = text.replace("**63.0**", "**64.0**")
    assert changed != text
    assert with_tables(changed) == text


def test_worse_ratio_of_medians_is_told() -> None:
    cell = Cell("small", "128 sentences, greedy", "x", 19.0, 23.0, "ctranslate2", 1.05)
    assert ratio_of(cell) == "1.05 (of the medians 0.83)"
    assert ratio_of(cell._replace(ours=29.0, ratio=1.31)) == "1.3"


def test_cells_of_a_table_are_written_as_pages_have_them() -> None:
    assert table("| a | b |", "| --- | --- |", [("", "2"), ("", "")]) == (
        "| a | b |\n| --- | --- |\n| | 2 |\n| | |\n"
    )
    assert span([2.68, 3.04]) == "2.7 to 3.0"
    assert span([12.97, 13.02], 0) == "13"
