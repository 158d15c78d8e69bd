"""Modules offer the names without an underscore; packages, exactly those of ``__all__``."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pellucid


def find_mismatches(source: str, *, is_package: bool) -> list[str]:
    """Compare ``__all__`` of a package with what it defines or re-exports; others have none.

    Every public function and class must be listed; a constant may be. Everything listed must
    be there.
    """
    tree = ast.parse(source)
    listed = _read_all(tree)
    if not is_package:
        return [] if listed is None else ["__all__ says again what underscores say"]
    must, may = _defined(tree)
    listed = listed or []
    missing = sorted(must - set(listed))
    unknown = sorted(set(listed) - must - may)
    found = []
    if missing:
        found.append(f"not in __all__: {', '.join(missing)}")
    if unknown:
        found.append(f"in __all__ but not defined: {', '.join(unknown)}")
    if len(listed) != len(set(listed)):
        found.append("a name is in __all__ twice")
    return found


def _read_all(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and target.id == "__all__":
                assert isinstance(node, ast.Assign | ast.AnnAssign)
                assert node.value is not None
                return list(ast.literal_eval(node.value))
    return None


def _defined(tree: ast.Module) -> tuple[set[str], set[str]]:
    must: set[str] = set()
    may: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            must.add(node.name)
        elif isinstance(node, ast.Assign):
            may |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            may.add(node.target.id)
    must |= {
        alias.asname or alias.name
        for node in ast.walk(tree)  # a package may re-export lazily, under TYPE_CHECKING
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pellucid.")
        for alias in node.names
    }
    return {name for name in must if not name.startswith("_")}, may


def test_all_of_every_module_matches_what_it_defines(modules: dict[str, Path]) -> None:
    found = [
        f"{module}: {mismatch}"
        for module, path in modules.items()
        if module != "pellucid"
        for mismatch in find_mismatches(
            path.read_text(encoding="utf-8"), is_package=path.name == "__init__.py"
        )
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", pellucid.__all__)
def test_root_every_name_of_all_can_be_had(name: str) -> None:
    assert getattr(pellucid, name) is not None
    assert name in dir(pellucid)


def test_root_unknown_name_gives_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        pellucid.lod  # noqa: B018


def test_root_homes_of_names_match_what_type_checkers_see(modules: dict[str, Path]) -> None:
    tree = ast.parse(modules["pellucid"].read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pellucid")
        for alias in node.names
    }
    assert seen == pellucid._HOMES
    assert set(pellucid.__all__) == {*seen, "__version__"}


@pytest.mark.parametrize(
    ("source", "is_package"),
    [
        ("__all__ = ['f']\ndef f(): ...\n", False),
        ("def f(): ...\n", True),
        ("__all__ = ['g']\n", True),
        ("__all__ = ['f', 'f']\ndef f(): ...\n", True),
        ("__all__ = []\nfrom pellucid.model.layers import Layer\n", True),
    ],
)
def test_guard_mismatch_is_found(source: str, is_package: bool) -> None:
    assert find_mismatches(source, is_package=is_package)
