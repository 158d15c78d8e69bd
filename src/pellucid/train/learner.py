"""What learns: model, optimizer, average and how far they are; saved and restored as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.config import BundleConfig, LanguagesConfig, ModelConfig, Recipe
from pellucid.data import Batch
from pellucid.errors import ConfigurationError, TrainingError
from pellucid.hardware import choose_device, choose_precision, reachable_memory
from pellucid.model import Transformer, initialize
from pellucid.train.fast.compiled import require_compiler
from pellucid.train.fast.kernels.model import KernelChoice, choose_kernels
from pellucid.train.plain import Updated
from pellucid.train.run.checkpoint import LoadedCheckpoint, TrainingState
from pellucid.train.start.prepare import PreparedData
from pellucid.train.update.memory import (
    fitting_budget,
    memory_of_passes,
    predict_memory,
    require_memory,
)
from pellucid.train.update.processes import can_share, choose_processes
from pellucid.train.update.step import Updater
from pellucid.train.weights.averaging import Averaging
from pellucid.train.weights.freeze import freeze
from pellucid.train.weights.optimizer import Optimizer
from pellucid.train.weights.schedule import learning_rate, muon_learning_rate

__all__ = ["Learner"]


class _Circumstances(TypedDict):
    """Arguments that predictions of memory have in common."""

    longest: int
    bytes_per_number: int
    processes: int
    is_on_cpu: bool
    has_kernels: bool


class Learner:
    """Model, optimizer, average and state of one run.

    Args:
        recipe: everything about the run.
        prepared: its data, for the sizes of the vocabularies.
        start: the model to start from, instead of random weights.

    Raises:
        ConfigurationError: the device, a compiler that is asked for or a frozen part does not
            exist, processes cannot share the batches there, or the weights do not fit.
    """

    def __init__(self, recipe: Recipe, prepared: PreparedData, start: Bundle | None) -> None:
        self.training = recipe.training
        self._pad_to = recipe.data.pad_to
        self.tokenizer = prepared.tokenizer
        self.config = _bundle_config(recipe, prepared)
        self.device = choose_device(self.training.device)
        self.precision = choose_precision(self.training.precision, self.device)
        self.kernels = self._choose_kernels(start)
        has_kernels = self.kernels.kernels is not None
        self.processes = choose_processes(
            self.training, self.device, self.precision, has_kernels=has_kernels
        )
        require_memory(self.config.model, self.training, self.device)
        if self.training.compile:
            require_compiler(self.device)
        self._prepared = prepared
        self._start = start
        self._updater: Updater | None = None
        self.state = TrainingState()
        self.restore(None)

    def restore(self, checkpoint: LoadedCheckpoint | None) -> None:
        """Become what a checkpoint holds; with None, what training starts from."""
        self.close()
        for name in ("model", "optimizer", "averaging"):  # Never two at a time.
            self.__dict__.pop(name, None)
        training = self.training
        start = self._start
        has_bias = start is not None and start.model.output_bias is not None
        self.model = Transformer(self.config.model, has_output_bias=has_bias)
        if checkpoint is not None:
            self.model.load_state_dict(checkpoint.weights)
        elif start is not None:
            self.model.load_state_dict(start.model.state_dict())
        else:
            initialize(self.model, training.seed)
        freeze(self.model, training.freeze)
        self.model.to(self.device)
        self.state = TrainingState() if checkpoint is None else checkpoint.state
        if self.state.precision:
            # A run keeps precision and processes on another machine.
            self.precision = "bfloat16" if self.state.precision == "bfloat16" else "float32"
            self.processes = max(1, self.state.processes) if can_share(self.device) else 1
            self.kernels = self._choose_kernels(start)
        self.optimizer = Optimizer(self.model, training, self.precision, self.kernels.kernels)
        self.averaging = Averaging(self.model, training)
        if checkpoint is not None:
            self.optimizer.restore(checkpoint.tensors["optimizer"])
            self.averaging.restore(checkpoint.tensors.get("averaging", {}))

    def note_kernels(self, say: Callable[[str], None]) -> None:
        """Keep what the passes run on, and say where a run goes on with something else."""
        now = self.kernels.words
        if self.state.kernels not in ("", now):
            say(
                f"So far this run had {self.state.kernels}, from here on it has {now}: the last "
                "digits of its numbers are not those that they would have been."
            )
        self.state.kernels = now

    def start(self) -> None:
        """Start the processes that share the batches, unless they run.

        Raises:
            PellucidError: one could not start.
        """
        self._ready_updater().start()

    def close(self) -> None:
        """End them; they start again when they are needed."""
        if self._updater is not None:
            self._updater.close()
        self._updater = None

    def tensors(self) -> dict[str, Mapping[str, Tensor]]:
        """What a checkpoint holds besides the weights."""
        return {"optimizer": self.optimizer.tensors(), "averaging": self.averaging.tensors()}

    @property
    def rates(self) -> tuple[float, float]:
        """The learning rate of the last update, and Muon's."""
        step, factor = max(1, self.state.step), self.state.rate_factor
        return (
            factor * learning_rate(step, self.training, self.config.model.d_model),
            factor * muon_learning_rate(step, self.training),
        )

    def update(self, batches: Sequence[Batch]) -> Updated:
        """Go one step on."""
        state = self.state
        state.step += 1
        rate, muon_rate = self.rates
        updated = self._ready_updater().update(state.step, batches, rate=rate, muon_rate=muon_rate)
        if updated.was_made:
            self.averaging.update()
            state.target_tokens += updated.num_target_tokens
            state.unlogged_tokens += updated.num_target_tokens
            state.unlogged_loss += updated.loss * updated.num_target_tokens
            state.skipped_in_a_row = 0
        else:
            state.skipped_updates += 1
            state.skipped_in_a_row += 1
        return updated

    def require_numbers(self) -> None:
        """Make sure that all weights are numbers, so that nothing else is judged or saved.

        Raises:
            TrainingError: an update was so large that some no longer are.
        """
        for name, parameter in self.model.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                raise TrainingError(
                    f"Weights must be numbers, but some of {name} are none after step "
                    f"{self.state.step}. The last good checkpoint is whole; train anew with a "
                    "lower training.learning_rate or training.weight_decay."
                )

    def judged_model(self) -> Transformer:
        """A model of the weights that would be kept now, on the processor."""
        if self.training.averaging == "none" and self.device.type == "cpu":
            return self.model
        judged = Transformer(self.config.model, has_output_bias=self.model.output_bias is not None)
        judged.load_state_dict(self.averaging.weights())
        return judged

    def expected_memory(self) -> int:
        """Bytes that training will take at its highest."""
        budget = self.state.max_tokens_per_batch or self.training.max_tokens_per_batch
        return predict_memory(
            self.config.model,
            self.training,
            num_weights=self._num_weights(),
            max_tokens_per_batch=budget,
            **self._circumstances(),
        )

    def fit_into_memory(self) -> int:
        """Choose fewer processes where the recipe leaves them open and memory is short.

        Returns:
            The recipe's tokens a batch, or fewer where they would not fit all the same.

        Raises:
            ConfigurationError: not even the longest sentence alone would.
        """
        available = reachable_memory(self.device)
        if available is None:
            return self.training.max_tokens_per_batch
        if self.training.processes == "auto":
            while self.processes > 1 and self.expected_memory() > available:
                self.processes -= 1
        budget = fitting_budget(
            self.config.model,
            self.training,
            num_weights=self._num_weights(),
            available=available,
            **self._circumstances(),
        )
        least = memory_of_passes(
            self.config.model, self.training, max_tokens_per_batch=budget, **self._circumstances()
        )
        if least > available:
            raise ConfigurationError(
                f"Training must fit into memory, but the text's longest sentence, of "
                f"{self._longest()} tokens, takes {least / 2**30:,.1f} GiB in this model, and "
                f"{available / 2**30:,.1f} GiB are free. Choose smaller sizes in [model], or a "
                "smaller data.max_length."
            )
        return budget

    def _circumstances(self) -> _Circumstances:
        """What memory depends on besides the recipe."""
        return {
            "longest": self._longest(),
            "bytes_per_number": self._bytes_per_number(),
            "processes": self.processes,
            "is_on_cpu": self.device.type == "cpu",
            "has_kernels": self.kernels.kernels is not None,
        }

    def _choose_kernels(self, start: Bundle | None) -> KernelChoice:
        return choose_kernels(
            self.config.model,
            self.training,
            self.precision,
            self.device,
            has_output_bias=start is not None and start.model.output_bias is not None,
        )

    def _ready_updater(self) -> Updater:
        if self._updater is None:
            self._updater = Updater(
                self.model, self.optimizer, self.training, self.precision, self.processes
            )
        return self._updater

    def _num_weights(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    def _longest(self) -> int:
        texts = [self._prepared.store]
        if self._prepared.variants is not None:
            texts.append(self._prepared.variants.store)
        longest = [
            int(lengths.max())
            for text in texts
            for lengths in (text.source_lengths, text.target_lengths)
        ]
        return max(self._pad_to, *longest)

    def _bytes_per_number(self) -> int:
        return 2 if self.precision == "bfloat16" else 4


def _bundle_config(recipe: Recipe, prepared: PreparedData) -> BundleConfig:
    tokenizer = prepared.tokenizer
    model = recipe.model.model_dump() | {
        "source_vocabulary_size": tokenizer.source_vocabulary_size,
        "target_vocabulary_size": tokenizer.target_vocabulary_size,
    }
    return BundleConfig(
        languages=LanguagesConfig(
            source=recipe.data.source_language, target=recipe.data.target_language
        ),
        decoding=recipe.decoding,
        model=ModelConfig.model_validate(model),
        tokenizer=tokenizer.config,
    )
