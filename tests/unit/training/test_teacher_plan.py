"""The plan of a training with teachers, and what is refused before the hours begin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pellucid.corpora import iterate_split
from pellucid.errors import PellucidError
from pellucid.training.distill.diversify import diversify
from pellucid.training.distill.teacher_plan import (
    SHARE_OF_TEACHERS,
    TeacherPlan,
    count_teachers,
    read_plan,
    write_plan,
)
from pellucid.training.distill.teacher_work import Diversification
from pellucid.training.start.found_recipe import FoundRecipe

PAIRS = [(e.source, e.target) for e in islice(iterate_split("train"), 400)]

PLAN = TeacherPlan(
    teachers=2, minutes=240.0, more_target=[], text="", settings={}, num_pairs=29_000
)


def test_parts_share_the_time_and_leave_the_rest_to_the_last_model() -> None:
    parts = PLAN.parts
    names = [part.name for part in parts]
    assert names == ["forward-1", "backward-1", "forward-2", "backward-2"]
    spent = sum((part.learning or 0) + (part.translating or 0) for part in parts)
    assert spent == pytest.approx(SHARE_OF_TEACHERS * 240)
    assert {part.learning for part in parts} == {parts[0].learning}
    # Who translates more sentences has more time for it, but never most of all the time.
    for num_more in (29_000, 10**9):
        more = replace(PLAN, num_more=num_more).parts
        assert (more[1].translating or 0) > (more[0].translating or 0)
        all_spent = sum((part.learning or 0) + (part.translating or 0) for part in more)
        assert all_spent == pytest.approx(SHARE_OF_TEACHERS * 240)
        assert 4 * (more[0].learning or 0) >= SHARE_OF_TEACHERS * 240 / 3
    assert {part.learning for part in replace(PLAN, minutes=None).parts} == {None}


def test_more_text_alone_needs_one_teacher_that_translates_nothing_else() -> None:
    (part,) = replace(PLAN, teachers=0, num_more=29_000).parts
    assert part.name == "backward-1"
    assert part.translating == pytest.approx((part.learning or 0) / 3)
    assert not replace(PLAN, teachers=0).parts


@pytest.mark.parametrize(
    ("asked", "minutes", "number"),
    [(None, 240.0, 0), ("0", None, 0), ("3", None, 3), ("auto", 30.0, 0), ("auto", 240.0, 2)],
)
def test_number_of_teachers_is_read_or_chosen(
    asked: str | None, minutes: float | None, number: int
) -> None:
    assert count_teachers(asked, minutes, 29_000) == number


def test_chosen_number_grows_with_the_minutes_and_falls_with_the_text() -> None:
    numbers = [count_teachers("auto", minutes, 29_000) for minutes in (60, 120, 240, 480, 10_000)]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 3
    assert count_teachers("auto", 240, 10_000_000) == 0


@pytest.mark.parametrize("asked", ["-1", "11", "two", "1.5", "²", ""])
def test_other_numbers_are_refused(asked: str) -> None:
    with pytest.raises(PellucidError, match="teachers must be a number from 0 to 10"):
        count_teachers(asked, 10.0, 100)


def test_plan_is_kept_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    assert read_plan(tmp_path) is None
    write_plan(PLAN, tmp_path)
    assert read_plan(tmp_path) == PLAN
    for damaged in ("", "[]", '{"teachers": 1}', '{"num_pairs": 3'):
        (tmp_path / "plan.json").write_text(damaged)
        with pytest.raises(PellucidError, match="is damaged"):
            read_plan(tmp_path)


@pytest.fixture
def task(tmp_path: Path) -> Diversification:
    """A training with two teachers that would begin."""
    for side, name in enumerate(("t.en", "t.fr")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
    data = {"source_language": "en", "target_language": "fr", "train": [["t.en", "t.fr"]]}
    values: dict[str, Any] = {"data": {**data, "split": 40}}
    found = FoundRecipe(tmp_path / "r.toml", tmp_path, values, tmp_path / "run")
    return Diversification(found, "1", (), lambda sentence: None)


def _write(folder: Path, lines: list[str]) -> str:
    path = folder / "more.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def _with(task: Diversification, section: str, **entries: Any) -> Diversification:
    values = dict(task.found.values)
    values[section] = values.get(section, {}) | entries
    return replace(task, found=task.found._replace(values=values))


SENTENCES = {
    "little time": "A teacher needs at least 1 minute for 320 pairs, but minutes=1.5 leaves",
    "auto without minutes": "teachers auto needs minutes, by which",
    "small text": "The text must have at least three pairs with different sources",
    "English": "must be in the target language, French, but",
    "held out": "must be other text than that of validation and test",
    "empty": "must have sentences, but",
    "missing": "does not exist",
    "standard input": "must be a file, which is read again on resuming",
    "weights": "data.train_weights cannot be used with teachers",
    "start": "start.model cannot be used with teachers",
    "another run": "A run must have its teachers from its first start",
    "bad setting": "dropout",
    "bad size": "d_model must be",
}


@pytest.mark.parametrize("case", SENTENCES)
def test_what_cannot_be_done_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, task: Diversification, case: str
) -> None:
    if case == "small text":
        for name in ("t.en", "t.fr"):
            (tmp_path / name).write_text("a\nb\n")
    if case == "another run":
        (tmp_path / "run").mkdir()
        (tmp_path / "run/recipe.toml").write_text("")
    more: dict[str, Callable[[], str]] = {
        "English": lambda: _write(tmp_path, [source for source, _ in PAIRS]),
        "held out": lambda: _write(tmp_path, [target for _, target in _validation(task)]),
        "empty": lambda: _write(tmp_path, ["", " "]),
        "missing": lambda: str(tmp_path / "nowhere.fr"),
        "standard input": lambda: "-",
    }
    changes: dict[str, tuple[str, dict[str, Any]]] = {
        "little time": ("training", {"max_minutes": 1.5}),
        "weights": ("data", {"train_weights": [2.0]}),
        "start": ("start", {"model": "demo"}),
        "bad setting": ("training", {"dropout": 3}),
        "bad size": ("model", {"d_model": -3}),
    }
    if case in more:
        task = replace(task, more_target=(more[case](),))
    if case in changes:
        section, entries = changes[case]
        task = _with(task, section, **entries)
    if case == "auto without minutes":
        task = replace(task, teachers="auto")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(PellucidError) as refused:
        diversify(task, began=0.0)
    assert SENTENCES[case] in str(refused.value)
    assert str(refused.value).endswith(".")
    assert sorted(tmp_path.rglob("*")) == before


def _validation(task: Diversification) -> list[tuple[str, str]]:
    from pellucid.config import DataConfig
    from pellucid.text.reading.sentence_pairs import read_pairs

    data = DataConfig(**task.found.values["data"])
    pairs = read_pairs(data, "validation", task.found.folder)
    return [(pair.source, pair.target) for pair in pairs]


def test_lines_that_are_held_out_are_left_out_of_more_text(
    tmp_path: Path, task: Diversification
) -> None:
    said: list[str] = []
    lines = [target for _, target in _validation(task)[:3]]
    name = _write(tmp_path, [*lines, *(f"{target} Oui, encore." for _, target in PAIRS[:50])])
    plan = _with(replace(task, more_target=(name,), say=said.append), "training", max_minutes=1.5)
    with pytest.raises(PellucidError, match="A teacher needs"):
        diversify(plan, began=0.0)
    assert said == [f"3 lines of {name} are left out: they are held-out text."]


def test_too_few_minutes_for_chosen_teachers_train_one_model(task: Diversification) -> None:
    said: list[str] = []
    chosen = replace(task, teachers="auto", say=said.append)
    assert diversify(_with(chosen, "training", max_minutes=1.5), began=0.0) is None
    assert said == [
        "1.5 minutes are too few for teachers of 320 pairs (--teachers auto): one model is trained."
    ]
