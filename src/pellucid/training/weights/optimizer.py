"""Optimizers: the paper's Adam, AdamW, and Muon; and the parts of a model that stay as they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from pellucid.config import TrainingConfig
from pellucid.errors import ConfigurationError, suggestion
from pellucid.native.kernels.kernels import WIDTH_STEP, Kernels
from pellucid.training.run.checkpoint import copy_saved


class Optimizer:
    """Moves a model's trained parameters along their float32 gradients.

    ``adam`` is the paper's. ``adamw`` also shrinks every matrix except embeddings by
    ``weight_decay`` times the rate. ``muon`` moves those matrices itself and leaves the rest
    (embeddings, norms, biases) to AdamW.

    Args:
        model: parameters that do not require a gradient are not changed.
        training: chooses the optimizer and its constants.
        precision: of Muon's products.
        kernels: the package's own, for that precision; None for PyTorch's.

    Source:
        Kingma and Ba 2015; Vaswani et al. 2017, section 5.3; Loshchilov and Hutter 2019,
        "Decoupled Weight Decay Regularization".
    """

    def __init__(
        self,
        model: nn.Module,
        training: TrainingConfig,
        precision: Literal["float32", "bfloat16"] = "float32",
        kernels: Kernels | None = None,
    ) -> None:
        self._named = {
            name: parameter
            for name, parameter in model.named_parameters()
            if parameter.requires_grad
        }
        matrices = {name: p for name, p in self._named.items() if is_inner_matrix(name, p)}
        others = {name: p for name, p in self._named.items() if name not in matrices}
        self._muon: Muon | None = None
        if training.optimizer == "muon":
            dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
            self._muon = Muon(
                matrices, weight_decay=training.weight_decay, dtype=dtype, kernels=kernels
            )
            groups = [{"params": list(others.values()), "weight_decay": 0.0}]
        else:
            decay = 0.0 if training.optimizer == "adam" else training.weight_decay
            groups = [
                {"params": list(matrices.values()), "weight_decay": decay},
                {"params": list(others.values()), "weight_decay": 0.0},
            ]
        self._adam = torch.optim.AdamW(
            [group for group in groups if group["params"]] or [{"params": []}],
            betas=(training.beta1, training.beta2),
            eps=training.adam_epsilon,
            fused=True,
        )
        # Made here and not by the first step, so that every checkpoint holds the whole state. The
        # fused update needs its step counts on the device of the weights.
        self._moved_by_adam = others if self._muon is not None else self._named
        for parameter in self._moved_by_adam.values():
            self._adam.state[parameter] = {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }

    def step_if(self, is_finite: Tensor, rate: Tensor, muon_rate: Tensor) -> None:
        """Do as `step` does, or nothing, without asking the device which of the two."""
        # The fused update takes this from scalers of gradients, which skip updates alike.
        adam: Any = self._adam
        adam.found_inf = (~is_finite).float()
        # Before it is recorded it runs a few times as it is, which PyTorch would warn about.
        adam._warned_capturable_if_run_uncaptured = True
        for group in self._adam.param_groups:
            group["lr"] = rate
            group["capturable"] = True
        self._adam.step()
        if self._muon is not None:
            self._muon.step(muon_rate * is_finite, is_finite)

    def step(self, rate: float, muon_rate: float) -> None:
        """Make one update at these rates; parameters without a gradient are not changed."""
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.step()
        if self._muon is not None:
            self._muon.step(muon_rate)

    def gradient_norm(self) -> Tensor:
        """Compute the length of the whole gradient, a scalar."""
        norms = torch._foreach_norm(self._gradients())
        norm: Tensor = torch.linalg.vector_norm(torch.stack(norms))
        return norm

    def clip_(self, norm: Tensor, limit: float) -> None:
        """Scale the gradient, whose length is ``norm``, down to ``limit`` if it is longer.

        Source:
            Pascanu et al. 2013, "On the difficulty of training Recurrent Neural Networks".
        """
        torch._foreach_mul_(self._gradients(), torch.clamp(limit / norm, max=1.0))

    def tensors(self) -> dict[str, Tensor]:
        """Give everything that the next update depends on, such as ``exp_avg.embedding.weight``."""
        found = {
            f"{key}.{name}": value
            for name, parameter in self._moved_by_adam.items()
            for key, value in self._adam.state[parameter].items()
        }
        return found if self._muon is None else found | self._muon.tensors()

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `tensors` gave.

        Raises:
            BundleError: it belongs to another model or optimizer.
        """
        copy_saved(self.tensors(), tensors, of="optimizer")

    def _gradients(self) -> list[Tensor]:
        return [p.grad for p in self._named.values() if p.grad is not None]


def is_inner_matrix(name: str, parameter: Tensor) -> bool:
    """Tell whether a weight is a matrix inside the layers, not an embedding or output table."""
    is_table = "embedding" in name or "positions" in name or name.startswith("output.")
    return parameter.dim() == 2 and not is_table


def freeze(model: nn.Module, beginnings: Sequence[str]) -> None:
    """Freeze the weights whose names begin with one of ``beginnings``.

    Raises:
        ConfigurationError: no name begins so, or nothing would be left to train.
    """
    named = dict(model.named_parameters())
    for beginning in beginnings:
        chosen = [name for name in named if f"{name}.".startswith(f"{beginning}.")]
        if not chosen:
            parts = {".".join(name.split(".")[:n]) for name in named for n in (1, 2, 3)}
            raise ConfigurationError(
                f"training.freeze must name parts of the model, but {beginning!r} does not exist. "
                + suggestion(beginning, sorted(parts))
            )
        for name in chosen:
            named[name].requires_grad_(False)
    if not any(parameter.requires_grad for parameter in named.values()):
        raise ConfigurationError(
            f"training.freeze must leave something to train, but {', '.join(beginnings)} is the "
            "whole model."
        )


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
