"""The student's recipe and the table of a distillation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pellucid.config import DataConfig, Recipe, validate
from pellucid.errors import ConfigurationError
from pellucid.text.reading.sentence_pairs import find_aside, read_pairs
from pellucid.training.distill import run
from pellucid.training.distill.run import (
    Distillation,
    MeasuredModel,
    Speed,
    _find_speeds,
    _with_split_named,
    _with_teachers_split,
    judge_student,
)
from pellucid.training.distill.student import StudentSize, StudentText, student_recipe
from pellucid.training.distill.teacher import TeacherSettings, check_settings

TEXT = StudentText(Path("/d/train.source"), Path("/d/train.target"), None)
LINKED = StudentText(Path("/d/train.source"), Path("/d/train.target"), Path("/d/train.links"))
SIZE = StudentSize()
RECIPE: dict[str, Any] = {
    "data": {
        "folder": "text",
        "train": [["a.en", "a.fr"], ["b.en", "b.fr"]],
        "train_weights": [1.0, 0.5],
        "validation": "v.tsv",
    },
    "model": {"size": "small", "activation": "gelu"},
    "training": {"max_steps": 17},
}


def _student(
    size: StudentSize = SIZE, text: StudentText = TEXT, *, with_original: bool = False,
    **model: Any,
) -> Recipe:  # fmt: skip
    recipe = {**RECIPE, "model": {**RECIPE["model"], **model}}
    values = student_recipe(recipe, Path("/r"), text, size, with_original=with_original)
    return validate(Recipe, values, "test")


def test_student_has_six_and_one_layers_of_the_recipes_width() -> None:
    model = _student().model
    assert (model.num_encoder_layers, model.num_decoder_layers) == (6, 1)
    assert (model.d_model, model.d_ff, model.num_heads) == (256, 1024, 8)
    assert model.activation == "gelu"


def test_half_student_keeps_the_width_of_a_head() -> None:
    model = _student(StudentSize(is_half=True)).model
    assert (model.d_model, model.d_ff, model.num_heads) == (128, 512, 4)
    assert model.d_key == 32


def test_named_size_has_its_own_layers_and_replaces_the_recipes_sizes() -> None:
    model = _student(StudentSize(name="tiny"), d_ff=44).model
    assert (model.num_encoder_layers, model.num_decoder_layers, model.d_ff) == (4, 4, 256)
    assert _student(StudentSize("tiny", "12+1")).model.num_encoder_layers == 12


def test_names_of_validation_text_still_lead_to_the_recipes_folder() -> None:
    data = _student().data
    assert data.validation == ("/r/text/v.tsv",)
    assert data.train == (("/d/train.source", "/d/train.target"),)
    assert data.train_weights == ()


def test_original_pairs_stay_next_to_the_translations_with_their_weights() -> None:
    data = _student(with_original=True).data
    assert data.train == (
        ("/d/train.source", "/d/train.target"),
        ("/r/text/a.en", "/r/text/a.fr"),
        ("/r/text/b.en", "/r/text/b.fr"),
    )
    assert data.train_weights == (1.0, 1.0, 0.5)


def test_guided_student_learns_links_in_its_last_layer() -> None:
    recipe = _student(StudentSize(layers="3+2"), LINKED)
    assert recipe.data.train_alignments == ("/d/train.links",)
    assert recipe.training.guided_head == "decoder.1.cross.0"


@pytest.mark.parametrize(
    ("size", "model", "words"),
    [
        (StudentSize(layers="6"), {}, "such as 6+1"),
        (StudentSize(layers="6+0"), {}, "such as 6+1"),
        (StudentSize(name="smal"), {}, "small"),
        (StudentSize(is_half=True), {"num_heads": 7}, "model.num_heads, but it is 7"),
    ],
)
def test_impossible_size_is_refused(size: StudentSize, model: dict[str, int], words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        _student(size, **model)
    assert words in str(caught.value)


def test_text_of_sentencepiece_pieces_is_refused() -> None:
    recipe = {**RECIPE, "data": {**RECIPE["data"], "cut_by": "sentencepiece"}}
    with pytest.raises(ConfigurationError, match=r"data\.cut_by"):
        student_recipe(recipe, Path("/r"), TEXT, StudentSize(), with_original=False)


@pytest.mark.parametrize(("student", "is_bad"), [(39.0, False), (20.0, False), (19.0, True)])
def test_student_far_below_its_teacher_is_reported(student: float, *, is_bad: bool) -> None:
    rows = [
        MeasuredModel(name, "greedy", "int8", bleu, 0, 100, 7, 28, 1.0, 1.0)
        for name, bleu in (("teacher", 40.0), ("teacher", 30.0), ("student", student))
    ]
    problem = judge_student(rows)
    assert (problem is not None) == is_bad
    if problem is not None:
        assert "19.0" in problem
        assert "40.0" in problem


def test_another_teacher_is_refused_without_hashes(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    settings = {"models": ["251c"], "beam": 5}
    check_settings(path, settings)
    check_settings(path, settings)
    with pytest.raises(
        ConfigurationError, match=r"have another teacher\. Choose another folder with output,"
    ):
        check_settings(path, {**settings, "models": ["251c", "77ab"]})
    with pytest.raises(ConfigurationError, match=r"have beam 5, not 3\."):
        check_settings(path, {**settings, "beam": 3})


def test_speeds_are_found_in_turn_by_processor_seconds_with_their_range(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[str, int]] = []
    clock, now = iter((0.0, *(1e6,) * 99)), [0.0]

    def search(name: str, seconds: float) -> Any:
        def translate(lines: Any) -> tuple[list[str], int]:
            calls.append((name, len(lines)))
            now[0] += seconds * len(lines) * (1 + len(calls) % 2)  # a machine that is not steady
            return list(lines), 10 * len(lines)

        return translate

    monkeypatch.setattr(run.time, "process_time", lambda: now[0])
    monkeypatch.setattr(run.time, "perf_counter", lambda: next(clock))
    sources = [f"line {number}" for number in range(5)]
    found = _find_speeds([search("a", 1.0), search("b", 4.0)], sources)
    a_round = [*[("a", 1)] * 5, ("a", 5), *[("b", 1)] * 5, ("b", 5)]
    assert calls == [("a", 3), ("b", 3), *a_round * run.FEWEST_ROUNDS]
    for (single, bulk), speed in zip(found, (10.0, 2.5), strict=True):
        for one in (single, bulk):
            assert speed / 2 <= one.low <= one.median <= one.high <= speed
    assert str(Speed(1234.5, 900.4, 2000.6)) == "1,234 (900–2,001)"


def test_validation_text_that_is_set_aside_is_the_students_too(tmp_path: Path) -> None:
    rows = "".join(f"a {n}\tb {n}\n" for n in range(50))
    (tmp_path / "t.tsv").write_text(f"x\ty\n{rows}")
    values = {"data": {"train": ["t.tsv"], "columns": ["x", "y"], "split": 4}}
    data = DataConfig.model_validate(values["data"])
    task = Distillation(
        ("demo",), values, tmp_path, tmp_path / "out", TeacherSettings(beam=1), SIZE
    )
    named = _with_split_named(task, data)["data"]
    assert "split" not in named
    ((source, target),) = named["validation"]
    pairs = zip(*(Path(file).read_text().splitlines() for file in (source, target)), strict=True)
    wanted = [(pair.source, pair.target) for pair in read_pairs(data, "validation", tmp_path)]
    assert list(pairs) == wanted
    assert len(wanted) == 4
    # The test text too, so that the student can be scored on it; and both travel with the student.
    ((source, target),) = named["test"]
    pairs = zip(*(Path(file).read_text().splitlines() for file in (source, target)), strict=True)
    assert list(pairs) == [(p.source, p.target) for p in read_pairs(data, "test", tmp_path)]
    student = validate(DataConfig, named, "test")
    assert (
        find_aside(student, tmp_path).held_out.splits == find_aside(data, tmp_path).held_out.splits
    )
    with pytest.raises(ConfigurationError, match=r"^with_original needs a recipe that names"):
        _with_split_named(replace(task, with_original=True), data)


def test_student_is_tested_on_what_its_teacher_did_not_learn(tmp_path: Path) -> None:
    rows = [(f"s{n}", f"t{n}") for n in range(400)]
    (tmp_path / "all.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    (tmp_path / "clean.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows[::2]))
    whole = validate(DataConfig, {"train": "all.tsv", "split": 40}, "test")
    held_out = find_aside(whole, tmp_path).held_out
    (tmp_path / "teacher").mkdir()
    manifest = {"format": 1, "data": {"set_aside": held_out.to_record()}}
    (tmp_path / "teacher" / "manifest.json").write_text(json.dumps(manifest))
    task = Distillation(
        (str(tmp_path / "teacher"),),
        {"data": {"train": "clean.tsv", "split": 40}},
        tmp_path,
        tmp_path / "out",
        TeacherSettings(beam=1),
        SIZE,
    )
    data = validate(DataConfig, _with_teachers_split(task).recipe["data"], "test")
    known = {pair.source for pair in read_pairs(whole, "train", tmp_path)}
    test = {pair.source for pair in read_pairs(data, "test", tmp_path)}
    assert len(test) > 10
    assert not test & known
    # Without the teacher's own split, some of it is in the test text.
    alone = validate(DataConfig, task.recipe["data"], "test")
    assert known & {pair.source for pair in read_pairs(alone, "test", tmp_path)}
