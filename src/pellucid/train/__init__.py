"""Training: loss, schedule, loop, checkpoints. Names load at their first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.train.fast.loss import smoothed_cross_entropy
    from pellucid.train.loop import Trainer, TrainingSummary, train
    from pellucid.train.weights.schedule import learning_rate

__all__ = ["Trainer", "TrainingSummary", "learning_rate", "smoothed_cross_entropy", "train"]

_HOMES = {
    "Trainer": "pellucid.train.loop",
    "TrainingSummary": "pellucid.train.loop",
    "learning_rate": "pellucid.train.weights.schedule",
    "smoothed_cross_entropy": "pellucid.train.fast.loss",
    "train": "pellucid.train.loop",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return getattr(import_module(_HOMES[name]), name)
