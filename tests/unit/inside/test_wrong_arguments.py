"""Each argument of a wrong type gets one sentence that names it, never a raw error."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pellucid
import pellucid.inside
from pellucid.errors import PellucidError
from pellucid.inside import MEASURES, Pair
from pellucid.translate.translator import Translator

TEXT = "The soup was cold."
HEAD = "decoder.1.cross.0"

# Results, which functions make, and tables.
MADE = {
    *("Contrast", "HeadHistory", "HeadRow", "MEASURES", "Map", "MapDifference", "Measure"),
    *("PART_MEASURES", "PATCHINGS"),
    *("PatchedCorpus", "Probe", "Study", "Trace", "Vectors", "WhatIf", "Change", "Contributions"),
}


class Strange:
    """Fits no argument."""

    def __repr__(self) -> str:
        return "something strange"


def valid_calls(translator: Translator) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Give every public function and class of the package a call that it takes."""
    inside = pellucid.inside
    trace = translator.look(TEXT)
    pair = translator.pair(TEXT)
    map_ = pair.measure("weights")
    bundle = translator.bundle
    assert bundle is not None
    edge = "decoder.1.cross.0:1>2"
    ids = {"source_ids": pair.source_ids, "target_ids": pair.target_ids}
    lines = {"sources": [TEXT], "targets": None, "heads": None}
    arguments: dict[str, dict[str, Any]] = {
        "Ask": {"heads": HEAD, "stages": "weights"},
        "AverageHead": {"place": HEAD, "how": "mean"},
        "CutEdge": {"place": edge, "how": "zeroed"},
        "CutHead": {"place": HEAD},
        "ForceWeight": {"place": edge, "weight": 0.5},
        "Pair": {"model": pair.model, "tokenizer": pair.tokenizer, **ids, "source_text": TEXT},
        "Replace": {"functions": {"encoder.0.self.weights": abs}, "takes_batches": False},
        "ReplaceWeights": {"place": HEAD, "weights": np.ones((9, 9))},
        "Replaying": {"ask": inside.Ask(), "float64": False, "into": None, "before": None},
        "agreement": {"pair": pair, "maps": [map_]},
        "causal_trace": {"pair": pair, "words": "soup", "sites": None, "positions": None}
        | {"why": None, "other": None, "row": None, "metric": None, "num_samples": 1}
        | {"scale": 3.0, "seed": 1},
        "compare_heads": {
            **{"first": trace, "first_head": HEAD, "second": trace, "second_head": HEAD}
        },
        "contributions": {"pair": pair, "part": "decoder", "kind": "cross", "layer": None},
        "decoder_lens": {"pair": pair, "most": 2, "max_length": 4},
        "draw_architecture": {
            **{"config": bundle.config.model, "what": "whole", "model": "demo"},
            "has_output_bias": False,
        },
        "faithfulness": {"pair": pair, "maps": [map_], "num_random": 2, "seed": 1},
        "find_contrast": {"pair": pair, "target": "La soupe était froide.", "why": "soupe"}
        | {"other": None},
        "find_raises": {"pair": pair, "map_": map_, "effects": map_, "least_share": 0.1},
        "follow_heads": {"run": Path("runs"), **lines, "golds": None, "antecedents": None}
        | {"on_step": None},
        "head_rows": {"trace": trace, "pair": None, "gold": None},
        "load_trace": {"source": "trace.npz"},
        "load_vectors": {"source": "vectors.npz"},
        "logit_lens": {"pair": pair, "most": 2},
        "measure": {"pair": pair, "name": "weights", "head": None, "steps": None}
        | {"baseline": None, "changes": None},
        "parse_change": {"text": f"cut {HEAD}"},
        "patch": {"pair_a": pair, "pair_b": pair, "sites": None, "positions": None}
        | {"why": None, "other": None, "row": None, "metric": None, "by_gradient": False},
        "patch_corpus": {"model": bundle, "sources": [TEXT], "targets": None, "sites": None}
        | {"words": [], "seed": 1, "on_step": None}
        | {"why": None, "other": None, "row": None, "metric": None, "by_gradient": False},
        "replay": {"pair": pair, "ask": None, "changes": None, "float64": False},
        "sort_rows": {"rows": [], "by": "entropy", "descending": False},
        "study": {"model": bundle, **lines, "golds": None, "num_measured": 0}
        | {"kept": None, "on_step": None},
        "vectors": {"model": bundle, "sources": [TEXT], "targets": None, "at": "encoder.1"}
        | {"output": "x.npz", "words": [], "overwrite": False, "on_step": None},
        "what_if": {"pair": pair, "changes": f"cut {HEAD}", "prefix": "", "max_length": 4}
        | {"num_random": 0, "seed": 1},
    }
    calls = {name: (getattr(inside, name), given) for name, given in arguments.items()}
    methods: dict[str, dict[str, Any]] = {
        "look": {"text": TEXT, "translation": None, "ask": None, "changes": f"cut {HEAD}"}
        | {"decode_changed": False},
        "pair": {"text": TEXT, "translation": None, "changes": f"cut {HEAD}"},
        "why": {"text": TEXT, "word": "soupe", "other": None},
        "changed": {"changes": f"cut {HEAD}"},
    }
    calls |= {f"t.{name}": (getattr(translator, name), one) for name, one in methods.items()}
    of_pair: dict[str, dict[str, Any]] = {
        "measure": {"name": "weights", "head": None},
        "what_if": {"changes": f"cut {HEAD}", "prefix": ""},
        "why": {"word": "soupe", "other": None},
        "patch": {"pair": pair, "sites": None, "positions": None, "row": None},
        "look": {"ask": None},
    }
    calls |= {f"pair.{name}": (getattr(pair, name), one) for name, one in of_pair.items()}
    of_trace: dict[str, dict[str, Any]] = {
        "save": {"path": "x.npz", "head": None},
        "plot": {"name": None, "ax": None},
        "to_pandas": {"name": HEAD},
        "to_xarray": {"name": HEAD},
        "__getitem__": {"name": HEAD},
    }
    calls |= {f"trace.{name}": (getattr(trace, name), one) for name, one in of_trace.items()}
    of_map: dict[str, dict[str, Any]] = {"save": {"path": "x.svg"}, "plot": {"ax": None}}
    return calls | {f"map.{name}": (getattr(map_, name), one) for name, one in of_map.items()}


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


