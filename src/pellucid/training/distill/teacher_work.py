"""The work of teachers: each learns and translates, and the last model learns from all of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid.bundle import MANIFEST, bundle_json, read_json_object
from pellucid.config import Recipe, validate
from pellucid.config.data import SPLITS, Split
from pellucid.files import new_folder, write_text
from pellucid.terminal.text import count_of
from pellucid.text.reading.held_out import SET_ASIDE
from pellucid.training.distill.run import with_estimate
from pellucid.training.distill.teacher import TeacherSettings, teach
from pellucid.training.distill.teacher_plan import (
    TeacherPart,
    TeacherPlan,
    read_plan,
)
from pellucid.training.distill.teacher_text import (
    SIDES,
    Pairs,
    read_added,
    write_pairs,
)
from pellucid.training.loop import train
from pellucid.training.run.folder import RECIPE_FILE, TEACHERS, read_chosen
from pellucid.training.run.run_end import POOR_BLEU, TrainingSummary
from pellucid.training.start.filling import FilledRecipe, fill_in
from pellucid.training.start.found_recipe import FoundRecipe
from pellucid.training.start.preparation import Say
from pellucid.translate.translator import load

BEAM = 5
TIMES_STEPS = 2
"""The last model's steps, in steps that are chosen for a teacher: a student of as many sentences
needed twice its teacher's (docs/guides/distilling.md). A time limit may leave fewer."""

ADDED = "added"
REPORT = "report.json"
RECORD = "record.json"

_KEPT = ("placeholders", "max_pair_length", "max_source_target_ratio")
"""Settings of ``[data]`` that hold for text that was read once and written as plain lines."""


@dataclass(frozen=True)
class Diversification:
    """A training with teachers.

    Attributes:
        found: the recipe, with all changes, and the run folder.
        teachers: ``--teachers`` as given, if it was.
        more_target: files of sentences in the target language.
        say: takes sentences for people.
        progress: show a live bar on a terminal.
    """

    found: FoundRecipe
    teachers: str | None
    more_target: Sequence[str]
    say: Say
    progress: bool = True

    @property
    def folder(self) -> Path:
        """The folder of the teachers."""
        return self.found.run / TEACHERS

    @property
    def is_wanted(self) -> bool:
        """True if teachers are asked for, or were by an earlier start."""
        is_asked = self.teachers not in (None, "0") or self.more_target
        return bool(is_asked) or read_plan(self.folder) is not None


