"""When a training stops, as a function of its settings and its state."""

from __future__ import annotations

from pellucid.config import TrainingConfig
from pellucid.train.run.checkpoint import TrainingState


def has_reached_limit(training: TrainingConfig, state: TrainingState) -> bool:
    """Tell whether ``max_steps`` or ``max_minutes`` is reached."""
    limit_seconds = training.max_minutes * 60
    return state.step >= training.max_steps or 0 < limit_seconds <= state.seconds


def is_done(training: TrainingConfig, state: TrainingState) -> bool:
    """Tell whether training stops: at a limit, or after ``patience`` validations without a gain."""
    has_lost_patience = 0 < training.patience <= state.validations_without_better
    return has_reached_limit(training, state) or has_lost_patience


def share_done(training: TrainingConfig, state: TrainingState) -> float:
    """Estimate the share of training that is done, from 0 to 1, by the nearer limit."""
    share = state.step / training.max_steps
    if training.max_minutes:
        share = max(share, state.seconds / (60 * training.max_minutes))
    return min(1.0, share)
