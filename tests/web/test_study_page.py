"""The page of a study: the heads as a map, sorted tables, telling lines, no foreign script."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Browser

import pellucid
from pellucid.inside import Study, study
from pellucid.inside.study.study_page import study_page

CELLS = "[...document.querySelectorAll('.maps button')]"
CELL = """document.querySelector('[data-head="decoder.1.self.1"]')"""
FIRST = "[...document.querySelectorAll('#heads tr th[scope=row]')].map(th => th.textContent)"


HOSTILE = (
    "</script><script>window.taken = 1</script>",
    "<img src=x onerror='window.taken = 1'>",
    "<svg onload=window.taken=1>",
    "${window.taken = 1}",
    "<!-- <script>",
    "</title><b>HASH DATA</b>",
)


@pytest.fixture(scope="module")
def found() -> Study:
    sources = ["The soup was cold.", *(f"{text} The soup was cold." for text in HOSTILE)]
    return study(pellucid.load("demo").own_bundle, sources)


@pytest.fixture
def opened(browser: Browser, found: Study, tmp_path: Path) -> Browser:
    path = tmp_path / "study.html"
    html = study_page(found, title="</script><b>demo", sort="cut_log_probability")
    path.write_text(html, encoding="utf-8")
    browser.open(path)
    return browser


def test_map_of_a_study_has_a_cell_for_each_head_in_the_models_shape(
    opened: Browser, found: Study
) -> None:
    assert sorted(opened.run(f"{CELLS}.map(b => b.dataset.head)")) == sorted(found.heads.rows)
    shape = "[t.caption.textContent, t.rows.length, t.rows[1].cells.length]"
    tables = "[...document.querySelectorAll('.maps table')]"
    assert opened.run(f"{tables}.map(t => {shape})") == [
        ["encoder self", 3, 5],
        ["decoder self", 3, 5],
        ["decoder cross", 3, 5],
    ]
    assert opened.problems == []


def test_table_of_a_study_is_sorted_by_any_figure(opened: Browser, found: Study) -> None:
    def order(figure: str, *, up: bool) -> list[str]:
        values = found.heads.column(figure)
        return [found.heads.rows[i] for i in (values if up else -values).argsort(kind="stable")]

    assert opened.run(FIRST) == order("cut_log_probability", up=True)
    buttons = "[...document.querySelectorAll('#heads button')]"
    click = f"{buttons}.find(b => b.textContent === 'entropy').click()"
    opened.run(click)
    assert opened.run(FIRST) == order("entropy", up=True)
    opened.run(click)
    assert opened.run(FIRST) == order("entropy", up=False)
    assert opened.run("document.getElementById('figure').value") == "entropy"
    row = found.heads.rows.index("decoder.1.self.1")
    shown = opened.run(f"{CELL}.textContent")
    assert float(shown) == pytest.approx(found.heads.column("entropy")[row], abs=1e-3)


def test_cell_of_a_study_opens_the_most_telling_lines(opened: Browser, found: Study) -> None:
    opened.run(f"{CELL}.click()")
    told = opened.run(
        "[...document.querySelectorAll('#head dl')].map(l => l.children[1].textContent)"
    )
    assert told == [one["source"] for one in found.telling["decoder.1.self.1"]]
    assert len(told) == 5
    assert opened.run(f"{CELL}.getAttribute('aria-pressed')") == "true"


def test_hostile_text_in_a_study_runs_no_script(opened: Browser, found: Study) -> None:
    for row in range(len(found.heads.rows)):
        opened.run(f"{CELLS}[{row}].click()")
    assert not opened.run("window.taken")
    assert opened.run("document.querySelectorAll('img, iframe, b, svg').length") == 0
    assert opened.run("document.scripts.length") == 2
    assert len(opened.requests) == 1
    assert opened.problems == []
