"""The page measures what the package measures, and orders words as it does."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser
from page_in_node import compare
from page_reader import PageReader
from small_words import SENTENCES, make_words_bundle

import pellucid
from pellucid import Translator
from pellucid.inside import agreement, measure
from pellucid.inside.pair import make_pair
from pellucid.inside.show import model_page as pages
from pellucid.inside.show.model_page import carry_model, model_page

NAMES = ("weights", "norms", "residual-norms", "value-zeroing", "rollout", "alti", "occlusion")
OF_LAYER = NAMES[:4]

FORMS: dict[str, dict[str, Any]] = {
    "post": {"norm": "post"},
    "pre": {"norm": "pre", "activation": "gelu", "projection_bias": True},
    "bare": {"projections": "qk", "d_key": 7, "activation": "swish", "residual": False},
}


def write_measures(folder: Path, file: Path, *, layer: int) -> Path:
    """Write a model, and what the package measures of some sentences."""
    translator = pellucid.load(folder)
    sentences = []
    for text in SENTENCES[:2]:
        pair = make_pair(translator.bundle, text, translator.look(text, beam=1).predicted_ids)
        maps = []
        for name in NAMES:
            head = f"decoder.{layer}.cross" if name in OF_LAYER else None
            maps.append(measure(pair, name, head))
        kendall = agreement(pair, maps).kendall.tolist()
        sentences.append(
            {
                "text": text,
                "layer": layer,
                "maps": {map_.name: map_.source_matrix.tolist() for map_ in maps},
                "kendall": [[None if math.isnan(tau) else tau for tau in row] for row in kendall],
            }
        )
    fixture = {"model": carry_model(translator.bundle), "sentences": sentences}
    file.write_text(json.dumps(fixture), encoding="utf-8")
    return file


def test_measures_agree_with_the_package_in_every_form(node: str, tmp_path: Path) -> None:
    fixtures = [
        write_measures(
            make_words_bundle(tmp_path / name, seed=seed, **form),
            tmp_path / f"{name}.json",
            layer=seed % 2,
        )
        for seed, (name, form) in enumerate(FORMS.items(), start=1)
    ]
    for name, found in zip(FORMS, compare(node, fixtures, tmp_path, "measures"), strict=True):
        differences = found["differences"]
        assert set(differences) == {*NAMES, "kendall"}
        for measured, difference in differences.items():
            assert difference <= 1e-4, f"{name}: {measured} differs by {difference:.1e}"


def test_guard_another_layer_is_found(node: str, tmp_path: Path) -> None:
    file = write_measures(make_words_bundle(tmp_path / "model"), tmp_path / "one.json", layer=1)
    fixture = json.loads(file.read_text(encoding="utf-8"))
    for sentence in fixture["sentences"]:
        sentence["layer"] = 0
    file.write_text(json.dumps(fixture), encoding="utf-8")
    (found,) = compare(node, [file], tmp_path, "measures")
    assert min(found["differences"][name] for name in OF_LAYER) > 1e-3
    assert found["differences"]["occlusion"] <= 1e-4


def test_recording_of_a_model_comes_with_its_measures(
    browser: Browser, translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MODEL_LIMIT", 1000)
    text, row = SENTENCES[0], 3
    trace = translator.look(text, beam=1)
    path = tmp_path / "recorded.html"
    path.write_text(model_page(translator.bundle, trace, text), encoding="utf-8")
    reader = PageReader(browser, path, f"#view=why&show=measures&cell={row}")
    reader.wait("document.querySelectorAll('.measures ol').length === 8")
    pair = make_pair(translator.bundle, text, trace.predicted_ids)
    for title, name in (("Gradients", "gradients"), ("ALTI+", "alti")):
        shown = reader.texts(f"section[aria-label={json.dumps(title)}] li .mono")
        numbers = [float(one.replace("\u2212", "-")) for one in shown]
        expected = measure(pair, name).source_matrix[row]
        np.testing.assert_allclose(numbers, expected, atol=5.1e-3)
