"""A second Transformer, in NumPy and float64, from a bundle's files and two rows of ids.

A second opinion on traces. It is written from the formulas of the paper, the names of the bundle
and the names of the trace (`docs/formats`), and shares nothing with the package, not even an
import: a mistake would have to be made twice to go unseen.

Source:
    Vaswani et al. 2017, section 3; Hendrycks and Gimpel 2016 (GELU); Ramachandran et al. 2017
    (swish); Xiong et al. 2020 (pre-norm); Su et al. 2021 (rotary); Press et al. 2022 (ALiBi); Shaw
    et al. 2018 (relative); Zhang and Sennrich 2019 (RMS); Shazeer 2020 (gated); Ainslie et al. 2023
    (grouped).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import deserialize

__all__ = ["NumpyTransformer", "distance", "log_softmax"]

Array = np.ndarray


COMPUTES: dict[str, tuple[object, ...]] = {
    "architecture": ("transformer",),
    "norm": ("post", "pre", "none"),
    "activation": ("relu", "gelu", "swish"),
    "positions": (
        *("sinusoidal", "sinusoidal_halves", "learned", "none"),
        *("rotary", "alibi", "relative"),
    ),
    "norm_kind": ("layer", "rms"),
    "stack_norm": (False, True),
    "input_norm": (False, True),
    "gated_feed_forward": (False, True),
    "embedding_scale": ("sqrt", "none"),
    "projection_bias": (False, True),
    "tied_embeddings": ("all", "decoder", "none"),
    "residual": (True, False),
    "scale_scores": (True, False),
    "look_ahead_mask": (True, False),
    "projections": ("qkv", "qk", "none"),
    "decoder": ("attention", "ssru"),
}
"""The values of the options that this computes; all else must be a number."""


class NumpyTransformer:
    """Every array of a trace, computed.

    Args:
        folder: a bundle. Only its ``config.json`` and ``model.safetensors`` are read.
    """

    computes = COMPUTES

    def __init__(self, folder: Path) -> None:
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text())["model"]
        for name, value in self.config.items():
            # Python counts True as a number; here it is an option that must be listed.
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if value not in self.computes.get(name, (value,) if is_number else ()):
                raise NotImplementedError(f"{name} = {value}")
        self.weights = read_weights(folder / "model.safetensors")
        self.arrays: dict[str, Array] = {}

    def run(self, source_ids: Sequence[int], target_ids: Sequence[int]) -> dict[str, Array]:
        """Every array by its name in a trace.

        Args:
            source_ids: what the encoder reads.
            target_ids: what the decoder reads.
        """
        self.arrays = {}
        memory = self.stack("encoder", source_ids)
        states = self.stack("decoder", target_ids, memory)
        logits = states @ self.table("output").T
        if "output.bias" in self.weights:
            logits = logits + self.weights["output.bias"]
        self.keep("decoder.logits", logits)
        return self.arrays

    def keep(self, name: str, array: Array) -> Array:
        self.arrays[name] = array
        return array

    def table(self, side: str) -> Array:
        """The matrix of source, target or output words: section 3.4."""
        tied = self.config["tied_embeddings"]
        if tied == "all":
            return self.weights["embedding.weight"]
        if side == "output":
            name = "target_embedding" if tied == "decoder" else "output"
        else:
            name = f"{side}_embedding"
        return self.weights[f"{name}.weight"]

    def stack(self, part: str, ids: Sequence[int], memory: Array | None = None) -> Array:
        """Figure 1, one half of it."""
        embedding = self.table("source" if part == "encoder" else "target")[list(ids)]
        if self.config["embedding_scale"] == "sqrt":
            embedding = embedding * math.sqrt(self.config["d_model"])
        x = self.keep(f"{part}.embedding", embedding)
        if self.config["positions"] in ("sinusoidal", "sinusoidal_halves", "learned"):
            x = x + self.keep(f"{part}.positions", self.positions(part, len(ids)))
        if self.config.get("input_norm"):
            x = self.layer_norm(x, f"{part}.input_norm")
        x = self.keep(f"{part}.input", x)
        for layer in range(self.config[f"num_{part}_layers"]):
            x = self.layer(part, layer, x, memory)
        if self.config["norm"] == "pre" or self.config.get("stack_norm"):
            x = self.keep(f"{part}.norm", self.layer_norm(x, f"{part}.norm"))
        return x

    def layer(self, part: str, layer: int, x: Array, memory: Array | None) -> Array:
        """Section 3.1: two sublayers in the encoder, three in the decoder."""
        site, weights = f"{part}.{layer}", f"{part}.layers.{layer}"
        looks_ahead = part == "encoder" or not self.config["look_ahead_mask"]

        def attend_to_self(y: Array) -> Array:
            may = np.ones((len(y), len(y)), bool)
            may = may if looks_ahead else np.tril(may)
            return self.attention(f"{site}.self", f"{weights}.self_attention", y, y, may)

        def attend_to_source(y: Array) -> Array:
            assert memory is not None
            may = np.ones((len(y), len(memory)), bool)
            return self.attention(f"{site}.cross", f"{weights}.cross_attention", y, memory, may)

        def feed_forward(y: Array) -> Array:
            return self.feed_forward(f"{site}.feed_forward", f"{weights}.feed_forward", y)

        def remember(y: Array) -> Array:
            return self.unit(f"{site}.recurrent", f"{weights}.recurrent", y)

        if memory is not None and self.config.get("decoder") == "ssru":
            x = self.around(f"{site}.recurrent", f"{weights}.recurrent_norm", x, remember)
        else:
            x = self.around(f"{site}.self", f"{weights}.self_attention_norm", x, attend_to_self)
        if memory is not None:
            x = self.around(f"{site}.cross", f"{weights}.cross_attention_norm", x, attend_to_source)
        return self.around(f"{site}.feed_forward", f"{weights}.feed_forward_norm", x, feed_forward)

    def around(self, site: str, norm: str, x: Array, sublayer: Callable[[Array], Array]) -> Array:
        """LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)), or neither."""
        x = self.keep(f"{site}.input", x)
        entering = x
        if self.config["norm"] == "pre":
            entering = self.keep(f"{site}.norm", self.layer_norm(x, norm))
        leaving = sublayer(entering)
        if self.config["residual"]:
            leaving = leaving + x
        leaving = self.keep(f"{site}.residual", leaving)
        if self.config["norm"] == "post":
            leaving = self.keep(f"{site}.norm", self.layer_norm(leaving, norm))
        return leaving

    def attention(self, site: str, name: str, x: Array, y: Array, may: Array) -> Array:
        """Equation 1 in every head, and section 3.2.2 around them."""
        kind, d_key = self.config["projections"], self.config["d_key"]
        queries = x if kind == "none" else self.linear(f"{name}.query", x)
        keys = y if kind == "none" else self.linear(f"{name}.key", y)
        values = self.linear(f"{name}.value", y) if kind == "qkv" else keys
        kind = self.config["positions"] if site.endswith(".self") else "none"
        query, key = self.split(queries, d_key), self.split(keys, d_key)
        if kind == "rotary":
            query, key = rotated(query), rotated(key)
        query, key = self.keep(f"{site}.query", query), self.keep(f"{site}.key", key)
        value = self.keep(f"{site}.value", self.split(values, self.config["d_value"]))
        scores = np.einsum("hqd,hkd->hqk", query, key)
        if kind == "relative":
            table, (_, length, _) = self.weights[f"{name}.positions.weight"], scores.shape
            most = self.config["max_relative_distance"]
            for i in range(length):  # e_ij = x_i W^Q (x_j W^K + a_ij)^T, pair by pair.
                for j in range(length):
                    scores[:, i, j] += query[:, i] @ table[most + min(max(j - i, -most), most)]
        scores = self.keep(f"{site}.scores", scores)
        divisor = math.sqrt(d_key) if self.config["scale_scores"] else 1.0
        scaled = self.keep(f"{site}.scaled", scores / divisor)
        biased = scaled
        if kind == "alibi":
            heads = self.config["num_heads"]
            slopes = [(2.0 ** (-8.0 / heads)) ** (h + 1) for h in range(heads)]
            away = np.abs(np.subtract.outer(np.arange(len(x)), np.arange(len(y))))
            biased = scaled - np.stack([slope * away for slope in slopes])
        masked = self.keep(f"{site}.masked", np.where(may, biased, -np.inf))
        weights = self.keep(f"{site}.weights", softmax(masked))
        context = self.keep(f"{site}.context", np.einsum("hqk,hkd->hqd", weights, value))
        output = self.linear(f"{name}.output", np.concatenate(list(context), axis=1))
        return self.keep(f"{site}.output", output)

    def unit(self, site: str, name: str, x: Array) -> Array:
        """Kim et al. 2019, section 3.1: word after word."""
        candidate = self.keep(f"{site}.candidate", x @ self.weights[f"{name}.candidate.weight"].T)
        forget = self.keep(f"{site}.forget", 1 / (1 + np.exp(-self.linear(f"{name}.forget", x))))
        state, states = np.zeros(x.shape[1]), []
        for f, new in zip(forget, candidate, strict=True):
            state = f * state + (1 - f) * new
            states.append(state)
        kept = self.keep(f"{site}.state", np.stack(states))
        return self.keep(f"{site}.output", np.maximum(kept, 0))

    def split(self, wide: Array, width: int) -> Array:
        """(positions, heads · width) → (heads, positions, width): heads are consecutive blocks."""
        num_heads, there = self.config["num_heads"], wide.shape[1] // width
        blocks = [h // (num_heads // there) for h in range(num_heads)]
        return np.stack([wide[:, block * width : (block + 1) * width] for block in blocks])

    def feed_forward(self, site: str, name: str, x: Array) -> Array:
        """Equation 2."""
        inner = self.keep(f"{site}.inner", self.linear(f"{name}.inner", x))
        activated = ACTIVATIONS[self.config["activation"]](inner)
        if self.config.get("gated_feed_forward"):
            activated = activated * self.keep(f"{site}.gate", self.linear(f"{name}.gate", x))
        activated = self.keep(f"{site}.activated", activated)
        return self.keep(f"{site}.output", self.linear(f"{name}.outer", activated))

    def linear(self, name: str, x: Array) -> Array:
        product: Array = x @ self.weights[f"{name}.weight"].T
        bias = self.weights.get(f"{name}.bias")
        return product if bias is None else product + bias

    def layer_norm(self, x: Array, name: str) -> Array:
        """Population variance, ε inside the root; or the mean square, without mean and bias."""
        if self.config.get("norm_kind") == "rms":
            root = np.sqrt((x**2).mean(axis=1, keepdims=True) + self.config["layer_norm_epsilon"])
            scaled: Array = x / root * self.weights[f"{name}.weight"]
            return scaled
        centered = x - x.mean(axis=1, keepdims=True)
        variance = (centered**2).mean(axis=1, keepdims=True)
        normed = centered / np.sqrt(variance + self.config["layer_norm_epsilon"])
        gained: Array = normed * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return gained

    def positions(self, part: str, length: int) -> Array:
        """Section 3.5, or the learned table."""
        if self.config["positions"] == "learned":
            return self.weights[f"{part}.positions.weight"][:length]
        pairs = self.config["d_model"] // 2
        angles = np.outer(np.arange(length), 10000.0 ** (-np.arange(pairs) / pairs))
        if self.config["positions"] == "sinusoidal_halves":
            return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
        return np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(length, 2 * pairs)


def rotated(x: Array) -> Array:
    """Turn pairs as complex numbers: (x₀ + i x₁) e^{i m θ}, section 3.2.1 of RoFormer."""
    pairs = x[..., 0::2] + 1j * x[..., 1::2]
    angles = np.outer(np.arange(x.shape[1]), 10000.0 ** (-np.arange(0, x.shape[2], 2) / x.shape[2]))
    turned = pairs * np.exp(1j * angles)
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


STORED = {"F32": np.float32, "I8": np.int8, "BF16": np.uint16}


def read_weights(path: Path) -> dict[str, Array]:
    """All tensors in float64; integers of an int8 bundle times the scale of their row."""
    stored = {}
    for name, tensor in deserialize(path.read_bytes()):  # type: ignore[no-untyped-call]
        numbers = np.frombuffer(tensor["data"], STORED[tensor["dtype"]])
        if tensor["dtype"] == "BF16":  # The upper half of a float32.
            numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
        stored[name] = numbers.reshape(tensor["shape"]).astype(np.float64)
    for name in [name for name in stored if name.endswith(".weight_scale")]:
        stored[name.removesuffix("_scale")] *= stored.pop(name)[:, None]
    return stored


def softmax(masked: Array) -> Array:
    """The softmax over the last axis; a row of only −∞ gets zeros."""
    largest = masked.max(axis=-1, keepdims=True)
    powers = np.exp(masked - np.where(np.isneginf(largest), 0.0, largest))
    total = powers.sum(axis=-1, keepdims=True)
    result: Array = powers / np.where(total == 0, 1.0, total)
    return result


def log_softmax(logits: Array) -> Array:
    """The logarithm of the softmax over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def distance(expected: Array, found: Array) -> tuple[float, float]:
    """The largest difference of two arrays, and that divided by the largest magnitude.

    Both are of the finite numbers. Infinities at other places, NaN or another shape are
    infinitely far.
    """
    is_finite = np.isfinite(expected)
    if expected.shape != found.shape or not np.array_equal(expected[~is_finite], found[~is_finite]):
        return math.inf, math.inf
    difference = np.abs(expected[is_finite] - found[is_finite].astype(np.float64)).max(initial=0.0)
    largest = np.abs(expected[is_finite]).max(initial=0.0)
    if not np.isfinite(difference):
        return math.inf, math.inf
    return float(difference), float(difference / largest) if largest else float(difference)


def relu(x: Array) -> Array:
    result: Array = np.maximum(x, 0.0)
    return result


def gelu(x: Array) -> Array:
    """x times the normal distribution's Φ(x), exactly."""
    erf = np.array([math.erf(one) for one in (x / math.sqrt(2.0)).ravel()]).reshape(x.shape)
    result: Array = x * (1.0 + erf) / 2.0
    return result


def swish(x: Array) -> Array:
    """x times the logistic function of x."""
    result: Array = x / (1.0 + np.exp(-x))
    return result


ACTIVATIONS = {"relu": relu, "gelu": gelu, "swish": swish}
