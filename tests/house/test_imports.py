"""Imports point down only, also inside functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

FLOORS = {
    "errors": 0.0,
    "files": 0.1,  # the ground floor has steps of its own: errors, then files, then config
    "shapes": 0.1,
    "randomness": 0.1,
    "config": 0.2,
    "attention": 1,
    "text": 1,
    "corpora": 1,
    "hardware": 1,
    "kernels": 1,
    "processes": 1,
    "by_hand": 2,
    "model": 2,
    "data": 2,
    "evaluate": 2,
    "decode": 3,
    "bundle": 3,
    "translation": 3,
    "inside": 4,
    "formats": 4,
    "scoring": 4,
    "translator": 5,
    "train": 6,
    "demo": 7,
    "cli": 8,
    "__main__": 9,
}


def find_violations(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Say which imports of a module are not allowed.

    Args:
        module: its dotted name.
        source: its text.
        is_package: whether the text is that of an ``__init__.py``.
    """
    if module == "pellucid":
        return []  # the root re-exports lazily and stands outside the floors
    folder = module.split(".")[1]
    if folder not in FLOORS:
        return [f"{module} has no floor: give {folder!r} one in FLOORS"]
    package = module if is_package else module.rpartition(".")[0]
    found = []
    for target in _imported(ast.parse(source), package):
        below = target.split(".")[1] if "." in target else ""
        if not below or below == folder:
            continue  # the root itself gives the version, and nothing else is asked of it
        if below not in FLOORS:
            found.append(f"{module} imports {target}, which has no floor")
        elif FLOORS[below] >= FLOORS[folder]:
            found.append(f"{module} (floor {FLOORS[folder]}) imports {target} ({FLOORS[below]})")
    return found


def _imported(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "pellucid")
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                stem = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*stem, *([base] if base else [])])
            if base == "pellucid":
                yield from (
                    "pellucid" if a.name == "__version__" else f"pellucid.{a.name}"
                    for a in node.names
                )
            elif base.startswith("pellucid."):
                yield base


def test_imports_of_every_module_point_down(modules: dict[str, Path]) -> None:
    found = [
        violation
        for module, path in modules.items()
        for violation in find_violations(
            module, path.read_text(encoding="utf-8"), is_package=path.name == "__init__.py"
        )
    ]
    assert not found, "\n".join(found)


def test_guard_upward_import_inside_function_is_found() -> None:
    source = "def f():\n    from pellucid.train.loop import train\n"
    assert find_violations("pellucid.model.layers", source)


def test_guard_sideways_import_is_found() -> None:
    assert find_violations("pellucid.model.layers", "import pellucid.data.store\n")


def test_guard_relative_upward_import_is_found() -> None:
    assert find_violations("pellucid.model.layers", "from ..train import loop\n")


def test_guard_name_taken_from_the_lazy_root_is_found() -> None:
    assert find_violations("pellucid.model.layers", "from pellucid import load\n")


def test_guard_module_without_floor_is_found() -> None:
    assert find_violations("pellucid.utils", "")


def test_guard_downward_and_own_folder_imports_are_allowed() -> None:
    source = "from pellucid.attention import attend\nfrom .cache import Cache\nimport pellucid\n"
    assert not find_violations("pellucid.model.layers", source)
