"""A browser, and pages to look at with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, find_browser, start_browser
from page_in_node import find_node
from small_words import SENTENCES, make_words_bundle

import pellucid
from pellucid import Translator
from pellucid.inside.show.model_page import model_page
from pellucid.lessons.walks.for_page import lessons_for


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        assert not os.environ.get("CI"), "with CI=1 there must be a browser: install chromium"
        pytest.skip("no browser is found: apt-get install --no-install-recommends chromium")
    with start_browser(program, tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """A model of two layers that runs in a page."""
    folder = tmp_path_factory.mktemp("models") / "words"
    return pellucid.load(make_words_bundle(folder, seed=3, norm="post"))


@pytest.fixture(scope="session")
def page(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with that model, opened at the first sentence, and a lesson."""
    text = SENTENCES[0]
    trace = translator.look(text, beam=1)
    lessons, reason = lessons_for(translator.bundle)
    assert not reason
    html = model_page(translator.bundle, trace, text, lessons=lessons, name="words")
    path = tmp_path_factory.mktemp("pages") / "page.html"
    path.write_text(html, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def node() -> str:
    found = find_node()
    if found is None:
        assert not os.environ.get("CI"), "with CI=1 the page must be built: make web"
        pytest.skip("Node or the page's libraries are missing; install Node, then: make web")
    return found
