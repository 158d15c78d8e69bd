"""Curves and translations for TensorBoard, if a recipe sets ``training.tensorboard``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pellucid.errors import ConfigurationError, OutputError

FOLDER = "tensorboard"
NOT_SHOWN = frozenset({"step", "kind"})


def require_tensorboard() -> None:
    """Make sure that the optional package is installed, before training starts.

    Raises:
        ConfigurationError: it is not installed.
    """
    if find_spec("tensorboard") is None:
        raise ConfigurationError(
            "training.tensorboard = true needs the package tensorboard, which is not installed. "
            "Install it with: pip install 'pellucid[tensorboard]', or set training.tensorboard to "
            "false."
        )


class TensorboardWriter:
    """Writes the lines of ``metrics.jsonl`` and ``samples.jsonl`` into ``RUN/tensorboard`` too.

    Each is written at once, so that nothing is lost if training is killed.

    Args:
        run: the run folder.
        purge_step: the first step of this start. TensorBoard no longer shows what an earlier start
            wrote about it and later ones.

    Raises:
        ConfigurationError: the optional package is not installed.
        OutputError: the folder cannot be written to.
    """

    def __init__(self, run: Path, *, purge_step: int = 1) -> None:
        require_tensorboard()
        from torch.utils.tensorboard import SummaryWriter

        self._folder = run / FOLDER
        with self._writing():
            self._writer = SummaryWriter(str(self._folder), purge_step=purge_step)

    def add_metrics(self, kind: str, values: Mapping[str, Any]) -> None:
        """Show one line of ``metrics.jsonl``: a curve ``KIND/NAME`` for each of its numbers."""
        with self._writing():
            for name, value in values.items():
                if name not in NOT_SHOWN and isinstance(value, int | float):
                    self._writer.add_scalar(f"{kind}/{name}", value, values["step"])
            self._writer.flush()

    def add_sample(self, number: int, values: Mapping[str, Any]) -> None:
        """Show one line of ``samples.jsonl`` as text; ``number`` tells which sentence it is."""
        rows = (
            f"    {name}: {' '.join(str(values[name]).split())}"
            for name in ("source", "reference", "translation")
        )
        with self._writing():
            self._writer.add_text(f"samples/{number}", "\n".join(rows), values["step"])
            self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        with self._writing():
            self._writer.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(
                f"The TensorBoard folder must be writable, but {self._folder} is not: "
                f"{error.strerror or error}. Free some space; the same command continues the run."
            ) from error
