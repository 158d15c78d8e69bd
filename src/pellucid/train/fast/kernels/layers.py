"""Sub-layers on the compiled kernels, forward and back.

All positions of a batch lie under each other as rows, J of them, without padding; those attended
to likewise, I. Gradients of weights grow in the model's parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pellucid.config import ModelConfig
from pellucid.kernels import AttentionCall, Drawn, Kernels, Norm
from pellucid.model import FeedForward, MultiHeadAttention

__all__ = [
    "AttentionOnRows",
    "FeedForwardOnRows",
    "NormOnRows",
    "Sentences",
    "gradient_of",
    "require_ids",
]


class Sentences(NamedTuple):
    """Where sentences lie among rows.

    Attributes:
        ids_J: the token of each row.
        positions_J: its position in its sentence.
        start_X: the row that each sentence begins at, and the end of the last.
        longest: positions of the longest.
    """

    ids_J: Tensor
    positions_J: Tensor
    start_X: Tensor
    longest: int

    @classmethod
    def of(cls, ids_BL: Tensor, mask_BL: Tensor) -> Sentences:
        """Take padded sentences together."""
        start_X = torch.zeros(len(ids_BL) + 1, dtype=torch.int64)
        torch.cumsum(mask_BL.sum(dim=1), dim=0, out=start_X[1:])
        positions_BL = torch.arange(ids_BL.shape[1]).expand_as(ids_BL)
        return cls(ids_BL[mask_BL], positions_BL[mask_BL], start_X, ids_BL.shape[1])


class _LinearOnRows:
    """Linear layers that see the same rows: one product, their results beside each other.

    Args:
        kernels: of this machine.
        layers: whose weights they are.
    """

    def __init__(self, kernels: Kernels, layers: Sequence[nn.Linear]) -> None:
        self._kernels, self._layers = kernels, layers
        widths = [layer.out_features for layer in layers]
        self.width = sum(widths)
        # Gradients of layers of one width are worked out together.
        self._groups = [list(layers)] if len(set(widths)) == 1 else [[one] for one in layers]
        self._inner = layers[0].in_features
        self._forward: Tensor | None = None
        self._back: Tensor | None = None
        self.bias_F: Tensor | None = None

    def refresh_weights(self) -> None:
        """Take the weights as they are now."""
        weight_FD = _joined([layer.weight for layer in self._layers])
        if self._layers[0].bias is not None:
            self.bias_F = _joined([layer.bias for layer in self._layers])
        self._forward = self._kernels.pack(weight_FD, turned=True, into=self._forward)
        self._back = self._kernels.pack(weight_FD, turned=False, into=self._back)

    @property
    def packed(self) -> Tensor:
        """The weights for the way forward."""
        assert self._forward is not None
        return self._forward

    def run(self, x_JD: Tensor, *, has_relu: bool = False, dropped: Drawn | None = None) -> Tensor:
        """Compute $XW^T + b$, and what may follow."""
        return self._kernels.linear(
            x_JD, self.packed, self.width, bias_F=self.bias_F, has_relu=has_relu, dropped=dropped
        )

    def back(
        self,
        grad_JF: Tensor,
        *,
        add_JD: Tensor | None = None,
        gate_JD: Tensor | None = None,
        gate_factor: float = 1.0,
    ) -> Tensor:
        """From the gradient of what left to that of what entered, and what may follow."""
        assert self._back is not None
        return self._kernels.linear(
            grad_JF,
            self._back,
            self._inner,
            gate_JF=gate_JD,
            gate_factor=gate_factor,
            add_JF=add_JD,
        )

    def grow(self, x_JD: Tensor, grad_JF: Tensor) -> None:
        """Let the gradients of weights and biases grow."""
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
        norm: whose weights they are.
    """

    def __init__(self, kernels: Kernels, norm: nn.LayerNorm) -> None:
        self._kernels, self._module = kernels, norm
        self._kept: Norm | None = None

    def new(self, rows: int) -> Norm:
        """Make room for what is kept of so many rows."""
        module = self._module
        normal_JD = self._kernels.rows(rows, len(module.weight))
        self._kept = Norm(module.weight, module.bias, module.eps, normal_JD, torch.empty(rows))
        return self._kept

    def forget(self) -> None:
        """Give up what is kept for the way back."""
        self._kept = None

    def run(self, x_JD: Tensor) -> Tensor:
        """Normalize rows."""
        return self._kernels.norm(x_JD, self.new(len(x_JD)))

    def back(
        self, grad_JD: Tensor, *, add_JD: Tensor | None = None, dropped: Drawn | None = None
    ) -> tuple[Tensor, Tensor]:
        """Go back, as `Kernels.norm_backward` does; what was kept is given up."""
        kept, self._kept = self._kept, None
        gain, shift = self._module.weight, self._module.bias
        found = gradient_of(gain), gradient_of(shift)
        grads = tuple(
            torch.zeros_like(gain) if grad is None else grad for grad in found
        )  # What is frozen has one that nobody looks at.
        return self._kernels.norm_backward(
            grad_JD, kept, (grads[0], grads[1]), add_JD=add_JD, dropped=dropped
        )


