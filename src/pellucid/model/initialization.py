"""The initial weights of a model, a pure function of the seed and each weight's name."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from pellucid.machine.randomness import generator


@torch.no_grad()
def initialize(model: nn.Module, seed: int) -> None:
    r"""Fill every weight in place.

    Matrices are Glorot-uniform, embeddings (and the output projection) normal with standard
    deviation $1/\sqrt{d}$, so that embeddings scaled by $\sqrt{d}$ and logits both start with
    variance 1. Gains are 1, biases 0.

    Source:
        Glorot and Bengio 2010; the embeddings as in the paper's own published code.
    """
    for name, parameter in model.named_parameters():
        parameter.copy_(_draw(name, parameter, seed))


def _draw(name: str, parameter: Tensor, seed: int) -> Tensor:
    # By name, because gains and biases are both vectors.
    if name.endswith("norm.weight"):
        return torch.ones_like(parameter)
    if parameter.dim() == 1:
        return torch.zeros_like(parameter)
    # A generator for each name, so that other layers change nothing: docs/decisions/0006.
    numbers = generator(seed, "initialization", name)
    shape = tuple(parameter.shape)
    if "embedding" in name or "positions" in name or name == "output.weight":
        drawn = numbers.standard_normal(shape) / math.sqrt(shape[1])
    else:
        bound = math.sqrt(6 / (shape[0] + shape[1]))
        drawn = numbers.uniform(-bound, bound, shape)
    # Drawn in float64, so that models of all types start from the same numbers, rounded.
    return torch.from_numpy(drawn).to(parameter.dtype)