class TeacherWork:
    """The parts of one training with teachers, each of which is made once.

    A teacher is a run of its own; ``added`` in its folder has what it translated, once it is whole.
    """

    def __init__(
        self,
        task: Diversification,
        plan: TeacherPlan,
        texts: Mapping[Split, Pairs],
        more: Sequence[str],
        began: float,
    ) -> None:
        self._task = task
        self._plan = plan
        self._texts = texts
        self._more = more
        # From here the time of the next model counts; reading the text belongs to the first.
        self._began = began
        self._learned: float | None = None
        self._filled: dict[str, FilledRecipe] = {}
        self._say = task.say
        self._folder = task.folder

    def announce(self) -> None:
        """Say what is to be done, before anything begins."""
        parts = self._plan.parts
        names = ", ".join(part.name for part in parts)
        # What cannot be trained is refused here, before the plan is said.
        filled = self._fill(parts[0])
        self._filled[parts[0].name] = filled
        model = validate(Recipe, filled.values, "the recipe").model
        sentences = [
            f"Plan: {count_of(len(parts), 'teacher')} ({names}) for "
            f"{count_of(len(self._texts['train']), 'pair')}, with "
            f"{model.num_encoder_layers} + {model.num_decoder_layers} layers of width "
            f"{model.d_model} as the last model."
        ]
        if self._plan.teachers:
            sentences.append("Forward ones translate the sources, backward ones the targets.")
        if self._more:
            sentences.append(f"backward-1 translates {count_of(len(self._more), 'more sentence')}.")
        sentences.append("The last model learns from all pairs, without duplicates.")
        self._say(" ".join(sentences))
        if self._plan.minutes is not None:
            first = parts[0]
            spent = sum((part.learning or 0) + (part.translating or 0) for part in parts)
            self._say(
                f"Of {self._plan.minutes:g} minutes each teacher learns for "
                f"{first.learning:.1f} and all translate for at most "
                f"{spent - len(parts) * (first.learning or 0):.1f}; the last model gets "
                f"{self._plan.minutes - spent:.1f} and what they leave."
            )
        self._say(
            f"All parts are kept in {self._folder}. Stop at any time: the same command resumes."
        )

    def learn(self, part: TeacherPart) -> None:
        """Train one teacher, or continue with it."""
        folder = self._folder / part.name
        if (folder / "finished").is_file():
            return
        self._say(f"Teacher {part.name} learns in {folder}.")
        filled = self._filled.get(part.name) or self._fill(part)
        is_new = not folder.is_dir()
        self._train(folder, filled)
        # The time of earlier starts is unknown: then all of the plan's counts.
        self._learned = (time.monotonic() - self._began) / 60 if is_new else None

    def translate(self, part: TeacherPart) -> None:
        """Translate what one teacher has to, or the rest of it."""
        folder = self._folder / part.name
        if (folder / ADDED).is_dir():
            return
        began = time.monotonic()
        bleu = self._bleu_of(folder)
        is_poor = 0 <= bleu < POOR_BLEU
        if is_poor:
            self._say(
                f"Teacher {part.name} has BLEU {bleu:.1f} on the validation text: most of its "
                "translations would be wrong, so they are left out. More minutes or more text help."
            )
        lines = [] if is_poor else self._lines_of(part)
        pairs: Pairs = []
        if lines:
            self._say(f"Teacher {part.name} translates {count_of(len(lines), 'sentence')}.")
            until = None if part.translating is None else began + 60 * part.translating
            teacher = load(folder)
            sources = [(line, None) for line in lines]
            lessons = teach(teacher, sources, TeacherSettings(BEAM), folder / "translations", until)
            for lesson in with_estimate(lessons, len(lines), self._say, began):
                if lesson.target is not None:
                    # Files of text have a sentence a line.
                    written = lesson.target.replace("\n", " ").replace("\r", " ")
                    pair = (lesson.source, written)
                    pairs.append(pair if part.direction == "forward" else pair[::-1])
        with new_folder(folder / ADDED) as new:
            write_pairs(new, pairs)
            learned = self._learned if self._learned is not None else part.learning or 0.0
            used = learned + (time.monotonic() - began) / 60
            record = {"sentences": len(lines), "pairs": len(pairs), "minutes": round(used, 3)}
            write_text(new / RECORD, bundle_json(record))
        self._began = time.monotonic()
        self._learned = None

    def unite(self) -> dict[str, int]:
        """Write the text of the last model; return the number of pairs that each teacher added."""
        folder = self._folder / "union"
        if (folder / RECORD).is_file():
            return {name: int(number) for name, number in read_json_object(folder / RECORD).items()}
        held_out = [
            {pair[side] for split in ("validation", "test") for pair in self._texts[split]}
            for side in (0, 1)
        ]
        all_pairs = dict.fromkeys(self._texts["train"])
        num_added = {}
        for part in self._plan.parts:
            before = len(all_pairs)
            for pair in read_added(self._folder / part.name / ADDED):
                if pair[0] not in held_out[0] and pair[1] not in held_out[1]:
                    all_pairs[pair] = None
            num_added[part.name] = len(all_pairs) - before
        with new_folder(folder) as new:
            write_pairs(new, list(all_pairs))
            write_text(new / RECORD, bundle_json(num_added))
        return num_added

    def train_last(self) -> TrainingSummary:
        """Train the last model with the settings that were chosen for its teachers."""
        run = self._task.found.run
        training = {**self._training}
        if self._plan.minutes is not None:
            training["max_minutes"] = round(self._minutes_left(), 4)
        values = {
            **self._task.found.values,
            "data": self._data(SIDES, "union"),
            "training": training,
        }
        if not (run / RECIPE_FILE).is_file():
            filled = self._as_teacher(values)
        else:
            filled = fill_in(values, run, self._folder)
        if not (run / "finished").is_file():
            self._say(f"The last model learns in {run}.")
        return self._train(run, filled)

    def report(self, num_added: Mapping[str, int], summary: TrainingSummary) -> None:
        """Say what each teacher brought, and keep it."""
        rows = []
        for part in self._plan.parts:
            record = read_json_object(self._folder / part.name / ADDED / RECORD)
            bleu = self._bleu_of(self._folder / part.name)
            record["added"] = num_added.get(part.name, 0)
            rows.append({"teacher": part.name, "validation_bleu": bleu, **record})
            self._say(f"{part.name}: validation BLEU {bleu:.1f}, {record['added']:,} new pairs.")
        last = summary.best_bleu
        self._say(f"Last model: validation BLEU {last:.1f}. It is in {summary.bundle}.")
        report = {"teachers": rows, "last": {"validation_bleu": last, "steps": summary.steps}}
        write_text(self._folder / REPORT, bundle_json(report))
        forward = [row for row in rows if row["teacher"].startswith("forward")]
        best = max(forward, key=lambda row: row["validation_bleu"], default=None)
        if best is not None and best["validation_bleu"] > last:
            self._say(
                f"The teachers brought nothing here: {best['teacher']} alone has BLEU "
                f"{best['validation_bleu']:.1f}. Its model is in "
                f"{self._folder / best['teacher'] / 'bundle'}; more minutes may help the last one."
            )

    @property
    def _training(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._task.found.values.get("training", {})
        return found

    def _data(self, sides: tuple[str, ...], train_text: str) -> dict[str, Any]:
        """Write the section ``[data]`` of a part, whose sources are the first of two sides."""
        given = self._task.found.values["data"]
        data: dict[str, Any] = {key: given[key] for key in _KEPT if key in given}
        data["folder"] = str(self._folder.resolve())
        for side, own in zip(SIDES, sides, strict=True):
            data[f"{side}_language"] = given.get(f"{own}_language", "")
        for split in SPLITS:
            if self._texts[split]:
                data[split] = [[f"text/{split}.{side}" for side in sides]]
        if train_text == "union":
            data["train"] = [[f"union/{side}" for side in sides]]
        # Its hashes are those of sources.
        if sides == SIDES and (self._folder / "text" / SET_ASIDE).is_file():
            data["set_aside_as"] = str((self._folder / "text").resolve())
        return data

    def _fill(self, part: TeacherPart) -> FilledRecipe:
        seed = int(self._training.get("seed", 1)) + part.number
        training = {**self._training, "seed": seed}
        training.pop("keep_every", None)
        if part.learning is not None:
            training["max_minutes"] = round(part.learning, 4)
        sides = SIDES if part.direction == "forward" else SIDES[::-1]
        values = {
            **self._task.found.values,
            "data": self._data(sides, "text"),
            "training": training,
        }
        return fill_in(values, self._folder / part.name, self._folder)

    def _train(self, run: Path, filled: FilledRecipe) -> TrainingSummary:
        recipe = validate(Recipe, filled.values, "the recipe")
        limited = self._plan.minutes is not None
        return train(
            recipe,
            run,
            recipe_folder=self._folder,
            progress=self._task.progress,
            filled=filled,
            began=self._began if limited else None,
        )

    def _lines_of(self, part: TeacherPart) -> list[str]:
        side = 0 if part.direction == "forward" else 1
        own = (pair[side] for pair in self._texts["train"]) if self._plan.teachers else ()
        lines = dict.fromkeys(line for line in own if line.strip())
        if part.name == "backward-1":
            lines |= dict.fromkeys(self._more)
        return list(lines)

    def _bleu_of(self, run: Path) -> float:
        metrics = read_json_object(run / "bundle" / MANIFEST).get("metrics", {})
        return float(metrics.get("validation_bleu", -1.0))

    def _minutes_left(self) -> float:
        """Count the minutes of the last model: its own, and what the teachers did not need."""
        left = self._plan.minutes or 0.0
        for part in self._plan.parts:
            record = read_json_object(self._folder / part.name / ADDED / RECORD)
            planned = (part.learning or 0.0) + (part.translating or 0.0)
            left -= min(float(record.get("minutes", planned)), planned)
        return left

    def _as_teacher(self, values: Mapping[str, Any]) -> FilledRecipe:
        """Fill in a recipe as for the first teacher.

        New pairs of the same sentences are no new text, for which a larger model and less dropout
        would be chosen.
        """
        chosen = dict(read_chosen(self._folder / self._plan.parts[0].name) or {})
        steps = "training.max_steps"
        if steps in chosen:
            chosen[steps] *= TIMES_STEPS
        filled = dict(values)
        for key, value in chosen.items():
            section, _, name = key.partition(".")
            filled[section] = {name: value, **filled.get(section, {})}
        return FilledRecipe(filled, [], chosen)
