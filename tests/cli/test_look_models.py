"""``pellucid look --compare-model``: two models answer the same line."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from of_subwords import SUBWORDS
from small_recurrent import WORDS, save_recurrent

import pellucid
from pellucid.bundle import load_bundle, save_bundle
from pellucid.config import LanguagesConfig
from pellucid.text.tokenizers.whole_words import without_joiner

Run = Callable[..., subprocess.CompletedProcess[str]]
LINE = " ".join(WORDS[:5])


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Save a recurrent model of each form."""
    folder = tmp_path_factory.mktemp("models")
    return {form: str(save_recurrent(folder / form, form)) for form in ("none", "additive", "dot")}


def in_other_languages(model: str, folder: Path) -> str:
    """Save a copy of a model that says which languages it translates."""
    bundle = load_bundle(Path(model))
    languages = LanguagesConfig(source="en", target="de")
    save_bundle(
        folder,
        config=bundle.config.model_copy(update={"languages": languages}),
        weights=bundle.model.state_dict(),
        tokenizer=bundle.tokenizer,
        recipe_toml="",
        provenance={},
    )
    return str(folder)


def test_both_answers_stand_in_one_table_with_the_probabilities_of_each(
    run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PELLUCID_PLAIN", "1")
    sentence = "The soup was salty."
    found = run_here("look", "demo", sentence, "--compare-model", SUBWORDS)
    assert found.returncode == 0
    first, second = pellucid.load("demo").look(sentence), pellucid.load(SUBWORDS).look(sentence)
    # The vocabularies differ, and so do the numbers of tokens.
    assert len(first.predicted_tokens) != len(second.predicted_tokens)
    for trace in (first, second):
        for token, logarithm in zip(trace.predicted_tokens, trace.log_probabilities, strict=True):
            assert f" {without_joiner(token)}, p {np.exp(logarithm):.3f}" in found.stdout


def test_json_holds_both_answers_with_their_traces(
    models: dict[str, str], run_here: Run, tmp_path: Path
) -> None:
    path = tmp_path / "both.json"
    names = (models["additive"], models["dot"])
    done = run_here("look", names[0], LINE, "--compare-model", names[1], "-o", str(path))
    assert (done.returncode, done.stdout) == (0, "")
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["source"] == LINE
    for side, name in zip(found["sides"], names, strict=True):
        trace = pellucid.load(name).look(LINE)
        assert side["name"] == Path(name).name
        assert side["translation"] == pellucid.load(name).translate([LINE])[0].text
        assert side["log_probability"] == pytest.approx(sum(trace.log_probabilities))
        assert side["shown"] == "decoder.0.cross.0"
        assert tuple(side["trace"]["predicted_tokens"]) == trace.predicted_tokens
        weights = np.array(side["trace"]["decoder.0.cross.weights"], dtype=np.float32)
        np.testing.assert_array_equal(weights, trace["decoder.0.cross.weights"])


def test_model_without_attention_has_its_vector_in_place_of_a_map(
    models: dict[str, str], run_here: Run
) -> None:
    found = run_here("look", models["additive"], LINE, "--compare-model", models["none"])
    assert found.returncode == 0
    assert "each step of its decoder reads one vector of fixed length" in re.sub(
        r"\s+", " ", found.stdout
    )
    assert found.stdout.count("Weights, decoder layer") == 1
    assert "the one vector" in found.stdout


def test_picture_holds_both_maps_and_refuses_two_models_without_attention(
    models: dict[str, str], run_here: Run, tmp_path: Path
) -> None:
    picture = tmp_path / "both.svg"
    done = run_here(
        "look", models["dot"], LINE, "--compare-model", models["additive"], "-o", picture
    )
    assert (done.returncode, done.stderr) == (0, "")
    drawn = picture.read_text(encoding="utf-8")
    for word in (*WORDS[:5], "dot", "additive"):
        assert drawn.count(word) >= 2
    second = save_recurrent(tmp_path / "second", "none", seed=5)
    refused = run_here(
        "look", models["none"], LINE, "--compare-model", second, "-o", picture, "--overwrite"
    )
    assert refused.returncode == 2
    assert "neither model has any" in refused.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--head", "decoder.0"], "--compare-model cannot be combined with --head"),
        (["--everything"], "--compare-model cannot be combined with --everything"),
        (["--n-best", "2", "--beam", "3"], "--compare-model cannot be combined with --n-best"),
        (["--row", "0"], "--row cannot be combined with --compare-model"),
        (["--show", "heads"], "--show=heads cannot be combined with --compare-model"),
        (["-o", "page.html"], "--compare-model cannot be combined with -o page.html"),
        (["-o", "trace.npz"], "--compare-model cannot be combined with -o trace.npz"),
    ],
)
def test_option_that_does_not_fit_is_refused_in_one_sentence(
    options: list[str], said: str, models: dict[str, str], run_here: Run
) -> None:
    found = run_here("look", models["dot"], LINE, "--compare-model", models["additive"], *options)
    assert (found.returncode, found.stdout) == (2, "")
    assert said in found.stderr
    assert found.stderr.count("\n") == 1


def test_same_model_and_other_languages_are_refused(
    models: dict[str, str], run_here: Run, tmp_path: Path
) -> None:
    same = run_here("look", models["dot"], LINE, "--compare-model", models["dot"])
    assert same.returncode == 2
    assert "--compare-model must be another model" in same.stderr
    german = in_other_languages(models["dot"], tmp_path / "german")
    # Languages that a model does not name are not compared.
    assert run_here("look", german, LINE, "--compare-model", models["dot"]).returncode == 0
    found = run_here("look", "demo", "Pizza is awesome", "--compare-model", german)
    assert (found.returncode, found.stdout) == (2, "")
    assert "demo goes from en to fr and german from en to de" in found.stderr
