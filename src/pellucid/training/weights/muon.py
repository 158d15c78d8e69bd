"""Muon: an optimizer that makes the momentum of matrices orthogonal before it applies it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from pellucid.native.kernels.kernels import WIDTH_STEP, Kernels

MOMENTUM = 0.95
ITERATIONS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the quintic polynomial: they bring singular values fast to between 0.7 and 1.2."""

STACK_SIZE = 2**26
"""The most numbers of matrices that go through the iteration together."""

STACK_SIZE_ON_CPU = 2**18
"""The same on a processor, so that they stay in its cache."""


class Muon:
    r"""Moves matrices along their orthogonalized momentum.

    $$M ← μM + G, \quad W ← (1 - ηλ)W - η \sqrt{\max(1, m/n)} \, \text{orthogonal}(G + μM)$$

    Matrices of one shape go through the iteration together, in bfloat16 only on devices that are
    fast at it. PyTorch's own Muon takes them one by one, always in bfloat16; processors without
    instructions for it emulate it, at least 26 times slower than float32.

    The factor of the rate makes the change of a matrix's output, for inputs of one size, about the
    same for all shapes, so that a rate found on a small model also suits a large one.

    Args:
        matrices: by name; each ``(m, n)``, its gradient in ``.grad``.
        weight_decay: λ.
        dtype: of the products in the iteration.
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
            stack_size = STACK_SIZE_ON_CPU if takes_few else STACK_SIZE
            number = max(1, stack_size // shape.numel())
            self._stacks += [names[at : at + number] for at in range(0, len(names), number)]

    @torch.no_grad()
    def step(self, rate: float | Tensor, is_finite: Tensor | None = None) -> None:
        """Make one update; matrices without a gradient are not changed.

        Args:
            rate: the learning rate.
            is_finite: on a device, whether there is to be an update: without one the rate must be
                0, and the momentum stays.
        """
        for names in self._stacks:
            moved = [name for name in names if self._matrices[name].grad is not None]
            if not moved:
                continue
            weights = [self._matrices[name] for name in moved]
            gradients = [weight.grad for weight in weights if weight.grad is not None]
            momenta = [self._momentum[name] for name in moved]
            kept: float | Tensor = MOMENTUM
            if is_finite is not None:
                gradients = list(torch.where(is_finite, torch.stack(gradients), 0).unbind())
                kept = torch.where(is_finite, MOMENTUM, 1.0)
            torch._foreach_mul_(momenta, kept)
            torch._foreach_add_(momenta, gradients)
            # Nesterov momentum: one step ahead of the momentum itself.
            ahead = torch._foreach_add(gradients, momenta, alpha=MOMENTUM)
            directions = self._orthogonalize(torch.stack(ahead))
            num_rows, num_columns = weights[0].shape
            size = rate * math.sqrt(max(1.0, num_rows / num_columns))
            if self._weight_decay:
                torch._foreach_mul_(weights, 1 - rate * self._weight_decay)
            if isinstance(size, Tensor):
                torch._foreach_sub_(weights, (directions * size).unbind())
            else:
                torch._foreach_add_(weights, directions.unbind(), alpha=-size)

    def _has_kernels_for(self, shape: torch.Size) -> bool:
        return self._kernels is not None and not any(size % WIDTH_STEP for size in shape[-2:])

    def _orthogonalize(self, matrices: Tensor) -> Tensor:
        if self._kernels is None or not self._has_kernels_for(matrices.shape):
            return orthogonalize(matrices, self._dtype)
        return self._kernels.orthogonalize(matrices, COEFFICIENTS)

    def tensors(self) -> dict[str, Tensor]:
        """Give the momentum by name."""
        return {f"momentum.{name}": momentum for name, momentum in self._momentum.items()}


def orthogonalize(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    r"""Bring the singular values of matrices near 1, and keep their singular vectors.

    The Newton-Schulz iteration with a quintic polynomial: $X ← aX + (bA + cA^2)X$ with $A = XX^T$,
    starting from the matrix divided by its Frobenius norm.

    Args:
        matrices: ``(number, m, n)``.
        dtype: of the products.

    Returns:
        The same shape and type.
    """
    a, b, c = COEFFICIENTS
    # The products are smaller with the rows as the shorter side.
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if is_tall else matrices
    x = (x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)).to(dtype)
    for _ in range(ITERATIONS):
        square = x @ x.transpose(1, 2)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    x = x.to(matrices.dtype)
    return x.transpose(1, 2) if is_tall else x
