"""The size of every room is written down, and no room outgrows it unnoticed."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import Any

ALLOWED_GROWTH = 0.05
MOST_FILES_IN_FOLDER = 18
MOST_STATEMENTS_IN_FILE = 275
MOST_STATEMENTS_IN_FUNCTION = 55
"""Above these a file or a function is split. A reader likes some 400 lines, and 60: no meter."""


def find_outgrown(written: dict[str, Any], counted: dict[str, Any]) -> list[str]:
    """List the rooms that are larger than written down, or not written down."""
    found = []
    for room, size in counted.items():
        for what in ("statements", "tokens"):
            most = getattr(written[room], what) * (1 + ALLOWED_GROWTH) if room in written else 0
            count = getattr(size, what)
            if count > most:
                found.append(
                    f"{room} has {count:,} {what}, more than {int(most):,}. Make it smaller, or "
                    "say why in the commit that raises its figure: make size"
                )
    return found


def test_no_room_outgrows_its_figure(sizes: ModuleType, root: Path) -> None:
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    written = sizes.read_table(page)
    counted = sizes.measure_rooms(root / "src" / "pellucid")
    outgrown = find_outgrown(written, counted)
    assert not outgrown, "\n".join(outgrown)
    assert set(written) == {*counted, "all"}


def test_files_and_functions_have_few_statements(
    sizes: ModuleType, modules: dict[str, Path]
) -> None:
    found = []
    for module, path in modules.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if sizes.count_statements(tree) > MOST_STATEMENTS_IN_FILE:
            found.append(f"{module}: {sizes.count_statements(tree)} statements")
        found += [f"{module}: {long}" for long in find_long_functions(sizes, tree)]
    assert not found, "\n".join(found)


def find_long_functions(sizes: ModuleType, tree: ast.AST) -> list[str]:
    """List functions with too many statements."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            count = sizes.count_statements(node) - 1
            if count > MOST_STATEMENTS_IN_FUNCTION:
                found.append(f"{node.name} has {count} statements")
    return found


def test_no_folder_holds_more_files_than_can_be_overseen(root: Path) -> None:
    package = root / "src" / "pellucid"
    folders = {path.parent for path in package.rglob("*.py")}
    counts = {
        str(folder.relative_to(package)): sum(
            path.name != "__init__.py" for path in folder.glob("*.py")
        )
        for folder in folders
        if folder.name != "commands"  # One file a command, by its name.
    }
    full = {folder: count for folder, count in counts.items() if count > MOST_FILES_IN_FOLDER}
    assert not full, full


def test_guard_outgrown_and_unknown_rooms_are_found(sizes: ModuleType) -> None:
    written = {"model": sizes.Size(100, 1000, 3)}
    assert find_outgrown(written, {"model": sizes.Size(106, 1000, 3)})
    assert find_outgrown(written, {"model": sizes.Size(100, 1060, 3)})
    assert find_outgrown({}, {"model": sizes.Size(1, 1, 1)})
    assert not find_outgrown(written, {"model": sizes.Size(105, 1050, 3)})


def test_guard_long_function_is_found(sizes: ModuleType) -> None:
    body = "    pass\n" * (MOST_STATEMENTS_IN_FUNCTION + 1)
    assert find_long_functions(sizes, ast.parse(f"def f():\n{body}"))
    documented = f'def f():\n    """Do."""\n{body[9:]}'
    assert not find_long_functions(sizes, ast.parse(documented))


def test_guard_docstrings_comments_and_lines_do_not_count(sizes: ModuleType) -> None:
    source = '"""A\nmodule."""\n\n# a comment\nX = """one\ntwo"""\n\n\ndef f():\n    """Do."""\n'
    assert (sizes.measure(source).statements, sizes.measure(source).tokens) == (2, 8)
    wide = "f(\n    a,\n    b\n)\n"
    assert sizes.measure(wide) == sizes.measure("f(a, b)\n")
