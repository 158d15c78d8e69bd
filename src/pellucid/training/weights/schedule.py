"""Learning rate and dropout as functions of the step."""

from __future__ import annotations

import math

from pellucid.config import TrainingConfig
from pellucid.model import Dropout


def dropout_share(step: int, training: TrainingConfig) -> float:
    """Compute the share of its rates that dropout has at a step: from near 0 to 1 over its warm-up.

    Args:
        step: from 1.
        training: the length of the warm-up.

    Source:
        Morerio et al. 2017, "Curriculum Dropout"; here it rises linearly.
    """
    return min(1.0, step / max(1, training.dropout_warmup_steps))


def make_dropout(training: TrainingConfig, *, step: int, part: int) -> Dropout:
    """Make the dropout of one piece, a pure function of (seed, step, part)."""
    warmup = dropout_share(step, training)
    return Dropout(
        warmup * training.dropout,
        training.seed,
        step,
        part,
        attention_rate=warmup * training.attention_dropout,
        feed_forward_rate=warmup * training.feed_forward_dropout,
        token_rate=warmup * training.token_dropout,
        cut_rate=warmup * training.token_cut if training.r_drop else 0.0,
    )


def learning_rate(step: int, training: TrainingConfig, d_model: int) -> float:
    r"""Compute the learning rate of a step: it rises linearly, then falls.

    The paper's schedule falls with the inverse square root of the step:
    $$\text{rate} = d^{-0.5} \min(\text{step}^{-0.5}, \text{step} \cdot \text{warmup}^{-1.5})$$
    Its peak, at the end of the warm-up, is $(d \cdot \text{warmup})^{-0.5}$;
    a number in ``training.learning_rate`` sets another. ``linear`` and ``cosine`` (half a period)
    reach ``min_learning_rate`` at ``max_steps``; ``constant`` does not fall.

    Args:
        step: from 1.
        training: peak, warm-up, schedule.
        d_model: the model's width.

    Source:
        Vaswani et al. 2017, equation 3; cosine: Loshchilov and Hutter 2017, "SGDR".
    """
    peak = training.learning_rate
    if isinstance(peak, str):
        peak = 1 / math.sqrt(d_model * training.warmup_steps)
    return _rate(step, training, peak)


def muon_learning_rate(step: int, training: TrainingConfig) -> float:
    """Compute the learning rate of the matrices that Muon moves: same schedule, another peak."""
    return _rate(step, training, training.muon_learning_rate)


def _rate(step: int, training: TrainingConfig, peak: float) -> float:
    warmup = training.warmup_steps
    if step <= warmup:
        return peak * step / warmup
    if training.schedule == "constant":
        return peak
    if training.schedule == "inverse_square_root":
        return peak * math.sqrt(warmup / step)
    left = max(0.0, (training.max_steps - step) / max(1, training.max_steps - warmup))
    if training.schedule == "cosine":
        left = 0.5 - 0.5 * math.cos(math.pi * left)
    floor = min(peak, training.min_learning_rate)
    return floor + (peak - floor) * left
