"""Training: loss, schedule, loop, checkpoints."""

from pellucid.train.checkpoint import TrainingState, load_newest_checkpoint, save_checkpoint
from pellucid.train.loop import Trainer, TrainingSummary, train
from pellucid.train.loss import smoothed_cross_entropy
from pellucid.train.schedule import learning_rate

__all__ = [
    "Trainer",
    "TrainingState",
    "TrainingSummary",
    "learning_rate",
    "load_newest_checkpoint",
    "save_checkpoint",
    "smoothed_cross_entropy",
    "train",
]
