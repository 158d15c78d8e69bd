"""A whole model on the compiled kernels: the loss of a batch, and its gradient.

What PyTorch's own derivatives would keep for themselves is written out here: each sub-layer goes
back the way it came. No position of padding is computed.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch
from pellucid.errors import ConfigurationError, InputError
from pellucid.kernels import (
    WIDTH_STEP,
    Drawn,
    EmbeddingCall,
    Kernels,
    find_kernels,
    library_name,
)
from pellucid.model import Dropout, Stack, Transformer
from pellucid.train.fast.kernels.layers import (
    AttentionOnRows,
    FeedForwardOnRows,
    NormOnRows,
    Sentences,
    gradient_of,
    require_ids,
)
from pellucid.train.fast.loss import in_turn

__all__ = ["KernelChoice", "ModelOnKernels", "choose_kernels"]

WIDE_FOR_AMX = 512
"""From which width on AMX decides."""


class KernelChoice(NamedTuple):
    """What a model's passes run on.

    Attributes:
        kernels: the package's own; None for PyTorch's operations.
        words: the same in words, with the reason.
    """

    kernels: Kernels | None
    words: str


def choose_kernels(
    model: ModelConfig,
    training: TrainingConfig,
    precision: Literal["float32", "bfloat16"],
    device: torch.device,
    *,
    has_output_bias: bool = False,
) -> KernelChoice:
    """Choose what passes run on: with ``auto`` the package's own kernels where they can.

    Raises:
        ConfigurationError: they are asked for, and cannot.
    """
    if training.kernels == "pytorch":
        return KernelChoice(None, "PyTorch's kernels")
    reason = _reason_against(model, training, device, has_output_bias=has_output_bias)
    kernels = find_kernels(precision)
    if reason is None and isinstance(kernels, str):
        reason = kernels
    if reason is None and training.kernels == "auto" and _amx_is_faster(model, precision):
        reason = "PyTorch's use AMX"
    if reason is None and isinstance(kernels, Kernels):
        return KernelChoice(kernels, f"own kernels ({library_name(precision)})")
    if training.kernels == "own":
        raise ConfigurationError(
            "The package's own kernels must be able to train this model for training.kernels = "
            f"'own', but they are not: {reason}. Use training.kernels = 'auto'."
        )
    return KernelChoice(None, f"PyTorch's kernels, not own: {reason}")


def _reason_against(
    model: ModelConfig, training: TrainingConfig, device: torch.device, *, has_output_bias: bool
) -> str | None:
    """Why a model's passes cannot be those here; None where they can."""
    widths = {
        "model.d_model": model.d_model,
        "model.d_ff": model.d_ff,
        "model.num_heads times d_key": model.num_heads * model.d_key,
        "model.num_heads times d_value": model.num_heads * model.d_value,
    }
    odd = next((name for name, width in widths.items() if width % WIDTH_STEP), None)
    against = {
        f"the device is {device.type}": device.type != "cpu",
        f"model.projections is {model.projections}": model.projections != "qkv",
        f"model.activation is {model.activation}": model.activation != "relu",
        "the output has a bias": has_output_bias,
        "training.compile is true": training.compile,
        "training.attention_dropout is above 0": training.attention_dropout > 0,
        "training.guided_head is given": bool(training.guided_head),
        f"{odd} is no multiple of {WIDTH_STEP}": odd is not None,
    }
    return next((reason for reason, holds in against.items() if holds), None)


def _amx_is_faster(model: ModelConfig, precision: Literal["float32", "bfloat16"]) -> bool:
    """Whether PyTorch's products have more from AMX than its other operations lose."""
    is_wide = model.d_model >= WIDE_FOR_AMX
    return precision == "bfloat16" and is_wide and torch.cpu._is_amx_tile_supported()


