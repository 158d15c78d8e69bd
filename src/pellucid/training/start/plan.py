"""The plan of a training: what it computes on, decided once, before the first update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.errors import ConfigurationError
from pellucid.machine.devices import choose_device
from pellucid.machine.hardware import choose_precision, reachable_memory
from pellucid.training.fast.kernels.kernel_model import KernelChoice, choose_kernels
from pellucid.training.run.checkpoint import TrainingState
from pellucid.training.update.memory_estimate import MemoryNeeds, count_parameters, require_memory
from pellucid.training.update.ranks import Ranks

TOKENS_A_PROCESS = 1000
"""Positions of a batch that a process should have at least: below, calls cost more than work."""

THREADS_A_PROCESS = {"float32": 1, "bfloat16": 2}
"""Threads that a process should have at least. In bfloat16 products are too short to pay for what
each process repeats, and two cores may share one multiplier."""


@dataclass(frozen=True)
class TrainingPlan:
    """What a training computes on.

    Attributes:
        device: the device that computes.
        precision: of the products.
        kernels: the package's kernels or PyTorch's, with the reason.
        processes: parts that every batch is cut into.
        ranks: processes that share the parts of every update.
        threads: processor threads, all ranks of this machine together.
        max_tokens_per_batch: positions of a batch on either side.
        memory_bytes: predicted peak of memory.
        available_bytes: memory that the device has; None if that is not known.
        is_budget_new: True if the batch budget was settled now, not by an earlier start of the run.
    """

    device: torch.device
    precision: Literal["float32", "bfloat16"]
    kernels: KernelChoice
    processes: int
    ranks: int
    threads: int
    max_tokens_per_batch: int
    memory_bytes: int
    available_bytes: int | None
    is_budget_new: bool
    has_few_shapes: bool = False

    @property
    def has_same_bits_on_any_threads(self) -> bool:
        """Whether an update's numbers are independent of the number of threads."""
        return self.kernels.kernels is not None and self.ranks == 1

    def note_in(self, state: TrainingState) -> None:
        """Keep in a run's state what a later start, maybe on another machine, must not change."""
        state.precision = self.precision
        state.processes = state.processes or self.processes
        state.kernels = self.kernels.description
        state.max_tokens_per_batch = self.max_tokens_per_batch
        state.has_few_shapes = self.has_few_shapes

    def to_record(self) -> Mapping[str, Any]:
        """Write the plan as what ``plan.json`` holds."""
        return {
            "device": str(self.device),
            "precision": self.precision,
            "kernels": self.kernels.description,
            "processes": self.processes,
            "ranks": self.ranks,
            "threads": self.threads,
            "max_tokens_per_batch": self.max_tokens_per_batch,
            "few_shapes": self.has_few_shapes,
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
    ranks: Ranks | None = None,
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
        ranks: the processes that will share every update.

    Raises:
        ConfigurationError: the device that was asked for does not exist, ranks cannot share the
            batches, or training does not fit into memory.
    """
    if ranks is not None and ranks.place and ":" in training.device:
        raise ConfigurationError(
            f"Every rank takes a GPU of its own, but training.device names one: {training.device}. "
            "Use 'cuda'."
        )
    device = choose_device(training.device)
    asked = "float32" if model.is_recurrent else training.precision
    precision = choose_precision(asked, device)
    if state.precision:
        # A later start must compute the same updates (decision 0014).
        precision = "bfloat16" if state.precision == "bfloat16" else "float32"
    kernels = choose_kernels(model, training, precision, device, has_output_bias=has_output_bias)
    has_kernels = kernels.kernels is not None
    ranks = ranks or Ranks()
    given = ranks.place.num_ranks if ranks.place else 1
    # Every rank must get a piece of each update.
    least = -(-given // training.accumulate)
    processes = max(1, state.processes)
    if not state.precision:
        processes = choose_processes(
            training, device, precision, has_kernels=has_kernels, least=least
        )
    _require_pieces(given, training.accumulate, processes)
    here = ranks.count(device, processes)
    if ranks.place:  # Each GPU has its own memory.
        here = 1 if device.type == "cuda" else ranks.place.num_local
    require_memory(model, training, device)
    needs = MemoryNeeds(
        model,
        training,
        num_weights=count_parameters(model, has_output_bias=has_output_bias),
        longest=longest,
        bytes_per_number=2 if precision == "bfloat16" else 4,
        processes=processes,
        ranks=here,
        has_kernels=has_kernels,
    )
    available = reachable_memory(device)
    budget = state.max_tokens_per_batch
    if not budget:
        needs, budget = _fit_into_memory(needs, available, least)
    return TrainingPlan(
        device,
        precision,
        kernels,
        needs.processes,
        ranks.count(device, needs.processes),
        threads=torch.get_num_threads(),
        max_tokens_per_batch=budget,
        memory_bytes=needs.predict(budget),
        available_bytes=available,
        is_budget_new=not state.max_tokens_per_batch,
        has_few_shapes=model.look_ahead_mask
        and _has_few_shapes(training, state, device, needs.processes),
    )


def _has_few_shapes(
    training: TrainingConfig, state: TrainingState, device: torch.device, processes: int
) -> bool:
    """Decide whether batches are filled up to a table of shapes; a run keeps its answer."""
    if state.precision:
        return state.has_few_shapes
    # Parts of a batch could have rows without a pair, and nothing else.
    is_fit = device.type == "cuda" and processes == 1
    return is_fit if training.shapes == "auto" else training.shapes == "few"


def choose_processes(
    training: TrainingConfig,
    device: torch.device,
    precision: Literal["float32", "bfloat16"],
    *,
    has_kernels: bool = False,
    least: int = 1,
) -> int:
    """Choose into how many parts a batch is cut: with ``auto`` a power of two.

    That is the number of processes with the shortest step. On the package's kernels that is one,
    whose threads share all expensive work. The estimate assumes that further threads do not shorten
    a third of a process's work (measured with tiny, float32 and two threads), and that its pairs
    are its share of all.

    Raises:
        ConfigurationError: a number is asked for that is no power of two.
    """
    asked = training.processes
    if asked != "auto":
        if asked & (asked - 1):
            raise ConfigurationError(
                f"training.processes must be a power of two (1, 2, 4, …), but is {asked}. Change "
                "it, or use 'auto'."
            )
        return asked
    numbers = [1]
    if device.type == "cpu" and not has_kernels:
        threads = torch.get_num_threads()
        enough = training.max_tokens_per_batch // TOKENS_A_PROCESS
        most = max(1, min(threads // THREADS_A_PROCESS[precision], enough))
        numbers = [1 << power for power in range(most.bit_length())]
    # The time of a step, in thirds: one that threads do not shorten, two that they share.
    return max(least, min(numbers, key=lambda n: (1 + 2 / (torch.get_num_threads() // n)) / n))


def _require_pieces(num_ranks: int, accumulate: int, processes: int) -> None:
    """Refuse ranks that cannot share an update's pieces."""
    if num_ranks & (num_ranks - 1):
        raise ConfigurationError(
            f"The number of ranks must be a power of two (1, 2, 4, …), but is {num_ranks}. Start "
            "more or fewer."
        )
    if num_ranks > accumulate * processes:
        raise ConfigurationError(
            f"Every rank must get a piece of each update, but {num_ranks} ranks share "
            f"{accumulate * processes} (training.accumulate times training.processes). Start fewer "
            f"ranks, or train in another folder (-o) with --set training.accumulate={num_ranks}."
        )


def _fit_into_memory(
    needs: MemoryNeeds, available: int | None, least: int
) -> tuple[MemoryNeeds, int]:
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
        while needs.processes > least and needs.predict(training.max_tokens_per_batch) > available:
            fewer = needs.processes // 2
            needs = replace(needs, processes=fewer, ranks=min(needs.ranks, fewer))
    budget = needs.fitting_budget(available)
    least = needs.of_passes(budget)
    if least > available:
        raise ConfigurationError(
            f"Training must fit into memory, but the text's longest sentence, of {needs.longest} "
            f"tokens, takes {least / 2**30:,.1f} GiB in this model, and {available / 2**30:,.1f} "
            "GiB are free. Choose smaller sizes in [model], or a smaller data.max_pair_length."
        )
    return needs, budget
