"""A model's weights, regrouped and packed for the engine.

Query, key and value become one product; the division by √d_k becomes part of the query's weights,
except in bfloat16. The function computed stays the same.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pellucid.config import ModelConfig, Precision
from pellucid.native.quantization import SCALE, quantize_rows, to_bfloat16
from pellucid.native.structures import Embedding, Layer, Linear, Model, NormStruct, array_address
from pellucid.native.weight_shapes import (
    ACTIVATIONS,
    NORM_PLACES,
    find_obstacle,
    find_wrong_shape,
    reader_of,
)

Weights = Mapping[str, np.ndarray]

LANES = 16
"""Outputs of a product that are stored side by side."""

PRECISIONS: dict[Precision, int] = {"float32": 0, "bfloat16": 1, "int8": 2}

OFFSET = 64
"""What is added to the bytes of a row with negative numbers: products take bytes without signs."""


class StoredWeights(dict[str, np.ndarray]):
    """Weights by name, most of them views of a file that is mapped into memory."""

    def __init__(self, weights: Mapping[str, np.ndarray], memory: mmap.mmap) -> None:
        super().__init__(weights)
        self._memory = memory

    def release_pages(self) -> None:
        """Let the system take back the file's pages; what is read again comes from its cache."""
        # Python has it only where the system does.
        if hasattr(self._memory, "madvise"):
            self._memory.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True)
class _Matrix:
    """A weight with axes (out, in) whose rows may have a factor, and its bias.

    ``scale_O`` is the size of a unit of each row if the weights are bytes.
    """

    weight_OI: np.ndarray
    bias_O: np.ndarray | None
    factor_O: np.ndarray
    scale_O: np.ndarray | None

    def as_floats(self) -> np.ndarray:
        """Compute the weights with the factors."""
        if self.scale_O is None:
            floats_OI = self.weight_OI
        else:
            floats_OI = self.weight_OI.astype(np.float32) * self.scale_O[:, None]
        scaled_OI: np.ndarray = floats_OI * self.factor_O[:, None]
        return scaled_OI

    def as_bytes(self) -> tuple[np.ndarray, np.ndarray]:
        """Give the weights as bytes, with the size of a unit of each row."""
        values_OI, scale_O = (
            quantize_rows(self.weight_OI)
            if self.scale_O is None
            else (self.weight_OI, self.scale_O)
        )
        return values_OI, scale_O * self.factor_O