class ModelOnKernels:
    """Passes of a model.

    Args:
        model: whose weights are read, and whose parameters' gradients grow.
        kernels: of this machine.
    """

    def __init__(self, model: Transformer, kernels: Kernels) -> None:
        self._model, self._kernels = model, kernels
        self._encoder = _StackOnRows(model, model.encoder, kernels)
        self._decoder = _StackOnRows(model, model.decoder, kernels)
        self._table: tuple[Tensor, Tensor] | None = None
        self._table_sum_D = torch.empty(0)

    def refresh_weights(self) -> None:
        """Take the weights as they are now."""
        self._encoder.refresh_weights()
        self._decoder.refresh_weights()
        table_VD, kernels = self._model.output_weight.detach(), self._kernels
        turned, plain = self._table or (None, None)
        filled = kernels.filled(len(table_VD))
        self._table = (
            kernels.pack(table_VD, turned=True, into=turned),
            kernels.pack(table_VD, turned=False, filled=filled, into=plain),
        )
        self._table_sum_D = kernels.sum_rows(table_VD)

    def add_gradient(
        self, batch: Batch, dropout: Dropout, *, smoothing: float, share: float, r_drop: float = 0.0
    ) -> Tensor:
        """Let the gradients grow by those of a batch's mean loss times a share.

        Args:
            batch: with R-Drop all pairs once more behind the pairs.
            dropout: the masks.
            smoothing: of labels.
            share: that share.
            r_drop: as in `pellucid.train.fast.loss`.

        Returns:
            The mean of −log p(y), in nats, without smoothing.
        """
        try:
            return self._add_gradient(batch, dropout, smoothing, share, r_drop)
        except BaseException:
            self._encoder.forget()  # A smaller batch may follow, and wants the room.
            self._decoder.forget()
            raise

    def _add_gradient(
        self, batch: Batch, dropout: Dropout, smoothing: float, share: float, r_drop: float
    ) -> Tensor:
        assert self._table is not None
        source = Sentences.of(batch.source_BS, batch.source_mask_BS)
        target = Sentences.of(batch.target_in_BT, batch.target_mask_BT)
        memory_ID = self._encoder.run(source, dropout)
        states_PD = self._decoder.run(target, dropout, memory_ID=memory_ID, memory_rows=source)
        weight = self._model.output_weight
        true_P = batch.target_out_BT[batch.target_mask_BT]
        require_ids(true_P, len(weight))
        if r_drop:
            states_PD, true_P = in_turn(states_PD), in_turn(true_P)
        plain_P, grad_PD = self._kernels.cross_entropy(
            states_PD,
            weight.detach(),
            self._table,
            self._table_sum_D,
            true_P,
            smoothing=smoothing,
            factor=share / len(states_PD),
            grad_table_VD=gradient_of(weight),
            r_drop=r_drop,
        )
        if r_drop:
            grad_PD = torch.cat((grad_PD[::2], grad_PD[1::2]))
        grad_memory_ID = self._decoder.back(grad_PD)
        assert grad_memory_ID is not None
        self._encoder.back(grad_memory_ID)
        return plain_P.mean()


