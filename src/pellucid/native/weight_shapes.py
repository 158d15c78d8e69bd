"""Which models the engine computes, and the shapes of their weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pellucid.config import ModelConfig, Precision
from pellucid.config.model import AS_FIRST_BUILT, explain_unlisted
from pellucid.native.quantization import SCALE

NORM_PLACES = {"none": 0, "pre": 1, "post": 2}
ACTIVATIONS = {"relu": 0, "gelu": 1, "swish": 2}

ACCEPTED = {
    **AS_FIRST_BUILT,
    "norm": tuple(NORM_PLACES),
    "activation": tuple(ACTIVATIONS),
    "stack_norm": (False, True),
    "input_norm": (False, True),
    "decoder": ("attention", "ssru"),
}
"""The values of a model's options that the engine computes."""

LONGEST_EXACT_SUM = 2**31 // 127**2 // 256 * 128
"""Inputs of a product whose sum of bytes fits 32 bits, also with the offset."""


def find_obstacle(config: ModelConfig, precision: Precision) -> str | None:
    """Say why the engine cannot compute with a model; None if it can."""
    if (reason := explain_unlisted(config, ACCEPTED)) is not None:
        return reason
    widest = max(config.d_model, config.d_ff, config.num_heads * config.d_value)
    if precision == "int8" and widest > LONGEST_EXACT_SUM:
        return f"int8 needs products of at most {LONGEST_EXACT_SUM} inputs"
    return None


def find_wrong_shape(config: ModelConfig, weights: Mapping[str, Any]) -> str | None:
    """Name a weight that is missing, or has another shape than the configuration says."""
    expected = dict(_shapes(config))
    if "output.bias" in weights:
        expected["output.bias"] = (config.target_vocabulary_size,)
    for name, shape in expected.items():
        if name not in weights or weights[name].shape != shape:
            return name
        is_bytes = weights[name].dtype == np.int8
        if is_bytes and weights.get(name + SCALE, weights[name]).shape != shape[:1]:
            return name + SCALE
    # A weight too many is wrong as well: the file then belongs to another configuration.
    known = {*expected, *(name + SCALE for name in expected)}
    return next((name for name in weights if name not in known), None)


def _shapes(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    width = config.d_model
    tied = config.tied_embeddings
    sizes = {"source": config.source_vocabulary_size, "target": config.target_vocabulary_size}
    if tied == "all":
        yield "embedding.weight", (sizes["source"], width)
    else:
        for side, size in sizes.items():
            yield f"{side}_embedding.weight", (size, width)
    if tied == "none":
        yield "output.weight", (sizes["target"], width)
    for part, count, longest in (
        ("encoder", config.num_encoder_layers, config.max_source_length),
        ("decoder", config.num_decoder_layers, config.max_target_length),
    ):
        if config.positions == "learned":
            yield f"{part}.positions.weight", (longest, width)
        if config.ends_in_norm:
            yield f"{part}.norm.weight", (width,)
            yield f"{part}.norm.bias", (width,)
        if config.input_norm:
            yield f"{part}.input_norm.weight", (width,)
            yield f"{part}.input_norm.bias", (width,)
        kinds = ["self_attention"]
        if part == "decoder":
            kinds = [reader_of(config), "cross_attention"]
        for index in range(count):
            yield from _layer_shapes(config, f"{part}.layers.{index}", kinds)


def _layer_shapes(
    config: ModelConfig, name: str, kinds: Sequence[str]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    width = config.d_model
    wide = config.num_heads * config.d_value
    keys = config.num_heads * config.d_key
    projections = {"query": keys, "key": keys, "value": wide}
    count = {"qkv": 3, "qk": 2, "none": 0}[config.projections]
    if "recurrent" in kinds:
        yield f"{name}.recurrent.candidate.weight", (width, width)
        yield f"{name}.recurrent.forget.weight", (width, width)
        yield f"{name}.recurrent.forget.bias", (width,)
    for kind in kinds:
        if kind == "recurrent":
            continue
        matrices = {one: (projections[one], width) for one in list(projections)[:count]}
        for one, shape in {**matrices, "output": (width, wide)}.items():
            yield f"{name}.{kind}.{one}.weight", shape
            if config.projection_bias:
                yield f"{name}.{kind}.{one}.bias", shape[:1]
    for one, shape in {"inner": (config.d_ff, width), "outer": (width, config.d_ff)}.items():
        yield f"{name}.feed_forward.{one}.weight", shape
        yield f"{name}.feed_forward.{one}.bias", shape[:1]
    for kind in (*kinds, "feed_forward"):
        if config.norm != "none":
            yield f"{name}.{kind}_norm.weight", (width,)
            yield f"{name}.{kind}_norm.bias", (width,)


def reader_of(config: ModelConfig) -> str:
    """Name the part of a decoder layer that reads the target's earlier words."""
    return "recurrent" if config.decoder == "ssru" else "self_attention"
