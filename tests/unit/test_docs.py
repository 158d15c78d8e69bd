"""What the pages show runs, and pages that are written by a script are up to date."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def python_blocks(page: Path) -> str:
    return "\n".join(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    )


@pytest.mark.parametrize(("page", "model"), [("README.md", "demo"), ("docs/start.md", "runs/mine")])
def test_python_of_a_page_runs_on_any_model(
    page: str, model: str, bundle_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = python_blocks(ROOT / page)
    assert model in code
    names: dict[str, Any] = {}
    exec(code if model == "demo" else code.replace(model, str(bundle_folder)), names)
    if page == "docs/start.md":
        trace = names["trace"]
        expected = (len(trace.target_tokens), len(trace.source_tokens))
        assert names["weights_TS"].shape == expected
    else:
        assert "tensor" in capsys.readouterr().out


def test_reference_of_recipes_is_up_to_date() -> None:
    folder = ROOT / "docs" / "reference"
    page = runpy.run_path(str(folder / "make_recipes.py"))["page"]()
    assert (folder / "recipes.md").read_text(encoding="utf-8") == page, "run `make docs`"
