"""Code that the pages show runs, and pages that a script writes are up to date."""

from __future__ import annotations

import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pellucid
import pellucid.config
from pellucid.config import Recipe, Strict

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PACKAGE = Path(pellucid.__file__).parent


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


@pytest.fixture(scope="module")
def make_recipes() -> dict[str, Any]:
    return runpy.run_path(str(REFERENCE / "make_recipes.py"))


def test_reference_of_recipes_is_up_to_date(make_recipes: dict[str, Any]) -> None:
    page = (REFERENCE / "recipes.md").read_text(encoding="utf-8")
    assert page == make_recipes["page"](), "run `make docs`"


def test_reference_of_recipes_has_every_key_with_a_meaning() -> None:
    page = (REFERENCE / "recipes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE)
    assert Counter(key for key, _ in rows) == Counter(
        key
        for section in Recipe.model_fields.values()
        for key in section.annotation.model_fields  # type: ignore[union-attr]
    )
    assert all(len(meaning.split()) > 1 for _, meaning in rows)


@pytest.mark.parametrize(
    "section",
    [one for one in vars(pellucid.config).values() if isinstance(one, type) and one is not Strict],
)
def test_every_field_of_configuration_has_a_meaning(
    make_recipes: dict[str, Any], section: type[Strict]
) -> None:
    meanings = make_recipes["read_meanings"](section)
    assert list(meanings) == list(section.model_fields)
    assert all(meaning.endswith((".", ")")) for _, meaning in meanings.values())


class Measured(Strict):
    # Length
    width: int = 1
    """In pixels,
    as shown."""
    height: int = 2
    # Not a topic of a field below it

    depth: int = 3
    """In layers."""


def test_guard_field_without_a_meaning_is_found(make_recipes: dict[str, Any]) -> None:
    assert make_recipes["read_meanings"](Measured) == {
        "width": ("Length", "In pixels, as shown."),
        "depth": ("Length", "In layers."),
    }


def test_contributing_names_only_paths_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", text))
    assert len(paths) > 50
    missing = [
        path
        for path in paths
        if "NAME" not in path
        and not any((folder / path).exists() for folder in (ROOT, PACKAGE, *PACKAGE.iterdir()))
    ]
    assert not missing


def test_contributing_has_every_module_on_its_floor() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    floor = ""
    found: dict[str, float] = {}
    for number, modules in re.findall(r"^\| ?([\d.]*) \| (`[^|]+`) \| ", text, re.MULTILINE):
        floor = number or floor
        found |= {name: float(floor) for name in re.findall(r"`(\w+)/?`", modules)}
    floors = runpy.run_path(str(ROOT / "tests" / "house" / "test_imports.py"))["FLOORS"]
    assert found == {name: number for name, number in floors.items() if name != "__main__"}
