"""The page's own Transformer computes what the package computes, at every stage."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from page_in_node import compare, write_fixture
from small_words import SENTENCES, make_words_bundle

FORMS: dict[str, dict[str, Any]] = {
    "post": {"norm": "post"},
    "pre": {"norm": "pre", "activation": "gelu", "positions": "learned", "projection_bias": True},
    "none": {"norm": "none", "activation": "swish", "positions": "sinusoidal_halves"},
    "tied": {"tied_embeddings": "all", "embedding_scale": "none", "projections": "qk"}
    | {"d_key": 7, "d_value": 7},
    "bare": {"tied_embeddings": "none", "scale_scores": False, "residual": False}
    | {"positions": "none"},
}


def test_model_in_the_page_agrees_with_the_trace_in_every_form(node: str, tmp_path: Path) -> None:
    fixtures = [
        write_fixture(
            make_words_bundle(tmp_path / name, seed=seed, **form),
            SENTENCES,
            tmp_path / f"{name}.json",
        )
        for seed, (name, form) in enumerate(FORMS.items(), start=1)
    ]
    for name, found in zip(FORMS, compare(node, fixtures, tmp_path), strict=True):
        assert not found["wrong"], (name, found["wrong"])
        differences = found["differences"]
        largest = max(differences, key=lambda stage: differences[stage])
        mean = sum(differences.values()) / len(differences)
        assert differences[largest] <= 1e-4, (
            f"{name}: {largest} differs by {differences[largest]:.1e}, the mean is {mean:.1e}"
        )
        assert {"decoder.logits", "encoder.0.self.context", "log_probabilities"} <= set(differences)


def test_guard_a_changed_weight_is_found(node: str, tmp_path: Path) -> None:
    folder = make_words_bundle(tmp_path / "model")
    fixture = write_fixture(folder, SENTENCES[:1], tmp_path / "changed.json")
    other = make_words_bundle(tmp_path / "other", seed=2)
    mixed = write_fixture(other, SENTENCES[:1], tmp_path / "other.json")
    one, two = (json.loads(path.read_text(encoding="utf-8")) for path in (fixture, mixed))
    one["model"] = two["model"]
    fixture.write_text(json.dumps(one), encoding="utf-8")
    (found,) = compare(node, [fixture], tmp_path)
    assert max(found["differences"].values()) > 1e-2


def test_model_with_an_option_or_value_unknown_to_the_page_is_not_run(
    node: str, tmp_path: Path
) -> None:
    folder = make_words_bundle(tmp_path / "model")
    fixture = write_fixture(folder, SENTENCES[:1], tmp_path / "plain.json")
    values = json.loads(fixture.read_text(encoding="utf-8"))
    options = {
        name: value
        for name, value in values["model"]["model"].items()
        if isinstance(value, str | bool)
    }
    assert len(options) == 11
    for name in (*options, "gate"):
        values["model"]["model"][name] = "unheard-of"
        fixture.write_text(json.dumps(values), encoding="utf-8")
        with pytest.raises(subprocess.CalledProcessError) as failed:
            compare(node, [fixture], tmp_path)
        assert f"cannot run a model whose {name} is unheard-of" in failed.value.stderr
        values["model"]["model"][name] = options.get(name, False)
        if name not in options:
            del values["model"]["model"][name]
