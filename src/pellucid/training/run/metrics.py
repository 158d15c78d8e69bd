"""Metrics and sample translations: write them into the run folder and for TensorBoard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pellucid.config import TrainingConfig
from pellucid.errors import ConfigurationError, OutputError, how_to_write
from pellucid.training.run.folder import RunFolder

FOLDER = "tensorboard"
NOT_SHOWN = frozenset({"step", "kind"})


def require_tensorboard() -> None:
    """Make sure that the optional package is installed, before training starts.

    Raises:
        ConfigurationError: it is not installed.
    """
    if find_spec("tensorboard") is None:
        raise ConfigurationError(
            "training.tensorboard needs the package tensorboard, which is not installed. Install "
            "it with: pip install 'pellucid[tensorboard]', or leave the option out."
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
                f"{error.strerror or error}. {how_to_write(error)}; the same command continues the "
                "run."
            ) from error


class MetricsWriter:
    """Writes what is measured into the run folder, and for TensorBoard if the recipe asks for it.

    Args:
        run: the folder.
        training: its ``tensorboard`` decides.
        step: the last step made; TensorBoard no longer shows later ones of an earlier start.

    Raises:
        OutputError: the folder of TensorBoard cannot be written to.
    """

    def __init__(self, run: RunFolder, training: TrainingConfig, step: int) -> None:
        self._run = run
        self._training = training
        self._tensorboard = self._open_tensorboard(step)

    def add(self, kind: str, values: Mapping[str, Any]) -> None:
        """Add one line of ``metrics.jsonl``."""
        self._run.add_metrics(kind, values)
        self._show(lambda tensorboard: tensorboard.add_metrics(kind, values))

    def add_sample(self, number: int, values: Mapping[str, Any]) -> None:
        """Add one line of ``samples.jsonl``; ``number`` tells which sentence it is."""
        self._run.add_sample(values)
        self._show(lambda tensorboard: tensorboard.add_sample(number, values))

    def rewind(self, step: int) -> None:
        """Remove steps after this one, which training went back to, from TensorBoard."""

        def reopen(tensorboard: TensorboardWriter) -> None:
            tensorboard.close()
            self._tensorboard = self._open_tensorboard(step)

        self._show(reopen)

    def _open_tensorboard(self, step: int) -> TensorboardWriter | None:
        if not self._training.log.tensorboard:
            return None
        return TensorboardWriter(self._run.path, purge_step=step + 1)

    def _show(self, show: Callable[[TensorboardWriter], None]) -> None:
        """Show something in TensorBoard, if wanted, until writing fails for the first time."""
        if self._tensorboard is None:
            return
        try:
            show(self._tensorboard)
        except OutputError as error:
            self._run.log(f"{error} Until then training continues without TensorBoard.")
            self._tensorboard = None
