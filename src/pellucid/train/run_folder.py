"""The run folder: whose run it is, its log, and its metrics."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pellucid.config import Recipe, parse_toml, to_toml
from pellucid.errors import ConfigurationError, OutputError
from pellucid.files import read_bytes, read_lines, write_text

__all__ = ["RunFolder"]

MAY_CHANGE = frozenset(
    {
        "data.folder",
        "training.max_steps",
        "training.max_minutes",
        "training.patience",
        "training.log_every",
        "training.keep_checkpoints",
    }
)
"""What the same run may be continued with another value of: limits and logging."""


class RunFolder:
    """The folder of one training run.

    Args:
        path: where it is or will be.
        recipe: what is to be run.

    Raises:
        ConfigurationError: the folder holds another run, or something that is no run.
    """

    def __init__(self, path: Path, recipe: Recipe) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.bundle = path / "bundle"
        self.data = path / "data"
        self._recipe_file = path / "recipe.toml"
        self._log_file = path / "log.txt"
        self._metrics_file = path / "metrics.jsonl"
        self.recipe_toml = to_toml(recipe)
        self._check_same_run(recipe)

    @contextmanager
    def created(self) -> Iterator[None]:
        """Make the folder with the resolved recipe; take both back if the block fails.

        Only what was new is taken back: a run that was there before stays as it was.
        """
        is_new_run = not self._recipe_file.exists()
        new_folders = [path for path in (self.path, *self.path.parents) if not path.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"The run folder must be writable, but {self.path} is not: "
                f"{error.strerror or error}. Choose another with --out."
            ) from error
        write_text(self._recipe_file, self.recipe_toml)
        try:
            yield
        except BaseException:
            if is_new_run:
                self._recipe_file.unlink(missing_ok=True)
            with suppress(OSError):  # A folder that holds something stays.
                for path in new_folders:
                    path.rmdir()
            raise

    def log(self, message: str) -> None:
        """Say something on standard error and in ``log.txt``."""
        print(message, file=sys.stderr, flush=True)
        self._append(self._log_file, message)

    def record(self, kind: str, values: Mapping[str, Any]) -> None:
        """Add one object to ``metrics.jsonl``."""
        self._append(self._metrics_file, json.dumps({"kind": kind, **values}))

    def forget_after(self, step: int) -> None:
        """Drop metrics of steps that will be computed again."""
        if not self._metrics_file.exists():
            return
        kept = []
        for line in read_lines(self._metrics_file):
            try:
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
            except (json.JSONDecodeError, KeyError, TypeError):
                continue
        write_text(self._metrics_file, "".join(kept))

    def _append(self, path: Path, line: str) -> None:
        try:
            with path.open("a", encoding="utf-8", newline="\n") as stream:
                stream.write(line + "\n")
        except OSError as error:
            raise OutputError(
                f"The run folder must be writable, but {path} is not: "
                f"{error.strerror or error}. Free some space; the same command goes on."
            ) from error

    def _check_same_run(self, recipe: Recipe) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise ConfigurationError(
                f"The run folder must be a folder, but {self.path} is a file. Choose another --out."
            )
        if not self._recipe_file.exists():
            if any(self.path.iterdir()):
                raise ConfigurationError(
                    f"The run folder must be new or hold this run, but {self.path} holds something "
                    "else (it has no recipe.toml). Choose another --out."
                )
            return
        earlier = parse_toml(read_bytes(self._recipe_file), str(self._recipe_file))
        differing = _differing_keys(earlier, parse_toml(self.recipe_toml.encode(), "recipe"))
        fixed = {"training.max_steps"} if recipe.training.schedule == "linear" else set()
        changed = sorted(differing - (MAY_CHANGE - fixed))
        if changed:
            raise ConfigurationError(
                f"A run can only be continued with the same recipe, but {', '.join(changed)} "
                f"{'differs' if len(changed) == 1 else 'differ'} from {self._recipe_file}. "
                "Choose another --out for a new run."
            )


def _differing_keys(first: Mapping[str, Any], second: Mapping[str, Any]) -> set[str]:
    flat = [
        {f"{section}.{key}": value for section in values for key, value in values[section].items()}
        for values in (first, second)
    ]
    return {key for key in flat[0].keys() | flat[1].keys() if flat[0].get(key) != flat[1].get(key)}
