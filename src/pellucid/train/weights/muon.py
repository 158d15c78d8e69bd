"""Muon: momentum whose matrices are made orthogonal before they are applied."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from pellucid.kernels import WIDTH_STEP, Kernels

__all__ = ["Muon", "orthogonalize"]

MOMENTUM = 0.95
STEPS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the quintic: they bring singular values near 1 fast, and leave them within 0.7 to 1.2."""

NUMBERS_AT_ONCE = 2**26
"""How much goes through the iteration together."""

NUMBERS_AT_ONCE_ON_CPU = 2**18
"""The same on a processor, whose cache holds little."""


class Muon:
    r"""Moves matrices by their orthogonalized momentum.

    $$M ← μM + G, \quad W ← (1 - ηλ)W - η \sqrt{\max(1, m/n)} \, \text{orthogonal}(G + μM)$$

    Some matrices of one shape go through the iteration together, in bfloat16 only where the device
    is fast at it: PyTorch's own Muon takes them one by one in bfloat16, which other processors
    emulate, 26 times slower than float32 and more.

    The factor of the rate makes the change of what a matrix gives, for inputs of one size, about
    the same whatever its shape, so that a rate found on a small model serves a large one.

    Args:
        matrices: by name; each ``(m, n)``, its gradient in ``.grad``.
        weight_decay: λ.
        dtype: of the products of the iteration.
        kernels: the package's own, for that type; None for PyTorch's.

    Source:
        Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"; the factor:
        Bernstein and Newhouse 2024, "Old Optimizer, New Norm".
    """

    def __init__(
        self,
        matrices: Mapping[str, Tensor],
        *,
        weight_decay: float,
        dtype: torch.dtype,
        kernels: Kernels | None = None,
    ) -> None:
        self._weight_decay = weight_decay
        self._dtype = dtype
        self._kernels = kernels
        self._matrices = matrices
        self._momentum = {name: torch.zeros_like(matrix) for name, matrix in matrices.items()}
        shapes: dict[torch.Size, list[str]] = {}
        for name, matrix in matrices.items():
            shapes.setdefault(matrix.shape, []).append(name)
        self._stacks: list[list[str]] = []
        for shape, names in shapes.items():
            is_on_cpu = matrices[names[0]].device.type == "cpu"
            takes_few = is_on_cpu and not self._has_kernels_for(shape)
            at_once = NUMBERS_AT_ONCE_ON_CPU if takes_few else NUMBERS_AT_ONCE
            number = max(1, at_once // shape.numel())
            self._stacks += [names[at : at + number] for at in range(0, len(names), number)]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Make one update; matrices without a gradient stay."""
        for names in self._stacks:
            moved = [name for name in names if self._matrices[name].grad is not None]
            if not moved:
                continue
            weights = [self._matrices[name] for name in moved]
            gradients = [weight.grad for weight in weights if weight.grad is not None]
            momenta = [self._momentum[name] for name in moved]
            torch._foreach_mul_(momenta, MOMENTUM)
            torch._foreach_add_(momenta, gradients)
            ahead = torch._foreach_add(gradients, momenta, alpha=MOMENTUM)
            directions = self._orthogonalize(torch.stack(ahead)).unbind()
            num_rows, num_columns = weights[0].shape
            size = rate * math.sqrt(max(1.0, num_rows / num_columns))
            if self._weight_decay:
                torch._foreach_mul_(weights, 1 - rate * self._weight_decay)
            torch._foreach_add_(weights, directions, alpha=-size)

    def _has_kernels_for(self, shape: torch.Size) -> bool:
        return self._kernels is not None and not any(size % WIDTH_STEP for size in shape[-2:])

    def _orthogonalize(self, matrices: Tensor) -> Tensor:
        if self._kernels is None or not self._has_kernels_for(matrices.shape):
            return orthogonalize(matrices, self._dtype)
        return self._kernels.orthogonalize(matrices, COEFFICIENTS)

    def tensors(self) -> dict[str, Tensor]:
        """The momentum by name."""
        return {f"momentum.{name}": momentum for name, momentum in self._momentum.items()}


def orthogonalize(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    r"""Bring the singular values of matrices near 1, and leave their directions.

    Newton and Schulz's iteration with a quintic: $X ← aX + (bA + cA^2)X$ with $A = XX^T$, from the
    matrix over its Frobenius norm.

    Args:
        matrices: ``(number, m, n)``.
        dtype: of the products.

    Returns:
        As many, in the type that they came in.
    """
    a, b, c = COEFFICIENTS
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if is_tall else matrices
    x = (x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)).to(dtype)
    for _ in range(STEPS):
        square = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    x = x.to(matrices.dtype)
    return x.transpose(1, 2) if is_tall else x
