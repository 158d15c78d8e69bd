"""What a reader changes in the page, chooses and leaves; long texts, several sentences, a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Browser
from page_reader import PageReader

import pellucid
from pellucid.inside.show.model_page import model_page

TEXT = "The pizza came out of the oven and it tasted good."
SHORT = "I ate the pizza because it tasted good."
LONG = " ".join(["it was good and"] * 27 + ["good"])
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}


@pytest.fixture(scope="module")
def demo_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    demo = pellucid.load("demo")
    path = tmp_path_factory.mktemp("demo") / "page.html"
    path.write_text(
        model_page(demo.bundle, demo.look(SHORT, beam=1), SHORT, name="demo"), encoding="utf-8"
    )
    return path


def remarks(reader: PageReader) -> str:
    return " ".join(" ".join(reader.texts(".remark")).split())


def test_french_is_called_changed_only_where_its_words_differ(
    browser: Browser, demo_page: Path
) -> None:
    reader = PageReader(browser, demo_page, "#view=change&show=words&change=word+8")
    # The full stop is gone: a change without a new word.
    assert not reader.texts(".out .fresh")
    assert reader.texts(".composer .changed") == ["changed"]
    reader = PageReader(browser, demo_page, "#view=change&change=cut+encoder.0.self.0")
    assert not reader.texts(".out .fresh")
    assert not reader.texts(".composer .changed")
    assert "Translated again: the same words." in reader.texts("#panel")[0]
    reader.click("[role=note] .link")
    assert not reader.texts("[role=note]")
    # A word chosen by hand is new, and the model's own is named.
    reader = PageReader(browser, demo_page, "#view=change&show=decoding")
    place = reader.texts(".token .word").index("qu'elle")
    reader.click(".token", place)
    reader.click(".choice", reader.texts(".choice bdi").index("qu'il"))
    assert reader.texts(".composer .changed") == ["changed"]
    assert reader.texts(".out .fresh") == ["qu'il"]
    reader.click("#tab-why")
    said = " ".join(reader.texts(".lead")[0].split())
    assert said.endswith("qu'il, because you chose it. The model itself writes qu'elle.")
    reader.click_text("Undo all")
    assert "prefix=" not in reader.link
    assert "qu'elle" in reader.target


def test_own_sentence_stays_on_offer(browser: Browser, demo_page: Path) -> None:
    reader = PageReader(browser, demo_page)
    assert SHORT not in reader.texts(".examples button")
    reader.click_text(TEXT, ".examples button")
    assert SHORT in reader.texts(".examples button")
    reader.click_text(SHORT, ".examples button")
    assert "qu'elle" in reader.target
    reader.type("")
    assert {SHORT, TEXT} <= set(reader.texts(".examples button"))
    assert not reader.texts("[role=alert]")


def test_sign_has_no_close_words_and_two_sentences_are_offered_one_by_one(
    browser: Browser, demo_page: Path
) -> None:
    reader = PageReader(browser, demo_page)
    reader.type("The pizza is < good.")
    assert "< (nothing close)" in remarks(reader)
    assert not reader.texts(".remark .button")
    reader.type("The pizza is good. The cat is old.")
    assert "These are 2 sentences." in remarks(reader)
    assert reader.texts(".remark .button") == ["The pizza is good.", "The cat is old."]
    reader.click(".remark .button", 1)
    assert reader.run("document.getElementById('sentence').value") == "The cat is old."
    assert not remarks(reader)


def test_long_text_leaves_the_page_responsive_can_be_stopped_and_is_warned_of(
    browser: Browser, demo_page: Path
) -> None:
    # Timers run while the page computes. A wide beam makes that long enough for many breaths;
    # without any there would be one tick.
    reader = PageReader(browser, demo_page, "#decode=beam&beam=12")
    busy = "document.querySelector('#panel[aria-busy=true]')"
    reader.run(f"(() => {{ window.ticks = 0; setInterval(() => {busy} && window.ticks++, 4); }})()")
    reader.type(LONG)
    assert reader.run("window.ticks") > 3
    assert "This translation looks wrong" in remarks(reader)
    reader.wait("document.querySelector('progress')")
    assert "Hiding each word: " in reader.texts("#panel")[0]
    reader.click_text("Stop")
    assert not reader.texts("progress")
    reader.run("new Promise((done) => setTimeout(done, 300))")
    assert not reader.texts("progress"), "it began again by itself"
    assert "Hide each word in turn" in reader.texts("#panel .button")


def test_phone_shows_bars_in_one_column_heads_to_tap_and_the_chosen_cell(
    browser: Browser, demo_page: Path
) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", **PHONE)
    box = "Array.from(document.querySelectorAll({!r}), (one) => one.getBoundingClientRect().{})"
    try:
        reader = PageReader(browser, demo_page)
        reader.wait("document.querySelector('.costs')")
        assert len(set(reader.run(box.format(".costs .column", "left")))) == 1
        tops = reader.run(box.format(".costs button", "top"))
        assert tops == sorted(set(tops))
        # Each label of the odds stands below its own end of the bar.
        (first,), (second,) = (
            reader.run(box.format(f".odds .{name}", side))
            for name, side in (("first", "left"), ("second", "right"))
        )
        (left,), (right,) = (reader.run(box.format(".track", side)) for side in ("left", "right"))
        assert abs(first - left) < 2
        assert abs(second - right) < 2
        reader.click("#tab-look")
        assert min(reader.run(box.format("button.head canvas", "width"))) >= 32
        assert reader.texts(".picture")
        reader = PageReader(browser, demo_page, "#view=change&head=decoder.1.cross.0&cell=5,8")
        (cell,) = reader.run(box.format("td.here", "right"))
        assert cell <= PHONE["width"]
        assert reader.run("document.documentElement.scrollWidth") <= PHONE["width"]
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


def test_terms_are_defined_where_a_reader_meets_them(browser: Browser, demo_page: Path) -> None:
    for link, said in (
        ("look", "A head decides, for each word, which words the model looks at."),
        ("change", "A layer is one round of heads"),
        ("look&show=map", "A row is one word that looks"),
    ):
        reader = PageReader(browser, demo_page, f"#view={link}")
        assert said in reader.texts("#panel")[0]
