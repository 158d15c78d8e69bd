"""Sub-layers on the compiled kernels, forward and backward.

All positions of a batch are stacked as rows, J of them, without padding; those attended to are I
rows. Gradients of weights are added to those of the model's parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pellucid.config import ModelConfig
from pellucid.model import FeedForward, MultiHeadAttention
from pellucid.native.kernels.calls import AttentionCall, DropoutBytes
from pellucid.native.kernels.kernels import KernelNorm, Kernels
from pellucid.training.fast.kernels.inputs import StackPass, Tape


class _LinearOnRows:
    """Linear layers with the same input as one product, their results adjacent columns.

    Args:
        kernels: of this machine.
        layers: hold the weights.
    """

    def __init__(self, kernels: Kernels, layers: Sequence[nn.Linear]) -> None:
        self._kernels = kernels
        self._layers = layers
        widths = [layer.out_features for layer in layers]
        self.width = sum(widths)
        # One call computes the gradients of all layers if they have the same width.
        self._groups = [list(layers)] if len(set(widths)) == 1 else [[one] for one in layers]
        self._in_features = layers[0].in_features
        self._packed_forward: Tensor | None = None
        self._packed_backward: Tensor | None = None
        self._bias_F: Tensor | None = None

    def refresh_weights(self) -> None:
        """Pack the weights as they are now."""
        weight_FD = _joined([layer.weight for layer in self._layers])
        if self._layers[0].bias is not None:
            self._bias_F = _joined([layer.bias for layer in self._layers])
        pack = self._kernels.pack
        self._packed_forward = pack(weight_FD, transposed=True, out=self._packed_forward)
        self._packed_backward = pack(weight_FD, transposed=False, out=self._packed_backward)

    def forward(
        self,
        x_JD: Tensor,
        *,
        has_relu: bool = False,
        dropout: DropoutBytes | None = None,
        add_JF: Tensor | None = None,
        norm: KernelNorm | None = None,
    ) -> Tensor:
        """Compute $XW^T + b$, and the steps that are given."""
        assert self._packed_forward is not None
        return self._kernels.linear(
            x_JD,
            self._packed_forward,
            self.width,
            bias_F=self._bias_F,
            has_relu=has_relu,
            dropout=dropout,
            add_JF=add_JF,
            norm=norm,
        )

    def backward(
        self,
        grad_JF: Tensor,
        *,
        add_JD: Tensor | None = None,
        gate_JD: Tensor | None = None,
        gate_factor: float = 1.0,
    ) -> Tensor:
        """Compute the gradient of the input from that of the output, and the given steps."""
        assert self._packed_backward is not None
        return self._kernels.linear(
            grad_JF,
            self._packed_backward,
            self._in_features,
            gate_JF=gate_JD,
            gate_factor=gate_factor,
            add_JF=add_JD,
        )

    def add_gradients(self, x_JD: Tensor, grad_JF: Tensor) -> None:
        """Add to the gradients of weights and biases."""
        begin = 0
        for group in self._groups:
            end = begin + group[0].out_features * len(group)
            self._kernels.weight_gradient(
                x_JD,
                grad_JF[:, begin:end],
                [gradient_of(layer.weight) for layer in group],
                [gradient_of(layer.bias) for layer in group],
            )
            begin = end


class NormOnRows:
    """Layer norm and its gradient.

    Args:
        kernels: of this machine.
        norm: holds the weights.
    """

    def __init__(self, kernels: Kernels, norm: nn.LayerNorm) -> None:
        self._kernels = kernels
        self._module = norm

    def reserve(self, rows: int, tape: Tape) -> KernelNorm:
        """Allocate what the backward pass needs, for a forward pass to fill."""
        module = self._module
        normal_JD = self._kernels.empty(rows, len(module.weight))
        norm = KernelNorm(module.weight, module.bias, module.eps, normal_JD, torch.empty(rows))
        tape.append(norm)
        return norm

    def forward(self, x_JD: Tensor, tape: Tape) -> Tensor:
        """Normalize rows."""
        return self._kernels.norm(x_JD, self.reserve(len(x_JD), tape))

    def backward(
        self,
        grad_JD: Tensor,
        tape: Tape,
        *,
        add_JD: Tensor | None = None,
        dropout: DropoutBytes | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Compute what `Kernels.norm_backward` does."""
        gain = self._module.weight
        shift = self._module.bias
        # The kernel always adds to both gradients; that of a frozen parameter is thrown away.
        grads = [
            torch.zeros_like(one) if (grad := gradient_of(one)) is None else grad
            for one in (gain, shift)
        ]
        return self._kernels.norm_backward(
            grad_JD, tape.pop(), (grads[0], grads[1]), add_JD=add_JD, dropout=dropout
        )


