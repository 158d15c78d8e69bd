"""Training: loss, schedule, loop, checkpoints."""

from pellucid.train.fast.loss import smoothed_cross_entropy
from pellucid.train.loop import Trainer, TrainingSummary, train
from pellucid.train.weights.schedule import learning_rate

__all__ = ["Trainer", "TrainingSummary", "learning_rate", "smoothed_cross_entropy", "train"]
