"""The page of a report on documents: every filter and button, as somebody clicks them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from browser import Browser

SHOWN = "[...document.querySelectorAll('article')].filter((one) => !one.hidden)"
TEXTS = f"{SHOWN}.map((one) => one.querySelector('.source').textContent)"
SOURCES = [
    "Something fell on my quokka.",
    "We jumped over <b>gazebos</b>.",
    "The </script> zyx <i>dog</i>",
]


@pytest.fixture
def opened(
    browser: Browser, run_here: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> Browser:
    """The page of a document of which three texts should be looked at."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps([*SOURCES, "The red book"]))
    report = tmp_path / "report.html"
    command = ("translate", "demo", "-i", str(path), "-o", str(tmp_path / "b.json"))
    assert run_here(*command, "--report", str(report), "-q").returncode == 0
    browser.open(report)
    return browser


LONG = "The dogs eat the red soup and the cats see the old house in the garden of"
CATALOG = """
msgctxt "button"
msgid "LONG %(name)s."
msgstr ""

#. Of the start page.
msgid "A red house & 4 cats in the garden"
msgstr ""
"""


@pytest.fixture
def report(run_here: Callable[..., CompletedProcess[str]], tmp_path: Path) -> Path:
    """The page of a folder with a catalog, made with a memory."""
    folder = tmp_path / "en"
    folder.mkdir()
    (folder / "app.po").write_text(CATALOG.replace("LONG", LONG))
    memory = tmp_path / "memory.tsv"
    memory.write_text(f"A red house & 3 cats in the garden\tUne maison rouge\n{LONG} me.\tX\n")
    report = tmp_path / "report.html"
    places = (str(folder), "-o", str(tmp_path / "fr"), "--memory", str(memory))
    done = run_here("translate", "demo", *places, "--report", str(report), "-q")
    assert done.returncode == 0, done.stderr
    return report