class _NormAndResidual:
    """Layer norm, residual connection and dropout around a sub-layer."""

    def __init__(self, kernels: Kernels, config: ModelConfig, norm: nn.LayerNorm | None) -> None:
        self._kernels = kernels
        self._has_residual = config.residual
        self._pre = NormOnRows(kernels, norm) if norm and config.norm == "pre" else None
        self._post = NormOnRows(kernels, norm) if norm and config.norm == "post" else None

    def enter(self, x_JD: Tensor, tape: Tape) -> Tensor:
        """Return the sub-layer's input: the rows, normalized with pre-norm."""
        return x_JD if self._pre is None else self._pre.forward(x_JD, tape)

    def leave(
        self,
        inner_JF: Tensor,
        last: _LinearOnRows,
        x_JD: Tensor,
        dropout: DropoutBytes | None,
        tape: Tape,
    ) -> Tensor:
        """Apply the sub-layer's last linear layer, dropout, residual connection and post-norm."""
        norm = None if self._post is None else self._post.reserve(len(inner_JF), tape)
        tape.append(dropout)
        residual_JD = x_JD if self._has_residual else None
        return last.forward(inner_JF, dropout=dropout, add_JF=residual_JD, norm=norm)

    def backward_from_output(self, grad_JD: Tensor, tape: Tape) -> tuple[Tensor | None, Tensor]:
        """Compute the gradients of the residual and of the last linear layer's result."""
        dropout = tape.pop()
        if self._post is not None:
            grad_input_JD, grad_dropped_JD = self._post.backward(grad_JD, tape, dropout=dropout)
        else:
            grad_input_JD, grad_dropped_JD = self._kernels.norm_backward(
                grad_JD, None, None, dropout=dropout
            )
        return grad_input_JD if self._has_residual else None, grad_dropped_JD

    def backward_to_input(
        self, grad_JF: Tensor, first: _LinearOnRows, residual_JD: Tensor | None, tape: Tape
    ) -> Tensor:
        """Compute the gradient of the rows from that of the first linear layer's result."""
        if self._pre is None:
            return first.backward(grad_JF, add_JD=residual_JD)
        return self._pre.backward(first.backward(grad_JF), tape, add_JD=residual_JD)[0]


