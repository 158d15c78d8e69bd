"""Any line in the page: blanks, unknown words, no line at all, very long ones; paper; commands."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from browser import Browser
from made_up_traces import make_trace
from page_reader import PageReader
from small_words import SENTENCES, make_words_bundle

import pellucid
from pellucid import Translator
from pellucid.inside.show import model_page as pages
from pellucid.inside.show.model_page import model_page, trace_page
from pellucid.serve.models import load_models
from pellucid.serve.routes.page_route import make_service_page

TEXT = "The pizza came out of the oven and it tasted good."
LONG = (
    "The little dog ate the soup because it was hungry and the cat ate the pizza because it was "
    "good and the baby ate the cake because it was cold."
)


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


@pytest.fixture(scope="module")
def demo_page(demo: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of the packaged model, as if it stood in a folder of its own."""
    trace = demo.look(TEXT, beam=1)
    path = tmp_path_factory.mktemp("demo") / "page.html"
    name = "runs/it's mine"
    path.write_text(model_page(demo.bundle, trace, TEXT, name=name), encoding="utf-8")
    return path


@contextmanager
def window(browser: Browser, width: int, **media: str) -> Iterator[None]:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    features = [{"name": "prefers-color-scheme", "value": media.get("scheme", "light")}]
    browser.call("Emulation.setEmulatedMedia", media=media.get("media", ""), features=features)
    try:
        yield
    finally:
        browser.call("Emulation.setEmulatedMedia", media="", features=[])
        browser.call("Emulation.clearDeviceMetricsOverride")