class _StackOnRows:
    """Encoder or decoder."""

    def __init__(self, model: Transformer, stack: Stack, kernels: Kernels) -> None:
        config = model.config
        self._stack, self._kernels = stack, kernels
        side: Literal["source", "target"] = "source" if stack.part == "encoder" else "target"
        self._table = model.embedding_of(side).weight
        self._scale = math.sqrt(config.d_model) if config.embedding_scale == "sqrt" else 1.0
        self._sublayers: list[AttentionOnRows | FeedForwardOnRows] = []
        is_causal = stack.part == "decoder" and config.look_ahead_mask
        layer: Any
        for index, layer in enumerate(stack.layers):
            site = f"{stack.part}.{index}"
            own, across, network = (f"{site}.{name}" for name in ("self", "cross", "feed_forward"))
            self._sublayers.append(
                AttentionOnRows(
                    kernels,
                    config,
                    layer.self_attention,
                    layer.self_attention_norm,
                    site=own,
                    is_causal=is_causal,
                )
            )
            if stack.part == "decoder":
                self._sublayers.append(
                    AttentionOnRows(
                        kernels,
                        config,
                        layer.cross_attention,
                        layer.cross_attention_norm,
                        site=across,
                        sees_memory=True,
                    )
                )
            self._sublayers.append(
                FeedForwardOnRows(
                    kernels, config, layer.feed_forward, layer.feed_forward_norm, site=network
                )
            )
        norm: nn.LayerNorm | None = getattr(stack, "norm", None)
        self._norm = None if norm is None else NormOnRows(kernels, norm)

    def refresh_weights(self) -> None:
        for sublayer in self._sublayers:
            sublayer.refresh_weights()

    def forget(self) -> None:
        """Give up what is kept for the way back."""
        for sublayer in self._sublayers:
            sublayer.forget()
        if self._norm is not None:
            self._norm.forget()
        self._kept: tuple[Any, ...] = ()

    def run(
        self,
        sentences: Sentences,
        dropout: Dropout,
        *,
        memory_ID: Tensor | None = None,
        memory_rows: Sentences | None = None,
    ) -> Tensor:
        """From tokens to what leaves the stack."""
        drawn = self._draw(len(sentences.ids_J), dropout)
        x_JD = self._enter(sentences, dropout, drawn.get(f"{self._stack.part}.input"))
        for sublayer in self._sublayers:
            if isinstance(sublayer, FeedForwardOnRows):
                x_JD = sublayer.run(x_JD, drawn)
            elif sublayer.sees_memory:
                x_JD = sublayer.run(
                    x_JD, sentences, drawn, memory_ID=memory_ID, memory_rows=memory_rows
                )
            else:
                x_JD = sublayer.run(x_JD, sentences, drawn)
        return x_JD if self._norm is None else self._norm.run(x_JD)

    def back(self, grad_JD: Tensor) -> Tensor | None:
        """Back to the tokens' table; the gradient of what was attended to, if anything was."""
        grad_memory_ID: Tensor | None = None
        if self._norm is not None:
            grad_JD = self._norm.back(grad_JD)[0]
        for sublayer in reversed(self._sublayers):
            if isinstance(sublayer, FeedForwardOnRows):
                grad_JD = sublayer.back(grad_JD)
            else:
                grad_JD, grad_memory_ID = sublayer.back(grad_JD, grad_memory_ID)
        self._enter_back(grad_JD)
        return grad_memory_ID

    def _draw(self, rows: int, dropout: Dropout) -> dict[str, Drawn]:
        """Draw for all places at once, which threads share."""
        widths = {f"{self._stack.part}.input": self._table.shape[1]}
        for sublayer in self._sublayers:
            widths |= sublayer.drops()
        return dropout.draw({place: rows * width for place, width in widths.items()}, self._kernels)

    def _enter(self, sentences: Sentences, dropout: Dropout, dropped: Drawn | None) -> Tensor:
        part, table_VD = self._stack.part, self._table.detach()
        rows, width = len(sentences.ids_J), table_VD.shape[1]
        if sentences.longest > self._stack.max_length:
            raise InputError(
                f"A sentence must have at most {self._stack.max_length} tokens for this {part}, "
                f"but has {sentences.longest}. Lower data.max_length, or raise "
                f"model.max_{'source' if part == 'encoder' else 'target'}_length."
            )
        require_ids(sentences.ids_J, len(table_VD))
        positions_LD = self._stack.position_rows(0, sentences.longest, like=table_VD)
        factors_J = dropout.token_factors(rows, part)
        x_JD = self._kernels.rows(rows, width)
        call = EmbeddingCall(
            rows=rows,
            width=width,
            id=sentences.ids_J.data_ptr(),
            position=sentences.positions_J.data_ptr(),
            table=table_VD.data_ptr(),
            scale=self._scale,
            token_factor=None if factors_J is None else factors_J.data_ptr(),
            positions=None if positions_LD is None else positions_LD.data_ptr(),
            out=x_JD.data_ptr(),
        )
        if dropped is not None:
            call.dropout.drawn = dropped.drawn.data_ptr()
            call.dropout.threshold, call.dropout.factor = dropped.threshold, dropped.factor
        self._kept = (call, sentences, factors_J, positions_LD, dropped)
        self._kernels.embed(call)
        return x_JD

    def _enter_back(self, grad_JD: Tensor) -> None:
        call: EmbeddingCall = self._kept[0]
        learned = self._stack.positions.weight if hasattr(self._stack, "positions") else None
        grads = gradient_of(self._table), gradient_of(learned)
        call.grad = grad_JD.data_ptr()
        call.grad_table, call.grad_positions = (
            None if grad is None else grad.data_ptr() for grad in grads
        )
        self._kernels.embed(call)
        self._kept = ()
