"""The page in a lecture room and on paper, and its terms explained on the spot."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import Browser
from case_samples import Some
from page_in_node import WEB
from page_reader import PageReader

import pellucid
from pellucid.inside.show.model_page import model_page
from pellucid.lessons.walks.for_page import lessons_for
from pellucid.page.plain_page import html_page, html_table

TEXT = "The pizza came out of the oven and it tasted good."
STATES = (
    "why",
    "why&show=measures",
    "look",
    "look&show=map",
    "look&head=decoder.1.self.1&show=map",
    "look&open=1",
    "change",
    "change&show=words",
    "change&show=formula",
    "change&show=decoding&decode=sample",
    "change&show=decoding&decode=beam",
)
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| `(view=[^`]+)` \|$", re.MULTILINE)

ACCEPTED = {
    "context": "also an ordinary word",
    "key": "also a key of the keyboard",
    "row": "explained with the heads, and said of every table",
    "score": "also the count of answers",
    "value": "also an ordinary word",
    "weight": "explained in each map and line; elsewhere it stands next to a head",
    "norms": "also a verb",
    "layer": "stands in the name of every head, which explains it",
    "head": "stands in a button for each; explained above them",
    "loss": "also an ordinary word",
    "alignment error": "explained when it is chosen",
    "entropy": "explained when it is chosen",
    "√d_k": "explained when it is chosen",
    "greedy": "explained when it is chosen",
    "sampling": "explained when it is chosen",
    "</s>": "a word of every map; explained where tokens are listed",
}
"""Terms that may stand in a view without a sentence, and why."""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of the packaged model with its lessons."""
    translator = pellucid.load("demo")
    lessons, _ = lessons_for(translator.bundle)
    path = tmp_path_factory.mktemp("room") / "page.html"
    trace = translator.look(TEXT, beam=1)
    html = model_page(translator.bundle, trace, TEXT, lessons=lessons, name="demo")
    path.write_text(html, encoding="utf-8")
    return path


@contextmanager
def window(browser: Browser, width: int, height: int = 768, media: str = "") -> Iterator[None]:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    browser.call("Emulation.setEmulatedMedia", media=media)
    try:
        yield
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
        browser.call("Emulation.clearDeviceMetricsOverride")


def opened(browser: Browser, path: Path, state: str) -> PageReader:
    reader = PageReader(browser, path, f"#view={state}")
    for busy in ("Hiding each word", "Measuring…", "Computing…"):
        reader.wait(f"!document.getElementById('panel').textContent.includes({busy!r})")
    return reader


