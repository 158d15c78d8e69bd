"""The run folder: whose run it is, its log, and its metrics."""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pellucid.bundle import to_json
from pellucid.config import Recipe, parse_toml, to_toml, validate
from pellucid.errors import ConfigurationError, OutputError, PellucidError
from pellucid.files import flush_folder, not_utf8, read_bytes, tidy_folder, write_bytes, write_text

__all__ = ["RECIPE_FILE", "RunFolder", "mend_recipe", "read_chosen"]

RECIPE_FILE = "recipe.toml"
PLAN_FILE = "plan.json"
"""What the training computes on: device, precision, kernels, processes, batch, memory."""

CHOSEN_FILE = "chosen.json"
"""The settings of a new run that were chosen for its text, ``section.name``, with their values."""

MAY_CHANGE = frozenset(
    {
        "data.folder",
        "training.max_steps",
        "training.max_minutes",
        "training.patience",
        "training.log_every",
        "training.keep_checkpoints",
        "training.save_minutes",
        "training.validation_samples",
        "training.tensorboard",
        "training.device",
        "start.model",
        "data.test_source",
        "data.test_target",
        "data.test",
    }
)
"""What the same run may be continued with another value of: limits, logging, the machine's device,
where the model to start from lies, and text that is only checked."""

KNOWN_AS = {"start.model_hash": "the model to start from (--from, start.model)"}
"""What people give, by the key that it becomes."""

ENDING_AT_MAX_STEPS = ("linear", "cosine")
"""Schedules whose every rate depends on ``max_steps``."""


def mend_recipe(run: Path) -> None:
    """Where a run's recipe is gone or damaged, put the copy of its newest checkpoint there.

    Raises:
        ConfigurationError: it is damaged, and there is no copy.
    """
    recipe_file = run / RECIPE_FILE
    if not run.is_dir() or _is_recipe(recipe_file):
        return
    for copy in sorted(run.glob("checkpoints/step-*/recipe.toml"), reverse=True):
        if _is_recipe(copy):
            write_bytes(recipe_file, read_bytes(copy))
            _say(f"{recipe_file} was missing or damaged; it is that of {copy.parent.name} now.")
            return
    if recipe_file.exists():
        raise ConfigurationError(
            f"A run's recipe must be as an earlier start wrote it, but {recipe_file} is not, and "
            "no checkpoint holds a copy. Choose another --out."
        )


def read_chosen(run: Path) -> dict[str, Any] | None:
    """The settings, ``section.name``, that were chosen and not given; None where nothing tells."""
    try:
        chosen = json.loads(read_bytes(run / CHOSEN_FILE))
    except (PellucidError, ValueError, RecursionError):
        return None
    return chosen if isinstance(chosen, dict) else None


def _is_recipe(path: Path) -> bool:
    """Whether it is a resolved recipe, as far as can be told without judging its settings."""
    try:
        return {"data", "model", "training"} <= parse_toml(read_bytes(path), str(path)).keys()
    except PellucidError:
        return False


