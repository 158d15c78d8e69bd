"""The page for readers with their own colors, without motion, and with other scripts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import Browser
from made_up_traces import make_trace
from page_in_node import WEB
from page_reader import PageReader

from pellucid.inside.show.model_page import trace_page

VIEWS = (
    "why",
    "why&show=measures",
    "look",
    "look&show=map&open=1",
    "change",
    "change&show=decoding",
)
SCRIPTS = {
    "arabic": ("خرجت", "البيتزا", "من", "الفرن", "</s>"),
    "hebrew": ("הפיצה", "יצאה", "מן", "התנור", "</s>"),
    "chinese": ("比萨饼从烤箱里出来", "了", "，", "味道很好", "</s>"),
    "thai": ("พิซซ่าออกมาจากเตาอบ", "และ", "มัน", "อร่อย", "</s>"),
}


@contextmanager
def emulated(browser: Browser, **features: str) -> Iterator[None]:
    """Let the browser report what a reader has set."""
    named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    browser.call("Emulation.setEmulatedMedia", features=named)
    try:
        yield
    finally:
        browser.call("Emulation.setEmulatedMedia", features=[])


@pytest.mark.sample(3)
@pytest.mark.parametrize("view", VIEWS)
def test_forced_colors_leave_text_to_read_and_choices_to_see(
    browser: Browser, page: Path, view: str
) -> None:
    axe = WEB / "node_modules" / "axe-core" / "axe.min.js"
    if not axe.exists():
        assert not os.environ.get("CI"), "with CI=1 the page's libraries must be there: make web"
        pytest.skip("axe-core is missing: make web")
    with emulated(browser, forced_colors="active", prefers_reduced_motion="reduce"):
        reader = PageReader(browser, page, f"#view={view}")
        assert reader.run("matchMedia('(forced-colors: active)').matches")
        border = "getComputedStyle(document.querySelector('[role=tab][aria-selected={}]'))"
        borders = [reader.run(f"{border.format(on)}.borderBottomColor") for on in ("true", "false")]
        assert borders[0] != borders[1]
        marks = (
            "[...document.querySelectorAll('[aria-pressed=true], [role=radio][aria-checked=true]')]"
            ".map((one) => getComputedStyle(one).outlineStyle)"
        )
        assert set(reader.run(marks)) <= {"solid"}
        reader.run(axe.read_text(encoding="utf-8") + "; 0")
        found = reader.run("axe.run({ runOnly: ['color-contrast'] }).then((it) => it.violations)")
    assert not found, [node["html"][:200] for one in found for node in one["nodes"][:3]]


def test_map_keeps_its_colors_when_colors_are_forced(browser: Browser, page: Path) -> None:
    with emulated(browser, forced_colors="active"):
        reader = PageReader(browser, page, "#view=look&show=map")
        grounds = reader.run(
            "[...document.querySelectorAll('[role=gridcell]')]"
            ".map((one) => getComputedStyle(one).backgroundColor)"
        )
    assert len(set(grounds)) > 7


def test_nothing_moves_for_readers_who_ask_for_that(browser: Browser, page: Path) -> None:
    count = "document.getAnimations().length"
    # Guard: otherwise the tokens fade in.
    browser.open(page, "#view=change&show=decoding")
    reader = PageReader(browser, page, "#view=change&show=decoding")
    assert reader.run("getComputedStyle(document.querySelector('.tokens li')).animationName") != (
        "none"
    )
    with emulated(browser, prefers_reduced_motion="reduce"):
        reader = PageReader(browser, page, "#view=change&show=decoding")
        assert reader.run(count) == 0
        opacity = (
            "[...document.querySelectorAll('.tokens li')].map((o) => getComputedStyle(o).opacity)"
        )
        assert set(reader.run(opacity)) == {"1"}
        reader.click("#tab-look")
        assert reader.run(count) == 0


@pytest.mark.sample(2)
@pytest.mark.parametrize("script", SCRIPTS)
def test_other_scripts_fit_a_phone_and_keep_their_direction(
    browser: Browser, tmp_path: Path, script: str
) -> None:
    words = SCRIPTS[script]
    path = tmp_path / "script.html"
    path.write_text(trace_page(make_trace(words, words)), encoding="utf-8")
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    try:
        reader = PageReader(browser, path, "#view=change&show=decoding")
        direction = reader.run("getComputedStyle(document.getElementById('sentence')).direction")
        assert direction == ("rtl" if script in ("arabic", "hebrew") else "ltr")
        assert [text.strip() for text in reader.texts(".token .word")] == list(words)
        isolated = (
            "[...document.querySelectorAll('.token .word')].every((one) => one.matches('bdi'))"
        )
        assert reader.run(isolated)
        for view in ("why", "change", "look&show=map&open=1", "look&show=lines"):
            reader = PageReader(browser, path, f"#view={view}")
            assert reader.run("document.documentElement.scrollWidth") <= 390, view
        shown = reader.texts("svg [data-side=column] text")
        assert shown == list(words)
        # No label leaves the drawing.
        out = (
            "(() => { const all = document.querySelector('.picture svg').getBoundingClientRect();"
            " return [...document.querySelectorAll('.picture svg text')].filter((one) => {"
            " const box = one.getBoundingClientRect();"
            " return box.left < all.left - 1 || box.right > all.right + 1; })"
            ".map((one) => one.textContent); })()"
        )
        assert reader.run(out) == []
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")
