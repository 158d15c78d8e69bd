"""``--precision auto``: what validation showed is used where the engine in C serves it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from of_subwords import SUBWORDS

import pellucid
from pellucid.bundle import add_metrics, load_bundle, resolve_model
from pellucid.decode.native import NativePath
from pellucid.formats.exporting import export_bundle
from pellucid.native.loading import instruction_sets
from pellucid.native.precision import METRIC, fastest_precision, read_precisions
from pellucid.text.reading.sentence_pairs import SentencePair
from pellucid.training.validation import describe_precisions, measure_precisions

needs_engine = pytest.mark.skipif(not instruction_sets(), reason="the engine in C was not built")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A copy of a model that nothing was measured with."""
    return Path(shutil.copytree(resolve_model(SUBWORDS), tmp_path / "bundle"))


def pair(source: str, target: str) -> SentencePair:
    return SentencePair(source, target, "line 1")


@pytest.mark.parametrize(
    ("bleu", "fastest"),
    [(29.9, "int8"), (31.0, "int8"), (29.81, "int8"), (29.79, "float32"), (11.0, "float32")],
)
def test_the_fastest_loses_at_most_a_fifth_of_a_point(bleu: float, fastest: str) -> None:
    assert fastest_precision({"float32": 30.0, "int8": bleu}) == fastest
    assert fastest_precision({"float32": 30.0}) == "float32"


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"metrics": None},
        {"metrics": {METRIC: 3}},
        {"metrics": {METRIC: {"int8": 30.0}}},
        {"metrics": {METRIC: {"float32": "30", "int8": 30.0}}},
        {"metrics": {METRIC: {"float32": float("nan"), "int8": 30.0}}},
    ],
)
def test_a_manifest_without_usable_figures_has_none(manifest: dict[str, Any]) -> None:
    assert read_precisions(manifest) == {}


@needs_engine
@pytest.mark.parametrize(("loss", "used"), [(0.1, "int8"), (0.3, "float32")])
def test_auto_is_what_was_measured_and_nothing_else_changes(
    loss: float, used: str, bundle: Path
) -> None:
    add_metrics(bundle, {METRIC: {"float32": 30.0, "int8": 30.0 - loss}})

    translator = pellucid.load(bundle)

    assert translator.options(precision="auto").precision == used
    assert translator.options().precision == used
    assert translator.options(precision="float32").precision == "float32"
    assert translator.options(strict=True).precision == "float32"
    assert pellucid.load(bundle, precision="auto").options().precision == used
    assert pellucid.load(bundle, precision="float32").options().precision == "float32"
    # The engine computes the steps of these.
    assert translator.options(no_repeat_ngram=3).precision == used
    assert translator.options(sample=True).precision == used


def test_auto_without_a_measurement_is_the_default(bundle: Path) -> None:
    translator = pellucid.load(bundle)

    assert translator.options(precision="auto").precision == "float32"
    assert pellucid.load(bundle, precision="int8").options(precision="auto").precision == "int8"


def test_added_metrics_keep_the_others_and_the_bundle_whole(bundle: Path) -> None:
    before = load_bundle(bundle)

    add_metrics(bundle, {METRIC: {"float32": 7.0}})

    after = load_bundle(bundle)
    assert after.manifest["metrics"] == {**before.manifest["metrics"], METRIC: {"float32": 7.0}}
    assert after.model_hash == before.model_hash


def test_an_export_keeps_the_figures_only_with_the_same_weights(
    bundle: Path, tmp_path: Path
) -> None:
    figures = {"float32": 30.0, "int8": 29.9}
    add_metrics(bundle, {METRIC: figures})
    loaded = load_bundle(bundle)

    export_bundle(loaded, tmp_path / "same", "float32")
    export_bundle(loaded, tmp_path / "bytes", "int8")

    assert read_precisions(load_bundle(tmp_path / "same").manifest) == figures
    assert read_precisions(load_bundle(tmp_path / "bytes").manifest) == {}
    assert pellucid.load(tmp_path / "bytes", precision="auto").options().precision == "int8"
    assert pellucid.load(tmp_path / "bytes").options().precision == "int8"


@needs_engine
def test_each_precision_is_measured_with_its_own_translations() -> None:
    bundle = load_bundle(resolve_model(SUBWORDS))
    sources = ["The pizza came out of the oven.", "The cat slept because it was tired."]
    translator = pellucid.load(SUBWORDS)
    (whole, other) = (one.text for one in translator.translate(sources))

    right = measure_precisions(bundle, [pair(sources[0], whole), pair(sources[1], other)])
    wrong = measure_precisions(bundle, [pair(sources[0], whole), pair(sources[1], "rien du tout")])

    assert right["float32"] == pytest.approx(100)
    assert wrong["float32"] < right["float32"]
    texts = [one.text for one in translator.translate(sources, precision="int8")]
    assert (right["int8"] == pytest.approx(100)) == (texts == [whole, other])
    assert f"takes {fastest_precision(right)}" in describe_precisions(right)


@needs_engine
def test_nothing_is_measured_and_auto_is_the_default_where_pytorch_would_compute(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_metrics(bundle, {METRIC: {"float32": 30.0, "int8": 30.0}})
    loaded = load_bundle(bundle)
    monkeypatch.setattr(NativePath, "find_obstacle", lambda *_: "bytes would save nothing")

    assert pellucid.load(bundle).options().precision == "float32"
    assert measure_precisions(loaded, [pair("The cat slept.", "Le chat dormait.")]) == {}
