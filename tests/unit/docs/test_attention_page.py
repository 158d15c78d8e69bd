"""The examples of the page "Attention, step by step" give what the page shows."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "attention" / "README.md"


def test_attention_page_every_example_gives_what_it_shows() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 5
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    failures: list[str] = []
    results = doctest.DocTestRunner(verbose=False).run(test, out=failures.append)
    assert results.attempted > 20
    assert results.failed == 0, "".join(failures)


def test_attention_page_links_to_existing_pages() -> None:
    links = re.findall(r"\]\(([^)#]+)", PAGE.read_text(encoding="utf-8"))
    assert links
    assert all((PAGE.parent / link).exists() for link in links)
