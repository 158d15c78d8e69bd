"""What a person sees while a model trains."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["TrainingProgress"]


class TrainingProgress:
    """A live bar on a terminal; nothing where standard error is no terminal.

    The bar fills by the nearer of the two limits, steps and minutes.

    Args:
        is_wanted: False shows nothing.
    """

    def __init__(self, *, is_wanted: bool) -> None:
        self._bar: Progress | None = None
        if is_wanted and sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("step {task.fields[step]}"),
                BarColumn(),
                TextColumn("loss {task.fields[loss]:.3f}"),
                TextColumn("{task.fields[speed]:,.0f} tokens/s"),
                TextColumn("BLEU {task.fields[bleu]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(
                "train", total=1.0, step=0, loss=float("nan"), speed=0.0, bleu="–"
            )

    def __enter__(self) -> TrainingProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, share: float, *, step: int, loss: float, speed: float, bleu: float) -> None:
        """Show where training is; ``share`` of all work is done."""
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=share,
                step=step,
                loss=loss,
                speed=speed,
                bleu=f"{bleu:.1f}" if bleu >= 0 else "–",
            )