class AttentionOnRows:
    """One attention with norm, residual connection and dropout.

    Args:
        kernels: of this machine.
        config: of the model.
        attention: holds the weights.
        norm: the one around it.
        site: the name of the place.
        is_causal: True if a position attends only to itself and those before it.
        sees_memory: True for cross-attention.
    """

    def __init__(
        self,
        kernels: Kernels,
        config: ModelConfig,
        attention: MultiHeadAttention,
        norm: nn.LayerNorm | None,
        *,
        site: str,
        is_causal: bool = False,
        sees_memory: bool = False,
    ) -> None:
        self._kernels = kernels
        self._config = config
        self._site = site
        self._is_causal = is_causal
        self._around = _NormAndResidual(kernels, config, norm)
        parts = [attention.query, attention.key, attention.value]
        self._first = _LinearOnRows(kernels, parts[:1] if sees_memory else parts)
        self._memory = _LinearOnRows(kernels, parts[1:]) if sees_memory else None
        self._output = _LinearOnRows(kernels, [attention.output])

    def refresh_weights(self) -> None:
        """Pack the weights as they are now."""
        for layer in (self._first, self._memory, self._output):
            if layer is not None:
                layer.refresh_weights()

    def dropout_widths(self) -> dict[str, int]:
        """Give the places where dropout may apply, and how many numbers a row has there."""
        return {self._site: self._output.width}

    def forward(self, x_JD: Tensor, run: StackPass) -> Tensor:
        """Attend, from rows to rows."""
        entering_JD = self._around.enter(x_JD, run.tape)
        projected = [self._first.forward(entering_JD)]
        if self._memory is not None:
            assert run.memory_ID is not None
            projected.append(self._memory.forward(run.memory_ID))
        context_JX = self._kernels.empty(len(x_JD), self._config.num_heads * self._config.d_value)
        self._kernels.attend(self._call(run, projected, context_JX))
        run.tape.append((entering_JD, context_JX, projected))
        dropout = run.dropout.pop(self._site, None)
        return self._around.leave(context_JX, self._output, x_JD, dropout, run.tape)

    def backward(
        self, grad_JD: Tensor, grad_memory_ID: Tensor | None, run: StackPass
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the gradient of the rows, and add to that of the memory."""
        residual_JD, grad_output_JD = self._around.backward_from_output(grad_JD, run.tape)
        entering_JD, context_JX, projected = run.tape.pop()
        self._output.add_gradients(context_JX, grad_output_JD)
        grad_context_JX = self._output.backward(grad_output_JD)
        grads = [torch.empty_like(part) for part in projected]
        call = self._call(run, projected, context_JX)
        call.grad_context = grad_context_JX.data_ptr()
        call.grad_query, call.grad_key, call.grad_value = (
            part.data_ptr() for part in self._split(grads)
        )
        self._kernels.attend(call)
        if run.add_losses is not None:
            run.add_losses(self._site, self._split(projected)[:2], self._split(grads)[:2])
        self._first.add_gradients(entering_JD, grads[0])
        if self._memory is not None:
            assert run.memory_ID is not None
            self._memory.add_gradients(run.memory_ID, grads[1])
            grad_memory_ID = self._memory.backward(grads[1], add_JD=grad_memory_ID)
        grad_JD = self._around.backward_to_input(grads[0], self._first, residual_JD, run.tape)
        return grad_JD, grad_memory_ID

    def _split(self, projected: Sequence[Tensor]) -> list[Tensor]:
        """Split into queries, keys and values, which are columns of the same rows."""
        keys = self._config.num_heads * self._config.d_key
        if len(projected) == 1:
            whole = projected[0]
            return [whole[:, :keys], whole[:, keys : 2 * keys], whole[:, 2 * keys :]]
        return [projected[0], projected[1][:, :keys], projected[1][:, keys:]]

    def _call(
        self, run: StackPass, projected: Sequence[Tensor], context_JX: Tensor
    ) -> AttentionCall:
        config = self._config
        sentences = run.sentences
        seen = run.memory_sentences if self._memory is not None else sentences
        assert seen is not None
        query, key, value = self._split(projected)
        return AttentionCall(
            sentences=len(sentences.start_X) - 1,
            heads=config.num_heads,
            key_width=config.d_key,
            value_width=config.d_value,
            start=sentences.start_X.data_ptr(),
            key_start=seen.start_X.data_ptr(),
            query_stride=query.stride(0),
            key_stride=key.stride(0),
            value_stride=value.stride(0),
            query=query.data_ptr(),
            key=key.data_ptr(),
            value=value.data_ptr(),
            scale=config.d_key**-0.5 if config.scale_scores else 1.0,
            is_causal=self._is_causal,
            context_stride=context_JX.stride(0),
            context=context_JX.data_ptr(),
        )


class FeedForwardOnRows:
    """The feed-forward network with norm, residual connection and dropout.

    Args:
        kernels: of this machine.
        config: of the model.
        network: holds the weights.
        norm: the one around it.
        site: the name of the place.
    """

    def __init__(
        self,
        kernels: Kernels,
        config: ModelConfig,
        network: FeedForward,
        norm: nn.LayerNorm | None,
        *,
        site: str,
    ) -> None:
        self._site = site
        self._around = _NormAndResidual(kernels, config, norm)
        self._inner = _LinearOnRows(kernels, [network.inner])
        self._outer = _LinearOnRows(kernels, [network.outer])

    def refresh_weights(self) -> None:
        """Pack the weights as they are now."""
        self._inner.refresh_weights()
        self._outer.refresh_weights()

    def dropout_widths(self) -> dict[str, int]:
        """Give the places where dropout may apply, and how many numbers a row has there."""
        return {self._site: self._outer.width, f"{self._site}.activated": self._inner.width}

    def forward(self, x_JD: Tensor, run: StackPass) -> Tensor:
        """Widen, activate and narrow, from rows to rows."""
        entering_JD = self._around.enter(x_JD, run.tape)
        dropout = run.dropout.pop(f"{self._site}.activated", None)
        activated_JF = self._inner.forward(entering_JD, has_relu=True, dropout=dropout)
        run.tape.append((entering_JD, activated_JF, 1.0 if dropout is None else dropout.factor))
        dropout = run.dropout.pop(self._site, None)
        return self._around.leave(activated_JF, self._outer, x_JD, dropout, run.tape)

    def backward(
        self, grad_JD: Tensor, grad_memory_ID: Tensor | None, run: StackPass
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the gradient of the rows; that of the memory stays as it is."""
        residual_JD, grad_output_JD = self._around.backward_from_output(grad_JD, run.tape)
        entering_JD, activated_JF, factor = run.tape.pop()
        self._outer.add_gradients(activated_JF, grad_output_JD)
        # Numbers that ReLU or dropout set to 0 are 0 in `activated_JF`: their gradient is 0 too.
        grad_inner_JF = self._outer.backward(
            grad_output_JD, gate_JD=activated_JF, gate_factor=factor
        )
        self._inner.add_gradients(entering_JD, grad_inner_JF)
        grad_JD = self._around.backward_to_input(grad_inner_JF, self._inner, residual_JD, run.tape)
        return grad_JD, grad_memory_ID


def gradient_of(parameter: Tensor | None) -> Tensor | None:
    """Return the gradient to add to; None for a frozen or missing parameter."""
    return None if parameter is None or not parameter.requires_grad else parameter.grad


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0].detach() if len(tensors) == 1 else torch.cat(tuple(tensors)).detach()