def type_keys(reader: PageReader, text: str) -> None:
    """Type without Enter, and wait longer than the page does between two keys."""
    reader.run(
        "(() => { const field = document.getElementById('sentence');"
        f" field.value = {json.dumps(text)};"
        " field.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    time.sleep(0.45)
    reader.settle()


def remarks(reader: PageReader) -> str:
    return " ".join(" ".join(reader.texts(".remark")).split())


def colors(reader: PageReader, selector: str) -> dict[str, str]:
    """Map the number in each cell to the name of the color of its ground."""
    hue = "(one) => [one.textContent.trim(), one.style.background.match(/--(weight|other)/)?.[1]]"
    get = f"Array.from(document.querySelectorAll({json.dumps(selector)}), {hue})"
    return dict(reader.run(get))


def test_blanks_and_unlearned_characters_are_prepared_as_by_the_command(
    browser: Browser, demo_page: Path, demo: Translator
) -> None:
    reader = PageReader(browser, demo_page, "#view=why")
    for line in ("The pizza is good. ", " \tThe pizza\u00a0 is\u200b good.\u3000", "The pizza is"):
        (found,) = demo.translate([line], beam=1, split="none", precision="float32")
        reader.type(line)
        assert reader.target == found.text.strip()
        assert "<unk>" not in reader.target + remarks(reader)
    reader.type(" \t\u00a0 ")
    assert "Type a sentence, or choose one below." in remarks(reader)
    assert reader.texts(".examples button")


def test_word_is_called_unknown_only_when_it_is_finished(browser: Browser, demo_page: Path) -> None:
    reader = PageReader(browser, demo_page, "#view=why")
    for typed in ("The", "The ", "The cak", "The cake", "The cake ", "The cake ca"):
        type_keys(reader, typed)
        assert "<unk>" not in reader.target + remarks(reader), typed
    type_keys(reader, "The kitten ")
    # Each word is named once, with known words that are close as buttons.
    assert "kitten. Do you mean" in remarks(reader)
    assert "reads <unk>, its sign for an unknown word" in remarks(reader)
    assert remarks(reader).count("kitten") == 1
    close = reader.texts(".remark .button")
    assert len(close) == 3
    reader.click(".remark .button")
    assert reader.run("document.getElementById('sentence').value") == f"The {close[0]} "
    assert "kitten" not in remarks(reader)
    assert "<unk>" not in remarks(reader)
    type_keys(reader, "The quokk")
    assert "quokk" not in remarks(reader)
    reader.wait("document.body.textContent.includes('quokk (nothing close)')")
    reader.type("The cake is good.")
    assert not remarks(reader)


def test_notes_of_the_command_stand_below_the_line(
    browser: Browser, demo_page: Path, tmp_path: Path
) -> None:
    reader = PageReader(browser, demo_page, "#view=look")
    assert not remarks(reader)
    assert reader.texts(".composer .seen") == ["· The English is in the training text."]
    reader.type("The pizza is a cold car.")
    assert not reader.texts(".composer .seen")
    untrained = pellucid.load("demo-untrained")
    path = tmp_path / "untrained.html"
    trace = untrained.look(TEXT, beam=1)
    path.write_text(model_page(untrained.bundle, trace, TEXT), encoding="utf-8")
    assert "This translation looks wrong: it repeats itself" in remarks(PageReader(browser, path))
    reader = PageReader(browser, demo_page, "#view=look")
    reader.type("The 😀 zyzzyva pizza\u00a0is good.")
    said = remarks(reader)
    assert "zyzzyva (nothing close)" in said
    assert "has not learned these spaces, marks or invisible characters: U+00A0." in said
    assert "has never seen these characters: 😀 U+1F600." in said
    reader.type("THE PIZZA IS GOOD.")
    assert "Text in capitals is unlike" in remarks(reader)
    reader.type('The "pizza" is good.')
    assert "(known with a space before it). Do you mean pizza?" in remarks(reader)
    # A recording is judged by its tokens.
    trace = make_trace(("a", "c", "</s>"), ("a", *["b"] * 9))
    trace = replace(trace, predicted_ids=(4, *[5] * 9))
    path = tmp_path / "recorded.html"
    path.write_text(trace_page(trace), encoding="utf-8")
    assert "it repeats itself; it is without an end" in remarks(PageReader(browser, path))


def test_line_that_cannot_be_translated_clears_every_view(browser: Browser, page: Path) -> None:
    shown = "#panel table, #panel svg, #panel .token, #panel .order, #panel .costs, #panel .button"
    links = ("why", "look&show=lines", "look&show=map&open=1", "change", "change&show=words")
    for link in (*links, "change&show=decoding"):
        reader = PageReader(browser, page, f"#view={link}")
        reader.wait(f"document.querySelector({shown!r})")
        for line in ("", "  ", "word " * 60):
            reader.type(line)
            assert reader.texts("[role=alert]" if line.strip() else ".remark[role=status]")
            assert not reader.target
            assert not reader.texts(shown), (link, line)
        reader.type(SENTENCES[0])
    reader.run("location.hash = '#view=change&change=word+1&text=+'")
    reader.settle()
    assert reader.texts("#panel .button") == ["Undo all changes"]
    reader.click("#panel .button")
    assert "change=" not in reader.link


def test_commands_name_the_model_and_the_line_that_the_page_shows(
    browser: Browser, demo_page: Path, page: Path, translator: Translator, tmp_path: Path
) -> None:
    commands = "#panel .export pre"
    views = ("why", "why&show=measures", "look&show=lines", "look&show=map&open=1")
    for view in (*views, "change&show=decoding", "change&change=word+1"):
        reader = PageReader(browser, demo_page, f"#view={view}&text=+The+pizza+is+good.+")
        said = reader.texts(commands)
        assert said
        assert all("'runs/it'\\''s mine'" in one or '"runs/it\'s mine"' in one for one in said)
        assert all("The pizza is good." in one and "good. " not in one for one in said), said
        assert not [one for one in reader.texts("#panel .export p") if "stands for" in one]
    path = tmp_path / "unnamed.html"
    trace = translator.look(SENTENCES[0], beam=1)
    path.write_text(model_page(translator.bundle, trace, SENTENCES[0]), encoding="utf-8")
    reader = PageReader(browser, path, "#view=look&open=1&text=-x")
    terminal, python = reader.texts(".drawer .export pre")
    assert terminal.startswith("pellucid look MODEL --head")
    assert terminal.endswith(" -- -x")
    assert 'pellucid.load("MODEL").look("-x"' in python
    assert "MODEL stands for the folder" in " ".join(reader.texts("#panel .export p"))
    served = make_service_page(
        load_models({"mine": "demo"}), has_keys=True, lessons=lambda _: ([], "")
    )
    assert b'"name":"mine","command":"demo"' in served


def test_text_of_the_page_has_no_figures_of_another_model(browser: Browser, page: Path) -> None:
    reader = PageReader(browser, page, "#view=why&show=measures&text=The+oven")
    reader.wait("document.querySelectorAll('.measures ol').length === 7")
    said = " ".join(reader.texts(".measures p"))
    assert not [word for word in ("pizza", "elle", "nats without", "0.97", "0.34") if word in said]
    assert "was shown word links" not in " ".join(reader.texts("#panel"))
    reader.run("location.hash = '#view=arithmetic&head=decoder.1.cross.0&cell=2,1'")
    reader.settle()
    reader.click("[aria-label='Next step']")
    reader.click("[aria-label='Next step']")
    (scaled,) = reader.texts(".step")
    assert "spreads √" in scaled
    assert "In this row the largest weight is " in " ".join(scaled.split())
    assert "nearly everything" not in scaled


def test_signed_numbers_are_blue_below_zero_and_orange_above(browser: Browser, page: Path) -> None:
    reader = PageReader(browser, page, "#view=look&show=map&stage=scores&head=decoder.1.cross.1")
    for text, hue in colors(reader, "[role=gridcell]").items():
        if text.strip("\u22120."):
            assert hue == ("weight" if text.startswith("\u2212") else "other"), text
    assert "(blue) over 0 to" in " ".join(reader.texts("#panel p"))
    reader.click_text("Softmax: weights")
    assert set(colors(reader, "[role=gridcell]").values()) == {"weight"}


def test_long_line_has_both_ends_of_every_link_and_labels_in_view(
    browser: Browser, page: Path, demo_page: Path
) -> None:
    out = (
        "Array.from(document.querySelectorAll('.picture .word'), (one) =>"
        " one.getBoundingClientRect()).filter((box) => box.left < 0 || box.right > innerWidth)"
        ".length"
    )
    for path, link in (
        (demo_page, f"text={LONG}"),
        (demo_page, f"text={LONG}&head=encoder.0.self.1"),
        (page, f"text=The {'x' * 200} pizza"),
    ):
        for width in (1400, 390):
            with window(browser, width):
                reader = PageReader(browser, path, f"#view=look&show=lines&{link}")
                assert reader.texts(".picture .word")
                assert reader.run(out) == 0, (link[:20], width)
    with window(browser, 1400):
        reader = PageReader(browser, demo_page, f"#view=look&show=map&text={LONG} {LONG}")
        # So many columns have room for every second label.
        assert reader.texts(".labels.columns bdi")[:3] == ["The", "dog", "the"]
        assert reader.texts(".labels.rows bdi")[:3] in (
            reader.target.split()[:3],
            reader.target.split()[:5:2],
        )


def test_word_of_200_letters_and_8_heads_fit_the_window(
    browser: Browser, page: Path, tmp_path: Path
) -> None:
    folder = make_words_bundle(tmp_path / "eight", num_heads=8)
    translator = pellucid.load(folder)
    eight = tmp_path / "eight.html"
    trace = translator.look(SENTENCES[0], beam=1)
    eight.write_text(model_page(translator.bundle, trace, SENTENCES[0]), encoding="utf-8")
    long = f"&text=The {'x' * 200} is good"
    for width in (390, 1400):
        with window(browser, width):
            reader = PageReader(browser, eight, "#view=look")
            assert reader.run("document.documentElement.scrollWidth") <= width
            views = ("why", "why&show=measures", "look&show=map&open=1", "change")
            for view in (*views, "change&show=words", "change&show=decoding"):
                reader = PageReader(browser, page, f"#view={view}{long}")
                assert reader.run("document.documentElement.scrollWidth") <= width, view


def test_paper_is_light_and_has_no_buttons(browser: Browser, demo_page: Path) -> None:
    shown = (
        "Array.from(document.querySelectorAll('button.button, .tabs, .export, header button'))"
        ".filter((one) => one.getClientRects().length).length"
    )
    style = "getComputedStyle(document.querySelector({!r})).{}"
    with window(browser, 794, scheme="dark"):
        reader = PageReader(browser, demo_page, "#view=look&show=lines")
        assert reader.run(shown)
        dark = reader.run(style.format(".word text", "fill"))
    with window(browser, 794, scheme="dark", media="print"):
        reader = PageReader(browser, demo_page, "#view=look&show=lines")
        assert not reader.run(shown)
        assert reader.run(style.format(".word text", "fill")) == "rgb(27, 29, 33)" != dark
        assert reader.run(style.format(".picture svg", "printColorAdjust")) == "exact"
        assert reader.run("document.querySelector('.picture svg').clientWidth") <= 794


def test_title_icon_and_page_without_scripts(
    browser: Browser, demo_page: Path, demo: Translator
) -> None:
    reader = PageReader(browser, demo_page, "#view=change&change=word+1")
    assert reader.run("document.title") == f"{TEXT} · Pellucid"
    # Without *pizza* the oven is what came out, or nothing is.
    cut = demo.pair(TEXT).what_if("cut word pizza").after.text
    assert reader.target == cut
    assert " et il " in cut
    fresh = reader.texts(".out .fresh")
    assert (fresh[0], fresh[-1]) == ("Le", "il")
    assert reader.texts(".before") == ["La pizza est sortie du four et elle avait bon goût."]
    reader.type("The dog.")
    assert reader.run("document.title") == "The dog. · Pellucid"
    icon = str(reader.run("document.querySelector('link[rel=icon]').href"))
    assert icon.startswith("data:image/svg+xml,")
    assert len(icon) < 400
    assert reader.is_quiet
    html = demo_page.read_text(encoding="utf-8")
    assert f"<title>{TEXT} · Pellucid</title>" in html
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(demo_page)
        place = browser.call("DOM.getDocument", depth=1)["root"]["nodeId"]
        starting = browser.call("DOM.querySelector", nodeId=place, selector="#app .starting")
        browser.call("DOM.enable")
        browser.call("CSS.enable")
        styles = browser.call("CSS.getComputedStyleForNode", nodeId=starting["nodeId"])
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert {"name": "display", "value": "none"} in styles["computedStyle"]


def test_recording_has_the_notes_of_the_command_and_its_target(
    browser: Browser, translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MODEL_LIMIT", 1000)
    trace = translator.look(SENTENCES[0], beam=1)
    html = model_page(
        translator.bundle, trace, SENTENCES[0], name="my/run", notes=["A note on the line."]
    )
    path = tmp_path / "recorded.html"
    path.write_text(html, encoding="utf-8")
    reader = PageReader(browser, path, "#view=look&show=lines")
    assert "A note on the line." in remarks(reader)
    (command,) = reader.texts("#panel .export pre")
    assert command.startswith(f"pellucid look my/run '{SENTENCES[0]}' --head ")
    assert "--translation=" in command
    given = replace(trace, decoding={"given": True})
    path.write_text(trace_page(given), encoding="utf-8")
    reader = PageReader(browser, path, "#view=why")
    assert "￭" not in reader.target + reader.run("document.title")
    assert "looks wrong" not in remarks(reader)
