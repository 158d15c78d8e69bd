"""Export to CTranslate2, with its own library."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pellucid.attention import sinusoidal_positions
from pellucid.bundle import Bundle
from pellucid.config import ModelConfig, Precision
from pellucid.errors import need_library
from pellucid.files import new_folder, write_bytes
from pellucid.formats.exporting import check_model, never_written
from pellucid.formats.safe_reading import check_place
from pellucid.model.unowned import NEVER

ALLOWED: dict[str, tuple[Any, ...]] = {"norm": ("post", "pre")}
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swish": "SWISH"}


def export_ctranslate2(bundle: Bundle, out: Path, precision: Precision) -> None:
    """Write a model for ``ctranslate2.Translator``, with its tokenizer files.

    The model stays the same function, with one exception. Pellucid never writes padding or the
    start token, and CTranslate2 has no such rule. A trained model gives them almost no
    probability. But if their output vector is zero, as in models of Marian, their logit is a
    constant that could win, and becomes -10,000.

    A guided head becomes the head whose weights CTranslate2 returns as attention. That is always
    the first head of a layer, so the heads of its layer change places.

    Args:
        bundle: the model.
        out: the new folder.
        precision: precision of the stored weights; CTranslate2 may compute in another.

    Raises:
        InputError: the library is missing or cannot represent the model, or the folder has
            content.
        OutputError: the disk cannot take it.
    """
    # First, before the model is loaded and converted in vain.
    check_place(out)
    specs = need_library("ctranslate2.specs", "Writing this format")
    check_model(bundle, "CTranslate2", ALLOWED)
    spec = _make_spec(specs, bundle)
    spec.validate()
    spec.optimize(quantization=precision)
    with new_folder(out) as part:
        spec.save(str(part))
        for name, data in bundle.tokenizer.files().items():
            write_bytes(part / name, data)


def _make_spec(specs: Any, bundle: Bundle) -> Any:
    config = bundle.config.model
    common = {
        "num_heads": config.num_heads,
        "pre_norm": config.norm == "pre",
        "activation": specs.common_spec.Activation[ACTIVATIONS[config.activation]],
    }
    weights = {name: weight.numpy() for name, weight in bundle.model.state_dict().items()}
    # CTranslate2 returns the first heads of one layer as attention.
    guided = bundle.guided_head
    if guided is not None:
        _put_first(weights, *guided, config.num_heads)
    declared = {} if guided is None else {"alignment_layer": guided[0], "alignment_heads": 1}
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.num_encoder_layers, **common),
        specs.TransformerDecoderSpec(config.num_decoder_layers, **common, **declared),
    )
    tied = config.tied_embeddings
    spec.encoder.embeddings[0].weight = weights[
        "embedding.weight" if tied == "all" else "source_embedding.weight"
    ]
    spec.decoder.embeddings.weight = weights[
        "embedding.weight" if tied == "all" else "target_embedding.weight"
    ]
    _fill_part(spec.encoder, weights, "encoder", config, config.max_source_length)
    _fill_part(spec.decoder, weights, "decoder", config, config.max_target_length)
    # Tied models have one table for both.
    output = weights.get("output.weight", spec.decoder.embeddings.weight)
    # A copy, because the array shares its memory with the bundle's model.
    bias = weights.get("output.bias", np.zeros(len(output), np.float32)).copy()
    # The exception that `export_ctranslate2` describes.
    bias[[id_ for id_ in never_written(bundle) if not output[id_].any()]] = NEVER
    spec.decoder.projection.weight = output
    spec.decoder.projection.bias = bias
    _fill_tokens(spec, bundle)
    return spec


def _put_first(weights: dict[str, NDArray[Any]], layer: int, head: int, num_heads: int) -> None:
    """Put one head of a layer's cross-attention before the others; the function stays the same."""
    name = f"decoder.layers.{layer}.cross_attention"
    order = [head, *(other for other in range(num_heads) if other != head)]
    for module in ("query", "key", "value"):
        for kind in ("weight", "bias"):
            if (part := weights.get(f"{name}.{module}.{kind}")) is not None:
                by_head = part.reshape(num_heads, -1, *part.shape[1:])
                weights[f"{name}.{module}.{kind}"] = by_head[order].reshape(part.shape)
    output = weights[f"{name}.output.weight"]
    # The output reads the heads side by side, so their order is that of its columns.
    by_head = output.reshape(len(output), num_heads, -1)
    weights[f"{name}.output.weight"] = by_head[:, order].reshape(output.shape)


