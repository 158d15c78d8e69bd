"""Muon: momentum whose matrices are made orthogonal before they are applied."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from pellucid.errors import BundleError

__all__ = ["Muon", "orthogonalize"]

MOMENTUM = 0.95
STEPS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the quintic: they bring singular values near 1 fast, and leave them within 0.7 to 1.2."""


class Muon:
    r"""Moves matrices by their orthogonalized momentum.

    $$M ← μM + G, \quad W ← (1 - ηλ)W - η \sqrt{\max(1, m/n)} \, \text{orthogonal}(G + μM)$$

    Matrices of one shape go through the iteration together, in float32: PyTorch's own Muon takes
    them one by one in bfloat16, which processors without it emulate.

    Args:
        matrices: by name; each ``(m, n)``, its gradient in ``.grad``.
        weight_decay: λ.

    Source:
        Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".
    """

    def __init__(self, matrices: Mapping[str, Tensor], *, weight_decay: float) -> None:
        self._weight_decay = weight_decay
        self._shapes: dict[torch.Size, list[str]] = {}
        for name, matrix in matrices.items():
            self._shapes.setdefault(matrix.shape, []).append(name)
        self._matrices = matrices
        self._momentum = {name: torch.zeros_like(matrix) for name, matrix in matrices.items()}

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Make one update; matrices without a gradient stay."""
        for shape, names in self._shapes.items():
            moved = [name for name in names if self._matrices[name].grad is not None]
            if not moved:
                continue
            weights = [self._matrices[name] for name in moved]
            gradients = [weight.grad for weight in weights if weight.grad is not None]
            momenta = [self._momentum[name] for name in moved]
            torch._foreach_mul_(momenta, MOMENTUM)
            torch._foreach_add_(momenta, gradients)
            ahead = torch._foreach_add(gradients, momenta, alpha=MOMENTUM)
            directions = orthogonalize(torch.stack(ahead)).unbind()
            size = rate * math.sqrt(max(1.0, shape[0] / shape[1]))
            if self._weight_decay:
                torch._foreach_mul_(weights, 1 - rate * self._weight_decay)
            torch._foreach_add_(weights, directions, alpha=-size)

    def tensors(self) -> dict[str, Tensor]:
        """The momentum by name."""
        return {f"momentum.{name}": momentum for name, momentum in self._momentum.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Take the momentum back; what else there is is returned.

        Raises:
            BundleError: a matrix is missing or has another shape.
        """
        left = dict(tensors)
        for name, momentum in self._momentum.items():
            saved = left.pop(f"momentum.{name}", None)
            if saved is None or saved.shape != momentum.shape:
                raise BundleError(
                    f"A checkpoint must hold the momentum of {name} for Muon, but does not."
                )
            momentum.copy_(saved)
        return left


def orthogonalize(matrices: Tensor) -> Tensor:
    r"""Bring the singular values of matrices near 1, and leave their directions.

    Newton and Schulz's iteration with a quintic: $X ← aX + (bA + cA^2)X$ with $A = XX^T$, from the
    matrix over its Frobenius norm.

    Args:
        matrices: ``(number, m, n)``.
    """
    a, b, c = COEFFICIENTS
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if is_tall else matrices
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)
    for _ in range(STEPS):
        square = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.transpose(1, 2) if is_tall else x