class _Around:
    """What stands around a sub-layer: norm, residual connection and dropout."""

    def __init__(self, kernels: Kernels, config: ModelConfig, norm: nn.LayerNorm | None) -> None:
        self._kernels = kernels
        self._has_residual = config.residual
        self._pre = NormOnRows(kernels, norm) if norm and config.norm == "pre" else None
        self._post = NormOnRows(kernels, norm) if norm and config.norm == "post" else None
        self._input_JD: Tensor | None = None
        self._dropped: Drawn | None = None

    def forget(self) -> None:
        """Give up what is kept for the way back."""
        self._input_JD = self._dropped = None
        for norm in (self._pre, self._post):
            if norm is not None:
                norm.forget()

    def enter(self, x_JD: Tensor) -> Tensor:
        """What the sub-layer sees of the rows."""
        self._input_JD = x_JD if self._has_residual else None
        return x_JD if self._pre is None else self._pre.run(x_JD)

    def leave(self, inner_JF: Tensor, last: _LinearOnRows, dropped: Drawn | None) -> Tensor:
        """Apply the sub-layer's last linear layer and all that follows."""
        self._dropped = dropped
        input_JD, self._input_JD = self._input_JD, None
        return self._kernels.linear(
            inner_JF,
            last.packed,
            last.width,
            bias_F=last.bias_F,
            dropped=dropped,
            add_JF=input_JD,
            norm=None if self._post is None else self._post.new(len(inner_JF)),
        )

    def back(self, grad_JD: Tensor) -> tuple[Tensor | None, Tensor]:
        """The gradients of the residual connection and of the last linear layer's result."""
        dropped, self._dropped = self._dropped, None
        if self._post is not None:
            entering_JD, dropped_JD = self._post.back(grad_JD, dropped=dropped)
        else:
            entering_JD, dropped_JD = self._kernels.norm_backward(
                grad_JD, None, None, dropped=dropped
            )
        return entering_JD if self._has_residual else None, dropped_JD

    def back_to_input(
        self, grad_JF: Tensor, first: _LinearOnRows, residual_JD: Tensor | None
    ) -> Tensor:
        """From the gradient of the first linear layer's result to that of the rows."""
        if self._pre is None:
            return first.back(grad_JF, add_JD=residual_JD)
        return self._pre.back(first.back(grad_JF), add_JD=residual_JD)[0]


class AttentionOnRows:
    """One attention with all around it.

    Args:
        kernels: of this machine.
        config: of the model.
        attention: whose weights they are.
        norm: the one around it.
        site: the name of the place.
        is_causal: whether a position sees none that follows it.
        sees_memory: whether keys and values come from other rows.
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
        self._kernels, self._config, self._site = kernels, config, site
        self._is_causal, self.sees_memory = is_causal, sees_memory
        self._around = _Around(kernels, config, norm)
        parts = [attention.query, attention.key, attention.value]
        self._first = _LinearOnRows(kernels, parts[:1] if sees_memory else parts)
        self._memory = _LinearOnRows(kernels, parts[1:]) if sees_memory else None
        self._output = _LinearOnRows(kernels, [attention.output])
        self._kept: tuple[Tensor, ...] = ()
        self._seen: tuple[Sentences, Sentences, Tensor | None] | None = None

    def forget(self) -> None:
        """Give up what is kept for the way back."""
        self._kept, self._seen = (), None
        self._around.forget()

    def refresh_weights(self) -> None:
        """Take the weights as they are now."""
        for layer in (self._first, self._memory, self._output):
            if layer is not None:
                layer.refresh_weights()

    def drops(self) -> dict[str, int]:
        """The places where dropout may drop, and how many numbers a row has there."""
        return {self._site: self._output.width}

    def run(
        self,
        x_JD: Tensor,
        rows: Sentences,
        drawn: Mapping[str, Drawn],
        *,
        memory_ID: Tensor | None = None,
        memory_rows: Sentences | None = None,
    ) -> Tensor:
        """Attend, from rows to rows."""
        config = self._config
        entering_JD = self._around.enter(x_JD)
        projected = [self._first.run(entering_JD)]
        if memory_ID is not None and self._memory is not None:
            projected.append(self._memory.run(memory_ID))
        context_JX = self._kernels.rows(len(x_JD), config.num_heads * config.d_value)
        call = self._call(rows, memory_rows or rows, projected, context_JX)
        self._kernels.attend(call)
        self._kept = (entering_JD, context_JX, *projected)
        self._seen = rows, memory_rows or rows, memory_ID
        return self._around.leave(context_JX, self._output, drawn.get(self._site))

    def back(self, grad_JD: Tensor, grad_memory_ID: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Go back to the rows, and to what was attended to, whose gradient so far is given."""
        assert self._seen is not None
        (entering_JD, context_JX, *projected), self._kept = self._kept, ()
        (rows, memory_rows, memory_ID), self._seen = self._seen, None
        residual_JD, grad_output_JD = self._around.back(grad_JD)
        self._output.grow(context_JX, grad_output_JD)
        grad_context_JX = self._output.back(grad_output_JD)
        grads = [torch.empty_like(part) for part in projected]
        call = self._call(rows, memory_rows, projected, context_JX)
        call.grad_context = grad_context_JX.data_ptr()
        call.grad_query, call.grad_key, call.grad_value = (
            part.data_ptr() for part in self._split(grads)
        )
        self._kernels.attend(call)
        self._first.grow(entering_JD, grads[0])
        if self._memory is not None and memory_ID is not None:
            self._memory.grow(memory_ID, grads[1])
            grad_memory_ID = self._memory.back(grads[1], add_JD=grad_memory_ID)
        return self._around.back_to_input(grads[0], self._first, residual_JD), grad_memory_ID

    def _split(self, projected: Sequence[Tensor]) -> list[Tensor]:
        """Queries, keys and values, each as columns of rows."""
        keys = self._config.num_heads * self._config.d_key
        if len(projected) == 1:
            whole = projected[0]
            return [whole[:, :keys], whole[:, keys : 2 * keys], whole[:, 2 * keys :]]
        return [projected[0], projected[1][:, :keys], projected[1][:, keys:]]

    def _call(
        self,
        rows: Sentences,
        memory_rows: Sentences,
        projected: Sequence[Tensor],
        context_JX: Tensor,
    ) -> AttentionCall:
        config = self._config
        query, key, value = self._split(projected)
        return AttentionCall(
            sentences=len(rows.start_X) - 1,
            heads=config.num_heads,
            key_width=config.d_key,
            value_width=config.d_value,
            start=rows.start_X.data_ptr(),
            memory_start=memory_rows.start_X.data_ptr(),
            query_length=query.stride(0),
            key_length=key.stride(0),
            value_length=value.stride(0),
            query=query.data_ptr(),
            key=key.data_ptr(),
            value=value.data_ptr(),
            factor=config.d_key**-0.5 if config.scale_scores else 1.0,
            is_causal=self._is_causal,
            context_length=context_JX.stride(0),
            context=context_JX.data_ptr(),
        )


