"""Figures and sample translations, on their way to the run folder and to TensorBoard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pellucid.config import TrainingConfig
from pellucid.errors import OutputError
from pellucid.train.run.folder import RunFolder
from pellucid.train.run.tensorboard import TensorboardWriter

__all__ = ["Recorder"]


class Recorder:
    """Writes what is measured into the run folder, and into TensorBoard where that is asked for.

    Args:
        run: the folder.
        training: says whether TensorBoard is wanted.
        step: the last step made: what stands there of later ones is no longer shown.

    Raises:
        OutputError: the folder of TensorBoard cannot be written.
    """

    def __init__(self, run: RunFolder, training: TrainingConfig, step: int) -> None:
        self._run = run
        self._training = training
        self._board = self._new_board(step)

    def record(self, kind: str, values: Mapping[str, Any]) -> None:
        """Add one line of ``metrics.jsonl``."""
        self._run.record(kind, values)
        self._show(lambda board: board.record(kind, values))

    def sample(self, number: int, values: Mapping[str, Any]) -> None:
        """Add one line of ``samples.jsonl``; ``number`` says which sentence it is."""
        self._run.sample(values)
        self._show(lambda board: board.sample(number, values))

    def begin_anew(self, step: int) -> None:
        """Forget what TensorBoard shows after a step that was gone back to."""

        def anew(board: TensorboardWriter) -> None:
            board.close()
            self._board = self._new_board(step)

        self._show(anew)

    def _new_board(self, step: int) -> TensorboardWriter | None:
        if not self._training.tensorboard:
            return None
        return TensorboardWriter(self._run.path, purge_step=step + 1)

    def _show(self, show: Callable[[TensorboardWriter], None]) -> None:
        """Show something in TensorBoard, where it is asked for and could be written so far."""
        if self._board is None:
            return
        try:
            show(self._board)
        except OutputError as error:
            self._run.log(f"{error} Until then training goes on without TensorBoard.")
            self._board = None
