"""Data put into the built page.

The page is one HTML file. Its script and its style stand in it, named by their hashes in its
content security policy; nothing else may run, and nothing may be loaded. Data stands in one element
that no browser runs, and the script writes it as text only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

# The most bytes of weights that a page carries: larger ones make it slow to open.
MODEL_LIMIT = 16 * 2**20


def make_page(
    title: str,
    *,
    models: Sequence[Mapping[str, Any]] = (),
    traces: Sequence[Mapping[str, Any]] = (),
    services: Sequence[Mapping[str, Any]] = (),
    lessons: Sequence[Mapping[str, Any]] = (),
    duel: Mapping[str, Any] | None = None,
    start: Mapping[str, str] | None = None,
    remarks: Sequence[str] = (),
    without_lessons: str = "",
    without_script: str = "",
) -> str:
    """Make one page that runs models and shows traces, without a network.

    Args:
        title: the title of the window.
        models: models that the page runs itself.
        traces: recorded sentences.
        services: models of the server that sends this page, which the page may ask.
        lessons: walks through texts.
        duel: models to compare with, and the gender of nouns; None if the page has no duel.
        start: the state to open with, by the names of the page's link, such as ``text``.
        remarks: sentences to show at the top, for example why a model is not in the page.
        without_lessons: a sentence that says why there are no lessons.
        without_script: HTML for browsers that run no script.

    Returns:
        The page's HTML.
    """
    data = {
        "models": list(models),
        "traces": list(traces),
        "services": list(services),
        "lessons": list(lessons),
        "duel": dict(duel) if duel else None,
        "start": dict(start or {}),
        "remarks": list(remarks),
        "without_lessons": without_lessons,
    }
    element = f'<script type="application/json" id="pellucid-data">{script_json(data)}</script>'
    # Each place is found from the template's start, so that no data can look like a place.
    page = ""
    rest = read_built_page()
    # Only the page of a server may ask for something, and only that server.
    if services:
        rest = rest.replace("default-src 'none'", "default-src 'none'; connect-src 'self'", 1)
    for place, content in (
        ("<!--pellucid:title-->", escape(_encodable(title))),
        ("<!--pellucid:without-script-->", _encodable(without_script)),
        ("<!--pellucid:data-->", element),
    ):
        before, found, rest = rest.partition(place)
        assert found, place
        page += before + content
    return page + rest


def read_built_page() -> str:
    """Read the page as it was built, without data."""
    return files("pellucid.page").joinpath("page.html").read_text(encoding="utf-8")


def _encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot hold."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def script_json(data: Any) -> str:
    """Write JSON that may stand in a script element of a page."""
    # NaN is no JSON: the page could not read its data.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # ``<`` could end the element.
    text = text.replace("<", "\\u003c")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # A lone surrogate: UTF-8 cannot hold it, an escape can.
        return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return text
