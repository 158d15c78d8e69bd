"""Every public function, given each argument of a wrong type, says so or works."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest
from relabeled import relabel

import pellucid
from pellucid.config.typed_options import DecodingOptions
from pellucid.errors import PellucidError
from pellucid.formats import from_marian
from pellucid.functions import train_model
from pellucid.training.run.run_end import TrainingSummary
from pellucid.translate.translator import Translator

WRONG = (None, 3, b"x", ["a"], object(), "no such thing", -1.5)
WRONG_OPTIONS = (b"x", "no such thing")
"""For each of the decoding options, which one configuration checks."""

NEEDED = {
    "texts": "The soup was cold.",
    "text": "The soup was cold.",
    "sources": "The soup was cold.",
    "targets": "La soupe était froide.",
    "changes": "cut decoder.1.cross.0",
    "word": "1",
    "model": "demo",
    "folder": "nowhere",
    "output": "new",
    "format": "pellucid",
    "query": [[1.0, 0.0]],
    "key": [[1.0, 0.0]],
    "value": [[1.0, 0.0]],
}
"""A right value of each argument that a function needs, by its name."""

FURTHER: dict[str, dict[str, Any]] = {
    "evaluate": {"hypothesis": ["a b"], "reference": ["a b"]},
    "train": {"texts": "pairs.tsv", "source_language": "en", "target_language": "fr"},
    "look_at_each": {"texts": ["The soup was cold."]},
}
"""Right arguments of single functions, and those that a signature does not ask for."""

SEVERAL = {"chain": ["demo", "back"]}
"""Right arguments of functions that take any number of them."""


def public_functions() -> dict[str, Callable[..., Any]]:
    """Collect the functions of ``pellucid``, and the methods of a translator by their names."""
    found = {name: getattr(pellucid, name) for name in pellucid.__all__}
    found = {name: one for name, one in found.items() if inspect.isfunction(one)}
    methods = inspect.getmembers(Translator, inspect.isfunction)
    return found | {f"Translator.{name}": one for name, one in methods if name[0] != "_"}


def wrong_arguments(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield each argument of a function, decoding options included, with wrong values."""
    for name, one in inspect.signature(function).parameters.items():
        if one.kind is one.VAR_KEYWORD:
            yield from itertools.product(get_type_hints(DecodingOptions), WRONG_OPTIONS)
        elif one.kind is one.VAR_POSITIONAL:
            yield from itertools.product([f"*{name}"], WRONG)
        elif name != "self":
            yield from itertools.product([name], WRONG)


def needed_by(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    needed = [
        one.name
        for one in parameters
        if one.default is one.empty
        and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        and one.name != "self"
    ]
    return {name: NEEDED[name] for name in needed} | FURTHER.get(function.__name__, {})


def use(result: Any) -> None:
    """Take something out of an iterator, which may do its work only then."""
    if isinstance(result, Iterator):
        list(itertools.islice(result, 2))


def names_it(sentence: str, argument: str, value: Any) -> bool:
    """Tell whether a sentence names an argument, or a value that has a right type but is wrong."""
    if isinstance(value, str) or value == ["a"]:
        return argument in sentence or "".join(value) in sentence
    # One of several may be named, or several: "A change must be", "Queries must have".
    return argument in sentence or argument.rstrip("sy") in sentence.lower()


@pytest.fixture(scope="module")
def translator() -> Translator:
    return pellucid.load("demo")


@pytest.fixture(autouse=True)
def _nothing_is_trained_or_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def train_nothing(*_: Any, **__: Any) -> TrainingSummary:
        return TrainingSummary(Path("run/bundle"), 1, 0.0, 1, 0.0, 0.0, None)

    monkeypatch.setattr(train_model, "train_found", train_nothing)
    imported = SimpleNamespace(save=lambda out: None, dropped=())
    monkeypatch.setattr(from_marian, "import_marian", lambda folder: imported)
    monkeypatch.chdir(tmp_path)
    relabel(Path("back"), "fr", "en")
    Path("pairs.tsv").write_text("The soup was cold.\tLa soupe était froide.\n" * 50, "utf-8")


@pytest.mark.parametrize("name", public_functions())
def test_wrong_argument_of_a_public_function_is_named(
    name: str, translator: Translator, tmp_path: Path
) -> None:
    function = public_functions()[name]
    bound = getattr(translator, function.__name__) if "." in name else function
    needed = needed_by(function)
    faults = []
    for number, (argument, value) in enumerate(wrong_arguments(function)):
        given = dict(needed)
        if "output" in inspect.signature(function).parameters:
            given["output"] = str(tmp_path / str(number))
        call = f"{name}({argument}={value!r})"
        several = [value] if argument.startswith("*") else SEVERAL.get(name, [])
        if not argument.startswith("*"):
            given[argument] = value
        try:
            use(bound(*several, **given))
        except PellucidError as error:
            if not names_it(str(error), argument.strip("*"), value):
                faults.append(f"{call}: {error}")
        except Exception as error:
            faults.append(f"{call}: {type(error).__name__}: {error}")
    assert not faults, "\n".join(faults)


def test_guard_there_are_many_public_functions() -> None:
    names = public_functions()
    assert {"load", "train", "evaluate", "convert", "export", "attend"} <= set(names)
    assert {"Translator.translate", "Translator.look", "Translator.align"} <= set(names)
