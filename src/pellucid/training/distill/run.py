"""Distillation from start to end: translate the text, train the student, compare the two."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from pellucid.bundle import MANIFEST, WEIGHTS, bundle_json, read_json_object, resolve_model
from pellucid.config import DataConfig, Recipe, validate
from pellucid.config.data import Split
from pellucid.errors import ConfigurationError, DataError
from pellucid.evaluation.corpus_scores import evaluate_corpus
from pellucid.evaluation.form import Form
from pellucid.evaluation.statistics import Scoring
from pellucid.files import new_folder, write_text
from pellucid.machine.devices import CPU, device_in_use
from pellucid.machine.hardware import leave_lasting_objects
from pellucid.terminal.text import count_of
from pellucid.text.reading.held_out import SET_ASIDE
from pellucid.text.reading.lines import read_lines
from pellucid.text.reading.sentence_pairs import check_text_files, find_aside, read_pairs
from pellucid.training.console.summary import count_stored, describe_seconds
from pellucid.training.distill.student import StudentSize, StudentText, student_recipe
from pellucid.training.distill.teacher import LINES_IN_A_PART, TaughtPair, TeacherSettings, teach
from pellucid.training.loop import train
from pellucid.training.start.filling import fill_in
from pellucid.training.start.from_model import knows_set_aside
from pellucid.translate.translator import Translator, load

SINGLE_LINES = 40
BULK_LINES = 1000
FEWEST_ROUNDS = 3
MOST_ROUNDS = 7
SECONDS = 8.0
"""Time for each model after which no further round begins."""

MEANINGLESS = 0.5
"""A student below this share of its teacher's BLEU has not learned from it."""

SHARE_OF_TEACHER = 0.4
SHARE_OF_STUDENT = 0.85
"""Shares of a time limit after which the teacher ends, and the student; the rest compares them."""

LINES_A_MINUTE = 20
"""Lines of the test text, for each minute of a time limit, that the comparison translates."""

FEWEST_LINES = 20

RESULT_FILE = "distill.json"


@dataclass(frozen=True)
class Distillation:
    """Everything that one distillation needs.

    Attributes:
        teacher: the model, and further ones whose probabilities are averaged with its.
        recipe: the values of the recipe: the text, and the settings of the student.
        recipe_folder: the folder that its names start from.
        out: the folder for everything.
        teaching: the teacher's search.
        size: of the student.
        extra: files of sentences without translations, for the teacher to translate too.
        with_original: True to train on the recipe's own pairs too.
        minutes: the most that everything may take; None sets no limit.
    """

    teacher: Sequence[str]
    recipe: Mapping[str, Any]
    recipe_folder: Path
    out: Path
    teaching: TeacherSettings
    size: StudentSize
    extra: Sequence[Path] = ()
    with_original: bool = False
    minutes: float | None = None


def distill(task: Distillation, *, say: Callable[[str], None]) -> list[MeasuredModel]:
    """Distill, or continue where the same call stopped.

    Args:
        task: everything about it.
        say: receives a sentence at every step.

    Returns:
        Teacher and student, each under greedy search and under the teacher's beam. The same is in
        ``distill.json`` of the folder; the student is in ``student/bundle``.

    Raises:
        InputError: the recipe, the text, a model or the folder cannot be used.
        KeyboardInterrupt: Ctrl-C; finished parts and the student's last step are kept.

    Source:
        Kim and Rush 2016, "Sequence-Level Knowledge Distillation"; with ``n_best`` its
        "sequence-level interpolation".
    """
    began = time.monotonic()
    task = _with_teachers_split(task)
    data = validate(DataConfig, task.recipe.get("data", {}), "the recipe")
    check_text_files(data, task.recipe_folder)
    if num_doubtful := find_aside(data, task.recipe_folder).held_out.doubtful.total():
        say(
            f"The teacher may have learned {count_of(num_doubtful, 'pair')} of the validation and "
            "test text, since it set too few of this text's pairs aside: scores may be too high."
        )
    text = StudentText(
        task.out / "text" / "train.source",
        task.out / "text" / "train.target",
        task.out / "text" / "train.links" if task.teaching.is_guided else None,
    )
    # The student's recipe first: its faults should not wait for the teacher.
    values = student_recipe(
        _with_split_named(task, data),
        task.recipe_folder,
        text,
        task.size,
        with_original=task.with_original,
    )
    if task.minutes is not None:
        limit = round(SHARE_OF_STUDENT * task.minutes, 6)
        values["training"] = {**values.get("training", {}), "max_minutes": limit}
    teacher = load(task.teacher[0], ensemble=task.teacher[1:])
    pairs = list(_sources(data, task))
    say(
        f"The teacher translates {count_of(len(pairs), 'sentence')} with "
        f"{'greedy search' if task.teaching.beam == 1 else f'beam {task.teaching.beam}'} into "
        f"{task.out / 'teacher'}."
    )
    until = began + SHARE_OF_TEACHER * 60 * task.minutes if task.minutes else None
    lessons = teach(teacher, pairs, task.teaching, task.out / "teacher", until)
    lessons = with_estimate(lessons, len(pairs), say, began)
    _write_text(text, lessons, say=say)
    student_folder = task.out / "student"
    filled = fill_in(values, student_folder, Path.cwd())
    recipe = validate(Recipe, filled.values, "the student's recipe")
    say(f"The student learns in {student_folder}.")
    start = None if task.minutes is None else began
    train(recipe, student_folder, recipe_folder=Path.cwd(), filled=filled, began=start)
    rows = _compare(task, data, teacher, student_folder, say=say)
    record = {"teacher": list(task.teacher), "rows": [row.to_json() for row in rows]}
    write_text(task.out / RESULT_FILE, json.dumps(record, indent=1) + "\n")
    return rows


