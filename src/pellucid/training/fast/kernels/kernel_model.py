"""A whole model on the compiled kernels: the loss of a batch, and its gradient.

The backward pass is written out, sub-layer by sub-layer, instead of recorded by autograd. Nothing
is computed for padding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.config.model import AS_FIRST_BUILT, explain_unlisted
from pellucid.data import Batch
from pellucid.errors import ConfigurationError, InputError
from pellucid.model import Dropout, Stack, Transformer
from pellucid.native.kernels.calls import DropoutBytes, EmbeddingCall, mask_of, tensor_address
from pellucid.native.kernels.kernels import WIDTH_STEP, Kernels, find_kernels, library_name
from pellucid.native.weight_shapes import find_wrong_shape
from pellucid.training.fast.attention_losses import AttentionLosses
from pellucid.training.fast.kernels.inputs import AddLosses, PackedSentences, StackPass, require_ids
from pellucid.training.fast.kernels.sublayers import (
    AttentionOnRows,
    FeedForwardOnRows,
    NormOnRows,
    gradient_of,
)
from pellucid.training.fast.loss import interleave

WIDE_FOR_AMX = 512
"""The d_model from which PyTorch's products on AMX are faster than the kernels."""


ACCEPTED = {**AS_FIRST_BUILT, "activation": ("relu",), "projections": ("qkv",)}
"""The values of a model's options that the kernels compute."""


class KernelChoice(NamedTuple):
    """The kernels that a model's passes run on.

    Attributes:
        kernels: the package's own; None for PyTorch's operations.
        description: the same for people, with the reason.
    """

    kernels: Kernels | None
    description: str


def choose_kernels(
    model: ModelConfig,
    training: TrainingConfig,
    precision: Literal["float32", "bfloat16"],
    device: torch.device,
    *,
    has_output_bias: bool = False,
) -> KernelChoice:
    """Choose the kernels for a model's passes: with ``auto`` the package's own if they can.

    Raises:
        ConfigurationError: the package's own are requested, and cannot.
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
            "The package's own kernels cannot train this model (training.kernels = 'own'): "
            f"{reason}. Use training.kernels = 'auto'."
        )
    return KernelChoice(None, f"PyTorch's kernels, not own: {reason}")


def _reason_against(
    model: ModelConfig, training: TrainingConfig, device: torch.device, *, has_output_bias: bool
) -> str | None:
    """Say why the kernels do not support a model; None if they do."""
    widths = {
        "model.d_model": model.d_model,
        "model.d_ff": model.d_ff,
        "model.num_heads times d_key": model.num_heads * model.d_key,
        "model.num_heads times d_value": model.num_heads * model.d_value,
    }
    odd = next((name for name, width in widths.items() if width % WIDTH_STEP), None)
    against = {
        str(unlisted := explain_unlisted(model, ACCEPTED)): unlisted is not None,
        f"the device is {device.type}": device.type != "cpu",
        "the output has a bias": has_output_bias,
        "training.attention_dropout is above 0": training.attention_dropout > 0,
        f"{odd} is not a multiple of {WIDTH_STEP}": odd is not None,
    }
    return next((reason for reason, holds in against.items() if holds), None)


def _amx_is_faster(model: ModelConfig, precision: Literal["float32", "bfloat16"]) -> bool:
    """True if PyTorch gains more by AMX's products than its other operations lose."""
    is_wide = model.d_model >= WIDE_FOR_AMX
    return precision == "bfloat16" and is_wide and torch.cpu._is_amx_tile_supported()


