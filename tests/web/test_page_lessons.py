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
from pellucid.inside.show import page as pages
from pellucid.inside.show.page import model_page
from pellucid.lessons.walks.for_page import lessons_for
from pellucid.lessons.walks.walk import NAMES, Statement, load_walk, read_outputs

VIEWS = {"translate", "links", "head", "arithmetic", "heads", "what-if", "beyond"}
PLACES = {"encoder.self", "decoder.self", "decoder.cross"}
STAGES = {"scores", "scaled", "masked", "weights"}
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
        shown = set[str]()
        for place, one in enumerate(load_walk(name).statements):
            lines = "\n".join(recorded[name][place]["lines"])
            command = "" if one.command in shown else f"$ {one.command}\n"
            assert f"```console\n{command}{lines}\n```" in page, one.command
            assert recorded[name][place]["answer"] in page
            shown.add(one.command)


@pytest.mark.parametrize("one", [one for _, _, one in STATEMENTS if one.live])
def test_live_views_exist(one: Statement) -> None:
    view, *rest = one.live.split(" ")
    assert view in VIEWS
    assert not rest[:1] or re.sub(r"\.\d", "", rest[0]) in PLACES
    assert not rest[1:] or rest[1] in STAGES
    assert one.sentence


def test_statement_with_unknown_words_has_no_live_view(translator: Translator) -> None:
    walks, reason = lessons_for(translator.own_bundle)
    assert not reason
    slides = next(walk for walk in walks if walk["name"] == "slides")["statements"]
    assert slides[0]["live"] == "head encoder.self"
    assert slides[1]["sentence"] == "The European Economic Area"
    assert slides[1]["live"] == ""
    assert slides[1]["without"] == "This model does not know “European”."


def test_model_without_the_words_or_too_large_says_why_there_are_no_lessons(
    browser: Browser, translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = pellucid.load(make_words_bundle(tmp_path / "other")).own_bundle
    monkeypatch.setattr("pellucid.lessons.walks.for_page.SENTENCE", "A zebra came.")
    walks, reason = lessons_for(other)
    assert not walks
    assert "such as “A”" in reason or "such as “zebra”" in reason
    monkeypatch.setattr(pages, "MODEL_LIMIT", 1000)
    walks, reason = lessons_for(other)
    assert not walks
    assert "a model that the page runs itself" in reason
    trace = translator.look(SENTENCES[0], beam=1)
    html = model_page(translator.own_bundle, trace, SENTENCES[0], without_lessons=reason)
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    reader = PageReader(browser, path, "#view=learn")
    assert reader.texts("#panel .remark") == [reason]
