"""When a training stops, whether it has learned anything, and the result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from pellucid.config import TrainingConfig
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.training.run.checkpoint import TrainingState

FAR = 2.0
"""Factor above the loss of guessing at which weights must have been driven astray.

Random weights have a loss a little above that of guessing.
"""

POOR_BLEU = 10
"""BLEU of whole sentences below which a translation is hardly of use."""

STILL_IMPROVING = 0.8
"""The share of all steps after which the best model must come for more training to help."""

FEW_PAIRS = 20_000
"""Pairs below which more text is advised."""


@dataclass(frozen=True)
class TrainingSummary:
    """The result of a finished training.

    Attributes:
        bundle: the folder of the best model.
        steps: updates made.
        best_bleu: its validation BLEU.
        best_step: the step of that validation.
        seconds: training time, over all resumptions.
        best_chrf: its validation chrF.
        best_loss: its validation loss.
    """

    bundle: Path
    steps: int
    best_bleu: float
    best_step: int
    seconds: float
    best_chrf: float
    best_loss: float | None

    @classmethod
    def of(cls, bundle: Path, state: TrainingState) -> TrainingSummary:
        """Summarize a state, with the folder of the best model."""
        return cls(
            bundle,
            steps=state.step,
            best_bleu=state.best_bleu,
            best_step=state.best_step,
            seconds=state.seconds,
            best_chrf=state.best_chrf,
            best_loss=state.best_loss,
        )


def has_reached_limit(training: TrainingConfig, state: TrainingState) -> bool:
    """Tell whether ``max_steps`` or ``max_minutes`` is reached."""
    is_late = training.max_minutes is not None and 0 < state.stop_at <= state.seconds
    return state.step >= training.max_steps or is_late


def is_done(training: TrainingConfig, state: TrainingState) -> bool:
    """Tell whether training stops: at a limit, or after ``patience`` validations without a gain."""
    limit = training.patience
    has_lost_patience = limit != "none" and limit <= state.validations_without_better
    return has_reached_limit(training, state) or has_lost_patience


def share_done(training: TrainingConfig, state: TrainingState) -> float:
    """Estimate the share of training that is done, from 0 to 1, by the nearer limit."""
    share = state.step / training.max_steps
    if training.max_minutes:
        share = max(share, state.seconds / (state.stop_at or 60 * training.max_minutes))
    return min(1.0, share)


def is_far_above_guessing(loss: float, tokenizer: Tokenizer) -> bool:
    """Tell whether a loss is far above that of guessing, each token as likely as the others."""
    return math.isfinite(loss) and loss > FAR * _loss_of_guessing(tokenizer)


def has_learned_nothing(state: TrainingState, tokenizer: Tokenizer) -> bool:
    """Tell whether the best model and the last updates are both far above guessing.

    A high loss on validation text only is another fault: the text is unlike the training text.
    """
    losses = (state.training_loss, state.best_loss or 0.0)
    return all(is_far_above_guessing(loss, tokenizer) for loss in losses)


def describe_guessing(tokenizer: Tokenizer) -> str:
    """Describe a validation loss that is far above guessing."""
    return (
        f"             The loss is far above that of guessing, {_loss_of_guessing(tokenizer):.1f}: "
        "so far the model has learned nothing of the validation text."
    )


def describe_failure(
    state: TrainingState, training: TrainingConfig, tokenizer: Tokenizer, rate: float
) -> str:
    """Describe a training that learned nothing, and what to do.

    Args:
        state: at the end.
        training: the settings.
        tokenizer: of the model.
        rate: the peak of the learning rate.
    """
    rates = f"training.learning_rate (its peak was {rate:g})"
    if training.optimizer == "muon":
        rates += f" and training.muon_learning_rate ({training.muon_learning_rate:g})"
    return (
        f"The model must learn something, but its loss per token is {state.training_loss:,.1f} in "
        f"training and {state.best_loss:,.1f} in validation, and guessing gives "
        f"{_loss_of_guessing(tokenizer):.1f}. Train again in another folder (-o), with a lower "
        f"{rates}."
    )


def describe_next(training: TrainingConfig, state: TrainingState, num_pairs: int) -> str:
    """Say what would make the model better, by what ended the run and by the size of its text.

    Args:
        training: the settings.
        state: at the end.
        num_pairs: pairs of training text.
    """
    has_planned_end = "max_steps" in state.course
    minutes = training.max_minutes or 0.0
    is_late = minutes > 0 and 0 < state.stop_at <= state.seconds
    how = f"steps help: --set training.max_steps={2 * training.max_steps} and another folder (-o)"
    if is_late or has_planned_end:
        other = " and another folder (-o)" if has_planned_end else ""
        how = f"minutes help: --minutes {4 * minutes:g}{other}"
    words = f"Next: validation still improved at the end, so more {how}, with the same command."
    if state.best_step < STILL_IMPROVING * state.step:
        words = "Next: validation improved no more, so more text helps more than more time."
    if 0 <= state.best_bleu < POOR_BLEU:
        words += f" BLEU below {POOR_BLEU} means that most translations are wrong."
    if num_pairs < FEW_PAIRS:
        words += f" {num_pairs:,} pairs are few: tens of thousands are usual."
    return words


def _loss_of_guessing(tokenizer: Tokenizer) -> float:
    return math.log(tokenizer.target_vocabulary_size)