class Packed:
    """All weights of a model in the engine's form.

    Args:
        config: the model's.
        weights: float32 arrays by the names of a bundle.
        precision: of the products.
        library: the engine.

    Attributes:
        model: the structure for C, whose arrays this object keeps alive.
        num_weights: weights in products.
    """

    def __init__(
        self,
        config: ModelConfig,
        weights: Weights,
        precision: Precision,
        library: ctypes.CDLL,
    ) -> None:
        self.config = config
        self._weights = weights
        self._precision = precision
        self._library = library
        # C knows addresses only, so what they point to must stay alive here.
        self._kept: list[object] = []
        self._positions = {"source": 0, "target": 0}
        # Sentences may be encoded in several threads, each of which may need longer tables.
        self._lock = threading.Lock()
        self.num_weights = 0
        self.model = self._make_model()

    def need_positions(self, source: int, target: int) -> None:
        """Make the tables of positions at least this long; learned ones have a fixed length."""
        with self._lock:
            self._make_positions(source, target)

    def _make_positions(self, source: int, target: int) -> None:
        for side, count in (("source", source), ("target", target)):
            if self.config.positions == "none" or count <= self._positions[side]:
                continue
            if self.config.positions == "learned":
                part = "encoder" if side == "source" else "decoder"
                table_LD = self._weights[f"{part}.positions.weight"]
            else:
                # Powers of two, so that few are made: none is freed, since C may be reading it.
                length = 1 << max(6, (count - 1).bit_length())
                halves = self.config.positions == "sinusoidal_halves"
                table_LD = encode_positions(length, self.config.d_model, halves=halves)
            embedding = getattr(self.model, side)
            embedding.positions = self._address(table_LD)
            embedding.num_positions = self._positions[side] = len(table_LD)

    def _make_model(self) -> Model:
        config = self.config
        model = Model()
        for name in ("d_model", "d_ff", "num_heads", "d_key", "d_value"):
            setattr(model, name, getattr(config, name))
        model.num_encoder_layers = config.num_encoder_layers
        model.num_decoder_layers = config.num_decoder_layers
        model.norm_place = NORM_PLACES[config.norm]
        model.activation = ACTIVATIONS[config.activation]
        model.has_residual = config.residual
        model.has_projections = config.projections != "none"
        model.has_units = config.decoder == "ssru"
        model.epsilon = config.layer_norm_epsilon
        is_scaled = config.embedding_scale == "sqrt"
        model.embedding_factor = math.sqrt(config.d_model) if is_scaled else 1.0
        model.query_factor = 1.0 if self._weights_hold_factor() else self._query_factor()
        model.encoder = self._layers("encoder", config.num_encoder_layers)
        model.decoder = self._layers("decoder", config.num_decoder_layers)
        model.encoder_norm = self._norm("encoder.norm")
        model.decoder_norm = self._norm("decoder.norm")
        names = {"all": "embedding", "decoder": "target_embedding", "none": "output"}
        matrix = self._matrix(names[self.config.tied_embeddings])
        model.output = self._pack([replace(matrix, bias_O=self._weights.get("output.bias"))])
        model.source = self._embedding("source")
        model.target = self._embedding("target")
        return model

    def _query_factor(self) -> float:
        return 1 / math.sqrt(self.config.d_key) if self.config.scale_scores else 1.0

    def _weights_hold_factor(self) -> bool:
        """Tell whether the weights of queries hold the factor: bfloat16 would round them again."""
        return self.config.projections != "none" and self._precision != "bfloat16"

    def _layers(self, part: str, count: int) -> int:
        layers = (Layer * count)()
        for index in range(count):
            self._fill_layer(layers[index], f"{part}.layers.{index}", part == "decoder")
        self._kept.append(layers)
        return ctypes.addressof(layers)

    def _fill_layer(self, layer: Layer, name: str, is_decoder: bool) -> None:
        reader = reader_of(self.config) if is_decoder else "self_attention"
        kinds = (reader, "cross_attention", "feed_forward")
        layer.norms = (NormStruct * 3)(*(self._norm(f"{name}.{kind}_norm") for kind in kinds))
        own, cross, forward = (f"{name}.{kind}" for kind in kinds)
        if reader == "recurrent":
            # Apart, so that each begins with a whole panel.
            layer.project_in = self._pack([self._matrix(f"{own}.candidate")])
            layer.self_out = self._pack([self._matrix(f"{own}.forget")])
        else:
            if self.config.projections != "none":
                layer.project_in = self._pack(self._projections(own, ("query", "key", "value")))
            layer.self_out = self._pack([self._matrix(f"{own}.output")])
        layer.inner = self._pack([self._matrix(f"{forward}.inner")])
        # A ReLU gives no negative numbers, so its rows use 0 to 127: docs/decisions/0019.
        is_signed = self.config.activation != "relu"
        layer.outer = self._pack([self._matrix(f"{forward}.outer")], is_signed=is_signed)
        if not is_decoder:
            return
        if self.config.projections != "none":
            layer.cross_query = self._pack(self._projections(cross, ("query",)))
            layer.cross_key_value = self._pack(self._projections(cross, ("key", "value")))
        layer.cross_out = self._pack([self._matrix(f"{cross}.output")])

    def _projections(self, attention: str, names: Sequence[str]) -> list[_Matrix]:
        found = []
        for name in names:
            # With ``qk`` the weights are on the keys, so the keys are the values, too.
            stored = "key" if name == "value" and self.config.projections == "qk" else name
            is_scaled = name == "query" and self._weights_hold_factor()
            factor = self._query_factor() if is_scaled else 1.0
            found.append(self._matrix(f"{attention}.{stored}", factor))
        return found

    def _matrix(self, name: str, factor: float = 1.0) -> _Matrix:
        weight_OI = self._weights[f"{name}.weight"]
        factor_O = np.full(len(weight_OI), factor, np.float32)
        scale_O = self._weights.get(f"{name}.weight{SCALE}")
        return _Matrix(weight_OI, self._weights.get(f"{name}.bias"), factor_O, scale_O)

    def _embedding(self, side: str) -> Embedding:
        name = "embedding" if self.config.tied_embeddings == "all" else f"{side}_embedding"
        rows_VD = self._weights[f"{name}.weight"]
        norm = self._norm("encoder.input_norm" if side == "source" else "decoder.input_norm")
        if rows_VD.dtype != np.int8:
            return Embedding(rows=self._address(rows_VD), norm=norm, size=len(rows_VD))
        # Bytes stay bytes: a sentence needs few rows, which C turns into floats.
        scale_V = self._address(self._weights[f"{name}.weight{SCALE}"])
        return Embedding(bytes=self._address(rows_VD), scale=scale_V, norm=norm, size=len(rows_VD))

    def _norm(self, name: str) -> NormStruct:
        if f"{name}.weight" not in self._weights:
            return NormStruct()
        gain, bias = (self._weights[f"{name}.{part}"] for part in ("weight", "bias"))
        return NormStruct(self._address(gain), self._address(bias))

    def _pack(self, parts: Sequence[_Matrix], *, is_signed: bool = True) -> Linear:
        """Pack matrices whose outputs are computed together, from rows that may be negative."""
        outputs = sum(len(part.weight_OI) for part in parts)
        inputs = parts[0].weight_OI.shape[1]
        # Whole panels, so that no product has an edge.
        padded = -(-outputs // LANES) * LANES
        self.num_weights += outputs * inputs
        bias_O = np.zeros(padded, np.float32)
        first = 0
        for part in parts:
            if part.bias_O is not None:
                # A factor of queries applies to all of a query, its bias too.
                bias_O[first : first + len(part.bias_O)] = part.bias_O * part.factor_O
            first += len(part.weight_OI)
        linear = Linear(inputs, outputs, PRECISIONS[self._precision])
        linear.bias = self._address(bias_O)
        if self._precision == "int8":
            linear.offset = OFFSET if is_signed else 0
            self._pack_bytes(linear, parts, padded)
        else:
            self._pack_floats(linear, parts, padded)
        if isinstance(self._weights, StoredWeights):
            self._weights.release_pages()  # Never all of a file and all that is packed at once.
        return linear

    def _pack_floats(self, linear: Linear, parts: Sequence[_Matrix], padded: int) -> None:
        outputs = linear.outputs
        inputs = linear.inputs
        weight_OI = np.concatenate([part.as_floats() for part in parts])
        if self._precision == "float32":
            packed = _aligned(padded * inputs, np.float32)
            self._call("pack_floats", weight_OI, outputs, inputs, packed)
        else:
            packed = _aligned(padded * inputs, np.uint16)
            self._call("pack_halves", to_bfloat16(weight_OI), outputs, inputs, packed)
        linear.weights = self._address(packed)

    def _pack_bytes(self, linear: Linear, parts: Sequence[_Matrix], padded: int) -> None:
        rows = [part.as_bytes() for part in parts]
        values_OI = rows[0][0] if len(rows) == 1 else np.concatenate([values for values, _ in rows])
        scale_O = np.zeros(padded, np.float32)
        scale_O[: linear.outputs] = np.concatenate([scales for _, scales in rows])
        # Products of bytes take four inputs at a time (model.h).
        packed = _aligned(padded * -(-linear.inputs // 4) * 4, np.int8)
        sums_O = np.zeros(padded, np.int32)
        sizes = (linear.outputs, linear.inputs, linear.offset)
        self._call("pack_bytes", values_OI, *sizes, packed, sums_O)
        linear.weights = self._address(packed)
        linear.scale = self._address(scale_O)
        linear.sums = self._address(sums_O)

    def _call(self, name: str, *arguments: np.ndarray | int) -> None:
        getattr(self._library, name)(
            *(
                ctypes.c_int64(one) if isinstance(one, int) else ctypes.c_void_p(array_address(one))
                for one in arguments
            )
        )

    def _address(self, array: np.ndarray) -> int | None:
        """Keep an array alive, and give its address."""
        array = np.ascontiguousarray(array)
        self._kept.append(array)
        return array_address(array)


def pack(
    config: ModelConfig, weights: Weights, precision: Precision, library: ctypes.CDLL
) -> Packed | str:
    """Pack a model for the engine, or say why the engine cannot compute with it."""
    obstacle = find_obstacle(config, precision)
    if obstacle is not None:
        return obstacle
    if (name := find_wrong_shape(config, weights)) is not None:
        return f"{name} is not as the configuration describes it"
    for name, weight in weights.items():
        if weight.dtype == np.float32 and not np.isfinite(weight).all():
            return f"some weights in {name} are not finite"
    return Packed(config, weights, precision, library)


def encode_positions(length: int, d_model: int, *, halves: bool) -> np.ndarray:
    """Encode positions as sines and cosines: ``positions_LD``; as `sinusoidal_positions` does."""
    # In float64 and rounded once, as the model's table is: both must be equal.
    place_L1 = np.arange(length, dtype=np.float64)[:, None]
    angles = place_L1 / 10000 ** (np.arange(0, d_model, 2, dtype=np.float64) / d_model)
    pair = (np.sin(angles), np.cos(angles))
    if halves:
        return np.concatenate(pair, axis=1).astype(np.float32)
    return np.stack(pair, axis=2).reshape(length, d_model).astype(np.float32)


def _aligned(size: int, dtype: type) -> np.ndarray:
    """Allocate numbers at an address that begins a cache line."""
    line = 64
    memory = np.empty(size * np.dtype(dtype).itemsize + line, np.uint8)
    start = -memory.ctypes.data % line
    return memory[start : start + size * np.dtype(dtype).itemsize].view(dtype)
