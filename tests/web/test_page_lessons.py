"""The lessons of a page: outputs that answer, views that exist, and models without them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser import Browser
from page_reader import PageReader
from small_words import SENTENCES, make_words_bundle

import pellucid
from pellucid import Translator
from pellucid.inside.show import model_page as pages
from pellucid.inside.show.model_page import model_page
from pellucid.inside.traces import Trace
from pellucid.lessons.walks.for_page import lessons_for
from pellucid.lessons.walks.walk import NAMES, SENTENCE, Statement, load_walk, read_outputs

VIEWS = {"translate", "links", "head", "arithmetic", "heads", "what-if", "beyond", "why"}
PLACES = {"encoder.self", "decoder.self", "decoder.cross"}
DETAILS = {"scores", "scaled", "masked", "words", "formula", *map(str, range(1, 12))}
CELL = read_outputs()["cells"]["pronoun"]
"""The line that decides the pronoun in the packaged model."""
LESSONS = Path(__file__).parents[2] / "docs" / "lessons"

STATEMENTS = [
    (name, place, one) for name in NAMES for place, one in enumerate(load_walk(name).statements)
]


def test_every_statement_has_an_output_that_answers_it() -> None:
    recorded = read_outputs()
    assert recorded["machine"]
    assert {name: len(lines) for name, lines in recorded["walks"].items()} == {
        name: len(load_walk(name).statements) for name in NAMES
    }
    for name, place, one in STATEMENTS:
        output = "\n".join(recorded["walks"][name][place]["lines"])
        assert any(phrase in output for phrase in one.shows), (one.command, output)
        if one.shows and not one.lines:
            assert all(phrase in output for phrase in one.shows), one.command


def test_outputs_are_those_of_the_documentation() -> None:
    recorded = read_outputs()["walks"]
    for name in NAMES:
        page = (LESSONS / f"{name}.md").read_text(encoding="utf-8")
        page = page.replace("\\<", "<")  # escaped, so that <end> is no HTML
        shown = set[str]()
        for place, one in enumerate(load_walk(name).statements):
            lines = "\n".join(recorded[name][place]["lines"])
            command = "" if one.command in shown else f"$ {one.command}\n"
            assert f"```console\n{command}{lines}\n```" in page, one.command
            assert recorded[name][place]["answer"] in page
            shown.add(one.command)


def read_place(one: Statement) -> tuple[str, str, str]:
    """Read the head, the row and the column of a statement's live view."""
    found = re.fullmatch(r"([^:]+):(.+?)(?:>(.+))?", one.live.split(" ")[1])
    assert found, one.live
    return found[1], found[2], found[3] or ""


@pytest.mark.parametrize("one", [one for _, _, one in STATEMENTS if one.live])
def test_live_views_exist(one: Statement) -> None:
    view, _, *details = one.live.split(" ")
    assert view in VIEWS
    assert re.sub(r"\.\d", "", read_place(one)[0]) in PLACES
    assert set(details) <= DETAILS
    assert one.sentence


def test_live_views_name_heads_and_words_of_the_packaged_model() -> None:
    demo = pellucid.load("demo")
    traces: dict[str, Trace] = {}
    for _, _, one in STATEMENTS:
        if not one.live:
            continue
        if one.sentence not in traces:
            traces[one.sentence] = demo.look(one.sentence, beam=1)
        trace = traces[one.sentence]
        head, row, column = read_place(one)
        part, layer, kind, number = head.split(".")
        rows = list(trace.predicted_tokens if part == "decoder" else trace.source_tokens)
        is_french = (part, kind) == ("decoder", "self")
        columns = trace.target_tokens if is_french else trace.source_tokens
        assert row in rows, one.live
        assert not column or column in columns, one.live
        weights = trace[f"{part}.{int(layer)}.{kind}"][int(number)]
        # The head of the pronoun looks most at what it stands for.
        if CELL in one.live:
            assert columns[weights[rows.index(row)].argmax()] == "pizza"


def test_picture_of_a_claim_is_set_to_its_head_row_and_step_after_the_answer(
    browser: Browser, tmp_path: Path
) -> None:
    demo = pellucid.load("demo")
    lessons, _ = lessons_for(demo.bundle)
    trace = demo.look(SENTENCE, beam=1)
    html = model_page(demo.bundle, trace, SENTENCE, lessons=lessons, name="demo")
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    reader = PageReader(browser, path, "#view=learn&lesson=lecture&screen=7")
    assert not reader.texts(".live")
    reader.run(
        "(() => { const field = document.querySelector('form input'); field.value = 'five';"
        " field.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    reader.click_text("Show the answer")
    assert "You guessed: five" in reader.texts(".answer p")
    head, row, column = re.split("[:>]", CELL)
    part, layer, kind, number = head.split(".")
    assert reader.texts(".look > .stack h2") == [
        f"{part} {kind}-attention, layer {layer}, head {number}"
    ]
    assert reader.texts(".drawer h2") == [f"{row} → {column}"]
    assert "Step 1 of " in reader.texts(".drawer .nav")[0]
    assert f"head={head}" in reader.link
    place = trace.source_tokens.index(row)
    assert f"cell={place}%2C1" in reader.link
    # The next screen asks again, and shows its own step.
    for _ in range(2):
        reader.click_text("Next")
    assert not reader.texts(".live")
    while "second form: weights times keys" not in reader.texts("article .soft")[0]:
        reader.click_text("Next")
    reader.click_text("Show the answer")
    assert not [one for one in reader.texts(".answer p") if "guessed" in one]
    assert "Step 6 of " in reader.texts(".drawer .nav")[0]
    # A word of the French, of another sentence.
    reader = PageReader(browser, path, "#view=learn&lesson=study-notes&screen=14")
    reader.click_text("Show the answer")
    reader.wait("/Because of pizza/.test(document.querySelector('.live').textContent)")
    assert reader.texts("#question bdi") == ["mangée", "mangé"]
    # The command to try next has another sentence, which the page can show too.
    (tried,) = re.findall(r'"(.+?)"', load_walk("study-notes").statements[14].to_try[0])
    reader.click_text("Show this sentence below")
    reader.wait(f"document.querySelector('.live textarea').value === {tried!r}")


def test_statement_with_unknown_words_has_no_live_view(translator: Translator) -> None:
    walks, reason = lessons_for(translator.bundle)
    assert not reason
    slides = next(walk for walk in walks if walk["name"] == "slides")["statements"]
    assert slides[0]["live"] == f"head {CELL}"
    assert slides[1]["sentence"] == "The European Economic Area"
    assert slides[1]["live"] == ""
    assert slides[1]["without"] == "This model does not know “European”."


def test_model_without_the_words_or_too_large_says_why_there_are_no_lessons(
    browser: Browser, translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = pellucid.load(make_words_bundle(tmp_path / "other")).bundle
    monkeypatch.setattr("pellucid.lessons.walks.for_page.SENTENCE", "A zebra came.")
    walks, reason = lessons_for(other)
    assert not walks
    assert "such as “A”" in reason or "such as “zebra”" in reason
    monkeypatch.setattr(pages, "MODEL_LIMIT", 1000)
    walks, reason = lessons_for(other)
    assert not walks
    assert "a model that the page runs itself" in reason
    trace = translator.look(SENTENCES[0], beam=1)
    html = model_page(translator.bundle, trace, SENTENCES[0], without_lessons=reason)
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    reader = PageReader(browser, path, "#view=learn")
    assert reader.texts("#panel .remark") == [reason]