def with_estimate(
    lessons: Iterator[TaughtPair], num_pairs: int, say: Callable[[str], None], began: float
) -> Iterator[TaughtPair]:
    """Yield what the teacher teaches, and say after its first part how long all of it takes."""
    number = 0
    for number, lesson in enumerate(lessons, start=1):
        if number == LINES_IN_A_PART < num_pairs:
            seconds = (time.monotonic() - began) * num_pairs / number
            say(f"At this speed the teacher takes at most {describe_seconds(seconds)}.")
        yield lesson
    if number < num_pairs:
        say(
            f"The teacher ends after {number:,} of {num_pairs:,} sentences, so that the model "
            "it teaches has time to learn (--minutes)."
        )


def _with_teachers_split(task: Distillation) -> Distillation:
    """Set the pairs aside that the teacher's training set aside, as it may know all others."""
    data = task.recipe.get("data", {})
    if not isinstance(data, Mapping) or not data.get("split"):
        return task
    folder = resolve_model(task.teacher[0])
    if not knows_set_aside(read_json_object(folder / MANIFEST)):
        return task
    data = {"set_aside_as": str(folder.resolve()), **data}
    return replace(task, recipe={**task.recipe, "data": data})


def _with_split_named(task: Distillation, data: DataConfig) -> Mapping[str, Any]:
    """Write the text that a recipe sets aside into files, which the student's recipe names."""
    if not data.split:
        return task.recipe
    if task.with_original:
        raise ConfigurationError(
            "--with-original needs a recipe that names its validation text: with data.split the "
            "student would learn from that too. Name data.validation, or leave the option out."
        )
    task.out.mkdir(parents=True, exist_ok=True)
    named = {key: value for key, value in task.recipe["data"].items() if key != "split"}
    splits: tuple[Split, ...] = ("validation", "test")
    for split in splits:
        pairs = list(read_pairs(data, split, task.recipe_folder))
        sources = (task.out / f"{split}.source").resolve()
        targets = (task.out / f"{split}.target").resolve()
        write_text(sources, "".join(f"{pair.source}\n" for pair in pairs))
        write_text(targets, "".join(f"{pair.target}\n" for pair in pairs))
        named[split] = [[str(sources), str(targets)]]
    held_out = find_aside(data, task.recipe_folder).held_out
    write_text(task.out / SET_ASIDE, bundle_json(held_out.to_record()))
    # So that it travels with the student too.
    named["set_aside_as"] = str(task.out.resolve())
    return {**task.recipe, "data": named}


def _sources(data: DataConfig, task: Distillation) -> Iterator[tuple[str, str | None]]:
    """Yield every sentence to translate once, with a reference where the text has one."""
    seen = set()
    for pair in read_pairs(data, "train", task.recipe_folder):
        if pair.source.strip() and pair.source not in seen:
            seen.add(pair.source)
            yield pair.source, pair.target
    for path in task.extra:
        for line in read_lines(path):
            if line.strip() and line not in seen:
                seen.add(line)
                yield line, None


def _write_text(
    text: StudentText, lessons: Iterator[TaughtPair], *, say: Callable[[str], None]
) -> None:
    """Write the student's text; sentences that the teacher could not translate are left out."""
    good = []
    num_bad = 0
    for number, lesson in enumerate(lessons, start=1):
        if lesson.target is None:
            num_bad += 1
        else:
            good.append((lesson.source, lesson.target, lesson.links))
        if number % 10_000 == 0:
            say(f"{number:,} sentences are translated.")
    if not good:
        raise DataError(
            "The teacher must translate at least one sentence of the text, but translated none. "
            "Try pellucid translate with it on a few lines."
        )
    if num_bad:
        say(f"{num_bad:,} sentences are left out: the teacher could not translate them.")
    with new_folder(text.source.parent) as part:
        for path, column in ((text.source, 0), (text.target, 1), (text.links, 2)):
            if path is not None:
                lines = "".join(f"{row[column]}\n" for row in good)
                write_text(part / path.name, lines)


