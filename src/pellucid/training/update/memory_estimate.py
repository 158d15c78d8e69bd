"""Predict the memory that training needs."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.errors import ConfigurationError
from pellucid.machine.hardware import available_memory
from pellucid.model import make_model
from pellucid.native.kernels.kernels import BYTES_PER_CHUNK
from pellucid.training.fast.attention_losses import ScorePenalty
from pellucid.training.fast.bfloat16 import FEWEST_ROWS
from pellucid.training.fast.loss import chunk_rows

TRANSPOSED_PROJECTION = 8
"""Bytes for each weight of the output projection: the loss holds it and its gradient transposed,
4 and 4 in float32, 2 and 2 + 4 in bfloat16."""

LIBRARIES = 400 * 2**20
"""Bytes that Python, PyTorch and the tokenizer take before the first weight."""

WORKER = 250 * 2**20
"""The same for each further process, which shares the libraries' code with the first."""

SPARE = 1.65
"""Factor for temporary results and gaps between blocks, measured on tiny and base."""

SPARE_ON_KERNELS = 1.2
"""The same on the package's kernels, whose buffers are known exactly."""


@dataclass(frozen=True)
class MemoryNeeds:
    """The memory of one training, as a function of its batches' positions.

    Weights, gradients, the optimizer's moments and averages are counted exactly; of the passes
    every tensor that the backward pass needs, for a batch full of the longest sentences.

    Attributes:
        model: the sizes.
        training: optimizer, averaging, R-Drop.
        num_weights: parameters of the model.
        longest: tokens of the longest sentence.
        bytes_per_number: 4 in float32, 2 in bfloat16.
        processes: parts of a batch.
        ranks: processes on this machine that share an update.
        has_kernels: True if they run on the package's kernels.
    """

    model: ModelConfig
    training: TrainingConfig
    num_weights: int
    longest: int
    bytes_per_number: int = 4
    processes: int = 1
    ranks: int = 1
    has_kernels: bool = False

    def predict(self, max_tokens_per_batch: int) -> int:
        """Predict the bytes of a whole training at its highest, all processes together.

        Saving a checkpoint takes the place of the passes if it needs more.

        Args:
            max_tokens_per_batch: positions of a batch on either side.
        """
        model = self.model
        num_weights = self.num_weights
        # Kernels keep the weights laid out for either direction; PyTorch keeps bfloat16 copies.
        has_copies = self.bytes_per_number < 4 or self.has_kernels
        working = 2 * self.bytes_per_number if has_copies else 0
        weights = num_weights * (4 * _copies(self.training) + working + self._of_sums())
        transposed = TRANSPOSED_PROJECTION * model.target_vocabulary_size * model.d_model
        if self.has_kernels:
            transposed = 0
        spare = SPARE_ON_KERNELS if self.has_kernels else SPARE
        at_once = max(1.0, self.ranks / self.processes)
        passes = round(spare * at_once * self.of_passes(max_tokens_per_batch))
        first = LIBRARIES + weights + transposed + max(passes, _saving(self.training, num_weights))
        worker = WORKER + num_weights * (2 * 4 + working + self._of_sums()) + transposed
        return first + (self.ranks - 1) * worker

    def _of_sums(self) -> int:
        """Count the bytes per weight that sums of pieces take in addition to the gradient."""
        num_pieces = self.training.accumulate * self.processes
        if num_pieces == 1:
            return 0
        levels = max(1, (-(-num_pieces // self.ranks) - 1).bit_length())
        return 4 * (levels + (not self.has_kernels))

    def of_passes(self, max_tokens_per_batch: int) -> int:
        """Predict the bytes that a pass over one batch leaves for the backward pass."""
        model = self.model
        training = self.training
        bytes_per_number = self.bytes_per_number
        longest = self.longest
        positions = max(max_tokens_per_batch, longest) * (2 if training.r_drop else 1)
        penalty = ScorePenalty.of(model, training)
        num_penalized = 0 if penalty is None else len(penalty.sites)
        scores_bytes = 4 * model.num_heads * longest * positions
        if self.has_kernels:
            scores = 2 * 4 * longest**2 * torch.get_num_threads()
            # Measured at the peak of autograd, which computes one layer's penalty at a time.
            scores += min(1, num_penalized) * 6 * scores_bytes
            return _memory_on_kernels(model, positions, bytes_per_number) + scores
        is_plain = training.attention_dropout > 0
        # Attention's weights are float32 on a processor, whatever the precision.
        is_biased = model.positions in ("alibi", "relative")
        seen = 3 * longest * (4 // bytes_per_number) if is_plain or is_biased else 0
        numbers = 6 * model.d_model
        numbers += model.num_encoder_layers * _numbers_per_position(model, seen, attentions=1)
        attentions = 1 if model.decoder == "ssru" else 2
        decoder = _numbers_per_position(model, seen, attentions=attentions)
        if model.decoder == "ssru":
            decoder += 16 * model.d_model  # the unit's stages, those of a step, and what is around
        numbers += model.num_decoder_layers * decoder
        if model.is_recurrent:
            numbers = _recurrent_numbers_per_position(model, longest)
        passes = positions * numbers
        multiple = FEWEST_ROWS if bytes_per_number < 4 else 1
        rows = chunk_rows(model.target_vocabulary_size, multiple=multiple)
        chunk = rows * model.target_vocabulary_size
        if training.r_drop:  # Probabilities of both readings, and their differences, in float32.
            chunk *= 1 + 3 * 4 // bytes_per_number
        states = 4 * positions * model.d_model
        total = bytes_per_number * (passes + self.processes * chunk + states)
        # PyTorch holds what it saves for backward in all layers at once.
        return total + num_penalized * 4 * scores_bytes

    def fitting_budget(self, available: int) -> int:
        """Find the largest ``max_tokens_per_batch`` that fits, of those reached by halving.

        It is never below the longest sentence, where cutting batches no longer helps.
        """
        budget = self.training.max_tokens_per_batch
        while budget > self.longest and self.predict(budget) > available:
            budget = max(self.longest, budget // 2)
        return budget


def _memory_on_kernels(model: ModelConfig, positions: int, bytes_per_number: int) -> int:
    """Count what the kernels save for backward; of attention's weights one head's per thread."""
    keys = model.num_heads * model.d_key
    values = model.num_heads * model.d_value
    dropped = model.d_model // bytes_per_number  # One byte for each number.
    around = 3 * model.d_model + dropped
    attention = 2 * keys + 2 * values + around
    layers = model.num_encoder_layers + model.num_decoder_layers
    attentions = model.num_encoder_layers + 2 * model.num_decoder_layers
    saved = attentions * attention + layers * (model.d_ff + around) + 2 * around
    temporary = 4 * model.d_model + max(2 * keys + values, model.d_ff)
    return bytes_per_number * positions * (saved + temporary) + BYTES_PER_CHUNK


def count_parameters(model: ModelConfig, *, has_output_bias: bool = False) -> int:
    """Count a model's parameters without making it; a vocabulary of 0 counts as 1."""
    sizes = {
        name: max(1, getattr(model, name))
        for name in ("source_vocabulary_size", "target_vocabulary_size")
    }
    with torch.device("meta"):
        shapes = make_model(model.model_copy(update=sizes), has_output_bias=has_output_bias)
    return sum(parameter.numel() for parameter in shapes.parameters())


def require_memory(model: ModelConfig, training: TrainingConfig, device: torch.device) -> None:
    """Refuse a model whose weights, as training holds them, need more memory than is free.

    Args:
        model: the sizes; with vocabularies of 0 everything but the embedding tables is counted.
        training: optimizer and averaging.
        device: the device that computes.

    Raises:
        ConfigurationError: it cannot fit.
    """
    num_weights = count_parameters(model)
    needed = 4 * num_weights * _copies(training)
    available = available_memory(device)
    if available is not None and needed > available:
        raise ConfigurationError(
            f"Training must fit into memory, but the model's {num_weights:,} weights with their "
            f"gradients, moments and averages take {needed / 2**30:,.1f} GiB, and "
            f"{available / 2**30:,.1f} GiB are free. Choose smaller sizes in [model] or a "
            "smaller vocabulary."
        )


def _copies(training: TrainingConfig) -> int:
    """Count the numbers held for every weight: itself, gradient, two moments, averages."""
    if training.averaging in ("last", "best"):
        return 5 + training.averaging_count
    return 6 if training.averaging == "running" else 4


def _saving(training: TrainingConfig, num_weights: int) -> int:
    """Count the bytes that writing a checkpoint takes: twice its largest file."""
    averages = training.averaging_count if training.averaging in ("last", "best") else 1
    moments = 2
    return 2 * 4 * num_weights * max(moments, averages)


def _recurrent_numbers_per_position(model: ModelConfig, longest: int) -> int:
    """Count the numbers that a recurrent model saves for backward, for each position of a batch."""
    steps = (model.num_encoder_layers + model.num_decoder_layers) * 20 * model.d_model
    hidden = 2 * longest * model.d_key if model.recurrent_attention == "additive" else 0
    weights = 4 * longest if model.has_attention else 0
    return steps + hidden + weights + 12 * model.d_model


def _numbers_per_position(model: ModelConfig, seen: int, *, attentions: int) -> int:
    """Count the numbers saved for backward in one layer, for each position of a batch."""
    turned = 6 * model.d_key if model.positions == "rotary" else 0
    heads = model.num_heads * (4 * model.d_key + 3 * model.d_value + turned + seen)
    around = 4 * model.d_model
    feed_forward = (4 if model.gated_feed_forward else 2) * model.d_ff
    return attentions * (heads + around + model.d_model) + around + feed_forward
