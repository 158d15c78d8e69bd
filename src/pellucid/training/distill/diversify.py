"""Data diversification: several teachers translate the training text for the last model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pellucid.config import DataConfig, StartConfig, TrainingConfig, validate
from pellucid.config.data import SPLITS
from pellucid.errors import ConfigurationError
from pellucid.files import writing
from pellucid.text.reading.sentence_pairs import check_text_files
from pellucid.training.distill.teacher_plan import (
    AUTO,
    TeacherPlan,
    count_teachers,
    keep_plan,
    kept_settings,
    read_plan,
    write_plan,
)
from pellucid.training.distill.teacher_text import (
    hash_texts,
    read_more,
    read_split,
    write_texts,
)
from pellucid.training.distill.teacher_work import Diversification, TeacherWork
from pellucid.training.run.folder import TEACHERS, lock_folder
from pellucid.training.run.run_end import TrainingSummary


def diversify(task: Diversification, began: float) -> TrainingSummary | None:
    """Train teachers, let them translate the text, and train the last model on all of it.

    What is there already is not made again, so that the same call resumes at any point.

    Args:
        task: everything about it.
        began: the ``time.monotonic()`` at which it began.

    Returns:
        The training of the last model, which is that of the run folder; None if the plan has no
        teachers, so that an ordinary training is to follow.

    Raises:
        InputError: the recipe, the text, or the folder cannot be used, or the time is too short.
        TrainingError: a model learned nothing.
        KeyboardInterrupt: Ctrl-C; everything that was finished is kept.

    Source:
        Nguyen et al. 2020, "Data Diversification: A Simple Strategy For Neural Machine
        Translation"; Sennrich et al. 2016, "Improving Neural Machine Translation Models with
        Monolingual Data".
    """
    data = _check_recipe(task)
    earlier = read_plan(task.folder)
    names = task.more_target or (earlier.more_target if earlier else ())
    texts = {split: read_split(data, split, task.found.folder) for split in SPLITS}
    more = read_more(names, data, texts, task.say)
    minutes = task.found.values.get("training", {}).get("max_minutes")
    if earlier is not None and minutes is None:
        minutes = earlier.minutes
    if earlier is not None and task.teachers in (None, AUTO):
        teachers = earlier.teachers
    else:
        teachers = count_teachers(task.teachers, minutes, len(texts["train"]))
    wanted = TeacherPlan(
        teachers,
        minutes,
        list(names),
        text=hash_texts(texts, more),
        settings=kept_settings(task.found.values),
        num_pairs=len(texts["train"]),
        num_more=len(more),
    )
    plan = keep_plan(wanted, earlier, task.folder)
    if not plan.parts:
        if task.teachers == AUTO:
            task.say(
                f"{minutes:g} minutes are too few for teachers of {len(texts['train']):,} pairs "
                "(--teachers auto): one model is trained."
            )
        return None
    with _locked(task.folder) as made, _begun(task, plan, made):
        if earlier is None or earlier.text != plan.text:
            write_texts(task.folder / "text", data, texts, task.found.folder)
        write_plan(plan, task.folder)
        work = TeacherWork(task, plan, texts, more, began)
        work.announce()
        task.found.write(task.say)
        for part in plan.parts:
            work.learn(part)
            work.translate(part)
        num_added = work.unite()
        summary = work.train_last()
        work.report(num_added, summary)
    return summary


def _check_recipe(task: Diversification) -> DataConfig:
    """Refuse what cannot be trained with teachers, before anything is written."""
    data = validate(DataConfig, task.found.values.get("data", {}), "the recipe")
    start = validate(StartConfig, task.found.values.get("start", {}), "the recipe")
    validate(TrainingConfig, task.found.values.get("training", {}), "the recipe")
    for what, is_given in (
        ("start.model", start.model),
        ("data.train_weights", data.train_weights),
        ("data.train_alignments", data.train_alignments),
    ):
        if is_given:
            raise ConfigurationError(
                f"{what} cannot be used with teachers, which learn both directions from scratch "
                "and write new pairs. Leave it out, or --teachers and --more-target."
            )
    there = {path.name for path in task.found.run.iterdir()} if task.found.run.is_dir() else set()
    if there - {TEACHERS} and read_plan(task.folder) is None:
        raise ConfigurationError(
            f"A run must have its teachers from its first start, but {task.found.run} has none. "
            "Choose another folder with -o, or leave --teachers and --more-target out."
        )
    check_text_files(data, task.found.folder)
    return data


@contextmanager
def _locked(folder: Path) -> Iterator[list[Path]]:
    """Make and lock the folder of the teachers; yield the folders that were not there."""
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        lock_folder(folder, descriptor)
        yield made
    finally:
        os.close(descriptor)


@contextmanager
def _begun(task: Diversification, plan: TeacherPlan, made: Sequence[Path]) -> Iterator[None]:
    """Delete what the block wrote if it fails before a teacher begins to learn."""
    try:
        yield
    except BaseException:
        if not any((task.folder / part.name).is_dir() for part in plan.parts):
            shutil.rmtree(task.folder, ignore_errors=True)
            for folder in made:
                with suppress(OSError):  # Another program may have put something there.
                    folder.rmdir()
        raise