class FeedForwardOnRows:
    """The feed-forward network with all around it.

    Args:
        kernels: of this machine.
        config: of the model.
        network: whose weights they are.
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
        self._around = _Around(kernels, config, norm)
        self._inner = _LinearOnRows(kernels, [network.inner])
        self._outer = _LinearOnRows(kernels, [network.outer])
        self._kept: tuple[Tensor, ...] = ()
        self._factor = 1.0

    def forget(self) -> None:
        """Give up what is kept for the way back."""
        self._kept = ()
        self._around.forget()

    def refresh_weights(self) -> None:
        """Take the weights as they are now."""
        self._inner.refresh_weights()
        self._outer.refresh_weights()

    def drops(self) -> dict[str, int]:
        """The places where dropout may drop, and how many numbers a row has there."""
        return {self._site: self._outer.width, f"{self._site}.activated": self._inner.width}

    def run(self, x_JD: Tensor, drawn: Mapping[str, Drawn]) -> Tensor:
        """Widen, activate, narrow, from rows to rows."""
        entering_JD = self._around.enter(x_JD)
        inside = drawn.get(f"{self._site}.activated")
        self._factor = 1.0 if inside is None else inside.factor
        activated_JF = self._inner.run(entering_JD, has_relu=True, dropped=inside)
        self._kept = entering_JD, activated_JF
        return self._around.leave(activated_JF, self._outer, drawn.get(self._site))

    def back(self, grad_JD: Tensor) -> Tensor:
        """Go back to the rows."""
        (entering_JD, activated_JF), self._kept = self._kept, ()
        residual_JD, grad_output_JD = self._around.back(grad_JD)
        self._outer.grow(activated_JF, grad_output_JD)
        grad_inner_JF = self._outer.back(
            grad_output_JD, gate_JD=activated_JF, gate_factor=self._factor
        )
        self._inner.grow(entering_JD, grad_inner_JF)
        return self._around.back_to_input(grad_inner_JF, self._inner, residual_JD)


def gradient_of(parameter: Tensor | None) -> Tensor | None:
    """The gradient that grows; None for what is frozen or not there."""
    return None if parameter is None or not parameter.requires_grad else parameter.grad


def require_ids(ids_J: Tensor, vocabulary: int) -> None:
    """Refuse tokens that a table has no row for: kernels would read what lies behind it.

    Raises:
        IndexError: as PyTorch's own lookup does.
    """
    least, most = (int(bound) for bound in torch.aminmax(ids_J))
    if least < 0 or most >= vocabulary:
        raise IndexError(f"token ids from {least} to {most} in a vocabulary of {vocabulary}")


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0].detach() if len(tensors) == 1 else torch.cat(tuple(tensors)).detach()
