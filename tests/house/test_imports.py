"""Imports point down only, and no files import each other in a circle, also inside functions."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Collection, Iterator
from pathlib import Path

FLOORS = {
    "errors": 0.0,
    "files": 0.1,  # Floor 0 is ordered too: errors, then files, then config, then the machine.
    "wording": 0.05,
    "shapes": 0.1,
    "arguments": 0.1,
    "terminal": 0.15,
    "config": 0.2,
    "foreign": 0.3,
    "machine": 0.3,
    "languages": 0.3,
    "native": 0.9,
    "documents": 0.95,
    "attention": 1,
    "text": 1,
    "corpora": 1,
    "page": 1,
    "by_hand": 2,
    "model": 2,
    "data": 2,
    "evaluation": 2,
    "check": 2.5,
    "decode": 3,
    "bundle": 3,
    "inside": 4,
    "formats": 4,
    "translate": 5,
    "bulk": 5.5,
    "training": 6,
    "serve": 6,
    "functions": 6.5,
    "lessons": 7,
    "demo": 7.5,
    "cli": 8,
    "__main__": 9,
}


def find_violations(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """List the imports of a module that are not allowed.

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
    found = []
    for target in _imported(module, source, is_package=is_package):
        below = target.split(".")[1] if "." in target else ""
        if not below or below == folder:
            continue  # The root may only be imported for its version.
        if below not in FLOORS:
            found.append(f"{module} imports {target}, which has no floor")
        elif FLOORS[below] >= FLOORS[folder]:
            found.append(f"{module} (floor {FLOORS[folder]}) imports {target} ({FLOORS[below]})")
    return found


def find_circles(sources: dict[str, str], packages: frozenset[str] = frozenset()) -> list[str]:
    """Find the files that import each other in a circle.

    Imports inside functions and under ``TYPE_CHECKING`` count. An import of a name from a package
    counts as one of the package's ``__init__.py``, which imports what it re-exports.

    Args:
        sources: the text of every module by its dotted name.
        packages: those of them that are an ``__init__.py``.

    Returns:
        For each circle its modules, joined by arrows.
    """
    graph: dict[str, set[str]] = {}
    for module, source in sources.items():
        targets = _imported(module, source, is_package=module in packages, modules=sources)
        graph[module] = {target for target in targets if target in sources and target != module}
    found = []
    while True:
        try:
            tuple(graphlib.TopologicalSorter(graph).static_order())
        except graphlib.CycleError as error:
            circle = error.args[1][::-1]
            found.append(" → ".join(circle))
            graph[circle[0]].discard(circle[1])
        else:
            return found


def _imported(
    module: str, source: str, *, is_package: bool, modules: Collection[str] = ()
) -> Iterator[str]:
    """List the modules of pellucid that a module imports, also those imported by name."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
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
                for a in node.names:
                    yield f"{base}.{a.name}" if f"{base}.{a.name}" in modules else base


def test_imports_of_every_module_point_down(modules: dict[str, Path]) -> None:
    found = [
        violation
        for module, path in modules.items()
        for violation in find_violations(
            module, path.read_text(encoding="utf-8"), is_package=path.name == "__init__.py"
        )
    ]
    assert not found, "\n".join(found)


def test_no_files_import_each_other_in_a_circle(modules: dict[str, Path]) -> None:
    sources = {module: path.read_text(encoding="utf-8") for module, path in modules.items()}
    packages = frozenset(m for m, path in modules.items() if path.name == "__init__.py")
    # The root imports nothing when it is imported, and modules ask it for its version only.
    del sources["pellucid"]
    circles = find_circles(sources, packages)
    assert not circles, "\n".join(circles)


def test_floors_lists_only_what_exists(modules: dict[str, Path]) -> None:
    found = {module.split(".")[1] for module in modules if "." in module}
    assert set(FLOORS) == found


def test_guard_circle_of_late_and_typing_imports_is_found() -> None:
    sources = {
        "pellucid.training.loop": "def f():\n    from pellucid.training.records import Record\n",
        "pellucid.training.records": (
            "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    from pellucid.training import loop\n"
        ),
        "pellucid.training": "",
    }
    assert find_circles(sources, frozenset({"pellucid.training"}))
    sources["pellucid.training.records"] = "from pellucid.training import step\n"
    assert not find_circles(sources, frozenset({"pellucid.training"}))


def test_guard_circle_through_a_package_is_found() -> None:
    sources = {
        "pellucid.text": "from pellucid.text.tokenizers.whole_words import Words\n",
        "pellucid.text.tokenizers.whole_words": "from pellucid.text import Words\n",
    }
    assert find_circles(sources, frozenset({"pellucid.text"}))


def test_guard_upward_import_inside_function_is_found() -> None:
    source = "def f():\n    from pellucid.training.loop import train\n"
    assert find_violations("pellucid.model.layers", source)


def test_guard_sideways_import_is_found() -> None:
    assert find_violations("pellucid.model.layers", "import pellucid.data.token_store\n")


def test_guard_relative_upward_import_is_found() -> None:
    assert find_violations("pellucid.model.layers", "from ..train import loop\n")


def test_guard_name_taken_from_the_lazy_root_is_found() -> None:
    assert find_violations("pellucid.model.layers", "from pellucid import load\n")


def test_guard_module_without_floor_is_found() -> None:
    assert find_violations("pellucid.utils", "")


def test_guard_downward_and_own_folder_imports_are_allowed() -> None:
    source = "from pellucid.attention import attend\nfrom .cache import Cache\nimport pellucid\n"
    assert not find_violations("pellucid.model.layers", source)
