"""Code breathes: unrelated values are not paired in one assignment, nor passed by ``*tuple``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

MOST_PAIRS = 0
MOST_SPLATS = 12
MOST_UNFORMATTED = 1
"""What is left of each kind. A number here may only fall."""


def find_pairs(source: str) -> Iterator[ast.Assign]:
    """Find the assignments of several values to several names.

    A swap moves values between the names themselves and is no pair of unrelated things. What a
    function returns or a shape holds is one value on the right, and is not found either.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
            continue
        for target in node.targets:
            if isinstance(target, ast.Tuple) and not _is_swap(target, node.value):
                yield node


def _is_swap(target: ast.Tuple, value: ast.Tuple) -> bool:
    return sorted(map(ast.unparse, target.elts)) == sorted(map(ast.unparse, value.elts))


def find_splats(source: str) -> Iterator[ast.Call]:
    """Find the calls with several ``*sequence`` arguments, whose parameters a reader must count."""
    for node in ast.walk(ast.parse(source)):
        arguments = node.args if isinstance(node, ast.Call) else []
        if sum(isinstance(argument, ast.Starred) for argument in arguments) > 1:
            assert isinstance(node, ast.Call)
            yield node


def _say(found: dict[str, int]) -> str:
    most = sorted(found.items(), key=lambda item: -item[1])[:10]
    return ", ".join(f"{module} {count}" for module, count in most)


def test_unrelated_values_are_not_paired(modules: dict[str, Path]) -> None:
    found = {
        module: sum(1 for _ in find_pairs(path.read_text(encoding="utf-8")))
        for module, path in modules.items()
    }
    assert sum(found.values()) <= MOST_PAIRS, f"one assignment a line: {_say(found)}"


def test_calls_name_their_arguments(modules: dict[str, Path]) -> None:
    found = {
        module: sum(1 for _ in find_splats(path.read_text(encoding="utf-8")))
        for module, path in modules.items()
    }
    assert sum(found.values()) <= MOST_SPLATS, _say(found)


def test_the_formatter_is_not_switched_off(modules: dict[str, Path]) -> None:
    found = {
        module: path.read_text(encoding="utf-8").count("# fmt: skip")
        + path.read_text(encoding="utf-8").count("# fmt: off")
        for module, path in modules.items()
    }
    assert sum(found.values()) <= MOST_UNFORMATTED, _say(found)


def test_guard_pairs_and_splats_are_found() -> None:
    assert list(find_pairs("a, b = 1, {}\n"))
    assert list(find_pairs("self.a, self.b = f(), g()\n"))
    assert list(find_splats("f(*a, *b)\n"))


def test_guard_swaps_shapes_and_results_are_fine() -> None:
    assert not list(find_pairs("a, b = b, a\n"))
    assert not list(find_pairs("batch, length = x.shape\nhigh, low = f(x)\n"))
    assert not list(find_splats("f(a, *b, **c)\n"))