def _fill_part(
    spec: Any, weights: dict[str, NDArray[Any]], part: str, config: ModelConfig, length: int
) -> None:
    """Fill in an encoder or a decoder."""
    spec.scale_embeddings = math.sqrt(config.d_model) if config.embedding_scale == "sqrt" else 1.0
    spec.position_encodings.encodings = _positions(weights, part, config, length)
    if config.norm == "pre":
        _fill_norm(spec.layer_norm, weights, f"{part}.norm")
    for index, layer in enumerate(spec.layer):
        name = f"{part}.layers.{index}"
        _fill_attention(layer.self_attention, weights, f"{name}.self_attention", groups=("qkv",))
        if part == "decoder":
            _fill_attention(layer.attention, weights, f"{name}.cross_attention", groups=("q", "kv"))
        _fill_norm(layer.ffn.layer_norm, weights, f"{name}.feed_forward_norm")
        _fill_linear(layer.ffn.linear_0, weights, [f"{name}.feed_forward.inner"])
        _fill_linear(layer.ffn.linear_1, weights, [f"{name}.feed_forward.outer"])


def _positions(
    weights: dict[str, NDArray[Any]], part: str, config: ModelConfig, length: int
) -> NDArray[Any]:
    """Return the table of positions, which CTranslate2 takes in any order."""
    if config.positions == "learned":
        return weights[f"{part}.positions.weight"]
    if config.positions == "none":
        # Adding zeros is the same as adding no positions.
        return np.zeros((length, config.d_model), np.float32)
    table_LD: Tensor = sinusoidal_positions(
        length, config.d_model, halves=config.positions == "sinusoidal_halves"
    )
    return table_LD.numpy()


def _fill_attention(
    spec: Any, weights: dict[str, NDArray[Any]], name: str, *, groups: tuple[str, ...]
) -> None:
    """Fill in an attention; projections with the same input are one matrix there."""
    modules = {"q": "query", "k": "key", "v": "value"}
    for linear, letters in zip(spec.linear, groups, strict=False):
        _fill_linear(linear, weights, [f"{name}.{modules[letter]}" for letter in letters])
    _fill_linear(spec.linear[-1], weights, [f"{name}.output"])
    _fill_norm(spec.layer_norm, weights, f"{name}_norm")


def _fill_linear(spec: Any, weights: dict[str, NDArray[Any]], names: list[str]) -> None:
    spec.weight = np.concatenate([weights[f"{name}.weight"] for name in names])
    if f"{names[0]}.bias" in weights:
        spec.bias = np.concatenate([weights[f"{name}.bias"] for name in names])


def _fill_norm(spec: Any, weights: dict[str, NDArray[Any]], name: str) -> None:
    spec.gamma = weights[f"{name}.weight"]
    spec.beta = weights[f"{name}.bias"]


def _fill_tokens(spec: Any, bundle: Bundle) -> None:
    """Register the vocabularies, and the start and end of a sentence."""
    config = bundle.config.tokenizer
    tokenizer = bundle.tokenizer
    spec.register_source_vocabulary(tokenizer.vocabulary("source"))
    spec.register_target_vocabulary(tokenizer.vocabulary("target"))
    spec.config.layer_norm_epsilon = bundle.config.model.layer_norm_epsilon
    # Its callers give tokens without `</s>`, but the encoder was trained with it.
    spec.config.add_source_eos = True
    spec.config.unk_token, spec.config.eos_token, start = tokenizer.target_tokens(
        [config.unk_id, config.eos_id, config.target_start_id]
    )
    spec.config.decoder_start_token = spec.config.bos_token = start