class ModelOnKernels:
    """Forward and backward passes of a model on kernels.

    Args:
        model: holds the weights, and gets the gradients.
        kernels: of this machine.
        losses: those that are computed from attention, if there are any.
    """

    def __init__(
        self,
        model: Transformer,
        kernels: Kernels,
        losses: AttentionLosses | None = None,
    ) -> None:
        if (name := find_wrong_shape(model.config, model.state_dict())) is not None:
            raise ConfigurationError(
                f"The package's own kernels do not know the weight {name} of this model. Use "
                "training.kernels = 'pytorch'."
            )
        self._model = model
        self._kernels = kernels
        self._losses = losses
        self._weights = [weight for weight in model.parameters() if weight.requires_grad]
        self._gradients: list[Tensor] = []
        self._encoder = _StackOnRows(model, model.encoder, kernels)
        self._decoder = _StackOnRows(model, model.decoder, kernels)
        self._packed_table: tuple[Tensor, Tensor] | None = None
        self._table_sum_D = torch.empty(0)

    def refresh_weights(self) -> None:
        """Pack the weights as they are now."""
        self._encoder.refresh_weights()
        self._decoder.refresh_weights()
        table_VD = self._model.output_weight.detach()
        kernels = self._kernels
        for_logits, for_gradients = self._packed_table or (None, None)
        padded = kernels.padded_vocabulary(len(table_VD))
        self._packed_table = (
            kernels.pack(table_VD, transposed=True, out=for_logits),
            kernels.pack(table_VD, transposed=False, padded_depth=padded, out=for_gradients),
        )
        self._table_sum_D = kernels.sum_rows(table_VD)

    def clear_gradients(self, into: Sequence[Tensor] = ()) -> None:
        """Begin sums of gradients at zero, in the given tensors or in own ones."""
        if not into and not self._gradients:
            self._gradients = [torch.empty_like(weight) for weight in self._weights]
        for weight, gradient in zip(self._weights, into or self._gradients, strict=True):
            weight.grad = gradient.zero_()

    def add_gradient(
        self, batch: Batch, dropout: Dropout, *, smoothing: float, share: float, r_drop: float = 0.0
    ) -> Tensor:
        """Add the gradient of a batch's mean loss, times a share, to the model's gradients.

        Args:
            batch: with R-Drop all pairs twice, the second time after all of the first.
            dropout: the masks.
            smoothing: of labels.
            share: that share.
            r_drop: as in `pellucid.training.fast.loss`.

        Returns:
            The mean of −log p(y), in nats, without smoothing.
        """
        assert self._packed_table is not None
        source = PackedSentences.of(batch.source_BS, batch.source_mask_BS)
        target = PackedSentences.of(batch.target_in_BT, batch.target_mask_BT)
        # What passes save is in local variables only: if memory runs out, it is freed at once.
        add_losses: AddLosses | None = None
        if self._losses is not None and self._losses.sites:
            add_losses = partial(self._losses.add_gradients, batch, share)
        encoding = StackPass(source, self._encoder.draw(source, dropout), add_losses=add_losses)
        memory_ID = self._encoder.forward(encoding, dropout)
        drawn = self._decoder.draw(target, dropout)
        decoding = StackPass(target, drawn, memory_ID, source, add_losses=add_losses)
        states_PD = self._decoder.forward(decoding, dropout)
        weight = self._model.output_weight
        true_P = batch.target_out_BT[batch.target_mask_BT]
        require_ids(true_P, len(weight))
        if r_drop:
            # The kernel takes the two passes of a token as adjacent rows.
            states_PD = interleave(states_PD)
            true_P = interleave(true_P)
        nll_P, grad_PD = self._kernels.cross_entropy(
            states_PD,
            weight.detach(),
            self._packed_table,
            self._table_sum_D,
            true_P,
            smoothing=smoothing,
            factor=share / len(states_PD),
            grad_table_VD=gradient_of(weight),
            r_drop=r_drop,
        )
        if r_drop:
            # Back to the order of the batch: all first readings, then all second ones.
            grad_PD = torch.cat((grad_PD[::2], grad_PD[1::2]))
        grad_memory_ID = self._decoder.backward(grad_PD, decoding)
        assert grad_memory_ID is not None
        self._encoder.backward(grad_memory_ID, encoding)
        return nll_P.mean()


