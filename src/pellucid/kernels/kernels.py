"""The compiled kernels as functions of tensors.

Matrices are rows of positions, their columns beside each other in memory; what lies between two
rows does not matter. Numbers of rows are in the kernels' own type, float32 or bfloat16; weights,
gradients of weights and what is summed over are float32.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pellucid.kernels.calls import (
    AttentionCall,
    Dropping,
    EmbeddingCall,
    LinearCall,
    LossCall,
    NormCall,
    OrthogonalCall,
    OuterCall,
)
from pellucid.kernels.loading import find_library

__all__ = ["BYTES_PER_CHUNK", "WIDTH_STEP", "Drawn", "Kernels", "Norm", "find_kernels"]

WIDTH_STEP = 16
"""What widths of the model are multiples of: numbers of the widest vector."""

BYTES_PER_CHUNK = 12 << 20
"""What the loss keeps of some rows, at most."""

CHUNK_PARTS = 12
"""What the parts that threads take of these rows are a multiple of: many numbers divide it."""


class Drawn(NamedTuple):
    """What dropout drew: bytes, those below the threshold drop, and the others' factor."""

    drawn: Tensor
    threshold: int
    factor: float


class Norm(NamedTuple):
    """A layer norm, and what it leaves for the way back."""

    gain: Tensor
    shift: Tensor
    epsilon: float
    normal_JD: Tensor
    inverse_J: Tensor


def find_kernels(precision: Literal["float32", "bfloat16"]) -> Kernels | str:
    """The kernels of this machine, or why there are none."""
    library = find_library(precision)
    return library if isinstance(library, str) else Kernels(library, precision)


