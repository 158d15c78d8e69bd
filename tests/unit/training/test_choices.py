"""Settings that a recipe leaves open are chosen for its text; others are never changed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pellucid.check.counting import TextCounts, count_text
from pellucid.config import NAMED_SIZES, DataConfig, Recipe, TokenizerRecipe, parse_toml
from pellucid.errors import ConfigurationError
from pellucid.training.run.folder import RunFolder
from pellucid.training.start import choices as choices_module
from pellucid.training.start.choices import CHOSEN_KEYS, COURSE, choose, complete
from pellucid.training.start.filling import fill_in
from pellucid.training.start.kept_pairs import KeptText

Write = Callable[..., str]

DATA = {
    "train": [["train.xx", "train.yy"]],
    "validation": [["valid.xx", "valid.yy"]],
}


def counts_of(pairs: int, words_a_pair: float = 12.0) -> TextCounts:
    """Counts as natural text of so many pairs has them."""
    words = round(pairs * words_a_pair)
    distinct = min(100_000, round(31 * math.sqrt(words)))
    return TextCounts(pairs, words, words, words, 90, 60, distinct)


def chosen(values: dict[str, Any], counts: TextCounts) -> dict[str, Any]:
    """Every choice by its key."""
    recipe = Recipe.model_validate(values)
    return {choice.key: choice.value for choice in choose(values, recipe, counts)}


def filled(values: dict[str, Any], choices: dict[str, Any]) -> Recipe:
    """The recipe with the choices put in, validated."""
    whole = {section: dict(table) for section, table in values.items()}
    for key, value in choices.items():
        section, _, name = key.partition(".")
        whole.setdefault(section, {})[name] = value
    return Recipe.model_validate(whole)


@pytest.fixture
def corpus(tmp_path: Path, write_lines: Write) -> Path:
    """A folder with 1,200 short pairs."""
    for language, word in (("xx", "word"), ("yy", "mot")):
        lines = [f"{word} {number % 97} is {number % 13} here" for number in range(1200)]
        write_lines(f"train.{language}", *lines)
        write_lines(f"valid.{language}", *lines[:7])
    return tmp_path


@given(st.integers(10, 2_000_000), st.floats(2, 40))
def test_choose_any_amount_of_text_gives_a_whole_sensible_recipe(pairs: int, words: float) -> None:
    values: dict[str, Any] = {"data": DATA}
    counts = counts_of(pairs, words)
    choices = chosen(values, counts)
    recipe = filled(values, choices)
    training = recipe.training
    assert recipe.model.d_model in {size["d_model"] for size in NAMED_SIZES.values()}
    assert counts.characters + 261 <= recipe.tokenizer.vocabulary_size <= 32_000
    assert training.warmup_steps * 4 <= training.max_steps
    assert 10 <= training.max_steps / training.validate_every <= 20
    assert isinstance(training.patience, int)
    assert isinstance(training.learning_rate, float)
    assert training.patience * training.validate_every < training.max_steps
    assert choices.keys() <= CHOSEN_KEYS
    assert 1_000 <= training.max_steps <= 200_000
    assert training.learning_rate > 0
    assert training.averaging == "running"


def test_choose_more_text_asks_for_larger_models_and_fewer_epochs() -> None:
    amounts = [100, 1_000, 10_000, 30_000, 100_000, 500_000, 2_000_000]
    recipes = [
        filled({"data": DATA}, chosen({"data": DATA}, counts_of(pairs, 20))) for pairs in amounts
    ]
    for get in (
        lambda recipe: recipe.model.d_model,
        lambda recipe: recipe.tokenizer.vocabulary_size,
        lambda recipe: recipe.training.max_tokens_per_batch,
        lambda recipe: -recipe.training.learning_rate,
    ):
        found = [get(recipe) for recipe in recipes]
        assert found == sorted(found)
        assert found[0] < found[-1]
    epochs = [
        recipe.training.max_steps * recipe.training.max_tokens_per_batch / pairs
        for recipe, pairs in zip(recipes, amounts, strict=True)
    ]
    assert epochs == sorted(epochs, reverse=True)
    by_size: dict[int, list[float]] = {}
    for recipe in recipes:
        by_size.setdefault(recipe.model.d_model, []).append(recipe.training.dropout)
    assert all(dropouts == sorted(dropouts, reverse=True) for dropouts in by_size.values())


def test_choose_29000_captions_comes_near_the_shipped_recipe() -> None:
    shipped = parse_toml(
        (files("pellucid") / "recipes" / "multi30k-en-fr-lowercased.toml").read_bytes(), "recipe"
    )
    known = Recipe.model_validate(shipped)
    found = filled({"data": DATA}, chosen({"data": DATA}, counts_of(29_000, 13)))
    assert found.model == known.model
    for name in ("optimizer", "learning_rate", "muon_learning_rate", "weight_decay", "schedule"):
        assert getattr(found.training, name) == getattr(known.training, name)
    for name in ("dropout", "max_tokens_per_batch", "warmup_steps", "r_drop"):
        assert getattr(found.training, name) == getattr(known.training, name)
    for mine, theirs in (
        (found.tokenizer.vocabulary_size, known.tokenizer.vocabulary_size),
        (found.training.max_steps, known.training.max_steps),
        (found.training.dropout_warmup_steps, known.training.dropout_warmup_steps),
    ):
        assert 0.7 < mine / theirs < 1.4


@pytest.mark.parametrize(
    "name",
    [
        "tiny-en-fr",
        *(f"multi30k-en-{to}{kind}" for to in ("fr", "de") for kind in ("", "-lowercased")),
    ],
)
def test_complete_shipped_recipe_stays_as_it_is(name: str) -> None:
    values = parse_toml((files("pellucid") / "recipes" / f"{name}.toml").read_bytes(), name)
    same, sentences = complete(values, Path("nowhere"))
    assert same == values
    assert len(sentences) == 1
    assert "sets the whole course" in sentences[0]


def test_complete_resolved_recipe_stays_as_it_is(corpus: Path) -> None:
    values, sentences = complete({"data": DATA}, corpus)
    assert sentences
    resolved = Recipe.model_validate(values).model_dump(mode="json")
    assert complete(resolved, corpus) == (resolved, [])


@pytest.mark.parametrize("pairs", [300, 29_000, 2_000_000])
def test_choose_leaves_the_number_of_epochs_to_the_screen(pairs: int) -> None:
    values = {"data": DATA}
    choices = choose(values, Recipe.model_validate(values), counts_of(pairs))
    said = [choice.reason for choice in choices]
    assert not [reason for reason in said if "epoch" in reason]


def test_complete_says_each_choice_with_its_value_and_leaves_its_input_alone(corpus: Path) -> None:
    values: dict[str, Any] = {"data": DATA, "training": {"seed": 7}}
    before = json.dumps(values)
    completed, sentences = complete(values, corpus)
    assert json.dumps(values) == before
    assert completed["training"]["seed"] == 7
    assert completed["model"] == {"size": "tiny"}
    for section in ("model", "tokenizer", "training"):
        for name, value in completed[section].items():
            if (section, name) != ("training", "seed"):
                shown = f"{value:g}" if isinstance(value, float) else value
                assert any(s.startswith(f"{section}.{name} = {shown}: ") for s in sentences)
    assert all(sentence.endswith(".") for sentence in sentences)
    assert complete(values, corpus) == (completed, sentences)


ONE_SETTING: dict[str, Any] = {
    "learning_rate": 0.002,
    "schedule": "cosine",
    "warmup_steps": 60,
    "max_steps": 4_000,
    "optimizer": "adamw",
    "dropout": 0.0,
    "patience": "none",
    "averaging": "none",
    "validate_every": 77,
    "max_tokens_per_batch": 3_000,
    "accumulate": 2,
    "r_drop": 0.0,
    "label_smoothing": 0.2,
}


@pytest.mark.parametrize("name", ONE_SETTING)
def test_choose_one_given_setting_leaves_the_others_chosen(name: str) -> None:
    values = {"data": DATA, "training": {name: ONE_SETTING[name]}}
    plain, found = chosen({"data": DATA}, counts_of(29_000)), chosen(values, counts_of(29_000))
    assert f"training.{name}" not in found
    muon = {"optimizer", "muon_learning_rate", "weight_decay", "dropout_warmup_steps"}
    gone = {"optimizer": muon, "averaging": {"averaging_decay"}, "dropout": {"r_drop"}}
    missing = {f"training.{one}" for one in {name} | gone.get(name, set())}
    assert found.keys() == plain.keys() - missing
    recipe = filled(values, found).training
    assert getattr(recipe, name) == ONE_SETTING[name]
    assert recipe.warmup_steps * 4 <= recipe.max_steps <= 10_000


def test_choose_given_rate_moves_that_of_muon_too() -> None:
    half = {"data": DATA, "training": {"learning_rate": 0.002}}
    assert chosen(half, counts_of(29_000))["training.muon_learning_rate"] == 0.005
    papers = {"data": DATA, "training": {"learning_rate": "auto"}}
    assert chosen(papers, counts_of(29_000))["training.muon_learning_rate"] == 0.01


def test_choose_given_optimizer_gets_what_it_needs() -> None:
    muon = {"data": DATA, "model": {"d_model": 512}, "training": {"optimizer": "muon"}}
    assert {"training.muon_learning_rate", "training.weight_decay"} <= set(
        chosen(muon, counts_of(29_000))
    )


def test_choose_long_warmup_gets_twice_as_many_steps() -> None:
    values = {"data": DATA, "training": {"warmup_steps": 9_000}}
    assert chosen(values, counts_of(29_000))["training.max_steps"] == 18_000


@pytest.mark.parametrize("steps", [1, 2, 19, 40, 500])
def test_choose_few_given_steps_get_a_course_within_them(steps: int) -> None:
    values = {"data": DATA, "training": {"max_steps": steps}}
    training = filled(values, chosen(values, counts_of(29_000))).training
    assert 1 <= training.warmup_steps <= max(1, steps // 8)
    assert 1 <= training.validate_every <= steps
    assert 0 <= training.averaging_decay < 1
    assert training.dropout_warmup_steps <= steps


def test_complete_whole_given_course_keeps_the_defaults_and_says_so(corpus: Path) -> None:
    given = {name: ONE_SETTING[name] for name in COURSE}
    values, sentences = complete({"data": DATA, "training": given}, corpus)
    assert values["training"] == given
    assert sentences[-1] == (
        "The recipe sets the whole course (learning_rate, schedule, warmup_steps, max_steps), so "
        "nothing else of [training] is chosen: averaging none, optimizer adam, patience none."
    )


@pytest.mark.parametrize(
    "model", [{"d_model": 512}, {"d_ff": 64}, {"num_decoder_layers": 1}, {"size": "base"}]
)
def test_choose_given_shape_is_kept_and_followed(model: dict[str, Any]) -> None:
    values = {"data": DATA, "model": model}
    keys = chosen(values, counts_of(29_000))
    assert "model.size" not in keys
    is_wide = filled(values, keys).model.d_model == 512
    assert (keys["training.learning_rate"] < 0.001) == is_wide
    assert keys["training.dropout"] == (0.3 if is_wide else 0.2)
    assert ("training.optimizer" in keys) is not is_wide


def test_choose_other_model_settings_leave_the_size_open() -> None:
    assert "model.size" in chosen({"data": DATA, "model": {"norm": "pre"}}, counts_of(29_000))


def test_choose_given_batch_keeps_the_number_of_epochs() -> None:
    plain = chosen({"data": DATA}, counts_of(29_000))
    values = {"data": DATA, "training": {"max_tokens_per_batch": 1024, "accumulate": 4}}
    keys = chosen(values, counts_of(29_000))
    assert "training.max_tokens_per_batch" not in keys
    assert 0.45 < keys["training.max_steps"] / plain["training.max_steps"] < 0.55


def test_choose_given_minutes_get_a_schedule_that_may_end_at_any_step() -> None:
    values = {"data": DATA, "training": {"max_minutes": 30.0}}
    assert chosen(values, counts_of(29_000))["training.schedule"] == "inverse_square_root"


@pytest.mark.parametrize(
    ("given", "pairs", "expected"),
    [
        ({}, 30_000, 3.0),
        ({}, 500_000, None),
        ({"max_minutes": 30.0}, 30_000, None),
        ({"dropout": 0.0}, 30_000, None),
        ({"dropout": 0.1}, 30_000, 3.0),
    ],
)
def test_choose_reads_pairs_twice_where_text_is_small_and_time_is_not(
    given: dict[str, Any], pairs: int, expected: float | None
) -> None:
    keys = chosen({"data": DATA, "training": given}, counts_of(pairs))
    assert keys.get("training.r_drop") == expected


def test_choose_other_average_has_no_decay() -> None:
    values = {"data": DATA, "training": {"averaging": "last"}}
    keys = chosen(values, counts_of(29_000))
    assert not {"training.averaging", "training.averaging_decay"} & set(keys)


def test_choose_start_from_a_model_keeps_its_size_and_vocabulary_at_a_lower_rate() -> None:
    values = {
        "data": DATA,
        "model": {**NAMED_SIZES["tiny"], "norm": "pre"},
        "tokenizer": {"sharing": "joint"},
        "start": {"model": "runs/old", "model_hash": "0"},
    }
    keys = chosen(values, counts_of(29_000))
    assert {key.partition(".")[0] for key in keys} == {"training"}
    plain = chosen({"data": DATA}, counts_of(29_000))
    assert keys["training.learning_rate"] == plain["training.learning_rate"] / 4
    assert keys["training.max_steps"] < plain["training.max_steps"]


def test_choose_whole_words_leave_the_tokenizer_alone() -> None:
    keys = chosen({"data": DATA, "tokenizer": {"kind": "words"}}, counts_of(29_000))
    assert not [key for key in keys if key.startswith("tokenizer.")]


def test_choose_thousands_of_characters_leave_the_rarest_to_bytes() -> None:
    counts = TextCounts(50_000, 10**6, 10**6, 10**6, 5_200, 3_900, 100_000)
    keys = chosen({"data": DATA}, counts)
    assert keys["tokenizer.character_coverage"] == 0.9995
    size = keys["tokenizer.vocabulary_size"]
    assert 3_900 < size < 17_000
    values = {"data": DATA, "tokenizer": {"character_coverage": 1.0}}
    assert chosen(values, counts)["tokenizer.vocabulary_size"] > size


def test_choose_text_tokenized_before_keeps_its_escapes_in_one_piece() -> None:
    few = replace(counts_of(29_000), escapes=500)
    many = replace(few, escapes=15_000)
    assert "tokenizer.split_by_script" not in chosen({"data": DATA}, few)
    [choice] = [
        choice
        for choice in choose({"data": DATA}, Recipe.model_validate({"data": DATA}), many)
        if choice.key == "tokenizer.split_by_script"
    ]
    assert choice.value is False
    assert str(choice).startswith("tokenizer.split_by_script = false: ")
    given = {"data": DATA, "tokenizer": {"split_by_script": True}}
    assert "tokenizer.split_by_script" not in chosen(given, many)


WORD = st.text("abcdefghijkl éñжя你好0123.,'-", min_size=1, max_size=20)


# Not random: pairs of very different lengths may still find a vocabulary that is too large.
@settings(
    derandomize=True,
    max_examples=settings.default.max_examples // 7,  # Each starts a process.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    lines=st.lists(st.tuples(WORD, WORD), min_size=1, max_size=30).filter(
        lambda pairs: all(source.strip() and target.strip() for source, target in pairs)
    ),
    tokenizer=st.fixed_dictionaries(
        {},
        optional={
            "model_type": st.sampled_from(["bpe", "unigram"]),
            "byte_fallback": st.booleans(),
            "sharing": st.just("separate"),
        },
    ),
)
def test_complete_vocabulary_of_tiny_text_can_be_learned(
    tmp_path: Path, write_lines: Write, lines: list[tuple[str, str]], tokenizer: dict[str, Any]
) -> None:
    is_separate = "sharing" in tokenizer  # one size must then suit both sides
    for side, language in enumerate(("xx", "yy")):
        write_lines(f"train.{language}", *(pair[0 if is_separate else side] for pair in lines))
    model = {"tied_embeddings": "decoder"} if is_separate else {}
    values, _ = complete({"data": DATA, "tokenizer": tokenizer, "model": model}, tmp_path)
    recipe = Recipe.model_validate(values)
    learned = KeptText(tmp_path).learn(recipe)
    assert learned.source_vocabulary_size == recipe.tokenizer.vocabulary_size


def test_complete_few_pairs_are_warned_of(tmp_path: Path, write_lines: Write) -> None:
    for language in ("xx", "yy"):
        write_lines(f"train.{language}", *(f"line {number}" for number in range(999)))
    _, sentences = complete({"data": DATA}, tmp_path)
    assert sentences[0].startswith("999 pairs are too few to learn a language from")


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"data": DATA},
        {"data": "text"},
        {"data": DATA, "training": 3},
        {"data": DATA, "model": {"d_model": "wide"}},
        {"data": DATA, "model": {"sise": "tiny"}},
        {"data": {**DATA, "folder": "$PELLUCID_NO_SUCH_VARIABLE"}},
    ],
)
def test_complete_impossible_recipe_or_missing_text_comes_back_unchanged(
    values: dict[str, Any], tmp_path: Path
) -> None:
    assert complete(values, tmp_path) == (values, [])


def test_complete_files_of_unequal_length_come_back_unchanged(
    corpus: Path, write_lines: Write
) -> None:
    write_lines("train.yy", "one line")
    assert complete({"data": DATA}, corpus) == ({"data": DATA}, [])


def test_count_text_counts_words_weights_and_characters(tmp_path: Path, write_lines: Write) -> None:
    write_lines("a.xx", "un deux trois &apos;", "un &#91; & deux; R&D;")
    write_lines("a.yy", "one two three", "one")
    write_lines("b.tsv", "今天天气很好我们去公园散步吧吧\tit is fine")
    data = DataConfig(
        train=(("a.xx", "a.yy"), "b.tsv"),
        train_weights=(2.0, 0.5),
        validation=("b.tsv",),
    )
    counts = count_text(data, TokenizerRecipe(), tmp_path)
    assert counts.pairs == 3
    assert counts.source_words == 9 + 7
    assert counts.escapes == 2
    assert counts.target_words == 4 + 3
    assert counts.epoch_words == 2 * 4 + 0.5 * 3
    letters = set("&;#91aposRDundeuxtroisonetwothreeitisfine今天天气很好我们去公园散步吧吧")
    assert counts.characters == len(letters)
    assert counts.distinct_words == 6


def test_count_text_counts_only_what_is_kept(tmp_path: Path, write_lines: Write) -> None:
    write_lines("a.xx", "one two three", "four &amp;", "five")
    write_lines("a.yy", "un deux", "trois", "quatre cinq")
    data = DataConfig(train=("a.xx", "a.yy"), validation=("a.tsv",))
    counts = count_text(data, TokenizerRecipe(), tmp_path, bytes((1, 0, 1)))
    assert (counts.pairs, counts.source_words, counts.target_words) == (2, 4, 4)
    assert (counts.epoch_words, counts.escapes) == (4, 0)
    assert counts.characters == len(set("onetwothreefiveundeuxquatrecinq"))


SENTENCE = "{number} word and {other} more"
LEFT_OUT = {
    "too long": lambda line: (" ".join([f"99 {line} ¾"] * 60), " ".join([line] * 60)),
    "just too long": lambda line: (" ".join([line] * 45) + " Ω", line),
    "one word": lambda line: ("§" * 300, line),
    "without spaces": lambda line: ("今天天气很好我们去公园散步吧" * 30, line),
    "target too long": lambda line: (line, " ".join([line] * 300)),
    "empty": lambda line: ("", f"þ {line}"),
    "blank": lambda line: (f"þ {line}", "  "),
    "ratio": lambda line: (" ".join([line] * 15), "ж"),
}
"""Pairs that are left out, by the reason; all have characters that no other line has."""


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("reason", "settings"),
    [
        *((reason, {}) for reason in LEFT_OUT),
        ("just too long", {"model_type": "unigram"}),
        ("ratio", {"kind": "words"}),
    ],
)
def test_complete_pairs_that_are_left_out_change_no_choice(
    tmp_path: Path, write_lines: Write, reason: str, settings: dict[str, Any]
) -> None:
    lines = [SENTENCE.format(number=n % 89, other=n % 13) for n in range(200)]
    pairs = [(line, line.replace("word", "mot")) for line in lines]
    noise = [LEFT_OUT[reason](line) for line in lines[:100]]
    found = []
    for folder, text in (("plain", pairs), ("mixed", pairs[:100] + noise + pairs[100:])):
        (tmp_path / folder).mkdir()
        for side, language in enumerate(("xx", "yy")):
            write_lines(f"{folder}/train.{language}", *(pair[side] for pair in text))
        text_of = KeptText(tmp_path / folder)
        values = {"data": DATA, "tokenizer": settings}
        completed, sentences = complete(values, tmp_path / folder, text_of)
        tokenizer = text_of.learn(Recipe.model_validate(completed))
        found.append((completed, sentences, tokenizer.files()))
    assert sentences
    assert found[0] == found[1]


def test_learn_no_pair_kept_reads_all_of_them(tmp_path: Path, write_lines: Write) -> None:
    write_lines("train.xx", "a b c d e f g h", "a b")
    write_lines("train.yy", "a", "")
    recipe = Recipe.model_validate(
        {"data": {**DATA, "max_pair_length": 2}, "tokenizer": {"kind": "words"}}
    )
    tokenizer = KeptText(tmp_path).learn(recipe)
    assert "h" in "".join(tokenizer.vocabulary("source"))


def resumed(values: dict[str, Any], corpus: Path) -> Recipe:
    """Resolve a recipe as the command does for a run that may exist already."""
    run = corpus / "run"
    filled = fill_in(values, run, corpus)
    recipe = Recipe.model_validate(filled.values)
    folder = RunFolder(run, recipe, filled.chosen)
    with folder.locked(), folder.created():
        pass
    return recipe


@pytest.mark.sample(4)
@pytest.mark.parametrize("begun", [{}, {"max_minutes": 30.0}, {"patience": 3}])
@pytest.mark.parametrize("limits", [{}, {"max_minutes": 3.0}, {"patience": "none"}])
def test_a_limit_changed_on_the_way_chooses_nothing_anew(
    corpus: Path, begun: dict[str, Any], limits: dict[str, Any]
) -> None:
    first = resumed({"data": DATA, "training": begun}, corpus)
    again = resumed({"data": DATA, "training": limits}, corpus)
    kept = {"max_minutes": None, "patience": first.training.patience, **limits}
    assert again == first.model_copy(update={"training": first.training.model_copy(update=kept)})


def test_more_steps_may_be_asked_of_a_run_whose_rest_was_chosen(corpus: Path) -> None:
    first = resumed({"data": DATA, "training": {"max_minutes": 30.0}}, corpus)
    assert first.training.schedule == "inverse_square_root"
    again = resumed({"data": DATA, "training": {"max_minutes": 30.0, "max_steps": 77_000}}, corpus)
    assert again.training.max_steps == 77_000
    assert again.training.warmup_steps == first.training.warmup_steps


def test_what_a_run_was_not_asked_for_is_still_refused(corpus: Path) -> None:
    resumed({"data": DATA}, corpus)
    for section, values in (
        ("training", {"dropout": 0.45}),
        ("training", {"label_smoothing": 0.0}),
        ("model", {"size": "big"}),
        ("model", {"norm": "none"}),
        ("tokenizer", {"vocabulary_size": 401}),
        ("tokenizer", {"kind": "words"}),
    ):
        (name,) = values
        expected = "d_model" if name == "size" else name
        with pytest.raises(ConfigurationError, match=rf"{section}\.{expected}"):
            resumed({"data": DATA, section: values}, corpus)


def test_what_is_left_out_of_a_recipe_with_a_course_of_its_own_is_no_longer_there(
    corpus: Path,
) -> None:
    course = {"learning_rate": 0.001, "max_steps": 500}
    resumed({"data": DATA, "training": {**course, "dropout": 0.4, "optimizer": "muon"}}, corpus)
    with pytest.raises(ConfigurationError, match=r"training\.dropout, training\.optimizer differ"):
        resumed({"data": DATA, "training": course}, corpus)
    resumed({"data": DATA, "training": {**course, "dropout": 0.4, "optimizer": "muon"}}, corpus)


@pytest.mark.parametrize(
    ("section", "given"),
    [
        ("training", {"dropout": 0.43}),
        ("training", {"label_smoothing": 0.2}),
        ("tokenizer", {"vocabulary_size": 307}),
        ("model", {"size": "small"}),
        ("model", {"norm": "pre"}),
    ],
)
def test_what_was_given_once_and_is_left_out_later_is_refused_by_name(
    corpus: Path, section: str, given: dict[str, Any]
) -> None:
    first = resumed({"data": DATA, section: given}, corpus)
    (name,) = given
    expected = "d_model" if name == "size" else name
    with pytest.raises(ConfigurationError, match=rf"{section}\.{expected}"):
        resumed({"data": DATA}, corpus)
    assert resumed({"data": DATA, section: given}, corpus) == first


@pytest.mark.parametrize("notes", [None, "", "{", "[1]", "null", "[" * 100_000])
def test_a_run_whose_notes_are_lost_is_chosen_the_same_again(
    corpus: Path, notes: str | None
) -> None:
    first = resumed({"data": DATA}, corpus)
    file = corpus / "run" / "chosen.json"
    file.unlink()
    if notes is not None:
        file.write_text(notes)
    assert resumed({"data": DATA}, corpus) == first


@pytest.mark.sample(7)
@pytest.mark.parametrize(("times", "width"), [(1, 128), (300, 256), (20_000, 512)])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"model": {"norm": "pre"}},
        {"model": {"num_heads": 2}},
        {"training": {"max_steps": 2000, "warmup_steps": 100}},
        {"training": {"learning_rate": 0.001}},
        {"training": {"max_minutes": 30.0}},
        {"tokenizer": {"model_type": "unigram"}},
    ],
)
def test_the_same_recipe_again_is_the_same_whatever_was_chosen(
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, Any],
    times: int,
    width: int,
) -> None:
    def scaled(*text: Any) -> TextCounts:
        counts = count_text(*text)
        amounts = ("pairs", "source_words", "target_words", "epoch_words")
        return replace(counts, **{name: times * getattr(counts, name) for name in amounts})

    monkeypatch.setattr(choices_module, "count_text", scaled)
    values = {"data": DATA, **given}
    first = resumed(values, corpus)
    assert first.model.d_model == width
    assert resumed(values, corpus) == first


@pytest.mark.parametrize(
    "begun",
    [
        {"max_steps": 100_000, "schedule": "inverse_square_root"},
        {"learning_rate": 0.001, "max_minutes": 9.0},
        {"schedule": "constant"},
    ],
)
def test_fewer_steps_leave_the_warm_up_as_it_was(corpus: Path, begun: dict[str, Any]) -> None:
    first = resumed({"data": DATA, "training": begun}, corpus)
    fewer = resumed({"data": DATA, "training": {**begun, "max_steps": 2_000}}, corpus)
    training = first.training.model_copy(update={"max_steps": 2_000})
    assert fewer == first.model_copy(update={"training": training})


@pytest.mark.parametrize("name", ["learning_rate", "schedule", "warmup_steps", "max_steps"])
def test_what_was_chosen_may_be_written_into_the_recipe(corpus: Path, name: str) -> None:
    first = resumed({"data": DATA}, corpus)
    given = {name: getattr(first.training, name)}
    assert resumed({"data": DATA, "training": given}, corpus) == first


def test_a_run_begun_without_choices_goes_on_with_the_same_recipe(corpus: Path) -> None:
    begun = Recipe.model_validate({"data": DATA})
    folder = RunFolder(corpus / "run", begun)
    with folder.locked(), folder.created():
        pass
    assert resumed({"data": DATA}, corpus) == begun


@pytest.mark.parametrize("left", ["chosen.json", "chosen.json.part", "recipe.toml.part"])
def test_what_a_crash_at_the_start_leaves_is_no_other_run(corpus: Path, left: str) -> None:
    (corpus / "run").mkdir()
    (corpus / "run" / left).write_text("{}")
    first = resumed({"data": DATA}, corpus)
    assert first.model.d_model == 128
    assert resumed({"data": DATA}, corpus) == first
