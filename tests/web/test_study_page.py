"""The page of a study: the heads as maps, sorted tables, telling lines, no script."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Browser

import pellucid
from pellucid.inside import Study, study
from pellucid.inside.show.colors import ground_and_ink, scale_end
from pellucid.inside.studies.study_page import study_page

OPEN_MAP = "document.querySelector('details[open] table')"
HEADS = "[...document.querySelectorAll('h2 + .scroll table')][0]"
TOLD = "document.getElementById('decoder.1.self.1')"


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
    return study(pellucid.load("demo").bundle, sources)


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
    links = f"[...{OPEN_MAP}.querySelectorAll('a')].map(a => a.hash.slice(1))"
    assert sorted(opened.run(links)) == sorted(found.heads.rows)
    rows = f"[...{OPEN_MAP}.rows].slice(1).map(r => [r.cells[0].textContent, r.cells.length])"
    sites = dict.fromkeys(name.rpartition(".")[0] for name in found.heads.rows)
    assert opened.run(rows) == [[site, 5] for site in sites]
    assert opened.problems == []


def test_page_of_a_study_begins_with_a_figure_and_folds_the_others(
    opened: Browser, found: Study
) -> None:
    folds = opened.run(
        "[...document.querySelectorAll('details')].map(d => [d.open, d.textContent.split('.')[0]])"
    )
    assert folds[0] == [True, "cut_log_probability"]
    assert not any(is_open for is_open, _ in folds[1:])
    order = found.heads.order("cut_log_probability")
    rows = f"[...{HEADS}.rows].slice(1).map(r => r.cells[0].textContent)"
    assert opened.run(rows) == [found.heads.rows[index] for index in order]


def test_colors_of_a_study_are_those_of_every_picture(opened: Browser, found: Study) -> None:
    values = found.heads.column("cut_log_probability")
    assert values.min() < 0
    cells = opened.run(
        f"[...{OPEN_MAP}.querySelectorAll('a')].map(a => a.parentNode.style.backgroundColor)"
    )
    for value, ground in zip(values.tolist(), cells, strict=True):
        hex_color, _ = ground_and_ink(value, scale_end(values))
        red, green, blue = bytes.fromhex(hex_color[1:])
        assert ground == f"rgb({red}, {green}, {blue})"


def test_cell_of_a_study_leads_to_the_most_telling_lines(opened: Browser, found: Study) -> None:
    assert not opened.run(f"{TOLD}.closest('details').open")
    opened.run(f"{OPEN_MAP}.querySelector('a[href$=\"decoder.1.self.1\"]').click()")
    assert opened.run(f"{TOLD}.closest('details').open")
    told = opened.run(f"[...{TOLD}.querySelectorAll('th')].map(cell => cell.textContent)")
    lines = found.telling["decoder.1.self.1"]
    expected = [cell for one in lines for cell in (f"line {one['line'] + 1}", one["source"])]
    assert told == expected
    assert len(lines) == 5


def test_hostile_text_in_a_study_runs_no_script(opened: Browser) -> None:
    opened.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert not opened.run("window.taken")
    assert opened.run("document.querySelectorAll('img, iframe, b, svg').length") == 0
    assert opened.run("document.scripts.length") == 0
    assert len(opened.requests) == 1
    assert opened.problems == []