class Kernels:
    """The kernels of one library.

    Args:
        library: as loaded.
        precision: of the numbers of rows.
    """

    def __init__(self, library: ctypes.CDLL, precision: Literal["float32", "bfloat16"]) -> None:
        self.dtype = torch.float32 if precision == "float32" else torch.bfloat16
        self._library = library
        library.packed_size.restype = library.filled.restype = ctypes.c_int64
        library.packed_size.argtypes = [ctypes.c_int64] * 2
        library.filled.argtypes = [ctypes.c_int64]
        library.pack.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 4, ctypes.c_void_p]
        library.sum_rows.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 2, ctypes.c_void_p]
        library.random_words.argtypes = [ctypes.c_int64, *[ctypes.c_void_p] * 3]

    def rows(self, count: int, width: int) -> Tensor:
        """Make room for rows."""
        return torch.empty(count, width, dtype=self.dtype)

    def random_bytes(self, states: Sequence[np.ndarray], counts: Sequence[int]) -> list[Tensor]:
        """Draw the bytes of fresh generators, those of `pellucid.randomness.random_bytes`.

        Args:
            states: by `pellucid.randomness.generator_state`.
            counts: how many bytes of each.
        """
        if not states:
            return []
        words = [-(-count // 8) for count in counts]
        drawn = [torch.empty(8 * number, dtype=torch.uint8) for number in words]
        asked = np.stack(states), np.array(words), np.array([one.data_ptr() for one in drawn])
        self._library.random_words(len(words), *(array.ctypes.data for array in asked))
        return [one[:count] for one, count in zip(drawn, counts, strict=True)]

    def pack(
        self, matrix_FD: Tensor, *, turned: bool, filled: int = 0, into: Tensor | None = None
    ) -> Tensor:
        """Lay a float32 matrix as the right factor of products.

        Args:
            matrix_FD: its rows one after the other.
            turned: whether rows are multiplied by its transpose, as a linear layer does.
            filled: numbers a sum has, where more than the matrix.
            into: an earlier result for a matrix of this shape, which is written over.
        """
        rows, columns = matrix_FD.shape
        sums, across = (columns, rows) if turned else (rows, columns)
        filled = max(filled, sums)
        if into is None:
            into = torch.empty(self._library.packed_size(filled, across), dtype=torch.int32)
        self._library.pack(
            matrix_FD.data_ptr(), rows, columns, int(turned), filled, into.data_ptr()
        )
        return into

    def sum_rows(self, matrix_VD: Tensor) -> Tensor:
        """Sum a float32 matrix's rows; PyTorch's sums depend on the number of threads."""
        sum_D = torch.empty(matrix_VD.shape[1])
        self._library.sum_rows(matrix_VD.data_ptr(), *matrix_VD.shape, sum_D.data_ptr())
        return sum_D

    def linear(
        self,
        x_JD: Tensor,
        packed: Tensor,
        width: int,
        *,
        bias_F: Tensor | None = None,
        has_relu: bool = False,
        dropped: Drawn | None = None,
        gate_JF: Tensor | None = None,
        gate_factor: float = 1.0,
        add_JF: Tensor | None = None,
        norm: Norm | None = None,
    ) -> Tensor:
        """Multiply rows by a packed factor; then, in this order, as far as they are given.

        Args:
            x_JD: the rows.
            packed: by `pack`.
            width: columns of the result.
            bias_F: is added.
            has_relu: whether what is negative becomes 0.
            dropped: by dropout.
            gate_JF: where it is 0 the result is too; elsewhere it is multiplied by the factor.
            gate_factor: that factor.
            add_JF: is added.
            norm: layer norm; its tensors are filled.

        Returns:
            ``out_JF``.
        """
        out_JF = self.rows(x_JD.shape[0], width)
        call = LinearCall(
            rows=x_JD.shape[0],
            inner=x_JD.shape[1],
            outer=width,
            x_length=x_JD.stride(0),
            x=x_JD.data_ptr(),
            packed=packed.data_ptr(),
            bias=_pointer(bias_F),
            has_relu=has_relu,
            dropout=_dropping(dropped),
            gate=_pointer(gate_JF),
            gate_factor=gate_factor,
            add=_pointer(add_JF),
            out=out_JF.data_ptr(),
            **_norm_fields(norm),
        )
        self._run("linear", call)
        return out_JF

    def norm(self, x_JD: Tensor, norm: Norm) -> Tensor:
        """Apply layer norm; its tensors are filled."""
        out_JD = self.rows(*x_JD.shape)
        call = LinearCall(
            rows=x_JD.shape[0],
            outer=x_JD.shape[1],
            x=x_JD.data_ptr(),
            out=out_JD.data_ptr(),
            **_norm_fields(norm),
        )
        self._run("norm", call)
        return out_JD

    def norm_backward(
        self,
        grad_JD: Tensor,
        norm: Norm | None,
        grads: tuple[Tensor, Tensor] | None,
        *,
        add_JD: Tensor | None = None,
        dropped: Drawn | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Go back through layer norm, and through the dropout before it.

        Args:
            grad_JD: of what left.
            norm: as it was filled; None for none.
            grads: of gain and shift, which grow.
            add_JD: is added to the first result.
            dropped: by dropout.

        Returns:
            The gradient of what entered, and that times what dropout did, without what is added;
            where nothing was dropped and nothing is added both are the same.
        """
        entering_JD = dropped_JD = grad_JD
        needs_entering = norm is not None or add_JD is not None
        if needs_entering:
            entering_JD = dropped_JD = self.rows(*grad_JD.shape)
        if dropped is not None:
            dropped_JD = self.rows(*grad_JD.shape)
        call = NormCall(
            rows=grad_JD.shape[0],
            width=grad_JD.shape[1],
            grad=grad_JD.data_ptr(),
            add=_pointer(add_JD),
            dropout=_dropping(dropped),
            entering=_pointer(entering_JD) if needs_entering else None,
            dropped=None if dropped is None else dropped_JD.data_ptr(),
        )
        if norm is not None and grads is not None:
            call.normal, call.inverse = norm.normal_JD.data_ptr(), norm.inverse_J.data_ptr()
            call.gain = norm.gain.data_ptr()
            call.grad_gain, call.grad_shift = (grad.data_ptr() for grad in grads)
        if call.entering or call.dropped:
            self._run("norm_backward", call)
        return entering_JD, dropped_JD

    def weight_gradient(
        self,
        x_JD: Tensor,
        grad_JF: Tensor,
        weights: Sequence[Tensor | None],
        biases: Sequence[Tensor | None],
    ) -> None:
        """Let the gradients of some linear layers' weights and biases grow.

        Args:
            x_JD: what entered them.
            grad_JF: of what left, each layer's as many columns beside each other.
            weights: one gradient for each layer, or None where it is not wanted.
            biases: likewise.
        """
        if all(grad is None for grad in (*weights, *biases)):
            return
        call = OuterCall(
            rows=x_JD.shape[0],
            inner=x_JD.shape[1],
            outer=grad_JF.shape[1] // len(weights),
            parts=len(weights),
            x_length=x_JD.stride(0),
            grad_length=grad_JF.stride(0),
            x=x_JD.data_ptr(),
            grad=grad_JF.data_ptr(),
        )
        for index, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            call.weight[index], call.bias[index] = _pointer(weight), _pointer(bias)
        self._run("weight_gradient", call)

    def attend(self, call: AttentionCall) -> None:
        """Attend, or go back through it."""
        self._run("attend", call)

    def cross_entropy(
        self,
        states_PD: Tensor,
        table_VD: Tensor,
        packed: tuple[Tensor, Tensor],
        table_sum_D: Tensor,
        target_P: Tensor,
        *,
        smoothing: float,
        factor: float,
        grad_table_VD: Tensor | None,
        r_drop: float = 0.0,
    ) -> tuple[Tensor, Tensor]:
        """Project, take the softmax, compare with the true tokens, and go back.

        Args:
            states_PD: one row for each target token.
            table_VD: the projection.
            packed: the projection for logits, turned, and for what goes back, filled.
            table_sum_D: the sum of the projection's rows.
            target_P: the true tokens.
            smoothing: as in `pellucid.train.fast.loss`.
            factor: of all gradients.
            grad_table_VD: grows; None where it is not wanted.
            r_drop: as in `pellucid.train.fast.loss`.

        Returns:
            ``plain_P``, of each row −log p(y), and ``grad_states_PD``.
        """
        rows, width = states_PD.shape
        filled = self.filled(table_VD.shape[0])
        chunk_rows = min(self.chunk_rows(table_VD.shape[0]), rows)
        chunk, scaled = self.rows(chunk_rows, filled), self.rows(chunk_rows, width)
        plain_P = torch.empty(rows)
        grad_states_PD = self.rows(rows, width)
        call = LossCall(
            rows=rows,
            width=width,
            vocabulary=table_VD.shape[0],
            states=states_PD.data_ptr(),
            table=table_VD.data_ptr(),
            packed_turned=packed[0].data_ptr(),
            packed=packed[1].data_ptr(),
            table_sum=table_sum_D.data_ptr(),
            target=target_P.data_ptr(),
            smoothing=smoothing,
            factor=factor,
            agreement=r_drop / 2,
            chunk_rows=chunk_rows,
            chunk=chunk.data_ptr(),
            scaled=scaled.data_ptr(),
            plain=plain_P.data_ptr(),
            grad_states=grad_states_PD.data_ptr(),
            grad_table=_pointer(grad_table_VD),
        )
        self._run("cross_entropy", call)
        return plain_P, grad_states_PD

    def orthogonalize(self, matrices: Tensor, coefficients: tuple[float, float, float]) -> Tensor:
        """Bring the singular values of matrices near 1, as `pellucid.train.weights.muon` says.

        Args:
            matrices: ``(number, m, n)``, float32, m and n multiples of 16.
            coefficients: of the quintic.

        Returns:
            As many.
        """
        is_tall = matrices.shape[1] > matrices.shape[2]
        wide = (matrices.transpose(1, 2) if is_tall else matrices).clone(
            memory_format=torch.contiguous_format
        )
        number, rows, columns = wide.shape
        call = OrthogonalCall(number, rows, columns, wide.data_ptr(), *coefficients)
        self._run("orthogonalize", call)
        return wide.transpose(1, 2) if is_tall else wide

    def filled(self, vocabulary: int) -> int:
        """Columns of a row of the loss's chunk."""
        return int(self._library.filled(vocabulary))

    def chunk_rows(self, vocabulary: int) -> int:
        """Rows of a chunk of the loss: such that the third-level cache holds it."""
        per_thread = 96 // self.dtype.itemsize
        row = self.dtype.itemsize * self.filled(vocabulary)
        parts = BYTES_PER_CHUNK // (row * per_thread)
        return per_thread * max(1, parts - parts % CHUNK_PARTS if parts > CHUNK_PARTS else parts)

    def embed(self, call: EmbeddingCall) -> None:
        """Look rows up, add positions, and drop; or, with a gradient, go back."""
        embed = self._library.embed_backward if call.grad else self._library.embed
        embed(ctypes.byref(call))

    def _run(self, name: str, call: ctypes.Structure) -> None:
        if getattr(self._library, name)(ctypes.byref(call)):
            raise MemoryError(f"not enough memory for {name}")


def _pointer(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


_NOTHING_DROPPED = Dropping()


def _dropping(drawn: Drawn | None) -> Dropping:
    if drawn is None:
        return _NOTHING_DROPPED
    return Dropping(drawn.drawn.data_ptr(), drawn.threshold, drawn.factor)


def _norm_fields(norm: Norm | None) -> dict[str, Any]:
    if norm is None:
        return {}
    return {
        "gain": norm.gain.data_ptr(),
        "shift": norm.shift.data_ptr(),
        "epsilon": norm.epsilon,
        "normal": norm.normal_JD.data_ptr(),
        "inverse": norm.inverse_J.data_ptr(),
    }
