"""The learning rate as a function of the step."""

from __future__ import annotations

import math

from pellucid.config import TrainingConfig

__all__ = ["learning_rate"]


def learning_rate(step: int, training: TrainingConfig, d_model: int) -> float:
    r"""Linear warm-up, then a fall.

    The paper's schedule falls with the inverse square root of the step:
    $$\text{rate} = d^{-0.5} \min(\text{step}^{-0.5}, \text{step} \cdot \text{warmup}^{-1.5})$$
    Its peak, at the end of the warm-up, is $(d \cdot \text{warmup})^{-0.5}$;
    ``training.learning_rate`` above 0 sets another. ``linear`` falls to zero at ``max_steps``.

    Args:
        step: from 1.
        training: peak, warm-up, schedule.
        d_model: the model's width.

    Source:
        Vaswani et al. 2017, equation 3.
    """
    warmup = training.warmup_steps
    peak = training.learning_rate or 1 / math.sqrt(d_model * warmup)
    if step <= warmup:
        return peak * step / warmup
    if training.schedule == "linear":
        left = (training.max_steps - step) / max(1, training.max_steps - warmup)
        return peak * max(0.0, left)
    return peak * math.sqrt(warmup / step)
