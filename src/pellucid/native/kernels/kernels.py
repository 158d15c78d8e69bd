"""The compiled kernels as functions of tensors.

They are built with the package if a C compiler is available: one library for each vector width and
precision. Everything that uses them falls back on PyTorch without them.

Matrices are rows of positions, whose columns are adjacent in memory; rows may be any stride apart.
Rows are in the kernels' own type, float32 or bfloat16; weights, their gradients and sums are
float32.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pellucid.native.kernels.calls import (
    AttentionCall,
    DropoutBytes,
    EmbeddingCall,
    LinearCall,
    LossCall,
    NormCall,
    OrthogonalCall,
    WeightGradientCall,
    mask_of,
    tensor_address,
)
from pellucid.native.loading import load_library

FOLDER = Path(__file__).parent
"""The folder of the sources and libraries."""

WIDTH_STEP = 16
"""Widths of the model must be multiples of this: the numbers in the widest vector."""

BYTES_PER_CHUNK = 12 << 20
"""The most memory that the loss takes for the exponentials of a chunk of rows."""

CHUNK_PARTS = 12
"""The parts of a chunk, which threads share, are a multiple of this: it has many divisors."""


class KernelNorm(NamedTuple):
    """A layer norm, and what its backward pass needs: it is filled by the forward pass."""

    gain: Tensor
    shift: Tensor
    epsilon: float
    normal_JD: Tensor
    inverse_J: Tensor


def library_name(precision: Literal["float32", "bfloat16"]) -> str | None:
    """Name the library for this processor, such as ``avx2_float32``; None if no library fits.

    PyTorch reports what the processor has, so ``ATEN_CPU_CAPABILITY`` applies here too. Processors
    without bfloat16 instructions get a library that computes in float32, which is slow but correct.
    """
    capability = torch.backends.cpu.get_cpu_capability()
    # The package builds kernels for Linux on x86-64 only: docs/decisions/0012.
    if not sys.platform.startswith("linux") or capability not in ("AVX2", "AVX512"):
        return None
    is_wide = capability == "AVX512"
    if precision == "bfloat16":
        # PyTorch has no public name for this question.
        is_wide = is_wide and torch.cpu._is_avx512_bf16_supported()
    return f"{'avx512' if is_wide else 'avx2'}_{precision}"


def find_kernels(precision: Literal["float32", "bfloat16"]) -> Kernels | str:
    """Find the kernels for this machine, or return why they are unavailable."""
    name = library_name(precision)
    if name is None:
        return "this kind of processor or system is not supported"
    library = load_library(FOLDER / f"{name}.so", FOLDER, f"{name}.so")
    return library if isinstance(library, str) else Kernels(library, precision)


class Kernels:
    """The kernels of one library.

    Args:
        library: as loaded.
        precision: of rows.
    """

    def __init__(self, library: ctypes.CDLL, precision: Literal["float32", "bfloat16"]) -> None:
        self.dtype = torch.float32 if precision == "float32" else torch.bfloat16
        self._library = library
        # Without these types ctypes would cut results and arguments to 32 bits.
        library.packed_size.restype = library.padded_vocabulary.restype = ctypes.c_int64
        library.packed_size.argtypes = [ctypes.c_int64] * 2
        library.padded_vocabulary.argtypes = [ctypes.c_int64]
        library.pack.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 4, ctypes.c_void_p]
        library.sum_rows.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 2, ctypes.c_void_p]
        library.random_uint64.argtypes = [ctypes.c_int64, *[ctypes.c_void_p] * 3]

    def empty(self, rows: int, width: int) -> Tensor:
        """Allocate rows."""
        return torch.empty(rows, width, dtype=self.dtype)

    def random_bytes(self, states: Sequence[np.ndarray], counts: Sequence[int]) -> list[Tensor]:
        """Draw the bytes of new generators, as `pellucid.machine.randomness.random_bytes` does.

        Args:
            states: by `pellucid.machine.randomness.generator_state`.
            counts: bytes to draw from each.
        """
        if not states:
            return []
        sizes = [-(-count // 8) for count in counts]  # Generators draw 8 bytes at a time.
        drawn = [torch.empty(8 * size, dtype=torch.uint8) for size in sizes]
        arrays = np.stack(states), np.array(sizes), np.array([one.data_ptr() for one in drawn])
        self._library.random_uint64(len(sizes), *(array.ctypes.data for array in arrays))
        return [one[:count] for one, count in zip(drawn, counts, strict=True)]

    def pack(
        self,
        matrix_FD: Tensor,
        *,
        transposed: bool,
        padded_depth: int = 0,
        out: Tensor | None = None,
    ) -> Tensor:
        """Pack a float32 matrix as the right factor of products.

        Args:
            matrix_FD: contiguous.
            transposed: True to multiply rows by its transpose, as a linear layer does.
            padded_depth: pads the dimension that products sum over with zeros up to this size.
            out: an earlier result for a matrix of the same shape, to write over.
        """
        rows, columns = matrix_FD.shape
        depth, width = (columns, rows) if transposed else (rows, columns)
        depth = max(padded_depth, depth)
        if out is None:
            # int32 only means 4 bytes: one float32, or two bfloat16 numbers.
            out = torch.empty(self._library.packed_size(depth, width), dtype=torch.int32)
        self._library.pack(
            matrix_FD.data_ptr(), rows, columns, int(transposed), depth, out.data_ptr()
        )
        return out

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
        dropout: DropoutBytes | None = None,
        gate_JF: Tensor | None = None,
        gate_factor: float = 1.0,
        add_JF: Tensor | None = None,
        norm: KernelNorm | None = None,
    ) -> Tensor:
        """Multiply rows by a packed factor, then apply the steps that are given, in this order.

        Args:
            x_JD: the rows.
            packed: by `pack`.
            width: columns of the result.
            bias_F: is added.
            has_relu: True to replace negative numbers by 0.
            dropout: is applied.
            gate_JF: the result is 0 where the gate is, elsewhere it is multiplied by the factor.
            gate_factor: that factor.
            add_JF: is added.
            norm: layer norm; its tensors are filled.

        Returns:
            ``out_JF``.
        """
        out_JF = self.empty(x_JD.shape[0], width)
        call = LinearCall(
            rows=x_JD.shape[0],
            in_features=x_JD.shape[1],
            out_features=width,
            x_stride=x_JD.stride(0),
            x=x_JD.data_ptr(),
            packed=packed.data_ptr(),
            bias=tensor_address(bias_F),
            has_relu=has_relu,
            dropout=mask_of(dropout),
            gate=tensor_address(gate_JF),
            gate_factor=gate_factor,
            add=tensor_address(add_JF),
            out=out_JF.data_ptr(),
            **_norm_fields(norm),
        )
        self._run("linear", call)
        return out_JF

    def norm(self, x_JD: Tensor, norm: KernelNorm) -> Tensor:
        """Apply layer norm; its tensors are filled."""
        rows, width = x_JD.shape
        out_JD = self.empty(rows, width)
        addresses = {"x": x_JD.data_ptr(), "out": out_JD.data_ptr()}
        call = LinearCall(rows=rows, out_features=width, **addresses, **_norm_fields(norm))
        self._run("norm", call)
        return out_JD

    def norm_backward(
        self,
        grad_JD: Tensor,
        norm: KernelNorm | None,
        grads: tuple[Tensor, Tensor] | None,
        *,
        add_JD: Tensor | None = None,
        dropout: DropoutBytes | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Compute the gradient of layer norm's input, and the same through the dropout before it.

        Args:
            grad_JD: of the output.
            norm: as the forward pass filled it; None for no norm.
            grads: of gain and shift, which are added to.
            add_JD: is added to the first result.
            dropout: as in the forward pass.

        Returns:
            The gradient of the norm's input; and that times the dropout mask, without ``add_JD``.
            Both are one tensor if there is neither dropout nor ``add_JD``.
        """
        rows, width = grad_JD.shape
        # Without a norm, an addend and dropout the gradient passes through as it is.
        grad_input_JD = grad_dropped_JD = grad_JD
        needs_input = norm is not None or add_JD is not None
        if needs_input:
            grad_input_JD = grad_dropped_JD = self.empty(rows, width)
        if dropout is not None:
            grad_dropped_JD = self.empty(rows, width)
        call = NormCall(
            rows=rows,
            width=width,
            grad=grad_JD.data_ptr(),
            add=tensor_address(add_JD),
            dropout=mask_of(dropout),
            grad_input=grad_input_JD.data_ptr() if needs_input else None,
            grad_dropped=None if dropout is None else grad_dropped_JD.data_ptr(),
        )
        if norm is not None and grads is not None:
            call.normal = norm.normal_JD.data_ptr()
            call.inverse = norm.inverse_J.data_ptr()
            call.gain = norm.gain.data_ptr()
            call.grad_gain, call.grad_shift = (grad.data_ptr() for grad in grads)
        if call.grad_input or call.grad_dropped:
            self._run("norm_backward", call)
        return grad_input_JD, grad_dropped_JD

    def weight_gradient(
        self,
        x_JD: Tensor,
        grad_JF: Tensor,
        weights: Sequence[Tensor | None],
        biases: Sequence[Tensor | None],
    ) -> None:
        """Add to the gradients of the weights and biases of linear layers with the same input.

        Args:
            x_JD: their input.
            grad_JF: of their outputs, which have the same width and are adjacent columns.
            weights: the gradient of each layer's weights; None if it is not wanted.
            biases: the same of its bias.
        """
        # Layers that are not trained want none of them.
        if all(grad is None for grad in (*weights, *biases)):
            return
        call = WeightGradientCall(
            rows=x_JD.shape[0],
            in_features=x_JD.shape[1],
            out_features=grad_JF.shape[1] // len(weights),
            parts=len(weights),
            x_stride=x_JD.stride(0),
            grad_stride=grad_JF.stride(0),
            x=x_JD.data_ptr(),
            grad=grad_JF.data_ptr(),
            weight=tuple(map(tensor_address, weights)),
            bias=tuple(map(tensor_address, biases)),
        )
        self._run("weight_gradient", call)

    def attend(self, call: AttentionCall) -> None:
        """Attend; with a gradient of the context, compute the other gradients instead."""
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
        """Compute logits, softmax and label-smoothed cross-entropy, and the gradients.

        Args:
            states_PD: one row for each target token.
            table_VD: the output projection.
            packed: the projection packed twice: transposed, for the logits; and with
                `padded_vocabulary` as depth, for the gradients.
            table_sum_D: the sum of the projection's rows.
            target_P: the true tokens.
            smoothing: as in `pellucid.training.fast.loss`.
            factor: multiplies all gradients.
            grad_table_VD: is added to; None if it is not wanted.
            r_drop: as in `pellucid.training.fast.loss`.

        Returns:
            ``nll_P``, −log p(y) of each row, and ``grad_states_PD``.
        """
        rows, width = states_PD.shape
        vocabulary = len(table_VD)
        chunk_rows = min(self.chunk_rows(vocabulary), rows)
        chunk = self.empty(chunk_rows, self.padded_vocabulary(vocabulary))
        scaled_states = self.empty(chunk_rows, width)
        nll_P = torch.empty(rows)
        grad_states_PD = self.empty(rows, width)
        call = LossCall(
            rows=rows,
            width=width,
            vocabulary=vocabulary,
            states=states_PD.data_ptr(),
            table=table_VD.data_ptr(),
            packed_transposed=packed[0].data_ptr(),
            packed=packed[1].data_ptr(),
            table_sum=table_sum_D.data_ptr(),
            target=target_P.data_ptr(),
            smoothing=smoothing,
            factor=factor,
            half_alpha=r_drop / 2,
            chunk_rows=chunk_rows,
            chunk=chunk.data_ptr(),
            scaled_states=scaled_states.data_ptr(),
            nll=nll_P.data_ptr(),
            grad_states=grad_states_PD.data_ptr(),
            grad_table=tensor_address(grad_table_VD),
        )
        self._run("cross_entropy", call)
        return nll_P, grad_states_PD

    def orthogonalize(self, matrices: Tensor, coefficients: tuple[float, float, float]) -> Tensor:
        """Bring the singular values of matrices near 1, as Muon does before it applies a momentum.

        Args:
            matrices: ``(number, m, n)``, float32, m and n multiples of `WIDTH_STEP`.
            coefficients: of the quintic polynomial.

        Returns:
            The same shape.
        """
        # The kernel takes no more rows than columns, for which products are smaller.
        is_tall = matrices.shape[1] > matrices.shape[2]
        wide = (matrices.transpose(1, 2) if is_tall else matrices).clone(
            memory_format=torch.contiguous_format
        )
        number, rows, columns = wide.shape
        # The kernel writes in place, hence the copy.
        call = OrthogonalCall(number, rows, columns, wide.data_ptr(), *coefficients)
        self._run("orthogonalize", call)
        return wide.transpose(1, 2) if is_tall else wide

    def padded_vocabulary(self, vocabulary: int) -> int:
        """Columns of a row of the loss's chunk."""
        return int(self._library.padded_vocabulary(vocabulary))

    def chunk_rows(self, vocabulary: int) -> int:
        """Rows of the loss's chunk: as many as stay in the third-level cache."""
        # `ROWS_AT_ONCE` of loss.c: the rows that a thread takes at a time.
        per_thread = 96 // self.dtype.itemsize
        row = self.dtype.itemsize * self.padded_vocabulary(vocabulary)
        parts = BYTES_PER_CHUNK // (row * per_thread)
        return per_thread * max(1, parts - parts % CHUNK_PARTS if parts > CHUNK_PARTS else parts)

    def embed(self, call: EmbeddingCall) -> None:
        """Look up embeddings, add positions, and drop; with a gradient, run backward instead."""
        # Not by `_run`: both allocate nothing, so they return no status.
        embed = self._library.embed_backward if call.grad else self._library.embed
        embed(ctypes.byref(call))

    def _run(self, name: str, call: ctypes.Structure) -> None:
        if getattr(self._library, name)(ctypes.byref(call)):
            raise MemoryError(f"not enough memory for {name}")


def _norm_fields(norm: KernelNorm | None) -> dict[str, Any]:
    if norm is None:
        return {}
    return {
        "gain": norm.gain.data_ptr(),
        "shift": norm.shift.data_ptr(),
        "epsilon": norm.epsilon,
        "normal": norm.normal_JD.data_ptr(),
        "inverse": norm.inverse_J.data_ptr(),
    }