def test_every_argument_of_a_wrong_type_is_refused_by_its_name(
    demo: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tempfile.mkdtemp())
    calls = valid_calls(demo)
    assert {name for name in calls if "." not in name} == {*pellucid.inside.__all__} - MADE
    found = []
    for name, (function, given) in calls.items():
        parameters = inspect.signature(function).parameters
        for argument in given:
            assert argument in parameters, f"{name} has no {argument}"
            for wrong in (Strange(), b"bytes", 2.5, {"a": 1}, [Strange()]):
                # Some of these fit, such as bytes of a trace and a number for a number.
                is_number = isinstance(wrong, float) and isinstance(given[argument], float)
                if is_number or (name, argument, type(wrong)) == ("load_trace", "source", bytes):
                    continue
                try:
                    function(**{**given, argument: wrong})
                except PellucidError as error:
                    if argument not in str(error) and argument not in _SAID:
                        found.append(f"{name}({argument}={wrong!r}): {error}")
                except Exception as error:
                    found.append(f"{name}({argument}={wrong!r}): {type(error).__name__}: {error}")
                else:
                    found.append(f"{name}({argument}={wrong!r}) was taken")
    assert not found, "\n".join(found)


# Whose sentence says the thing instead: an address is a head whatever the argument is called.
_SAID = {"first_head", "second_head"}


def test_lists_that_are_given_for_one_thing_are_refused(demo: Translator) -> None:
    for call, said in (
        (lambda: demo.look([TEXT]), "text must be a text, but is a list"),  # type: ignore[arg-type]
        (lambda: demo.pair([TEXT]), "text must be a text, but is a list"),  # type: ignore[arg-type]
        (lambda: demo.look(TEXT, ask="decoder.1.cross.scores"), "must be a number from 0"),
        (lambda: list(demo.look_at_each(TEXT)), "texts must be a list of texts"),
    ):
        with pytest.raises(PellucidError, match=said):
            call()  # type: ignore[no-untyped-call]


def test_measures_are_those_of_the_table(demo: Translator) -> None:
    pair = demo.pair(TEXT)
    assert isinstance(pair, Pair)
    assert all(pair.measure(name).name == name for name in MEASURES)
