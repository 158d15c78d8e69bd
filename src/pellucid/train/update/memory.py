"""How much memory training will take, told before it starts."""

from __future__ import annotations

import torch

from pellucid.attention.fast import SHORT_ENOUGH_FOR_PLAIN_PRODUCTS
from pellucid.config import ModelConfig, TrainingConfig
from pellucid.errors import ConfigurationError
from pellucid.hardware import available_memory
from pellucid.kernels import BYTES_PER_CHUNK
from pellucid.model import Transformer
from pellucid.train.fast.loss import chunk_rows
from pellucid.train.fast.rows.attention import LONGEST_IN_BLOCKS, block_size
from pellucid.train.fast.rows.few_shapes import FEWEST_ROWS
from pellucid.train.fast.rows.model import can_be_in_rows

__all__ = ["fitting_budget", "memory_of_passes", "predict_memory", "require_memory"]

TURNED = 8
"""Bytes for each weight of the projection, which the loss holds transposed, and its gradient too: 4
and 4 in float32, 2 and 2 + 4 in bfloat16."""

LIBRARIES = 400 * 2**20
"""What Python, PyTorch and the tokenizer take before the first weight, in bytes."""

PARTNER = 250 * 2**20
"""The same for each further process, which shares the libraries' code with the first."""

SPARE = 1.65
"""What passing results and gaps between blocks add, as a factor, measured on tiny and base."""

SPARE_ON_KERNELS = 1.2
"""The same on kernels, which say themselves what they keep."""


def predict_memory(
    model: ModelConfig,
    training: TrainingConfig,
    *,
    num_weights: int,
    longest: int,
    max_tokens_per_batch: int,
    bytes_per_number: int = 4,
    processes: int = 1,
    is_on_cpu: bool = True,
    has_kernels: bool = False,
) -> int:
    """Count the bytes of a whole training at its highest, all its processes together.

    Weights, gradients, the optimizer's moments and averages are counted exactly; of the passes
    every tensor that the backward pass needs, for a batch full of the longest sentences. Saving
    takes the place of the passes where it needs more.

    Args:
        model: the sizes.
        training: optimizer and averaging.
        num_weights: parameters of the model.
        longest: tokens of the longest sentence.
        max_tokens_per_batch: positions of a batch on either side.
        bytes_per_number: 4 in float32, 2 in bfloat16.
        processes: how many share a batch.
        is_on_cpu: whether the passes run on a processor.
        has_kernels: whether they run on the package's own kernels.
    """
    # Kernels have the weights laid out for either direction; else there are copies in bfloat16.
    working = 2 * bytes_per_number if bytes_per_number < 4 or has_kernels else 0
    weights = num_weights * (4 * _copies(training) + working)
    turned = 0 if has_kernels else TURNED * model.target_vocabulary_size * model.d_model
    partner = PARTNER + num_weights * (2 * 4 + working) + turned
    passes = memory_of_passes(
        model,
        training,
        longest=longest,
        max_tokens_per_batch=max_tokens_per_batch,
        bytes_per_number=bytes_per_number,
        processes=processes,
        is_on_cpu=is_on_cpu,
        has_kernels=has_kernels,
    )
    spare = SPARE_ON_KERNELS if has_kernels else SPARE
    own = LIBRARIES + weights + turned + max(round(spare * passes), _saving(training, num_weights))
    return own + (processes - 1) * partner