class RunFolder:
    """The folder of one training run.

    Args:
        path: where it is or will be.
        recipe: what is to be run.
        chosen: the settings of a new run, ``section.name``, that were chosen for its text.

    Raises:
        ConfigurationError: the folder holds another run, or something that is no run.
    """

    def __init__(self, path: Path, recipe: Recipe, chosen: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self._chosen = dict(chosen or {})
        self.checkpoints = path / "checkpoints"
        self.bundle = path / "bundle"
        self.untrained = path / "untrained"
        self.data = path / "data"
        self._recipe_file = path / RECIPE_FILE
        self._chosen_file = path / CHOSEN_FILE
        self._log_file = path / "log.txt"
        self._metrics_file = path / "metrics.jsonl"
        self._samples_file = path / "samples.jsonl"
        self._has_told = False
        self.recipe_toml = to_toml(recipe)
        for what, text in (("name of a run folder", str(path)), ("recipe", self.recipe_toml)):
            if not_utf8(text):
                fault = next(line for line in text.split("\n") if not_utf8(line))
                raise ConfigurationError(
                    f"The {what} must be UTF-8, but is not: {fault!a}. Rename what is meant."
                )
        mend_recipe(path)
        self._recipe = recipe
        self._check_same_run()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Make the folder and keep every other training out of it while the block runs.

        A folder that is still empty at the end goes again.

        Raises:
            ConfigurationError: another process is training there, or it holds another run by now.
            OutputError: the place cannot take it.
        """
        new_folders = [path for path in (self.path, *self.path.parents) if not path.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise self._not_writable(error) from error
        try:
            self._lock(descriptor)
            try:
                self._check_same_run()
                yield
            finally:
                with suppress(OSError):  # A folder that holds something stays.
                    for path in new_folders:
                        path.rmdir()
        finally:
            os.close(descriptor)

    @contextmanager
    def created(self) -> Iterator[None]:
        """Write the resolved recipe into the folder; take all back if the block fails.

        Only what was new is taken back: a run that was there before stays as it was.

        Raises:
            OutputError: the place cannot take it.
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
                    (self.path / PLAN_FILE).unlink(missing_ok=True)
                    self._log_file.unlink(missing_ok=True)
                    shutil.rmtree(self.data, ignore_errors=True)
            raise

    def log(self, message: str) -> None:
        """Say something on standard error and in ``log.txt``."""
        _say(message)
        self._append(self._log_file, message)

    def record(self, kind: str, values: Mapping[str, Any]) -> None:
        """Add one object to ``metrics.jsonl``; what is no number becomes null."""
        numbers = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in values.items()
        }
        self._append(self._metrics_file, json.dumps({"kind": kind, **numbers}))

    def sample(self, values: Mapping[str, Any]) -> None:
        """Add one object to ``samples.jsonl``: a validation sentence and its translation."""
        self._append(self._samples_file, json.dumps(values, ensure_ascii=False))

    def write_plan(self, plan: Mapping[str, Any]) -> None:
        """Write ``plan.json``: what the training computes on. A full disk is reported only once."""
        try:
            write_text(self.path / PLAN_FILE, to_json(plan))
        except OSError as error:
            self._tell(str(error))

    def last_step(self) -> int:
        """The last step of ``metrics.jsonl``; 0 where there is none."""
        try:
            lines = read_bytes(self._metrics_file).splitlines()
        except PellucidError:
            return 0
        return max((_step_of(line) for line in lines), default=0)

    def forget_after(self, step: int) -> None:
        """Drop metrics and samples of steps that will be computed again, and damaged lines."""
        for path in (self._metrics_file, self._samples_file):
            if not path.exists():
                continue
            try:
                before = read_bytes(path)
                after = b"".join(
                    line + b"\n" for line in before.split(b"\n") if _is_until(line, step)
                )
                if after != before:
                    write_bytes(path, after)
            except PellucidError as error:
                self._tell(str(error))

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(
                "A run folder must be trained in by one command at a time, but another one is at "
                f"it ({self.path}). Wait for its end, or choose another --out."
            ) from None
        except OSError:
            pass  # Some network folders know no locks.

    def _make(self) -> None:
        try:
            tidy_folder(self.bundle)
            tidy_folder(self.untrained)
            if not self._recipe_file.exists():
                write_text(self._chosen_file, to_json(self._chosen))
            if not self._recipe_file.exists() or self._read_recipe() != self.recipe_toml.encode():
                write_text(self._recipe_file, self.recipe_toml)
            flush_folder(self.path)
        except PellucidError:
            raise
        except OSError as error:
            raise self._not_writable(error) from error

    def _not_writable(self, error: OSError) -> OutputError:
        return OutputError(
            f"The run folder must be writable, but {self.path} is not: "
            f"{error.strerror or error}. Choose another with --out."
        )

    def _append(self, path: Path, line: str) -> None:
        """Add a line; where the disk does not take it, say so once and let training go on."""
        size = None
        try:
            with path.open("ab") as stream:
                size = stream.tell()
                stream.write(f"{line}\n".encode())
        except OSError as error:
            if size is not None:
                with suppress(OSError):  # So that the next line starts on its own.
                    os.truncate(path, size)
            self._tell(
                f"The run folder must be writable, but {path} is not: {error.strerror or error}. "
                "Free some space."
            )

    def _tell(self, sentence: str) -> None:
        if not self._has_told:
            _say(f"{sentence} Training goes on; what cannot be written there is left out.")
        self._has_told = True

    def _read_recipe(self) -> bytes:
        return read_bytes(self._recipe_file)

    def _check_same_run(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise ConfigurationError(
                f"The run folder must be a folder, but {self.path} is a file. Choose another --out."
            )
        if not self._recipe_file.exists():
            # A part of it is what a crash at the very beginning leaves.
            begun = {f"{RECIPE_FILE}.part", CHOSEN_FILE, f"{CHOSEN_FILE}.part"}
            if any(path.name not in begun for path in self.path.iterdir()):
                raise ConfigurationError(
                    f"The run folder must be new or hold this run, but {self.path} holds something "
                    "else (it has no recipe.toml). Choose another --out."
                )
            return
        where = str(self._recipe_file)
        earlier = parse_toml(self._read_recipe(), where)
        with suppress(ConfigurationError):  # Settings that were not there yet had their defaults.
            earlier = parse_toml(to_toml(validate(Recipe, earlier, where)).encode(), where)
        differing = _differing_keys(earlier, parse_toml(self.recipe_toml.encode(), "recipe"))
        ends_there = self._recipe.training.schedule in ENDING_AT_MAX_STEPS
        changed = sorted(
            differing - (MAY_CHANGE - ({"training.max_steps"} if ends_there else set()))
        )
        if changed:
            names = ", ".join(KNOWN_AS.get(key, key) for key in changed)
            raise ConfigurationError(
                f"A run can only be continued with the same recipe, but {names} "
                f"{'differs' if len(changed) == 1 else 'differ'} from {self._recipe_file}. "
                "Choose another --out for a new run."
            )


def _say(message: str) -> None:
    """Say something on standard error, if somebody still listens."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()


def _is_until(line: bytes, step: int) -> bool:
    """Whether a line is an object of a step up to this one."""
    return 0 <= _step_of(line) <= step


def _step_of(line: bytes) -> int:
    """The step that a line of figures or samples is of; below 0 where it is damaged."""
    try:
        step = json.loads(line)["step"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return -1
    return step if isinstance(step, int) else -1


def _differing_keys(first: Mapping[str, Any], second: Mapping[str, Any]) -> set[str]:
    flat = [
        dict(entry for section, value in values.items() for entry in _entries(section, value))
        for values in (first, second)
    ]
    return {key for key in flat[0].keys() | flat[1].keys() if flat[0].get(key) != flat[1].get(key)}


def _entries(section: str, value: Any) -> list[tuple[str, Any]]:
    """The keys of a section with its name before them; what stands outside of any, by itself."""
    if isinstance(value, Mapping):
        return [(f"{section}.{key}", entry) for key, entry in value.items()]
    return [(section, value)]