def choose(browser: Browser, field: str, change: str) -> list[str]:
    """Change a field as a person does; return the sources in view."""
    browser.run(
        f"(() => {{ const field = document.querySelector('form [name={field}]'); {change};"
        " field.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    shown: list[str] = browser.run(TEXTS)
    of_all = f"{len(shown)} of {len(SOURCES)}"
    assert browser.run("document.querySelector('output').textContent") == of_all
    return shown


def click(browser: Browser, name: str, number: int = 0) -> None:
    browser.run(f"document.querySelectorAll('article button[name={name}]')[{number}].click()")


def test_each_filter_shows_the_texts_that_fit(opened: Browser) -> None:
    assert opened.run(TEXTS) == SOURCES
    assert choose(opened, "words", "field.value = 'GAZEBOS'") == [SOURCES[1]]
    assert choose(opened, "words", "field.value = 'nothing'") == []
    assert choose(opened, "words", "field.value = ''") == SOURCES
    reasons = opened.run("[...document.querySelectorAll('select option')].map((one) => one.value)")
    assert reasons[0] == ""
    assert "words may be missing in the translation" in reasons
    found = [choose(opened, "reason", f"field.value = {json.dumps(one)}") for one in reasons[1:]]
    # A text is shown under each of its reasons, and the menu says how many have it.
    assert {one for own in found for one in own} == {*SOURCES}
    listed = opened.run("document.querySelectorAll('article li').length")
    assert sum(map(len, found)) == listed > len(SOURCES)
    counts = opened.run("[...document.querySelectorAll('option')].map((one) => one.textContent)")
    assert [int(one.rpartition("(")[2][:-1]) for one in counts[1:]] == [*map(len, found)]
    choose(opened, "reason", "field.value = ''")
    click(opened, "done", 1)
    assert choose(opened, "open", "field.checked = true") == [SOURCES[0], SOURCES[2]]
    click(opened, "done", 0)
    # What is done while only the others are shown goes out of view.
    assert opened.run(TEXTS) == [SOURCES[2]]
    click(opened, "done", 1)
    assert opened.run(TEXTS) == SOURCES[1:]
    assert not opened.problems


@pytest.mark.parametrize("name", ["source", "translation"])
def test_each_button_copies_its_text(opened: Browser, name: str) -> None:
    origins = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    opened.call("Browser.grantPermissions", **origins)
    opened.call("Page.bringToFront")
    for number in range(len(SOURCES)):
        copied = (
            "new Promise((done) => { const write = navigator.clipboard.writeText;"
            " navigator.clipboard.writeText = (text) => { navigator.clipboard.writeText = write;"
            " return write.call(navigator.clipboard, text).then(() => done(text),"
            " (fault) => done(String(fault))); };"
            f" document.querySelectorAll('article button[name={name}]')[{number}].click(); }})"
        )
        answer = opened.call(
            "Runtime.evaluate", expression=copied, awaitPromise=True, returnByValue=True
        )
        text = opened.run(f"document.querySelectorAll('article .{name}')[{number}].textContent")
        assert answer["result"]["value"] == text
        button = f"document.querySelectorAll('article button[name={name}]')[{number}].textContent"
        assert opened.run(button) == "Copied"
    if name == "source":
        assert text == SOURCES[-1]


def test_text_that_cannot_be_copied_is_selected(opened: Browser) -> None:
    opened.run("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    click(opened, "source", 1)
    opened.call(
        "Runtime.evaluate",
        expression="new Promise((done) => setTimeout(done, 50))",
        awaitPromise=True,
    )
    assert opened.run("getSelection().toString()") == SOURCES[1]
    button = "document.querySelectorAll('article button[name=source]')[1].textContent"
    assert opened.run(button) == "Selected: press Ctrl+C"


def test_reasons_are_sentences_and_no_names_of_flags(opened: Browser) -> None:
    shown = opened.run("document.querySelector('article').textContent")
    assert "words may be missing in the translation: Something fell on my" in shown
    assert "partial" not in opened.run("document.body.textContent")
    # A text of the document is text of the page.
    assert opened.run("document.querySelectorAll('article i, article b').length") == 0


def test_heading_says_where_a_text_is_and_the_context_stands_apart(
    browser: Browser, report: Path, tmp_path: Path
) -> None:
    browser.open(report)
    title = browser.run("document.querySelector('h1').textContent")
    assert title == f"2 texts to check in {tmp_path / 'fr'}"
    headings = browser.run("[...document.querySelectorAll('h2')].map((one) => one.textContent)")
    assert headings == ["app.po, line 3", "app.po, line 7"]
    notes = browser.run("[...document.querySelectorAll('p.note')].map((one) => one.textContent)")
    assert "Context: button" in notes
    assert "Comment: Of the start page." in notes


def test_difference_to_a_memory_is_shown_as_deleted_and_inserted(
    browser: Browser, report: Path
) -> None:
    browser.open(report)
    changes = "[...document.querySelectorAll('{}')].map((one) => one.textContent)"
    assert browser.run(changes.format("del")) == ["me", "3"]
    assert browser.run(changes.format("ins")) == ["%(name)s", "4"]
    assert "[-" not in browser.run("document.querySelector('main').innerText")
    label = "getComputedStyle(document.querySelector('.suggestion'), '::before').content"
    assert browser.run(label) == '"From the memory: "'


def test_what_is_done_is_kept_until_the_text_changes(browser: Browser, report: Path) -> None:
    browser.open(report)
    pressed = "[...document.querySelectorAll('[name=done]')].map((one) => one.ariaPressed)"
    assert browser.run(pressed) == ["false", "false"]
    click(browser, "done", 1)
    for _ in range(20):
        browser.open(report)
        # A browser may write what a page stores a moment after the page.
        if (found := browser.run(pressed)) == ["false", "true"]:
            break
        time.sleep(0.1)
    assert found == ["false", "true"]
    assert browser.run("document.querySelector('article.done .source').textContent") == (
        "A red house & 4 cats in the garden"
    )
    assert browser.run("document.querySelector('#refused').hidden")
    report.write_text(report.read_text().replace('data-name="', 'data-name="0'))
    browser.open(report)
    assert browser.run(pressed) == ["false", "false"]
    browser.run("Storage.prototype.setItem = () => { throw new Error('no'); }")
    click(browser, "done", 0)
    assert browser.run(pressed) == ["true", "false"]
    assert not browser.run("document.querySelector('#refused').hidden")
