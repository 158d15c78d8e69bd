"""The run folder: its recipe, log, metrics and samples."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pellucid.bundle import bundle_json
from pellucid.config import Recipe, parse_toml, to_toml
from pellucid.config.parsing import finite_values, read_json_text
from pellucid.errors import (
    ConfigurationError,
    OutputError,
    PellucidError,
    how_to_write,
    make_printable,
)
from pellucid.files import flush_folder, open_own, read_bytes, tidy_folder, write_bytes, write_text
from pellucid.text.reading.lines import not_utf8
from pellucid.training.run.chosen_comments import read_reasons, with_reasons

RECIPE_FILE = "recipe.toml"
PLAN_FILE = "plan.json"
"""The plan of the training: device, precision, kernels, processes, batch, memory."""

CHOSEN_FILE = "chosen.json"
"""The settings, ``section.name``, that were chosen for the text of a new run, with their values."""

TEACHERS = "teachers"
"""The folder of the teachers of a run that has some; it is there before the run itself."""

NO_CHECKPOINT_FILE = "no-checkpoint-yet"
"""A file of a new run, deleted with the first checkpoint, which a full disk allows. A run that has
it and no checkpoint never had one; one without it has lost them."""

MAY_CHANGE = frozenset(
    {
        "data.folder",
        "training.max_steps",
        "training.max_minutes",
        "training.patience",
        "training.keep_checkpoints",
        "training.device",
        "start.model",
        "data.set_aside_as",
        "data.test",
    }
)
"""Settings that may differ when a run is continued: limits, logging, the device, the folder of the
model to start from, and text that is only checked."""

KNOWN_AS = {"start.model_hash": "the model to start from (--start, start.model)"}
"""Names of settings for people, for keys that people do not write."""

ENDING_AT_MAX_STEPS = ("linear", "cosine")
"""Schedules whose every rate depends on ``max_steps``."""


def repair_recipe(run: Path) -> None:
    """Restore a missing or damaged recipe of a run from the copy in its newest checkpoint.

    Raises:
        ConfigurationError: it is damaged, and no checkpoint has a copy.
    """
    recipe_file = run / RECIPE_FILE
    if not run.is_dir() or _is_recipe(recipe_file):
        return
    for copy in sorted(run.glob("checkpoints/step-*/recipe.toml"), reverse=True):
        if _is_recipe(copy):
            write_bytes(recipe_file, read_bytes(copy))
            _print(
                f"{recipe_file} was missing or damaged; it was restored from {copy.parent.name}."
            )
            return
    if recipe_file.exists():
        raise ConfigurationError(
            f"A run's recipe must stay as its first start wrote it, but {recipe_file} is damaged, "
            "and no checkpoint holds a copy. Choose another folder with -o."
        )


def read_chosen(run: Path) -> dict[str, Any] | None:
    """Read the settings, ``section.name``, that were chosen and not given; None without a file."""
    try:
        chosen = read_json_text(read_bytes(run / CHOSEN_FILE))
    except (PellucidError, ValueError):
        return None
    return chosen if isinstance(chosen, dict) else None


def _is_recipe(path: Path) -> bool:
    """Tell whether a file is a resolved recipe; its settings are not checked."""
    try:
        return {"data", "model", "training"} <= parse_toml(read_bytes(path), str(path)).keys()
    except PellucidError:
        return False


class RunFolder:
    """The folder of one training run.

    Args:
        path: of the folder, which need not exist.
        recipe: of the run.
        chosen: the settings of a new run, ``section.name``, that were chosen for its text.
        reasons: a sentence about each of them, which the run's recipe holds as a comment.

    Raises:
        ConfigurationError: the folder holds another run, or something else.
    """

    def __init__(
        self,
        path: Path,
        recipe: Recipe,
        chosen: Mapping[str, Any] | None = None,
        reasons: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        self._chosen = dict(chosen or {})
        self._reasons = dict(reasons or {})
        self.checkpoints = path / "checkpoints"
        self.bundle = path / "bundle"
        self.untrained = path / "untrained"
        self.history = path / "history"
        # Holds the step at which the run ended, once everything is done.
        self.finished = path / "finished"
        self.data = path / "data"
        self._recipe_file = path / RECIPE_FILE
        self._chosen_file = path / CHOSEN_FILE
        self._log_file = path / "log.txt"
        self._metrics_file = path / "metrics.jsonl"
        self._samples_file = path / "samples.jsonl"
        self._no_checkpoint_file = path / NO_CHECKPOINT_FILE
        self._has_warned = False
        self._waiting: dict[Path, list[str]] = {}
        self.recipe_toml = to_toml(recipe)
        for what, text in (("name of a run folder", str(path)), ("recipe", self.recipe_toml)):
            if not_utf8(text):
                fault = next(line for line in text.split("\n") if not_utf8(line))
                raise ConfigurationError(
                    f"The {what} must be UTF-8, but is not: {fault!a}. Rename the file or folder."
                )
        repair_recipe(path)
        self._recipe = recipe
        self._check_same_run()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder, and lock it against other trainings while the block runs.

        A folder that is still empty at the end is deleted.

        Raises:
            ConfigurationError: another process is training there, or has begun another run.
            OutputError: the folder cannot be made or written to.
        """
        new_folders = [path for path in (self.path, *self.path.parents) if not path.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise self._not_writable(error) from error
        try:
            lock_folder(self.path, descriptor)
            try:
                self._check_same_run()
                yield
            finally:
                with suppress(OSError):  # Folders that are not empty stay.
                    for path in new_folders:
                        path.rmdir()
        finally:
            os.close(descriptor)

    @contextmanager
    def created(self) -> Iterator[None]:
        """Write the resolved recipe into the folder; if the block fails, delete it again.

        Only new files are deleted: a run that existed before stays as it was.

        Raises:
            OutputError: the folder cannot be written to.
        """
        is_new_run = not self._recipe_file.exists()
        try:
            self._make()
            yield
        except BaseException:
            if is_new_run:
                with suppress(OSError):
                    self._recipe_file.unlink(missing_ok=True)
                    self._chosen_file.unlink(missing_ok=True)
                    self._no_checkpoint_file.unlink(missing_ok=True)
                    (self.path / PLAN_FILE).unlink(missing_ok=True)
                    self._log_file.unlink(missing_ok=True)
                    shutil.rmtree(self.data, ignore_errors=True)
            raise

    def log(self, message: str) -> None:
        """Write a message to standard error and to ``log.txt``."""
        message = "\n".join(make_printable(line) for line in message.split("\n"))
        _print(message)
        self._append(self._log_file, message)

    def say(self, message: str) -> None:
        """Write a message to standard error only."""
        _print(message)

    def add_metrics(self, kind: str, values: Mapping[str, Any]) -> None:
        """Add one object to ``metrics.jsonl``; numbers that are not finite become null."""
        self._append(self._metrics_file, json.dumps(finite_values({"kind": kind, **values})))

    def add_sample(self, values: Mapping[str, Any]) -> None:
        """Add one object to ``samples.jsonl``: a validation sentence and its translation."""
        self._append(self._samples_file, json.dumps(values, ensure_ascii=False))

    def write_plan(self, plan: Mapping[str, Any]) -> None:
        """Write ``plan.json``; if that fails, warn once and let training continue."""
        try:
            write_text(self.path / PLAN_FILE, bundle_json(plan))
        except OSError as error:
            self._warn_once(str(error))

    def last_step(self) -> int:
        """Read the last step of ``metrics.jsonl``; 0 before the first."""
        try:
            lines = read_bytes(self._metrics_file).splitlines()
        except PellucidError:
            return 0
        return max((_step_of(line) for line in lines), default=0)

    @property
    def never_had_checkpoint(self) -> bool:
        """True if no checkpoint of this run was ever saved."""
        return self._no_checkpoint_file.is_file()

    def note_checkpoint(self) -> None:
        """Remember that this run has had a checkpoint."""
        with suppress(OSError):
            self._no_checkpoint_file.unlink(missing_ok=True)

    def drop_after(self, step: int, validated_step: int) -> None:
        """Drop damaged lines, and metrics and samples of what will be computed again.

        Args:
            step: updates after this one will be made again.
            validated_step: validations after this step will be made again.
        """

        def stays(line: bytes) -> bool:
            return 0 <= _step_of(line) <= (validated_step if _is_validated(line) else step)

        for path in (self._metrics_file, self._samples_file):
            waiting = self._waiting.get(path, [])
            waiting[:] = [line for line in waiting if stays(line.encode())]
            if not path.exists():
                continue
            try:
                before = read_bytes(path)
                after = b"".join(line + b"\n" for line in before.split(b"\n") if stays(line))
                if after != before:
                    write_bytes(path, after)
            except PellucidError as error:
                self._warn_once(str(error))

    def _make(self) -> None:
        try:
            tidy_folder(self.bundle)
            tidy_folder(self.untrained)
            is_new = not self._recipe_file.exists()
            if is_new:
                write_text(self._chosen_file, bundle_json(self._chosen))
                write_text(self._no_checkpoint_file, "")
            reasons = self._reasons if is_new else read_reasons(self._recipe_file)
            text = with_reasons(self.recipe_toml, reasons)
            if is_new or read_bytes(self._recipe_file) != text.encode():
                write_text(self._recipe_file, text)
            flush_folder(self.path)
        except PellucidError:
            raise
        except OSError as error:
            raise self._not_writable(error) from error

    def _not_writable(self, error: OSError) -> OutputError:
        return OutputError(
            f"The run folder must be writable, but {self.path} is not: "
            f"{error.strerror or error}. Choose another with -o."
        )

    def write_waiting_lines(self) -> None:
        """Write the lines that the disk did not take before, if it takes them now."""
        for path, lines in self._waiting.items():
            if lines:
                self._append(path)

    def _append(self, path: Path, *lines: str) -> None:
        """Add lines, after those that wait; if that fails, they all wait, and it is said once."""
        waiting = self._waiting.setdefault(path, [])
        waiting += lines
        size = None
        try:
            with open(path, "ab", opener=open_own) as stream:
                size = stream.tell()
                stream.write("".join(f"{line}\n" for line in waiting).encode())
            waiting.clear()
        except OutputError as error:  # a link, for instance
            self._warn_once(str(error))
        except OSError as error:
            if size is not None:
                with suppress(OSError):  # Remove half a line, so that the next starts a new one.
                    os.truncate(path, size)
            self._warn_once(
                f"The run folder must be writable, but {path} is not: {error.strerror or error}. "
                f"{how_to_write(error)}."
            )

    def _warn_once(self, sentence: str) -> None:
        if not self._has_warned:
            _print(f"{sentence} Training continues, and tries to write it again.")
        self._has_warned = True

    def _check_same_run(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise ConfigurationError(
                f"The run folder must be a folder, but {self.path} is a file. Choose another with "
                "-o."
            )
        if not self._recipe_file.exists():
            # Files that a crash at the very beginning leaves.
            first = (RECIPE_FILE, CHOSEN_FILE, NO_CHECKPOINT_FILE)
            begun = {CHOSEN_FILE, NO_CHECKPOINT_FILE, *(f"{name}.part" for name in first), TEACHERS}
            if any(path.name not in begun for path in self.path.iterdir()):
                raise ConfigurationError(
                    f"The run folder must be new or hold this run, but {self.path} holds something "
                    "else (it has no recipe.toml). Choose another folder with -o."
                )
            return
        where = str(self._recipe_file)
        earlier = parse_toml(read_bytes(self._recipe_file), where)
        before = flatten_settings(earlier)
        now = flatten_settings(parse_toml(self.recipe_toml.encode(), "recipe"))
        differing = {key for key in before | now if before.get(key) != now.get(key)}
        ends_there = self._recipe.training.schedule in ENDING_AT_MAX_STEPS
        may_change = MAY_CHANGE - {"training.max_steps"} if ends_there else MAY_CHANGE
        changed = sorted(differing - may_change)
        if changed:
            names = ", ".join(KNOWN_AS.get(key, key) for key in changed)
            has_other_text = any(key.startswith("data.") for key in changed)
            advice = f", with --start {self.path} to train its model on" if has_other_text else ""
            raise ConfigurationError(
                f"A run can only be continued with the same recipe, but {names} "
                f"{'differs' if len(changed) == 1 else 'differ'} from {self._recipe_file}. "
                f"Choose another folder with -o for a new run{advice}."
            )


def lock_folder(path: Path, descriptor: int) -> None:
    """Lock a folder against other trainings, as long as its descriptor is open.

    Raises:
        ConfigurationError: another process is training there.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigurationError(
            "Only one command at a time can train in a run folder, but another one is training "
            f"in {path}. Wait until it ends, or choose another folder with -o."
        ) from None
    except OSError:
        pass  # Some network file systems have no locks.


def _print(message: str) -> None:
    """Write a message to standard error, if it is still open."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()


def _step_of(line: bytes) -> int:
    """Read the step of a line of metrics or samples; negative if it is damaged."""
    try:
        step = read_json_text(line)["step"]
    except (ValueError, KeyError, TypeError):
        return -1
    return step if isinstance(step, int) else -1


def _is_validated(line: bytes) -> bool:
    """Tell whether a line is of a validation: a sample or its figures, not those of an update."""
    return bool(read_json_text(line).get("kind", "sample") != "train")


def flatten_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Name settings ``section.key``; a key outside of all sections keeps its name."""
    flat: dict[str, Any] = {}
    for section, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{section}.{key}": entry for key, entry in value.items()}
        else:
            flat[section] = value
    return flat