def glossary() -> dict[str, str]:
    """Read the terms that have a place on the page, and that place."""
    text = (WEB.parent / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    return {
        name.strip("`").lower(): link
        for names, _, link in ROW.findall(text)
        for name in names.split(", ")
    }


def synonyms() -> list[set[str]]:
    """List the names of each term."""
    text = (WEB.parent / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    return [set(names.lower().split(", ")) for names, _, _ in ROW.findall(text)]


def test_picture_starts_above_300_pixels_on_a_projector(browser: Browser, room: Path) -> None:
    pictures = {
        "why": ".costs",
        "look": ".picture svg",
        "look&show=map": ".picture table",
        "change": "[role=grid]",
        "change&show=words": ".words",
        "change&show=decoding": ".tokens",
    }
    tops = {}
    with window(browser, 1024):
        for state, picture in pictures.items():
            reader = opened(browser, room, state)
            tops[state] = reader.run(
                f"document.querySelector({picture!r}).getBoundingClientRect().top"
            )
    assert {state: top for state, top in tops.items() if not 0 < top < 300} == {}


def test_every_text_has_15_pixels_or_more(browser: Browser, room: Path, some: Some[str]) -> None:
    small = """
    (() => {
      const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walk.nextNode()) {
        const one = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
        if (!text || !one.getClientRects().length) continue;
        if (one.closest('script, style, .hidden')) continue;
        const svg = one.closest('svg');
        const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
        const size = scale * parseFloat(getComputedStyle(one).fontSize);
        if (size < 14.9) found.push([text.slice(0, 40), size]);
      }
      return found;
    })()"""
    with window(browser, 1024):
        states = (*STATES, "learn", "learn&lesson=slides&screen=1", "learn&lesson=grow")
        for state in some(states, 5):
            assert opened(browser, room, state).run(small) == [], state


def test_key_presents_in_large_letters_and_arrows_step(browser: Browser, room: Path) -> None:
    size = "getComputedStyle(document.querySelector('#panel p')).fontSize"
    with window(browser, 1024):
        reader = opened(browser, room, "why")
        assert "Press P to present" in " ".join(reader.texts("footer"))
        reader.run("document.getElementById('sentence').focus()")
        reader.press("p")
        assert "present" not in reader.link
        reader.run("document.activeElement.blur()")
        letters = reader.run("document.querySelector('.picture .word text') && 0")
        assert letters is None
        reader.press("p")
        assert "present=1" in reader.link
        assert reader.run("getComputedStyle(document.body).fontSize") == "20px"
        assert reader.run("document.querySelector('header').getClientRects().length") == 0
        assert reader.texts("h2#question") == ["Why “elle” and not “il”?"]
        forms = {"avait": "avaient", "bon": "bonne"}
        for key, word in (("ArrowRight", "avait"), ("PageDown", "bon"), ("ArrowLeft", "avait")):
            reader.press(key)
            assert reader.texts("h2#question") == [f"Why “{word}” and not “{forms[word]}”?"]
        reader.press("2")
        assert "view=look" in reader.link
        assert "present=1" in reader.link
        word = "document.querySelector('.picture .word text').getBoundingClientRect().height"
        tall = reader.run(word)
        row = reader.texts(".picture .word.lit")
        reader.press("ArrowRight")
        assert reader.texts(".picture .word.lit") != row
        reader.press("p")
        assert "present" not in reader.link
        assert reader.run(word) < tall
        # A link opens it the same way; in the arithmetic the arrows go step by step.
        reader = opened(browser, room, "look&open=1&present=1")
        assert reader.run("getComputedStyle(document.body).fontSize") == "20px"
        assert "Step 1 of" in " ".join(reader.texts(".nav"))
        reader.press("ArrowRight", "ArrowRight", "ArrowLeft")
        assert "Step 2 of" in " ".join(reader.texts(".nav"))
        reader.click(".keys button")
        assert reader.run(size) != "20px"


def test_arrows_of_a_presented_lesson_answer_first_and_then_go_on(
    browser: Browser, room: Path
) -> None:
    reader = opened(browser, room, "learn&lesson=slides&screen=1&present=1")
    assert not reader.texts(".answer")
    reader.press("ArrowRight")
    assert reader.texts(".answer")
    assert "screen=1" in reader.link
    reader.press("ArrowRight")
    assert not reader.texts(".answer")
    assert "screen=2" in reader.link
    reader.press("ArrowLeft")
    assert "screen=1" in reader.link


def test_choice_and_weight_have_colors_of_their_own(browser: Browser, room: Path) -> None:
    reader = opened(browser, room, "look&show=lines&head=decoder.1.cross.0")
    color = "getComputedStyle(document.querySelector({!r})).{}"
    weight = reader.run(color.format("path.link", "stroke"))
    chosen = reader.run(color.format(".head[aria-pressed=true]", "borderTopColor"))
    tab = reader.run(color.format("[role=tab][aria-selected=true]", "color"))
    assert chosen == tab != weight
    assert weight == "rgb(43, 80, 200)"


def test_paper_has_the_link_and_nothing_to_press(
    browser: Browser, room: Path, some: Some[str]
) -> None:
    pressed = (
        "[...document.querySelectorAll('.button, select, input, .tabs, .keys, .export')]"
        ".filter((one) => one.getClientRects().length).map((one) => one.className)"
    )
    for state in some((*STATES, "why&present=1", "learn&lesson=slides&screen=1"), 4):
        reader = opened(browser, room, state)
        assert reader.run("document.querySelector('.paper').getClientRects().length") == 0
        with window(browser, 720, media="print"):
            assert reader.run(pressed) == [], state
            (link,) = reader.texts(".paper")
            assert f"#view={state.split('&')[0]}" in link
            assert link.startswith("This view: file:///")
            assert reader.run("document.querySelector('.paper').getClientRects().length") == 1
            assert reader.run("document.documentElement.scrollWidth") <= 720, state
            fading = "(one) => getComputedStyle(one).animationName !== 'none'"
            assert not reader.run(f"[...document.querySelectorAll('.tokens li')].some({fading})")
            ground = reader.run("getComputedStyle(document.documentElement).backgroundColor")
            assert ground in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)")
    paper = opened(browser, room, "look&show=map").browser.call("Page.printToPDF")
    assert base64.b64decode(paper["data"]).startswith(b"%PDF")


def test_labels_of_a_long_map_stay_in_view(browser: Browser, room: Path) -> None:
    long = " ".join(f"the {noun} was good and" for noun in ("pizza", "cake", "soup") * 5)
    with window(browser, 1024):
        for text, labels in ((long, ".labels.columns"), (long[:130], "thead th")):
            state = f"look&show=map&head=encoder.0.self.0&text={text}"
            reader = opened(browser, room, state)
            reader.run("document.querySelector('.picture .scroll')?.scrollTo(0, 9999)")
            reader.run(f"scrollTo(0, {500 if labels.startswith('.') else 150})")
            box = f"document.querySelector({labels!r}).getBoundingClientRect()"
            assert reader.run(f"{box}.bottom > 0 && {box}.top < 600"), labels


def test_every_marked_term_is_in_the_glossary() -> None:
    terms = glossary()
    marked = {
        word
        for path in (WEB / "src").rglob("*.svelte")
        for text in re.findall(
            r'(?:<Said\s+text=|title=|: )(\{[^\n]*?\}|"[^"\n]*"|\["[^\n]*\])',
            path.read_text(encoding="utf-8"),
        )
        if "<Said" in path.read_text(encoding="utf-8") or path.stem == "Sum"
        for word in re.findall(r"(?<![\w\])])\[([A-Za-z√`<][\w √_+'`<>/-]*)\]", text)
    }
    assert len(marked) > 30
    unknown = {
        word
        for word in marked
        if word.lower() not in terms and word.lower().removesuffix("s") not in terms
    }
    assert unknown == set()


def test_term_opens_a_sentence_and_a_link_by_mouse_and_key(browser: Browser, room: Path) -> None:
    shown = (
        "[...document.querySelectorAll('.meaning')].filter((one) => one.matches(':popover-open'))"
    )
    with window(browser, 390, 800):
        reader = opened(browser, room, "look&show=lines")
        reader.run("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        count = reader.run("document.querySelectorAll('.term').length")
        assert count > 5
        for number in range(count):
            reader.click(".term", number)
            (text,) = reader.run(f"{shown}.map((one) => one.textContent)")
            assert re.fullmatch(r"\S.*: \S.*\. See it on the page", text), text
            box = reader.run(
                f"(({{ left, right }}) => [left, right])({shown}[0].getBoundingClientRect())"
            )
            assert 0 <= box[0] < box[1] <= 390
        for kind in ("rawKeyDown", "keyUp"):
            escape = {"type": kind, "key": "Escape", "windowsVirtualKeyCode": 27}
            browser.call("Input.dispatchKeyEvent", **escape)
        reader.wait(f"{shown}.length === 0")
    reader = opened(browser, room, "look&show=lines")
    reader.run("document.querySelector('.term').focus()")
    for kind in ("rawKeyDown", "char", "keyUp"):
        reader.browser.call(
            "Input.dispatchKeyEvent", type=kind, key="Enter", text="\r", windowsVirtualKeyCode=13
        )
    reader.wait(f"{shown}.length === 1")
    for kind in ("rawKeyDown", "keyUp"):
        reader.browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", windowsVirtualKeyCode=9)
    assert reader.run("document.activeElement.textContent") == "See it on the page"
    reader.run("document.activeElement.click()")
    reader.settle()
    assert reader.run("document.querySelector('.head[aria-pressed=true]').title").startswith(
        "encoder"
    )
    assert reader.is_quiet


@pytest.mark.sample(4)
@pytest.mark.parametrize("state", STATES)
def test_technical_words_of_a_view_can_be_opened(browser: Browser, room: Path, state: str) -> None:
    reader = opened(browser, room, state)
    reader.run("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    reader.settle()
    visible = "document.getElementById('panel').innerText"
    said, marked = "", set[str]()
    while True:
        said += str(reader.run(visible))
        marked |= set(map(str.lower, reader.texts(".term")))
        # The arithmetic has a step in view at a time.
        following = "document.querySelector('[aria-label=\"Next step\"]:not(:disabled)')"
        if not reader.run(f"Boolean({following})"):
            break
        reader.click('[aria-label="Next step"]')
    # Commands are quoted from another program.
    for command in reader.texts(".export"):
        said = said.replace(command, "")
    said = re.sub(r"(?s)In a terminal.*$|pellucid look.*", "", said).lower()
    marked |= {word.removesuffix("s") for word in marked}
    marked |= {name for names in synonyms() if marked & names for name in names}
    left = {
        term
        for term in glossary()
        if re.search(rf"(?<![\w-]){re.escape(term)}(?![\w-])", said)
        and term not in marked
        and term not in ACCEPTED
    }
    assert left == set()


@pytest.mark.sample(scheme="light")
@pytest.mark.parametrize("state", ["why", "look&open=1", "change&show=decoding&decode=sample"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_with_a_term_open(
    browser: Browser, room: Path, state: str, scheme: str
) -> None:
    axe = WEB / "node_modules" / "axe-core" / "axe.min.js"
    if not axe.exists():
        assert not os.environ.get("CI"), "with CI=1 the page's libraries must be there: make web"
        pytest.skip("axe-core is missing: make web")
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    features.append({"name": "prefers-reduced-motion", "value": "reduce"})
    browser.call("Emulation.setEmulatedMedia", media="", features=features)
    try:
        reader = opened(browser, room, f"{state}&present=1")
        reader.run("document.querySelector('.term')?.click()")
        reader.run(axe.read_text(encoding="utf-8") + "; 0")
        found = reader.run("axe.run().then((it) => it.violations)")
    finally:
        browser.call("Emulation.setEmulatedMedia", media="", features=[])
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert serious == [], [(one["id"], one["nodes"][0]["html"][:200]) for one in serious]


def test_plain_page_with_a_wide_table_fits_a_phone_and_paper(
    browser: Browser, tmp_path: Path
) -> None:
    wide = html_table([f"column {n}" for n in range(30)], [["0.123456"] * 30])
    drawing = '<svg viewBox="0 0 620 230" width="620"></svg>'
    path = tmp_path / "plain.html"
    path.write_text(html_page("A " + "x" * 200, wide, drawing), encoding="utf-8")
    with window(browser, 390):
        browser.open(path)
        assert browser.run("document.documentElement.scrollWidth") <= 390
        assert browser.run("document.querySelectorAll('main h1').length") == 1
        assert browser.run("document.querySelector('.scroll').tabIndex") == 0
    with window(browser, 720, media="print"):
        browser.open(path)
        assert browser.run("getComputedStyle(document.querySelector('.scroll')).overflowX") == (
            "visible"
        )
