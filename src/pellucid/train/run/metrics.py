"""Metrics and sample translations: write them into the run folder and for TensorBoard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pellucid.config import TrainingConfig
from pellucid.errors import OutputError
from pellucid.train.run.folder import RunFolder
from pellucid.train.run.tensorboard import TensorboardWriter


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
        if not self._training.tensorboard:
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
