"""Outputs on the pages are written anew as the pages leave parts of them out."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "make_printed.py"))


@pytest.mark.parametrize(
    ("wanted", "printed", "renewed"),
    [
        ("?\n", "a 1\nb 2\n", "a 1\nb 2\n"),
        # The last lines stay the last ones, whatever empty ones follow them.
        ("…\nit 0.1\nno 0.2\n", "title\n\nit 0.3 \nno 0.4 \n\n", "…\nit 0.3\nno 0.4\n"),
        # A line's end that is left out stays so, however long the new one is.
        ("p 1; checks: …\n\nend\n", "p 2; checks: a\nb\n\nend\n", "p 2; checks: …\n\nend\n"),
    ],
    ids=["all", "the last lines", "the end of a line"],
)
def test_output_is_renewed_where_the_page_shows_it(
    wanted: str, printed: str, renewed: str, script: dict[str, Any]
) -> None:
    assert script["renew"](wanted, printed) == renewed


def test_comments_of_the_readme_are_not_taken_for_what_is_printed(script: dict[str, Any]) -> None:
    languages = {one.language for one in script["shown_blocks"](ROOT / "README.md")}
    assert "console" in languages
    assert "python" not in languages
