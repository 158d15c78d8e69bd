"""Guides use only what is promised, and the reference lists all of it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pellucid
import pellucid.inside

ROOT = Path(__file__).parents[2]
PROMISED = ("pellucid", "pellucid.inside", "pellucid.serve")

# Pages about the code itself, and what has no function with the command's name yet, such as
# `pellucid corpus`.
NOT_PROMISED = {
    "docs/attention/README.md": {"pellucid.attention", "pellucid.by_hand.examples.positions"},
    "docs/guides/bad-pairs.md": {
        *("pellucid.config", "pellucid.check.data_check", "pellucid.training.start.worst")
    },
    "docs/guides/claim.md": {"pellucid.lessons.why"},
    "docs/guides/probes.md": {"pellucid.corpora"},
}


def programs(path: Path) -> Iterator[str]:
    """Yield the Python of a page or a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        yield from ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        return
    yield from re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def imported(program: str) -> Iterator[tuple[str, str]]:
    """Yield the modules of the package that a program imports from, and the names."""
    # A page may show an interactive session.
    program = re.sub(r"^(>>> |\.\.\. )", "", program, flags=re.MULTILINE)
    for found in re.finditer(r"^ *from (pellucid[\w.]*) import (\([^)]*\)|[^\n#]*)", program, re.M):
        for name in re.findall(r"\w+", found[2]):
            yield found[1], name
    for found in re.finditer(r"^ *import (pellucid[\w.]*)", program, re.M):
        yield found[1], ""


def pages() -> list[Path]:
    docs = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").glob("*.ipynb")]
    return sorted([ROOT / "README.md", *docs])


def test_programs_of_all_pages_import_only_what_is_promised() -> None:
    wrong = []
    used: dict[str, set[str]] = {}
    for path in pages():
        name = path.relative_to(ROOT).as_posix()
        for module, what in (one for program in programs(path) for one in imported(program)):
            if module in PROMISED:
                package = __import__(module, fromlist=["__all__"])
                if what and what not in package.__all__:
                    wrong.append(f"{name}: {what} is not in {module}.__all__")
            elif module in NOT_PROMISED.get(name, ()):
                used.setdefault(name, set()).add(module)
            else:
                wrong.append(f"{name}: {module} is not promised")
    assert not wrong, "\n".join(wrong)
    # An exception that no page needs is taken out of the table.
    assert used == NOT_PROMISED


def test_reference_lists_exactly_the_names_of_inside() -> None:
    text = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    part = text[text.index("## Look inside") : text.index("## Errors")]
    marks = re.findall(r"<!-- \w+ pellucid\.inside\.([\w.]+) -->", part)
    # The classes below `Trace` and `Pair` explain their attributes.
    flat = [name for name in marks if "." not in name]
    assert sorted(flat) == sorted(pellucid.inside.__all__)
    assert set(marks) - set(flat) == {"record.trace_data.TraceData", "pair.PairData"}
    for name in flat:
        assert f"`{name}`" in part, name


@pytest.mark.parametrize("name", pellucid.inside.__all__)
def test_every_name_of_inside_can_be_had(name: str) -> None:
    assert getattr(pellucid.inside, name) is not None


def test_dir_of_inside_offers_only_what_is_promised() -> None:
    assert dir(pellucid.inside) == sorted(pellucid.inside.__all__)
    with pytest.raises(AttributeError, match="no attribute 'what_iff'"):
        pellucid.inside.what_iff  # noqa: B018


def test_homes_of_inside_match_what_type_checkers_see() -> None:
    tree = ast.parse(Path(pellucid.inside.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pellucid")
        for alias in node.names
    }
    assert seen == pellucid.inside._HOMES
    assert set(pellucid.inside.__all__) == set(seen)


def test_no_name_of_inside_is_a_module_too() -> None:
    # The module would take the name's place as soon as something imports it.
    folder = Path(pellucid.inside.__file__).parent
    modules = {path.stem for path in folder.iterdir()}
    assert not modules & set(pellucid.inside.__all__)


def test_importing_inside_loads_nothing_heavy(
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run_python(
        "-c",
        "import sys, pellucid.inside; dir(pellucid.inside)\n"
        "print({'torch', 'numpy', 'matplotlib', 'pydantic'} & sys.modules.keys())",
    )
    assert done.stdout == "set()\n", done.stderr


def test_guard_import_from_deeper_down_is_found() -> None:
    program = "from pellucid.inside.pair import (\n    make_pair,\n)\nimport pellucid\n"
    assert list(imported(program)) == [("pellucid.inside.pair", "make_pair"), ("pellucid", "")]
