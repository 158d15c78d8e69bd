"""Recipes: TOML in and out, changes on top, sizes by name, and errors a person can act on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import pellucid
from pellucid.config import (
    NAMED_SIZES,
    Recipe,
    apply_overrides,
    load_recipe,
    parse_toml,
    to_toml,
    validate,
)
from pellucid.errors import ConfigurationError, InputFileNotFoundError

MINIMAL = """
[data]
train = ["train.en", "train.fr"]
validation = "validation.tsv"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, text: str, *overrides: str) -> str:
    path = write(folder, text)
    with pytest.raises(ConfigurationError) as caught:
        load_recipe(path, overrides)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def test_recipe_with_data_alone_is_tiny_with_the_papers_settings(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, MINIMAL))
    assert recipe.data.train == (("train.en", "train.fr"),)
    assert recipe.data.validation == ("validation.tsv",)
    sizes = {name: getattr(recipe.model, name) for name in NAMED_SIZES["tiny"]}
    assert sizes == NAMED_SIZES["tiny"]
    assert (recipe.training.beta1, recipe.training.beta2) == (0.9, 0.98)
    assert recipe.training.adam_epsilon == 1e-9
    assert recipe.training.label_smoothing == recipe.training.dropout == 0.1
    assert recipe.training.warmup_steps == 4000


@pytest.mark.parametrize("size", sorted(NAMED_SIZES))
def test_recipe_with_a_named_size_has_its_numbers(tmp_path: Path, size: str) -> None:
    recipe = load_recipe(write(tmp_path, f'{MINIMAL}[model]\nsize = "{size}"\n'))
    assert {name: getattr(recipe.model, name) for name in NAMED_SIZES[size]} == NAMED_SIZES[size]


def test_recipe_with_a_named_size_lets_other_keys_change_it(tmp_path: Path) -> None:
    text = f'{MINIMAL}[model]\nsize = "small"\nnum_decoder_layers = 1\nd_ff = 512\n'
    model = load_recipe(write(tmp_path, text)).model
    assert (model.d_model, model.num_heads, model.num_encoder_layers) == (256, 8, 3)
    assert (model.num_decoder_layers, model.d_ff, model.d_key) == (1, 512, 32)


def test_recipe_written_out_and_read_again_is_the_same(tmp_path: Path) -> None:
    text = f"""{MINIMAL}
[tokenizer]
vocabulary_size = 997
[model]
size = "small"
d_key = 5
positions = "learned"
[training]
learning_rate = 3e-4
adam_epsilon = 1e-9
max_minutes = 2.5
"""
    recipe = load_recipe(write(tmp_path, text))
    resolved = to_toml(recipe)
    assert validate(Recipe, parse_toml(resolved.encode(), "resolved"), "resolved") == recipe
    assert load_recipe(write(tmp_path, resolved)) == recipe
    assert to_toml(load_recipe(write(tmp_path, resolved))) == resolved


