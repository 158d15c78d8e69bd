"""The plan of a training: what it computes on, decided once, before the first update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.errors import ConfigurationError
from pellucid.machine.hardware import choose_device, choose_precision, reachable_memory
from pellucid.train.fast.compiled import require_compiler
from pellucid.train.fast.kernels.model import KernelChoice, choose_kernels
from pellucid.train.run.checkpoint import TrainingState
from pellucid.train.update.memory import MemoryNeeds, count_weights, require_memory
from pellucid.train.update.processes import can_share, choose_processes


@dataclass(frozen=True)
class TrainingPlan:
    """What a training computes on.

    Attributes:
        device: the device that computes.
        precision: of the products.
        kernels: the package's kernels or PyTorch's, with the reason.
        processes: processes that share every batch.
        threads: processor threads, all processes together.
        max_tokens_per_batch: positions of a batch on either side.
        memory_bytes: predicted peak of memory.
        available_bytes: memory that the device has; None if that is not known.
        is_budget_new: True if the batch budget was settled now, not by an earlier start of the run.
    """

    device: torch.device
    precision: Literal["float32", "bfloat16"]
    kernels: KernelChoice
    processes: int
    threads: int
    max_tokens_per_batch: int
    memory_bytes: int
    available_bytes: int | None
    is_budget_new: bool

    @property
    def has_same_bits_on_any_threads(self) -> bool:
        """Whether an update's numbers are independent of the number of threads."""
        return self.kernels.kernels is not None and self.processes == 1

    def note_in(self, state: TrainingState) -> None:
        """Keep in a run's state what a later start, maybe on another machine, must not change."""
        state.precision = self.precision
        state.processes = state.processes or self.processes
        state.kernels = self.kernels.description
        state.max_tokens_per_batch = self.max_tokens_per_batch

    def to_record(self) -> Mapping[str, Any]:
        """Write the plan as what ``plan.json`` holds."""
        return {
            "device": str(self.device),
            "precision": self.precision,
            "kernels": self.kernels.description,
            "processes": self.processes,
            "threads": self.threads,
            "max_tokens_per_batch": self.max_tokens_per_batch,
            "memory_bytes": self.memory_bytes,
            "available_bytes": self.available_bytes,
        }


def make_plan(
    model: ModelConfig,
    training: TrainingConfig,
    state: TrainingState,
    *,
    longest: int,
    has_output_bias: bool = False,
) -> TrainingPlan:
    """Decide device, precision, kernels, processes and the positions of a batch.

    What the run has settled before (its ``state``) stays, so that a run continued on another
    machine computes the same updates; the rest follows the settings and the machine.

    Args:
        model: the sizes.
        training: the settings.
        state: how far the run is; it may hold an earlier plan.
        longest: tokens of the longest sentence.
        has_output_bias: whether the model's output has a bias.

    Raises:
        ConfigurationError: the device or a compiler that was asked for does not exist, processes
            cannot share the batches there, or training does not fit into memory.
    """
    device = choose_device(training.device)
    asked = "float32" if model.is_recurrent else training.precision
    precision = choose_precision(asked, device)
    if state.precision:
        precision = "bfloat16" if state.precision == "bfloat16" else "float32"
    kernels = choose_kernels(model, training, precision, device, has_output_bias=has_output_bias)
    has_kernels = kernels.kernels is not None
    processes = choose_processes(training, device, precision, has_kernels=has_kernels)
    if state.precision:
        processes = max(1, state.processes) if can_share(device) else 1
    require_memory(model, training, device)
    if training.compile:
        require_compiler(device)
    needs = MemoryNeeds(
        model,
        training,
        num_weights=count_weights(model, has_output_bias=has_output_bias),
        longest=longest,
        bytes_per_number=2 if precision == "bfloat16" else 4,
        processes=processes,
        has_kernels=has_kernels,
    )
    available = reachable_memory(device)
    budget = state.max_tokens_per_batch
    if not budget:
        needs, budget = _fit_into_memory(needs, available)
    return TrainingPlan(
        device,
        precision,
        kernels,
        needs.processes,
        threads=torch.get_num_threads(),
        max_tokens_per_batch=budget,
        memory_bytes=needs.predict(budget),
        available_bytes=available,
        is_budget_new=not state.max_tokens_per_batch,
    )


def _fit_into_memory(needs: MemoryNeeds, available: int | None) -> tuple[MemoryNeeds, int]:
    """Choose fewer processes if memory is short and the recipe leaves them open; then the budget.

    Returns:
        The needs with their final number of processes, and the recipe's tokens per batch, or
        fewer if those do not fit even so.

    Raises:
        ConfigurationError: not even the longest sentence by itself fits.
    """
    training = needs.training
    if available is None:
        return needs, training.max_tokens_per_batch
    if training.processes == "auto":
        while needs.processes > 1 and needs.predict(training.max_tokens_per_batch) > available:
            needs = replace(needs, processes=needs.processes - 1)
    budget = needs.fitting_budget(available)
    least = needs.of_passes(budget)
    if least > available:
        raise ConfigurationError(
            f"Training must fit into memory, but the text's longest sentence, of {needs.longest} "
            f"tokens, takes {least / 2**30:,.1f} GiB in this model, and {available / 2**30:,.1f} "
            "GiB are free. Choose smaller sizes in [model], or a smaller data.max_length."
        )
    return needs, budget
