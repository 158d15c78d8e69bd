"""Starting from a trained model: its settings, refused changes, and frozen parts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from of_subwords import SUBWORDS
from small_runs import make_recipe, write_text

from pellucid.bundle import load_bundle, resolve_model
from pellucid.config import NAMED_SIZES, Recipe, validate
from pellucid.errors import ConfigurationError, InputFileNotFoundError
from pellucid.training.loop import train
from pellucid.training.start.from_model import load_start, with_start
from pellucid.training.weights.optimizer import freeze

DATA: dict[str, Any] = {"train": "a.tsv", "validation": "b.tsv"}
NO_RUN = Path("no run")


pytestmark = pytest.mark.usefixtures("no_report")


def begin_from_a_model(
    folder: Path, trained: Path
) -> tuple[dict[str, Any], dict[str, Any], Path, Path]:
    """Train a run from another; returns its recipe as written and resolved, and both folders."""
    shutil.copytree(trained, folder, dirs_exist_ok=True)
    old, run = (folder / "run").rename(folder / "old"), folder / "new"
    asked = make_recipe(training={"max_steps": 5}).model_dump(mode="json")
    asked |= {"model": {}, "tokenizer": {}}
    values = with_start(asked, str(old), run)
    train(validate(Recipe, values, "test"), run, recipe_folder=folder, progress=False)
    return asked, values, old, run


def test_sizes_tokenizer_and_languages_are_the_models() -> None:
    bundle = load_bundle(resolve_model(SUBWORDS))
    values = with_start({"data": DATA}, SUBWORDS, NO_RUN)
    recipe = validate(Recipe, values, "test")
    assert recipe.model.d_model == bundle.config.model.d_model
    assert recipe.data.source_language == bundle.config.languages.source
    assert recipe.start.model_hash == bundle.model_hash
    start = load_start(recipe.start, NO_RUN)
    assert start is not None
    assert start.model_hash == bundle.model_hash


def test_saying_the_same_sizes_is_allowed() -> None:
    width = load_bundle(resolve_model(SUBWORDS)).config.model.d_model
    values = with_start({"data": DATA, "model": {"d_model": width}}, SUBWORDS, NO_RUN)
    assert values["model"]["d_model"] == width


def test_the_name_of_the_same_size_is_allowed(tmp_path: Path) -> None:
    write_text(tmp_path)
    recipe = make_recipe(training={"max_steps": 1}, model=NAMED_SIZES["tiny"])
    run = train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False).bundle
    assert (
        with_start({"data": DATA, "model": {"size": "tiny"}}, str(run), NO_RUN)["model"]["d_ff"]
        == 256
    )
    with pytest.raises(ConfigurationError, match=r"model\.d_ff must be that .* 256, but is 1024"):
        with_start({"data": DATA, "model": {"size": "small"}}, str(run), NO_RUN)


@pytest.mark.parametrize("section", ["tiny", {"size": "tinny"}, {"size": 3}, {"size": ["tiny"]}])
def test_a_section_that_is_none_is_refused_in_one_sentence(section: Any) -> None:
    with pytest.raises(ConfigurationError):
        validate(Recipe, with_start({"data": DATA, "model": section}, SUBWORDS, NO_RUN), "test")


def test_another_size_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"model\.d_ff must be that of the model to start"):
        with_start({"data": DATA, "model": {"d_ff": 13}}, SUBWORDS, NO_RUN)


def test_another_tokenizer_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"\[tokenizer\] must be left out"):
        with_start({"data": DATA, "tokenizer": {"vocabulary_size": 500}}, SUBWORDS, NO_RUN)


@pytest.mark.parametrize("section", ["data", "tokenizer"])
def test_a_key_in_place_of_a_section_is_left_for_the_recipes_check(section: str) -> None:
    with pytest.raises(ConfigurationError, match=section):
        validate(Recipe, with_start({"data": DATA, section: 3}, SUBWORDS, NO_RUN), "test")


def test_another_model_than_the_recipe_was_made_for_is_refused() -> None:
    start = validate(Recipe, with_start({"data": DATA}, SUBWORDS, NO_RUN), "test").start
    with pytest.raises(ConfigurationError, match="must be the model whose hash is 0000"):
        load_start(start.model_copy(update={"model_hash": "0" * 64}), NO_RUN)


def test_a_model_that_is_not_there_is_said(tmp_path: Any) -> None:
    with pytest.raises(InputFileNotFoundError):
        with_start({"data": DATA}, str(tmp_path / "none"), NO_RUN)


def test_a_run_goes_on_where_the_model_that_it_began_with_is_gone(
    trained: Path, tmp_path: Path
) -> None:
    asked, values, old, run = begin_from_a_model(tmp_path, trained)
    before = load_bundle(run / "untrained")
    shutil.rmtree(old)
    assert with_start(asked, str(old), run) == values
    longer = values | {"training": values["training"] | {"max_steps": 7}}
    summary = train(validate(Recipe, longer, "test"), run, recipe_folder=tmp_path, progress=False)
    assert summary.steps == 7
    assert load_bundle(run / "untrained").model_hash == before.model_hash
    with pytest.raises(InputFileNotFoundError):
        with_start(asked, str(old), tmp_path / "another")


def test_a_run_goes_on_from_what_it_began_with_where_the_model_has_changed(
    trained: Path, tmp_path: Path
) -> None:
    asked, values, old, run = begin_from_a_model(tmp_path, trained)
    began_with = load_bundle(run / "untrained").model.state_dict()
    shutil.rmtree(old / "bundle")
    assert with_start(asked, str(old), run) == values
    train(make_recipe(training={"seed": 3}), tmp_path / "3", recipe_folder=tmp_path, progress=False)
    shutil.copytree(tmp_path / "3" / "bundle", old / "bundle")
    assert with_start(asked, str(old), tmp_path / "another") != values
    again = with_start(asked, str(old), run)
    assert again == values
    start = load_start(validate(Recipe, again, "test").start, run)
    assert start is not None
    for name, weight in start.model.state_dict().items():
        assert torch.equal(weight, began_with[name])


def test_a_wrong_name_for_the_model_of_a_run_is_told_the_right_one(
    trained: Path, tmp_path: Path
) -> None:
    asked, _, old, run = begin_from_a_model(tmp_path, trained)
    with pytest.raises(InputFileNotFoundError, match=f"odl does not exist.*started from {old}"):
        with_start(asked, str(tmp_path / "odl"), run)


def test_a_run_that_began_from_nothing_stands_in_for_no_model(
    trained: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputFileNotFoundError):
        with_start({"data": DATA}, str(tmp_path / "none"), trained / "run")


def test_frozen_parts_are_named_by_how_they_begin() -> None:
    model = load_bundle(resolve_model(SUBWORDS)).model.requires_grad_(True)
    freeze(model, ("encoder.layers.0", "embedding"))
    frozen = {name for name, weight in model.named_parameters() if not weight.requires_grad}
    assert "embedding.weight" in frozen
    assert "encoder.layers.0.feed_forward.inner.weight" in frozen
    assert not any(name.startswith(("encoder.layers.1", "decoder")) for name in frozen)


@pytest.mark.parametrize("beginning", ["encoders", "encoder.layers.9", "enc"])
def test_a_part_that_is_none_is_refused(beginning: str) -> None:
    model = load_bundle(resolve_model(SUBWORDS)).model
    with pytest.raises(ConfigurationError, match=rf"{beginning}' does not exist"):
        freeze(model, (beginning,))


def test_freezing_everything_is_refused() -> None:
    model = load_bundle(resolve_model(SUBWORDS)).model
    with pytest.raises(ConfigurationError, match="leave something to train"):
        freeze(model, ("embedding", "encoder", "decoder"))


def test_an_unknown_size_is_left_for_the_recipes_check() -> None:
    values = with_start({"data": DATA, "model": {"dropout": 1}}, SUBWORDS, NO_RUN)
    with pytest.raises(ConfigurationError, match=r"'model\.dropout' is unknown"):
        validate(Recipe, values, "test")