def memory_of_passes(
    model: ModelConfig,
    training: TrainingConfig,
    *,
    longest: int,
    max_tokens_per_batch: int,
    bytes_per_number: int = 4,
    processes: int = 1,
    is_on_cpu: bool = True,
    has_kernels: bool = False,
) -> int:
    """Count the bytes of what a pass over one batch leaves for the backward pass.

    The arguments are those of `predict_memory`.
    """
    positions = max(max_tokens_per_batch, longest) * (2 if training.r_drop else 1)
    if has_kernels:
        scores = 2 * 4 * longest**2 * torch.get_num_threads()
        return _memory_on_kernels(model, positions, bytes_per_number) + scores
    is_short = longest <= SHORT_ENOUGH_FOR_PLAIN_PRODUCTS
    is_plain = training.attention_dropout > 0 or (training.compile and is_short)
    # Attention's weights are float32 on a processor; in blocks, only there, they are kept once.
    in_rows = is_on_cpu and bytes_per_number < 4 and can_be_in_rows(model, training)
    in_blocks = block_size(min(longest, LONGEST_IN_BLOCKS)) if in_rows else 0
    seen = 3 * longest * (4 // bytes_per_number) if is_plain else 2 * in_blocks
    passes = positions * (
        model.num_encoder_layers * _floats_a_position(model, seen, attentions=1)
        + model.num_decoder_layers * _floats_a_position(model, seen, attentions=2)
        + 6 * model.d_model
    )
    multiple = FEWEST_ROWS if bytes_per_number < 4 else 1
    rows = chunk_rows(model.target_vocabulary_size, multiple=multiple)
    chunk = rows * model.target_vocabulary_size
    if training.r_drop:  # Both readings' probabilities, and what lies between them, in float32.
        chunk *= 1 + 3 * 4 // bytes_per_number
    states = 4 * positions * model.d_model
    numbers = passes + processes * chunk + states
    return bytes_per_number * numbers


def _memory_on_kernels(model: ModelConfig, positions: int, bytes_per_number: int) -> int:
    """What passes on kernels keep: of weights between positions nothing but one head's a thread."""
    keys, values = model.num_heads * model.d_key, model.num_heads * model.d_value
    dropped = model.d_model // bytes_per_number  # A byte for each number.
    around = 3 * model.d_model + dropped
    attention = 2 * keys + 2 * values + around
    layers = model.num_encoder_layers + model.num_decoder_layers
    attentions = model.num_encoder_layers + 2 * model.num_decoder_layers
    kept = attentions * attention + layers * (model.d_ff + around) + 2 * around
    passing = 4 * model.d_model + max(2 * keys + values, model.d_ff)
    return bytes_per_number * positions * (kept + passing) + BYTES_PER_CHUNK


def fitting_budget(
    model: ModelConfig,
    training: TrainingConfig,
    *,
    num_weights: int,
    longest: int,
    available: int,
    bytes_per_number: int = 4,
    processes: int = 1,
    is_on_cpu: bool = True,
    has_kernels: bool = False,
) -> int:
    """The largest budget of `predict_memory` that fits, of those reached by halving.

    Never less than the longest sentence: below that, cutting helps no further.
    """
    budget = training.max_tokens_per_batch
    while budget > longest:
        needed = predict_memory(
            model,
            training,
            num_weights=num_weights,
            longest=longest,
            max_tokens_per_batch=budget,
            bytes_per_number=bytes_per_number,
            processes=processes,
            is_on_cpu=is_on_cpu,
            has_kernels=has_kernels,
        )
        if needed <= available:
            break
        budget = max(longest, budget // 2)
    return budget


def require_memory(model: ModelConfig, training: TrainingConfig, device: torch.device) -> None:
    """Refuse a model whose weights alone, as training holds them, are more than is free.

    Args:
        model: the sizes; with vocabularies of 0 all but the tables is counted.
        training: optimizer and averaging.
        device: where.

    Raises:
        ConfigurationError: it cannot fit.
    """
    sizes = {
        name: max(1, getattr(model, name))
        for name in ("source_vocabulary_size", "target_vocabulary_size")
    }
    with torch.device("meta"):
        shapes = Transformer(model.model_copy(update=sizes))
    num_weights = sum(parameter.numel() for parameter in shapes.parameters())
    needed, available = 4 * num_weights * _copies(training), available_memory(device)
    if available is not None and needed > available:
        raise ConfigurationError(
            f"Training must fit into memory, but the model's {num_weights:,} weights with their "
            f"gradients, moments and averages take {needed / 2**30:,.1f} GiB, and "
            f"{available / 2**30:,.1f} GiB are free. Choose smaller sizes in [model] or a "
            "smaller vocabulary."
        )


def _copies(training: TrainingConfig) -> int:
    """How many numbers are held for every weight: itself, gradient, two moments, averages."""
    if training.averaging in ("last", "best"):
        return 5 + training.average_count
    return 6 if training.averaging == "running" else 4


def _saving(training: TrainingConfig, num_weights: int) -> int:
    """Bytes that writing a checkpoint takes besides: twice its largest file, while it is made."""
    averages = training.average_count if training.averaging in ("last", "best") else 1
    moments = 2
    return 2 * 4 * num_weights * max(moments, averages)


def _floats_a_position(model: ModelConfig, seen: int, *, attentions: int) -> int:
    """Numbers kept for the backward pass in one layer, for each position of a batch."""
    heads = model.num_heads * (4 * model.d_key + 3 * model.d_value + seen)
    around = 4 * model.d_model
    feed_forward = 2 * model.d_ff
    return attentions * (heads + around + model.d_model) + around + feed_forward
