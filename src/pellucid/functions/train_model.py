"""Train a model: ``pellucid train`` as a function."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import tomli_w

from pellucid.arguments import check_count, check_kind, check_text, named, refuse
from pellucid.config import Recipe, apply_overrides, validate
from pellucid.config.base import keys_of_sections
from pellucid.config.typed_options import DecodingOptions
from pellucid.errors import ConfigurationError, word_options
from pellucid.machine.hardware import use_threads
from pellucid.training.run.folder import TEACHERS, repair_recipe
from pellucid.training.start.filling import fill_in
from pellucid.training.start.found_recipe import FoundRecipe, find_start, start_of
from pellucid.training.start.preparation import Say, preparing
from pellucid.wording.other_names import hint_of

if TYPE_CHECKING:
    from pellucid.training.run.run_end import TrainingSummary
    from pellucid.training.update.ranks import Ranks
    from pellucid.translate.translator import Translator

GivenTexts = str | Path | Sequence[str | Path] | Recipe
"""A recipe, by its name, file or object; a table or a folder of text; or two text files."""


@dataclass(frozen=True)
class TrainedModel:
    """A finished training.

    Attributes:
        run: the run folder, with the log, the metrics and the recipe.
        steps: the number of updates made.
        seconds: training time, over all resumptions.
        best_step: the update after which the model was best on the validation text.
        bleu: its BLEU there.
        chrf: its chrF there.
        loss: its loss there; None if it was not finite.
    """

    run: Path
    steps: int
    seconds: float
    best_step: int
    bleu: float
    chrf: float
    loss: float | None

    @property
    def model(self) -> Path:
        """The bundle of the best model, which every function and command takes."""
        return self.run / "bundle"

    def load(self, **decoding: Unpack[DecodingOptions]) -> Translator:
        """Load the best model, with arguments as for `pellucid.load`."""
        from pellucid.translate.translator import load

        return load(self.model, **decoding)


def _settings_elsewhere() -> dict[str, str]:
    """Say where the settings of a recipe belong."""
    keys = keys_of_sections(Recipe).items()
    return {name: f'It is a setting: settings={{"{where}.{name}": …}}.' for name, where in keys}


@named(_settings_elsewhere)
def train(
    texts: GivenTexts,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    output: str | Path | None = None,
    minutes: float | None = None,
    settings: Mapping[str, Any] | None = None,
    start: str | Path | None = None,
    teachers: int | str | None = None,
    more_target: Sequence[str | Path] = (),
    threads: int | None = None,
    progress: bool = True,
) -> TrainedModel:
    """Train a model from a table of pairs or a recipe; the same call again resumes.

    Settings that are not given are chosen for the text, as the command ``pellucid train`` does.
    What happens is written to standard error and into the run folder.

    Args:
        texts: a ``.tsv``, ``.csv``, ``.jsonl``, ``.parquet``, ``.po``, ``.xlf`` or ``.tmx``; a
            folder of them; a source and a target file; the name or the file of a recipe; or a
            `Recipe`.
        source_language: its code, such as ``en``, for text without a recipe; recognized unless
            given.
        target_language: the same for the target.
        output: the run folder; ``runs/NAME`` unless given.
        minutes: time budget, including preparation and validation.
        settings: settings of the recipe, such as ``{"training.max_steps": 2000}``.
        start: a trained model to start from: its weights and its tokenizer.
        teachers: first train so many models in each direction, and learn from their translations
            of the text too; ``"auto"`` chooses the number for ``minutes``.
        more_target: files of sentences in the target language, which a teacher translates.
        threads: processor threads to use.
        progress: show a live bar on a terminal.

    Raises:
        InputError: an argument, the recipe or the text cannot be used.
        TrainingError: the loss is not finite any more, or the model learned nothing.
    """
    began = time.monotonic()
    changes = _read_settings(settings)
    if minutes is not None:
        check_kind("minutes", minutes, int | float, "a number of minutes")
        # Before a recipe is written for the text.
        if not minutes > 0:
            refuse("minutes", "more than 0", minutes)
        changes.append(f"training.max_minutes={minutes}")
    for name, code in (("source_language", source_language), ("target_language", target_language)):
        if code is not None:
            check_text(name, code)
    for name, path in (("output", output), ("start", start)):
        if path is not None:
            check_kind(name, path, str | Path, "the name of a folder")
    more = _read_more(more_target)
    if teachers is not None:
        check_kind("teachers", teachers, int | str, "a number, or 'auto'")
    if threads is not None:
        check_count("threads", threads)
    use_threads(threads)
    run = None if output is None else Path(output)
    if isinstance(texts, Recipe):
        if run is None:
            refuse("output", "the run folder, which a Recipe does not name", output, "Name it.")
        # What the user left out is chosen for the text, as for a file.
        values = texts.model_dump(mode="json", exclude_unset=True)
        found = FoundRecipe(Path("the recipe"), Path.cwd(), apply_overrides(values, changes), run)
    else:
        languages = (source_language, target_language)
        found = find_start(_read_names(texts), languages, run, changes, say=_say)
    model = str(start) if start is not None else start_of(found.values)
    limit = None if minutes is None else began
    summary = train_found(
        found,
        model,
        say=_say,
        began=limit,
        progress=bool(progress),
        teachers=None if teachers is None else str(teachers),
        more_target=more,
    )
    return TrainedModel(
        found.run,
        steps=summary.steps,
        seconds=summary.seconds,
        best_step=summary.best_step,
        bleu=summary.best_bleu,
        chrf=summary.best_chrf,
        loss=summary.best_loss,
    )


def train_found(
    found: FoundRecipe,
    start: str | None,
    *,
    say: Say,
    ranks: Ranks | None = None,
    began: float | None = None,
    progress: bool = True,
    teachers: str | None = None,
    more_target: Sequence[str] = (),
) -> TrainingSummary:
    """Complete a recipe's values and train with them.

    Args:
        found: the recipe and the run.
        start: the model to start from.
        say: takes sentences for people.
        ranks: the processes that share every update.
        began: the ``time.monotonic()`` from which a budget of minutes counts.
        progress: show a live bar on a terminal.
        teachers: models that translate the text first, in each direction: a number or ``auto``.
        more_target: files of sentences in the target language, which a teacher translates.
    """
    path, folder, values, run, _ = found
    if teachers is not None or more_target or (run / TEACHERS).is_dir():
        from pellucid.training.distill.diversify import diversify
        from pellucid.training.distill.teacher_work import Diversification

        task = Diversification(found, teachers, more_target, say, progress)
        for what, is_given in (("--start", start is not None), ("torchrun", ranks is not None)):
            if is_given and task.is_wanted:
                raise ConfigurationError(
                    f"{what} cannot be used with teachers, which train from scratch in one "
                    "process. Leave it out, or --teachers and --more-target."
                )
        summary = diversify(task, began or time.monotonic()) if task.is_wanted else None
        if summary is not None:
            return summary
    found.write(say)
    repair_recipe(run)
    is_new = not (run / "data").is_dir()
    with preparing(values.get("data"), folder, is_new=is_new, say=say) as check:
        # PyTorch takes seconds to import, in which the check has begun already.
        from pellucid.training.loop import train as run_training
        from pellucid.training.start.from_model import with_start

        if start is not None:
            values = with_start(values, start, run)
        filled = fill_in(values, run, folder, say)
        recipe = validate(Recipe, filled.values, str(path))
        return run_training(
            recipe,
            run,
            recipe_folder=folder,
            progress=progress,
            filled=filled,
            ranks=ranks,
            check=check,
            began=began,
        )


def _say(sentence: str) -> None:
    sys.stderr.write(f"{word_options(sentence)}\n")


def _read_names(texts: Any) -> list[str]:
    """Return the names of recipes or texts."""
    names = [texts] if isinstance(texts, str | Path) else texts
    is_several = isinstance(names, Sequence) and not isinstance(names, bytes) and names
    if not is_several or not all(isinstance(name, str | Path) for name in names):
        refuse("texts", "a table, two text files, or a recipe", texts, "Name files.")
    return list(map(str, names))


def _read_more(names: Any) -> list[str]:
    """Return the names of files of more text."""
    if isinstance(names, str | Path) or not isinstance(names, Sequence):
        refuse("more_target", "a list of files", names)
    for name in names:
        check_kind("more_target", name, str | Path, "the name of a file")
    return list(map(str, names))


def _read_settings(settings: object) -> list[str]:
    """Write settings as the command takes them, ``section.key=value``."""
    if settings is None:
        return []
    if not isinstance(settings, Mapping):
        refuse("settings", 'a dict such as {"training.max_steps": 2000}', settings)
    found = []
    for key, value in settings.items():
        section, _, name = check_text("A key of settings", key).partition(".")
        if not (section and name):
            raise ConfigurationError(
                f"A key of settings must be section.key, but is {key!r}. {_hint_of_key(key)}"
            )
        try:
            written = tomli_w.dumps({"value": value})
        except TypeError:
            raise ConfigurationError(
                f"settings[{key!r}] must be a number, a text, True, False or a list of these, but "
                f"is a {type(value).__name__}. Leave it out to have it chosen."
            ) from None
        found.append(f"{key}={written.partition('=')[2].strip()}")
    return found


def _hint_of_key(key: str) -> str:
    """Find the section of a key that was given without one."""
    known = keys_of_sections(Recipe).items()
    return hint_of(key, (), {name: f"Did you mean '{where}.{name}'?" for name, where in known})