class _StackOnRows:
    """Encoder or decoder on rows without padding: tokens to states, and back to gradients."""

    def __init__(self, model: Transformer, stack: Stack, kernels: Kernels) -> None:
        config = model.config
        self._stack = stack
        self._kernels = kernels
        side: Literal["source", "target"] = "source" if stack.part == "encoder" else "target"
        self._table = model.embedding_of(side).weight
        self._scale = math.sqrt(config.d_model) if config.embedding_scale == "sqrt" else 1.0
        self._sublayers: list[AttentionOnRows | FeedForwardOnRows] = []
        attention = partial(AttentionOnRows, kernels, config)
        feed_forward = partial(FeedForwardOnRows, kernels, config)
        is_decoder = stack.part == "decoder"
        is_causal = is_decoder and config.look_ahead_mask
        layer: Any
        for index, layer in enumerate(stack.layers):
            site = f"{stack.part}.{index}"
            own = layer.self_attention
            own_norm = layer.self_attention_norm
            self._sublayers.append(
                attention(own, own_norm, site=f"{site}.self", is_causal=is_causal)
            )
            if is_decoder:
                cross = layer.cross_attention
                cross_norm = layer.cross_attention_norm
                self._sublayers.append(
                    attention(cross, cross_norm, site=f"{site}.cross", sees_memory=True)
                )
            network = layer.feed_forward
            network_norm = layer.feed_forward_norm
            self._sublayers.append(feed_forward(network, network_norm, site=f"{site}.feed_forward"))
        norm: nn.LayerNorm | None = getattr(stack, "norm", None)
        self._norm = None if norm is None else NormOnRows(kernels, norm)

    def refresh_weights(self) -> None:
        for sublayer in self._sublayers:
            sublayer.refresh_weights()

    def draw(self, sentences: PackedSentences, dropout: Dropout) -> dict[str, DropoutBytes]:
        """Draw the bytes of all places in one call, so that threads share the work."""
        rows = len(sentences.ids_J)
        widths = {f"{self._stack.part}.input": self._table.shape[1]}
        for sublayer in self._sublayers:
            widths |= sublayer.dropout_widths()
        return dropout.draw({place: rows * width for place, width in widths.items()}, self._kernels)

    def forward(self, run: StackPass, dropout: Dropout) -> Tensor:
        """Compute the stack's output from tokens."""
        x_JD = self._embed(run, dropout)
        for sublayer in self._sublayers:
            x_JD = sublayer.forward(x_JD, run)
        return x_JD if self._norm is None else self._norm.forward(x_JD, run.tape)

    def backward(self, grad_JD: Tensor, run: StackPass) -> Tensor | None:
        """Add to all gradients of the stack; return that of the memory, if there is one."""
        grad_memory_ID: Tensor | None = None
        if self._norm is not None:
            grad_JD = self._norm.backward(grad_JD, run.tape)[0]
        for sublayer in reversed(self._sublayers):
            grad_JD, grad_memory_ID = sublayer.backward(grad_JD, grad_memory_ID, run)
        learned = self._stack.positions.weight if hasattr(self._stack, "positions") else None
        call, *_alive = run.tape.pop()
        call.grad = grad_JD.data_ptr()
        call.grad_table = tensor_address(gradient_of(self._table))
        call.grad_positions = tensor_address(gradient_of(learned))
        self._kernels.embed(call)
        return grad_memory_ID

    def _embed(self, run: StackPass, dropout: Dropout) -> Tensor:
        part = self._stack.part
        table_VD = self._table.detach()
        sentences = run.sentences
        rows = len(sentences.ids_J)
        width = table_VD.shape[1]
        if sentences.longest > self._stack.max_length:
            raise InputError(
                f"A sentence must have at most {self._stack.max_length} tokens for this {part}, "
                f"but has {sentences.longest}. Lower data.max_pair_length, or raise "
                f"model.max_{'source' if part == 'encoder' else 'target'}_length."
            )
        require_ids(sentences.ids_J, len(table_VD))
        positions_LD = self._stack.positions_of(0, sentences.longest, like=table_VD)
        factors_J = dropout.token_factors(rows, part)
        dropout_bytes = run.dropout.pop(f"{part}.input", None)
        x_JD = self._kernels.empty(rows, width)
        call = EmbeddingCall(
            rows=rows,
            width=width,
            id=sentences.ids_J.data_ptr(),
            position=sentences.positions_J.data_ptr(),
            table=table_VD.data_ptr(),
            scale=self._scale,
            token_factor=tensor_address(factors_J),
            positions=tensor_address(positions_LD),
            dropout=mask_of(dropout_bytes),
            out=x_JD.data_ptr(),
        )
        # The call holds addresses only: its tensors must live until the backward pass.
        run.tape.append((call, factors_J, positions_LD, dropout_bytes))
        self._kernels.embed(call)
        return x_JD
