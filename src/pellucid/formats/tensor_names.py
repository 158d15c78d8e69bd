"""Names of tensors in other formats, and the order of the numbers within a vector."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from pellucid.config import ModelConfig
from pellucid.model import Transformer

_HUGGING_FACE_TABLES = {
    "embedding.weight": "model.shared.weight",
    "source_embedding.weight": "model.encoder.embed_tokens.weight",
    "target_embedding.weight": "model.decoder.embed_tokens.weight",
    "output.weight": "lm_head.weight",
    "output.bias": "final_logits_bias",
    **{
        f"{part}.{ours}.{kind}": f"model.{part}.{theirs}.{kind}"
        for part in ("encoder", "decoder")
        for ours, theirs in (
            ("norm", "layer_norm"),
            ("input_norm", "layernorm_embedding"),
            ("positions", "embed_positions"),
        )
        for kind in ("weight", "bias")
    },
}
_HUGGING_FACE = {
    "self_attention.query": "self_attn.q_proj",
    "self_attention.key": "self_attn.k_proj",
    "self_attention.value": "self_attn.v_proj",
    "self_attention.output": "self_attn.out_proj",
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention.query": "encoder_attn.q_proj",
    "cross_attention.key": "encoder_attn.k_proj",
    "cross_attention.value": "encoder_attn.v_proj",
    "cross_attention.output": "encoder_attn.out_proj",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_norm": "final_layer_norm",
}
_MARIAN = {
    "self_attention": "self",
    "cross_attention": "context",
    "query": "q",
    "key": "k",
    "value": "v",
    "output": "o",
    "inner": "1",
    "outer": "2",
    "recurrent": "rnn",
    "candidate": "",
    "forget": "f",
}
# Weights that write into the width of the model; all other matrices read from it.
_WRITERS = ("attention.output", "feed_forward.outer", "norm")


def weight_shapes(config: ModelConfig, *, has_output_bias: bool) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a model's weights, by the names of the bundle."""
    # Tensors on this device have shapes, but take no memory.
    with torch.device("meta"):
        model = Transformer(config, has_output_bias=has_output_bias)
    return {name: tuple(weight.shape) for name, weight in model.state_dict().items()}


def hugging_face_name(name: str) -> str:
    """Name a tensor as Hugging Face's MarianMT does, and its relatives M2M100, mBART and BART.

    Example:
        ``encoder.layers.0.feed_forward.inner.weight`` is ``model.encoder.layers.0.fc1.weight``.
    """
    if name in _HUGGING_FACE_TABLES:
        return _HUGGING_FACE_TABLES[name]
    part, layers, index, rest = name.split(".", 3)
    module, _, kind = rest.rpartition(".")
    return f"model.{part}.{layers}.{index}.{_HUGGING_FACE[module]}.{kind}"


def marian_name(name: str) -> str:
    """Name a tensor of a layer as Marian does; its layers count from 1.

    Example:
        ``encoder.layers.0.self_attention.query.weight`` is ``encoder_l1_self_Wq``.
    """
    part, *middle, module, kind = name.split(".")
    norm_kind = {"weight": "_ln_scale", "bias": "_ln_bias"}[kind]
    layer = f"{part}_l{int(middle[1]) + 1}"
    if module in ("feed_forward_norm", "recurrent_norm"):
        return f"{layer}_{'ffn' if module[0] == 'f' else 'rnn'}_ffn{norm_kind}"
    if module.endswith("_norm"):
        return f"{layer}_{_MARIAN[module.removesuffix('_norm')]}_Wo{norm_kind}"
    block = _MARIAN.get(middle[2], "ffn")
    return f"{layer}_{block}_{'W' if kind == 'weight' else 'b'}{_MARIAN[module]}"


def halves_order(d_model: int) -> Tensor:
    """Return the columns of interleaved positions in Marian's order: sines before cosines."""
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


def reorder_width(weights: Mapping[str, Tensor], order: Tensor) -> dict[str, Tensor]:
    """Reorder the width of a model in all its weights, so that it computes the same.

    Only the positions depend on the order of the numbers within a vector. If the order changes
    everywhere that the width is read or written (embeddings, projections, norms), the model fits
    positions in the new order.

    Args:
        weights: the tensors, by the names of the bundle.
        order: the old column of each new one.
    """
    reordered: dict[str, Tensor] = {}
    for name, weight in weights.items():
        module, _, kind = name.rpartition(".")
        if module.endswith(_WRITERS):
            reordered[name] = weight[order]
        elif kind == "weight":
            reordered[name] = weight[:, order]
        else:
            reordered[name] = weight
    return reordered
