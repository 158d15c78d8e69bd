"""Training: loss, schedule, loop, checkpoints."""

from pellucid.train.loop import Trainer, TrainingSummary, train
from pellucid.train.loss import smoothed_cross_entropy
from pellucid.train.schedule import learning_rate

__all__ = ["Trainer", "TrainingSummary", "learning_rate", "smoothed_cross_entropy", "train"]