def test_recipe_written_out_spells_out_every_default(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path, MINIMAL))
    resolved = parse_toml(to_toml(recipe).encode(), "resolved")
    for section in ("data", "tokenizer", "model", "training", "decoding"):
        part = getattr(recipe, section)
        # What does not hold is left out: TOML has no word for it.
        values = part.model_dump(exclude_none=True)
        assert set(resolved[section]) == values.keys() - part.written_by_programs


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("[trainning]\nseed = 1\n", ["'trainning'", "Did you mean 'training'?"]),
        ("[training]\nmax_step = 3\n", ["'training.max_step'", "Did you mean 'max_steps'?"]),
        ("[model]\nd_modell = 3\n", ["'model.d_modell'", "Did you mean 'd_model'?"]),
        ("[model]\nsizes = 'tiny'\n", ["'model.sizes'", "Did you mean 'size'?"]),
        ("[tokenizer]\nvocab_size = 3\n", ["'tokenizer.vocab_size'", "'vocabulary_size'"]),
        ("[decoding]\nbeams = 3\n", ["'decoding.beams'", "'beam'"]),
        ("[model]\nsize = 'huge'\n", ["model.size", "'huge'", "tiny", "small", "base", "big"]),
        ("[model]\nsize = 'Tiny'\n", ["model.size", "'Tiny'", "Did you mean 'tiny'?"]),
        ("[model]\nsize = ['tiny']\n", ["model.size", "tiny"]),
        ("[model]\nnum_heads = 3\n", ["model", "num_heads", "128", "3"]),
        ("[model]\nd_model = 0\n", ["model.d_model", "greater than 0", "0"]),
        ("[model]\nd_ff = 'wide'\n", ["model.d_ff", "whole number", "'wide'"]),
        ("[training]\nmax_steps = 0\n", ["training.max_steps", "greater than 0", "0"]),
        ("[training]\ndropout = 1.0\n", ["training.dropout", "less than 1", "1.0"]),
        ("[training]\ndropout = -0.1\n", ["training.dropout", "0", "-0.1"]),
        ("[training]\nmax_minutes = inf\n", ["training.max_minutes", "finite", "inf"]),
        ("[training]\nseed = true\n", ["training.seed", "whole number", "true"]),
        ("[training]\nseed = -1\n", ["training.seed", "-1"]),
        ("[tokenizer]\nkind = 'words '\n", ["tokenizer.kind", "'words'", "'words '"]),
        ("[tokenizer]\ncharacter_coverage = 0.5\n", ["tokenizer.character_coverage", "0.5"]),
        ("[tokenizer]\nsharing = 'separate'\n", ["model.tied_embeddings", "separate", "'all'"]),
        (
            "[tokenizer]\nsharing = 'separate'\n[model]\ntied_embeddings = 'none'\n"
            "[training]\nboth_directions_steps = 7\n",
            ["training.both_directions_steps", "unless tokenizer.sharing is 'joint'", "is 7"],
        ),
        ("[model]\nmax_source_length = 100\n", ["data.max_pair_length", "256", "100"]),
        ("model = 3\n", ["model", "3"]),
        ("training = []\n", ["training", "a list"]),
    ],
)
def test_recipe_that_is_wrong_says_which_key_of_which_file(
    tmp_path: Path, text: str, fragments: list[str]
) -> None:
    message = refused(tmp_path, MINIMAL + text if text.startswith("[") else text + MINIMAL)
    for fragment in fragments:
        assert fragment in message, message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.d_model", 10**30),
        ("model.d_ff", 10**6),
        ("model.d_key", 10**8),
        ("model.num_encoder_layers", 10**8),
        ("model.max_target_length", 10**13),
        ("training.max_tokens_per_batch", 10**11),
        ("training.accumulate", 10**11),
        ("training.subword_samples", 10**20),
        ("training.averaging_count", 10**9),
        ("training.learning_rate", 1e300),
        ("training.muon_learning_rate", 1e300),
        ("training.weight_decay", 1e300),
        ("training.max_steps", 10**20),
        ("data.train_weights", [1e6]),
        ("tokenizer.vocabulary_size", 10**12),
        ("tokenizer.vocabulary_size", 4),
        ("tokenizer.character_coverage", 0.97),
    ],
)
def test_number_of_absurd_size_is_refused_naming_its_key(
    tmp_path: Path, key: str, value: Any
) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{re.escape(key)}\S* must be .*, but is "):
        load_recipe(write(tmp_path, MINIMAL), [f"{key}={value}"])


@pytest.mark.parametrize(
    ("data", "fragments"),
    [
        ("", ["'data'", "is missing"]),
        ("[data]\n", ["No files were given for train", "name them in train"]),
        ("[data]\ntrain = 'a.tsv'\n", ["No files were given for validation", "split = 1000"]),
        (
            "[data]\ntrain_source = 'a'\ntrain = 'b.tsv'\nvalidation = 'v'\n",
            ["data.train_source", "is unknown"],
        ),
        ("[data]\ntrain = 3\nvalidation = 'v'\n", ["data.train", "3"]),
        ("[data]\nfolder = 3\ntrain = 'a'\nvalidation = 'v'\n", ["data.folder", "a text", "3"]),
        ("[data]\ntrain = [3]\nvalidation = 'v'\n", ["data.train", "the name of a file", "3"]),
        ("[data]\nfolders = 'x'\ntrain = 'a'\nvalidation = 'v'\n", ["data.folders", "'folder'"]),
    ],
)
def test_recipe_with_impossible_data_says_which_key_of_which_file(
    tmp_path: Path, data: str, fragments: list[str]
) -> None:
    message = refused(tmp_path, data)
    for fragment in fragments:
        assert fragment in message, message


