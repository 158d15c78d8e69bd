"""Names are found: a file's name and a public name occur once, dotted names lead somewhere."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pytest

MOST_REPEATED_FILES = 3
MOST_REPEATED_DEFINITIONS = 4
"""May only fall. What is left are conventions: a claim has ``measure`` and ``judge``, and
``pellucid.train`` completes a recipe for the loop's ``train``. Commands do not count: each has the
name of the function that does its work."""

DOTTED = re.compile(r"(?<![\w./-])pellucid(?:\.\w+)+")


def find_repeated_files(paths: Collection[Path]) -> dict[str, int]:
    """Count the files of each name that several have."""
    names = Counter(path.name for path in paths if not path.name.startswith("__"))
    return {name: count for name, count in names.items() if count > 1}


def find_repeated_definitions(sources: Iterable[str]) -> dict[str, int]:
    """Count the public functions and classes of each name that several modules define."""
    names = Counter(
        node.name
        for source in sources
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
    )
    return {name: count for name, count in names.items() if count > 1}


def find_docstrings(source: str) -> Iterator[str]:
    """Yield the docstrings of a module, and the strings below its attributes."""
    for node in ast.walk(ast.parse(source)):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.value


def find_dangling(text: str, names: dict[str, set[str]]) -> list[str]:
    """List the dotted names in a text that lead nowhere.

    Args:
        text: a docstring.
        names: what each module defines or imports, by the module's dotted name.
    """
    found = []
    for dotted in DOTTED.findall(text):
        parts = dotted.split(".")
        known = [n for n in range(1, len(parts) + 1) if ".".join(parts[:n]) in names]
        module, rest = ".".join(parts[: known[-1]]), parts[known[-1] :]
        is_placeholder = bool(rest) and rest[0].isupper()  # as in ``pellucid.cli.commands.NAME``
        if rest and not is_placeholder and rest[0] not in names[module]:
            found.append(dotted)
    return found


def define(source: str) -> set[str]:
    """Collect every name that a module defines, assigns or imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # The root names what it re-exports lazily.
            found.add(node.value)
    return found


@pytest.fixture(scope="module")
def sources(modules: dict[str, Path]) -> dict[str, str]:
    """The text of every module."""
    return {module: path.read_text(encoding="utf-8") for module, path in modules.items()}


def test_a_file_name_occurs_once(modules: dict[str, Path]) -> None:
    found = find_repeated_files(modules.values())
    assert len(found) <= MOST_REPEATED_FILES, found


def test_a_public_name_has_one_meaning(sources: dict[str, str]) -> None:
    found = find_repeated_definitions(
        source for module, source in sources.items() if ".cli.commands." not in module
    )
    assert len(found) <= MOST_REPEATED_DEFINITIONS, found


def test_dotted_names_in_docstrings_lead_somewhere(sources: dict[str, str]) -> None:
    names = {module: define(source) for module, source in sources.items()}
    found = {
        f"{module}: {dotted}"
        for module, source in sources.items()
        for text in find_docstrings(source)
        for dotted in find_dangling(text, names)
    }
    assert not found, "\n".join(sorted(found))


def test_guard_repeated_names_are_found() -> None:
    assert find_repeated_files([Path("a/words.py"), Path("b/words.py"), Path("b/__init__.py")])
    assert find_repeated_definitions(["class Answer: ...", "def Answer(): ..."])
    assert not find_repeated_definitions(["def _answer(): ...", "def _answer(): ..."])


def test_guard_dangling_name_is_found() -> None:
    names = {"pellucid": {"load"}, "pellucid.model": set(), "pellucid.model.layers": {"AddNorm"}}
    assert find_dangling("see `pellucid.model.layer.AddNorm`", names)
    assert find_dangling("see `pellucid.model.layers.Add`", names)
    assert not find_dangling("see `pellucid.model.layers.AddNorm` and `pellucid.load`", names)
