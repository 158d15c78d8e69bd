"""The learning rate as a function of the step."""

from __future__ import annotations

import math

from pellucid.config import TrainingConfig

__all__ = ["learning_rate"]


def learning_rate(step: int, training: TrainingConfig, d_model: int) -> float:
    r"""The paper's schedule: linear warm-up, then the inverse square root of the step.

    $$\text{rate} = d^{-0.5} \min(\text{step}^{-0.5}, \text{step} \cdot \text{warmup}^{-1.5})$$

    Its peak, at the end of the warm-up, is $(d \cdot \text{warmup})^{-0.5}$;
    ``training.learning_rate`` above 0 sets another peak for the same curve.

    Args:
        step: from 1.
        training: peak and warm-up.
        d_model: the model's width.

    Source:
        Vaswani et al. 2017, equation 3.
    """
    warmup = training.warmup_steps
    peak = training.learning_rate or 1 / math.sqrt(d_model * warmup)
    return peak * min(step / warmup, math.sqrt(warmup / step))