@pytest.mark.parametrize("text", ["[data\n", "a = \n", "[data]\n[data]\n", "= 3", "a = 'b"])
def test_recipe_that_is_not_toml_says_the_line(tmp_path: Path, text: str) -> None:
    message = refused(tmp_path, text)
    assert "TOML" in message
    assert "line" in message or "end of document" in message


def test_recipe_that_is_not_utf8_says_so(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes("a = 'été'".encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"UTF-8.*byte 6.*recipe\.toml"):
        load_recipe(path)


def test_recipe_that_does_not_exist_says_which(tmp_path: Path) -> None:
    with pytest.raises(InputFileNotFoundError, match=r"missing\.toml"):
        load_recipe(tmp_path / "missing.toml")


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("training.max_steps=2000", "training", "max_steps", 2000),
        ("training.learning_rate=1e-3", "training", "learning_rate", 0.001),
        ("training.learning_rate = 0.5", "training", "learning_rate", 0.5),
        ("model.projection_bias=true", "model", "projection_bias", True),
        ("tokenizer.byte_fallback=false", "tokenizer", "byte_fallback", False),
        ("model.norm=pre", "model", "norm", "pre"),
        ("model.norm='pre'", "model", "norm", "pre"),
        ('model.norm="pre"', "model", "norm", "pre"),
        ("data.folder=/data/multi 30k", "data", "folder", "/data/multi 30k"),
        ("data.folder=a=b", "data", "folder", "a=b"),
        ("data.folder=$MULTI30K", "data", "folder", "$MULTI30K"),
        ("data.folder=C:\\data", "data", "folder", "C:\\data"),
        ("data.train=['a.tsv', 'b.tsv']", "data", "train", ("a.tsv", "b.tsv")),
        ("data.train=a.tsv", "data", "train", ("a.tsv",)),
        ("data.train=['A.TSV', 'B.Tsv.GZ']", "data", "train", ("A.TSV", "B.Tsv.GZ")),
        ("data.train=['a.en', 'a.fr']", "data", "train", (("a.en", "a.fr"),)),
        ("data.train=[['a.en', 'a.fr'], 'b.tsv']", "data", "train", (("a.en", "a.fr"), "b.tsv")),
    ],
)
def test_override_of_any_type_reaches_the_recipe(
    tmp_path: Path, override: str, section: str, key: str, value: Any
) -> None:
    recipe = load_recipe(write(tmp_path, MINIMAL), [override])
    assert getattr(getattr(recipe, section), key) == value
    assert type(getattr(getattr(recipe, section), key)) is type(value)


def test_override_of_the_size_expands_it(tmp_path: Path) -> None:
    model = load_recipe(write(tmp_path, MINIMAL), ["model.size=base", "model.d_ff=64"]).model
    assert (model.d_model, model.d_ff) == (512, 64)


def test_override_given_twice_is_refused_with_both_values(tmp_path: Path) -> None:
    overrides = ["training.seed=5", " training.seed = 7"]
    with pytest.raises(
        ConfigurationError, match=r"set once, but is set to '5' and to '7' \(settings"
    ):
        load_recipe(write(tmp_path, MINIMAL), overrides)


@pytest.mark.parametrize(
    "override", ["training.max_steps", "max_steps=3", "=3", ".x=3", "training.=3", ""]
)
def test_override_of_another_form_is_refused_with_an_example(override: str) -> None:
    with pytest.raises(ConfigurationError, match=r"SECTION\.KEY=VALUE") as caught:
        apply_overrides({}, [override])
    assert repr(override) in str(caught.value)