def _compare(
    task: Distillation,
    data: DataConfig,
    teacher: Translator,
    student_folder: Path,
    *,
    say: Callable[[str], None],
) -> list[MeasuredModel]:
    split: Split = "test" if any(data.names("test")) else "validation"
    pairs = list(read_pairs(data, split, task.recipe_folder))
    if task.minutes is not None:
        pairs = pairs[: max(FEWEST_LINES, int(LINES_A_MINUTE * task.minutes))]
    say(f"Teacher and student translate the {split} text, {count_of(len(pairs), 'sentence')}.")
    sources = [pair.source for pair in pairs]
    references = [pair.target for pair in pairs]
    if device_in_use() != CPU:
        # The table counts processor time, of which another device needs little.
        teacher = load(task.teacher[0], device=CPU, ensemble=task.teacher[1:])
    models = {"teacher": teacher, "student": load(student_folder, device=CPU)}
    folders = {
        "teacher": [resolve_model(name) for name in task.teacher],
        "student": [resolve_model(student_folder)],
    }
    rows = [(name, beam) for name in models for beam in sorted({1, task.teaching.beam})]
    searches = [partial(_translate, models[name], beam) for name, beam in rows]
    speeds = _find_speeds(searches, sources)
    measured = []
    for (name, beam), (single, bulk) in zip(rows, speeds, strict=True):
        translator = models[name]
        texts, _ = _translate(translator, beam, sources)
        form = Form.of_model(translator.tokenizer.config)
        bleu = evaluate_corpus(texts, references, Scoring(form=form)).bleu
        parameters, num_bytes = _count_weights(folders[name])
        measured.append(
            MeasuredModel(
                name,
                search="greedy" if beam == 1 else f"beam {beam}",
                precision=translator.options(beam=beam, sample=False).precision,
                bleu=bleu.score,
                low=bleu.low,
                high=bleu.high,
                parameters=parameters,
                num_bytes=num_bytes,
                single=single,
                bulk=bulk,
            )
        )
    return measured


@dataclass(frozen=True)
class Speed:
    """Target tokens a processor second: the median of several rounds, the lowest and the highest.

    Processor seconds count only the time that this process computed, on all its threads.
    """

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:,.0f} ({self.low:,.0f}–{self.high:,.0f})"


@dataclass(frozen=True)
class MeasuredModel:
    """One model under one search.

    Attributes:
        name: ``teacher`` or ``student``.
        search: such as ``beam 5``.
        precision: of the products, that of the model.
        bleu: of the test text.
        low: the lower end of its 95 % interval.
        high: the upper end.
        parameters: of all models together.
        num_bytes: of the weights on disk.
        single: target tokens a processor second, one sentence at a time.
        bulk: the same, all sentences together.
    """

    name: str
    search: str
    precision: str
    bleu: float
    low: float
    high: float
    parameters: int
    num_bytes: int
    single: Speed
    bulk: Speed

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return asdict(self)


def judge_student(rows: Sequence[MeasuredModel]) -> str | None:
    """Return a sentence if the student has not learned from its teacher, otherwise None."""
    best = {row.name: max(one.bleu for one in rows if one.name == row.name) for row in rows}
    teacher = best["teacher"]
    student = best["student"]
    if student >= MEANINGLESS * teacher:
        return None
    return (
        f"The student has not learned from its teacher: BLEU {student:.1f}, the teacher's is "
        f"{teacher:.1f}. Train it longer (--set training.max_steps=…) or make it larger."
    )


def _translate(translator: Translator, beam: int, lines: Sequence[str]) -> tuple[list[str], int]:
    """Translate lines; return the texts and the number of their tokens."""
    found = translator.translate(lines, beam=beam, sample=False)
    return [one.text for one in found], sum(len(one.tokens) for one in found)


def _count_weights(folders: Sequence[Path]) -> tuple[int, int]:
    """Count the parameters and the bytes of all weights of some bundles on disk."""
    paths = [folder / WEIGHTS for folder in folders]
    parameters = sum(sum(count_stored(path).values()) for path in paths)
    return parameters, sum(path.stat().st_size for path in paths)


def _find_speeds(
    searches: Sequence[Callable[[Sequence[str]], tuple[Sequence[str], int]]],
    sources: Sequence[str],
) -> list[tuple[Speed, Speed]]:
    """Find the speeds of several searches: sentence by sentence, and all together.

    They translate in turn, round by round, so that whatever slows the machine slows all of them.
    """
    texts = [[one] for one in sources[:SINGLE_LINES]], [sources[:BULK_LINES]]
    jobs = [(search, parts) for search in searches for parts in texts]
    found: list[list[float]] = [[] for _ in jobs]
    for search in searches:
        search(sources[:3])
    begun = time.perf_counter()
    with leave_lasting_objects():
        for number in range(MOST_ROUNDS):
            is_late = time.perf_counter() - begun > SECONDS * len(searches)
            if number >= FEWEST_ROUNDS and is_late:
                break
            for (search, parts), speeds in zip(jobs, found, strict=True):
                started = time.process_time()
                num_tokens = sum(search(part)[1] for part in parts)
                speeds.append(num_tokens / max(1e-9, time.process_time() - started))
    ranges = [Speed(median(speeds), min(speeds), max(speeds)) for speeds in found]
    return list(zip(ranges[::2], ranges[1::2], strict=True))
