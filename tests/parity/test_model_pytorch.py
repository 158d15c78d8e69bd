"""Attention, layers and stacks against PyTorch's own modules, with copied weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pellucid.attention import causal_mask, padding_mask
from pellucid.config import ModelConfig
from pellucid.model import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    Site,
    Transformer,
)

# A different prime for every axis; PyTorch ties D to H · K.
B, S, T, H, K, FF, V = 2, 5, 7, 3, 11, 19, 37
D = H * K

LAYER_KINDS = [
    (norm, activation) for norm in ("post", "pre") for activation in ("relu", "gelu", "swish")
]


class WeightRecorder:
    def __init__(self) -> None:
        self.weights: Tensor | None = None

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        if stage == "weights":
            self.weights = tensor


def make_config(**changes: Any) -> ModelConfig:
    sizes: dict[str, Any] = {
        "d_model": D,
        "d_ff": FF,
        "num_heads": H,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "positions": "none",
        "embedding_scale": "none",
        "projection_bias": True,
        "source_vocabulary_size": V,
        "target_vocabulary_size": V,
        "max_source_length": 13,
        "max_target_length": 13,
    }
    return ModelConfig(**{**sizes, **changes})


def fill(module: nn.Module, *, dtype: torch.dtype = torch.float64) -> Any:
    numbers = torch.Generator().manual_seed(23)
    module = module.double()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            # Wide enough that every weight matters, narrow enough that no softmax saturates.
            width = parameter.shape[1] ** -0.5 if parameter.dim() == 2 else 0.3
            center = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.normal_(center, width, generator=numbers)
    return module.to(dtype)


def random_rows(length: int, seed: int) -> Tensor:
    numbers = torch.Generator().manual_seed(seed)
    return torch.randn(B, length, D, generator=numbers, dtype=torch.float64)


def source_mask() -> Tensor:
    return torch.arange(S) < torch.tensor([[S], [S - 2]])


def assert_near(actual: Tensor, expected: Tensor, tolerance: float = 1e-10) -> None:
    assert actual.shape == expected.shape
    difference = (actual - expected).detach().abs()
    largest, mean = float(difference.max()), float(difference.mean())
    assert largest <= tolerance, f"largest difference {largest:.3g}, mean {mean:.3g}"


@torch.no_grad()
def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    parts = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_feed_forward(ours: FeedForward, theirs: Any) -> None:
    theirs.linear1.load_state_dict(ours.inner.state_dict())
    theirs.linear2.load_state_dict(ours.outer.state_dict())


def copy_encoder_layer(ours: EncoderLayer, theirs: nn.TransformerEncoderLayer) -> None:
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_feed_forward(ours.feed_forward, theirs)
    theirs.norm1.load_state_dict(ours.self_attention_norm.state_dict())
    theirs.norm2.load_state_dict(ours.feed_forward_norm.state_dict())


def copy_decoder_layer(ours: DecoderLayer, theirs: nn.TransformerDecoderLayer) -> None:
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_attention(ours.cross_attention, theirs.multihead_attn)
    copy_feed_forward(ours.feed_forward, theirs)
    theirs.norm1.load_state_dict(ours.self_attention_norm.state_dict())
    theirs.norm2.load_state_dict(ours.cross_attention_norm.state_dict())
    theirs.norm3.load_state_dict(ours.feed_forward_norm.state_dict())


def layer_options(config: ModelConfig, dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    activation = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}[config.activation]
    return {
        "d_model": D,
        "nhead": H,
        "dim_feedforward": FF,
        "dropout": 0.0,
        "activation": activation,
        "layer_norm_eps": config.layer_norm_epsilon,
        "batch_first": True,
        "norm_first": config.norm == "pre",
        "dtype": dtype,
    }


def pytorch_twin(ours: Transformer, dtype: torch.dtype = torch.float64) -> nn.Transformer:
    """Build PyTorch's Transformer with our weights; it stays in training mode (dropout is 0).

    In evaluation mode PyTorch swaps in a fused kernel that writes zeros into padded rows.
    """
    config = ours.config
    options = layer_options(config, dtype)

    def last_norm() -> nn.LayerNorm | None:
        return nn.LayerNorm(D, dtype=dtype) if config.norm == "pre" else None

    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**options),
        config.num_encoder_layers,
        norm=last_norm(),
        enable_nested_tensor=False,
    )
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(**options), config.num_decoder_layers, norm=last_norm()
    )
    # Its constructor overwrites all weights, also those of the parts given to it.
    theirs = nn.Transformer(
        D, H, custom_encoder=encoder, custom_decoder=decoder, batch_first=True, dtype=dtype
    )
    for our_layer, their_layer in zip(ours.encoder.layers, encoder.layers, strict=True):
        copy_encoder_layer(our_layer, their_layer)
    for our_layer, their_layer in zip(ours.decoder.layers, decoder.layers, strict=True):
        copy_decoder_layer(our_layer, their_layer)
    if config.norm == "pre":
        encoder.norm.load_state_dict(ours.encoder.norm.state_dict())
        decoder.norm.load_state_dict(ours.decoder.norm.state_dict())
    return theirs


@pytest.mark.parametrize("masks", ["none", "padding", "causal", "both"])
def test_multi_head_attention_equals_pytorchs(masks: str) -> None:
    ours = fill(MultiHeadAttention(make_config()))
    theirs = nn.MultiheadAttention(D, H, batch_first=True, dtype=torch.float64)
    copy_attention(ours, theirs)
    query_BLD = random_rows(S, 1)
    memory_BMD = random_rows(S, 2)
    mask, attn_mask, key_padding_mask = None, None, None
    if masks in ("padding", "both"):
        mask, key_padding_mask = padding_mask(source_mask()), ~source_mask()
    if masks in ("causal", "both"):
        look_ahead = causal_mask(S)
        mask = look_ahead if mask is None else mask & look_ahead
        attn_mask = ~look_ahead[0, 0]
    expected, expected_weights = theirs(
        query_BLD,
        memory_BMD,
        memory_BMD,
        attn_mask=attn_mask,
        key_padding_mask=key_padding_mask,
        average_attn_weights=False,
    )
    recorder = WeightRecorder()
    for probe in (None, recorder):
        output_BLD = ours(
            ours.project_query(query_BLD),
            *ours.project_key_value(memory_BMD),
            mask=mask,
            site=Site("here", probe),
        )
        assert_near(output_BLD, expected)
    assert recorder.weights is not None
    assert_near(recorder.weights, expected_weights)


@pytest.mark.parametrize(("norm", "activation"), LAYER_KINDS)
def test_encoder_layer_equals_pytorchs(norm: str, activation: str) -> None:
    config = make_config(norm=norm, activation=activation)
    ours = fill(EncoderLayer(config))
    theirs = nn.TransformerEncoderLayer(**layer_options(config))
    copy_encoder_layer(ours, theirs)
    x_BSD = random_rows(S, 3)
    actual = ours(x_BSD, padding_mask(source_mask()), site=Site("encoder.0"))
    assert_near(actual, theirs(x_BSD, src_key_padding_mask=~source_mask()))


@pytest.mark.parametrize(("norm", "activation"), LAYER_KINDS)
def test_decoder_layer_equals_pytorchs(norm: str, activation: str) -> None:
    config = make_config(norm=norm, activation=activation)
    ours = fill(DecoderLayer(config))
    theirs = nn.TransformerDecoderLayer(**layer_options(config))
    copy_decoder_layer(ours, theirs)
    x_BTD, memory_BSD = random_rows(T, 4), random_rows(S, 5)
    actual = ours(
        x_BTD,
        memory_BSD,
        self_mask=causal_mask(T),
        cross_mask=padding_mask(source_mask()),
        cache=None,
        site=Site("decoder.0"),
    )
    expected = theirs(
        x_BTD,
        memory_BSD,
        tgt_mask=~causal_mask(T)[0, 0],
        memory_key_padding_mask=~source_mask(),
    )
    assert_near(actual, expected)


def run_both(
    ours: Transformer, theirs: nn.Transformer, *, has_target_padding: bool
) -> tuple[Tensor, Tensor]:
    numbers = torch.Generator().manual_seed(6)
    source_BS = torch.randint(V, (B, S), generator=numbers)
    target_BT = torch.randint(V, (B, T), generator=numbers)
    target_mask_BT = torch.arange(T) < torch.tensor([[T - 3], [T]]) if has_target_padding else None
    actual_BTV = ours(source_BS, target_BT, source_mask(), target_mask_BT=target_mask_BT)
    table_VD = ours.embedding.weight
    states_BTD = theirs(
        table_VD[source_BS],
        table_VD[target_BT],
        tgt_mask=~causal_mask(T)[0, 0],
        src_key_padding_mask=~source_mask(),
        tgt_key_padding_mask=None if target_mask_BT is None else ~target_mask_BT,
        memory_key_padding_mask=~source_mask(),
    )
    return actual_BTV, states_BTD @ table_VD.T


@pytest.mark.parametrize("has_target_padding", [False, True])
@pytest.mark.parametrize(("norm", "activation"), LAYER_KINDS)
def test_whole_stack_equals_pytorchs(norm: str, activation: str, has_target_padding: bool) -> None:
    ours = fill(Transformer(make_config(norm=norm, activation=activation)))
    actual, expected = run_both(ours, pytorch_twin(ours), has_target_padding=has_target_padding)
    assert_near(actual, expected)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_whole_stack_has_pytorchs_gradients(norm: str) -> None:
    ours = fill(Transformer(make_config(norm=norm)))
    theirs = pytorch_twin(ours)
    actual, expected = run_both(ours, theirs, has_target_padding=True)
    numbers = torch.Generator().manual_seed(7)
    upstream = torch.randn(actual.shape, generator=numbers, dtype=torch.float64)
    (ours_table,) = torch.autograd.grad((actual * upstream).sum(), ours.embedding.weight)
    (theirs_table,) = torch.autograd.grad((expected * upstream).sum(), ours.embedding.weight)
    assert_near(ours_table, theirs_table, 1e-9)


def test_whole_stack_in_float32_equals_pytorchs() -> None:
    config = make_config(norm="pre")
    ours = fill(Transformer(config), dtype=torch.float32)
    theirs = pytorch_twin(ours, torch.float32)
    actual, expected = run_both(ours, theirs, has_target_padding=True)
    assert_near(actual.log_softmax(-1), expected.log_softmax(-1), 1e-4)
