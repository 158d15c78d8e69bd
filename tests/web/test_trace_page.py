"""The page of a trace in a real browser: every number, the keyboard, and no network."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from browser import Browser, find_browser, start_browser
from made_up_traces import SOURCE, TARGET, make_trace

from pellucid.errors import InputError
from pellucid.inside.heads.rows import head_rows
from pellucid.inside.show.page import data as page_data
from pellucid.inside.show.page.html import trace_page
from pellucid.inside.show.page.notebook import fragment
from pellucid.inside.show.view import View, number_in_cell

TEXTS = "Array.from(document.querySelectorAll({!r}), (one) => one.textContent)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        assert not os.environ.get("CI"), "with CI=1 there must be a browser: install chromium"
        pytest.skip("there is no Chromium or Chrome; with CI=1 that is a failure")
    with start_browser(program, tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "trace.html"
    make_trace().save(path)
    return path


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def texts(browser: Browser, selector: str) -> list[str]:
    return list(browser.run(TEXTS.format(selector)))


def test_page_asks_for_nothing_and_has_no_errors(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.requests == [page.as_uri()]
    assert not browser.problems
    assert "default-src 'none'" in page.read_text(encoding="utf-8").replace("&#x27;", "'")


def test_guard_foreign_script_is_seen_and_forbidden(
    browser: Browser, page: Path, tmp_path: Path
) -> None:
    text = page.read_text(encoding="utf-8")
    foreign = "<script>document.title = 'taken'</script><img src='http://localhost:9/x.png'>"
    browser.open(write(tmp_path / "changed.html", text.replace("</h1>", f"</h1>{foreign}")))
    assert browser.run("document.title") != "taken"
    assert browser.problems


def test_map_has_both_readings_and_the_number_of_every_cell(browser: Browser, page: Path) -> None:
    browser.open(page, "#decoder.1.cross.weights.2")
    view = View(make_trace(), "decoder", 1, "cross", 2)
    assert texts(browser, "#map td") == [number_in_cell(float(w), None) for w in view.cells.flat]
    assert texts(browser, "#map thead th") == ["reads", "predicts", *SOURCE]
    sides = texts(browser, "#map tbody th")
    assert sides[::2] == ["<s>", *TARGET[:-1]]
    assert sides[1::2] == [f"→ {token}" for token in TARGET]
    assert texts(browser, "#caption div") == list(view.caption())


def test_masked_cells_have_no_color_of_the_scale(browser: Browser, page: Path) -> None:
    for stage in ("masked", "weights"):
        browser.open(page, f"#decoder.0.self.{stage}.0")
        assert len(texts(browser, "#map td.masked")) == 6
        assert set(texts(browser, "#map td.masked")) == {"−∞"}
        assert browser.run("document.querySelector('#map td.masked').style.background") == ""


def test_selects_lead_to_every_array_and_head(browser: Browser, page: Path) -> None:
    browser.open(page)
    trace = make_trace()
    for name, value in (("kind", "decoder self"), ("layer", "0"), ("stage", "scaled"), ("head", 1)):
        browser.run(
            f"document.getElementById('{name}').value = '{value}';"
            f"document.getElementById('{name}').dispatchEvent(new Event('change'))"
        )
    view = View(trace, "decoder", 0, "self", 1, "scaled")
    assert texts(browser, "#map td") == [
        number_in_cell(float(value), view.largest) for value in view.cells.flat
    ]
    assert browser.run("location.hash") == "#decoder.0.self.scaled.1"
    stages = ["scores", "scaled", "masked", "weights", "context"]
    assert texts(browser, "#stage option") == stages


def test_keyboard_alone_reaches_a_cell_and_says_its_numbers(browser: Browser, page: Path) -> None:
    browser.open(page, "#decoder.0.cross.weights.0")
    for key in ("l", "h", "h"):
        browser.press(key)
    assert browser.run("location.hash") == "#decoder.1.cross.weights.2"
    browser.run("document.querySelector('#map td[tabindex=\"0\"]').focus()")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowDown"):
        browser.press(key)
    assert browser.run("document.activeElement.dataset.cell") == "1,2"
    said = browser.run("document.getElementById('cell').textContent")
    assert said.startswith("Row 1: reads ▁La → predicts ▁pizza; attends to ▁came (2): scores ")
    numbers = [float(n.replace("−", "-")) for n in re.findall(r"(?<=[a-z] )−?\d[\d.e-]*", said)[1:]]
    trace = make_trace()
    expected = [
        float(View(trace, "decoder", 1, "cross", 2, stage).cells[1, 2])
        for stage in ("scores", "scaled", "masked", "weights")
    ]
    np.testing.assert_allclose(numbers, expected, rtol=1e-6)
    browser.press("H", shift=True)
    assert browser.run("location.hash") == "#decoder.1.cross.weights.1"


def test_row_is_a_table_with_seven_digits(browser: Browser, page: Path) -> None:
    browser.open(page, "#decoder.1.cross.weights.1")
    browser.run("document.querySelectorAll('#map td')[7].click()")
    rows = texts(browser, "#row tbody tr td.number")
    weights = View(make_trace(), "decoder", 1, "cross", 1).cells[1]
    shown = [float(number) for number in rows[3::4]]
    np.testing.assert_allclose(shown, weights, rtol=1e-6)


def test_heads_are_sorted_by_their_figures(browser: Browser, page: Path) -> None:
    browser.open(page)
    rows = head_rows(make_trace())
    places = "Array.from(document.querySelectorAll('#cards button'), (one) => one.dataset.place)"
    assert browser.run(places) == [str(row.head) for row in rows]
    browser.run(
        "document.getElementById('sort').value = 'entropy';"
        "document.getElementById('sort').dispatchEvent(new Event('change'))"
    )
    rows.sort(key=lambda row: -row.entropy)
    assert browser.run(places) == [str(row.head) for row in rows]
    browser.run("document.querySelector('#cards button').click()")
    assert browser.run("location.hash").startswith(f"#{rows[0].head.part}.{rows[0].head.layer}.")


def test_words_that_look_like_code_stay_words(browser: Browser, tmp_path: Path) -> None:
    evil = "</script><script>document.title='taken'</script><img src=x onerror=1>"
    trace = make_trace((evil, "</s>"), ("<!--", "</s>"))
    browser.open(write(tmp_path / "evil.html", trace_page(trace)))
    assert not browser.problems
    assert len(browser.requests) == 1
    assert evil in texts(browser, "#map thead th")
    assert "taken" not in texts(browser, "title")[0].replace(evil, "")


def test_problem_is_told_loudly(browser: Browser, tmp_path: Path) -> None:
    trace = make_trace(checks={"decode": 3.0})
    browser.open(write(tmp_path / "wrong.html", trace_page(trace)))
    assert texts(browser, "[role=alert]") == list(trace.problems)
    assert "WARNING" in " ".join(texts(browser, "#caption div"))


def test_dark_and_light_differ_and_both_can_be_read(browser: Browser, page: Path) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.call("Emulation.setEmulatedMedia", features=features)
        browser.open(page)
        style = "getComputedStyle(document.body)"
        colors = browser.run(f"[{style}.color, {style}.backgroundColor]")
        ink, ground = (
            np.mean([int(number) for number in re.findall(r"\d+", color)[:3]]) for color in colors
        )
        assert abs(ink - ground) > 120
        grounds[scheme] = ground
    browser.call("Emulation.setEmulatedMedia", features=[])
    assert grounds["dark"] < 60 < 200 < grounds["light"]


def test_without_script_one_map_stands_there(browser: Browser, page: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
        document = browser.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        found = browser.call("DOM.querySelectorAll", nodeId=document, selector=".pellucid-map td")
        assert len(found["nodeIds"]) == len(SOURCE) * len(TARGET)
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_long_sentences_come_in_windows_of_rows(browser: Browser, tmp_path: Path) -> None:
    words = (*(f"▁{index}" for index in range(229)), "</s>")
    trace = make_trace(words, words)
    kept = {"decoder.1.cross.weights": trace.weights("decoder", 1, "cross")}
    long = make_trace(words, words, arrays=kept)
    browser.open(write(tmp_path / "long.html", trace_page(long)))
    assert not browser.problems
    assert texts(browser, "#window-words") == ["rows 0 to 172 of 230"]
    assert len(texts(browser, "#map tbody tr")) == 173
    browser.run("document.getElementById('after').click()")
    assert texts(browser, "#window-words") == ["rows 173 to 229 of 230"]


def test_page_that_is_too_large_is_refused_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_data, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match="Ask for fewer layers, heads or stages"):
        trace_page(make_trace())


class Reader(HTMLParser):
    """A parser that collects the tags of a fragment and the texts of its cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.cells: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells and self.lasttag == "td":
            self.cells[-1] += data.strip()


def test_notebook_fragment_is_safe_and_complete() -> None:
    trace = make_trace(("<script>alert(1)</script>", "</s>"), checks={"rows": 0.5})
    reader = Reader(fragment(trace))
    assert set(reader.tags) <= {
        *("div", "style", "p", "b", "br", "figure", "figcaption"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    assert set(reader.attributes) <= {"class", "style", "scope", "title"}
    weights = trace.weights("decoder", 1, "cross")[0]
    assert reader.cells == [number_in_cell(float(weight), None) for weight in weights.flat]
    assert "Each row of weights must sum to 1" in fragment(trace)
    assert trace._repr_html_() == fragment(trace)


def test_notebook_fragment_of_a_trace_without_heads_and_of_a_long_one() -> None:
    logits = {"decoder.logits": np.zeros((len(TARGET), 7), dtype=np.float32)}
    assert "1 arrays, none of them a head's" in fragment(make_trace(arrays=logits))
    words = (*(f"▁{index}" for index in range(119)), "</s>")
    assert "The first 83 of 120 rows are shown" in fragment(make_trace(words, words))