def test_override_of_an_unknown_key_suggests_the_nearest(tmp_path: Path) -> None:
    message = refused(tmp_path, MINIMAL, "training.max_stepz=3")
    assert "'training.max_stepz'" in message
    assert "Did you mean 'max_steps'?" in message


def test_override_into_a_value_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"'model' must be a section"):
        apply_overrides({"model": 3}, ["model.d_model=3"])


def test_overrides_leave_the_values_they_were_given_alone() -> None:
    values = {"training": {"seed": 1}}
    assert apply_overrides(values, ["training.seed=2", "model.d_ff=3"]) == {
        "training": {"seed": 2},
        "model": {"d_ff": 3},
    }
    assert values == {"training": {"seed": 1}}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("training.averaging_amount=0.999", ["averaging_amount", "averaging_decay"]),
        ("training.averaging_amount=10", ["averaging_amount", "averaging_count"]),
        ("training.subword_amount=0.1", ["subword_dropout", "subword_alpha"]),
        ("training.epsilon=1e-8", ["adam_epsilon"]),
        ("data.max_length=99", ["max_pair_length"]),
        ("data.max_length_ratio=3.0", ["max_source_target_ratio"]),
        ("training.guided_head=[1, 0]", ["decoder.1.cross.0", "[1, 0]"]),
        ("training.guided_head=encoder.1.self.0", ["decoder.1.cross.0", "encoder.1.self.0"]),
        ("training.guided_head=decoder.1", ["decoder.1.cross.0"]),
        ("training.max_minutes=0", ["training.max_minutes", "left out"]),
        ("training.max_gradient_norm=0.0", ["training.max_gradient_norm", "left out"]),
        ("training.subword_samples=0", ["training.subword_samples", "left out"]),
        ("training.patience=0", ["training.patience", "'none'"]),
        ("training.learning_rate=0", ["training.learning_rate", "'auto'"]),
        ("data.split=0", ["data.split", "left out"]),
        ("decoding.max_length=0", ["decoding.max_length", "left out"]),
        ("decoding.top_k=0", ["decoding.top_k", "left out"]),
        ("decoding.no_repeat_ngram=0", ["decoding.no_repeat_ngram", "left out"]),
        ("training.averaging_decay=1.0", ["training.averaging_decay", "less than 1"]),
        ("training.averaging_count=2.5", ["training.averaging_count", "2.5"]),
    ],
)
def test_key_or_value_that_says_none_by_a_number_is_refused_with_what_to_write(
    tmp_path: Path, setting: str, words: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as error:
        load_recipe(write(tmp_path, MINIMAL), [setting])
    for word in words:
        assert word in str(error.value)


def test_key_without_a_value_is_left_out(tmp_path: Path) -> None:
    text = MINIMAL + "[training]\nmax_minutes = 2.5\npatience = 3\n"
    recipe = load_recipe(write(tmp_path, text), ["training.max_minutes=", "training.patience=none"])
    assert recipe.training.max_minutes is None
    assert recipe.training.patience == "none"
    again = write(tmp_path, to_toml(recipe))
    assert "max_minutes" not in again.read_text()
    assert load_recipe(again) == recipe


@pytest.mark.parametrize(
    "text", [["a.en", "a.fr", "a.de"], ["a.tsv", ["b.en"]], [["b.en", "b.fr", "b.de"]]]
)
def test_texts_that_are_no_pairs_of_files_are_refused_or_tables(
    tmp_path: Path, text: list[Any]
) -> None:
    path = write(tmp_path, MINIMAL)
    change = f"data.train={text!r}"
    if all(isinstance(name, str) for name in text):
        assert load_recipe(path, [change]).data.names("train") == [(name,) for name in text]
        return
    with pytest.raises(ConfigurationError, match="must be two files"):
        load_recipe(path, [change])


@pytest.mark.parametrize(
    "path", sorted((Path(pellucid.__file__).parent / "models").glob("*/recipe.toml")), ids=str
)
def test_recipe_of_a_packaged_bundle_loads(path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.data.train
    assert to_toml(recipe) == path.read_text()
