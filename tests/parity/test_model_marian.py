"""The whole model against Hugging Face's MarianMT, small and random, its weights copied."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
from torch import Tensor

from pellucid.attention import sinusoidal_positions
from pellucid.config import ModelConfig
from pellucid.model import Transformer

os.environ.setdefault("HF_HUB_OFFLINE", "1")
marian = pytest.importorskip("transformers.models.marian")

B, S, T, H, F, V, LONGEST = 2, 5, 7, 3, 19, 37, 41
D = 2 * H * 11
PAD = V - 1

NAMES = {
    "self_attn.q_proj": "self_attention.query",
    "self_attn.k_proj": "self_attention.key",
    "self_attn.v_proj": "self_attention.value",
    "self_attn.out_proj": "self_attention.output",
    "self_attn_layer_norm": "self_attention_norm",
    "encoder_attn.q_proj": "cross_attention.query",
    "encoder_attn.k_proj": "cross_attention.key",
    "encoder_attn.v_proj": "cross_attention.value",
    "encoder_attn.out_proj": "cross_attention.output",
    "encoder_attn_layer_norm": "cross_attention_norm",
    "fc1": "feed_forward.inner",
    "fc2": "feed_forward.outer",
    "final_layer_norm": "feed_forward_norm",
}


def make_theirs() -> Any:
    config = marian.MarianConfig(
        vocab_size=V,
        decoder_vocab_size=V,
        d_model=D,
        encoder_layers=3,
        decoder_layers=2,
        encoder_attention_heads=H,
        decoder_attention_heads=H,
        encoder_ffn_dim=F,
        decoder_ffn_dim=F,
        max_position_embeddings=LONGEST,
        activation_function="swish",
        scale_embedding=True,
        dropout=0.0,
        pad_token_id=PAD,
        eos_token_id=0,
        bos_token_id=1,
        decoder_start_token_id=PAD,
        forced_eos_token_id=None,
        attn_implementation="eager",
    )
    theirs = marian.MarianMTModel(config).double().eval()
    numbers = torch.Generator().manual_seed(43)
    table_LD = sinusoidal_positions(LONGEST, D, halves=True, dtype=torch.float64)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "embed_positions" in name:
                parameter.copy_(table_LD)
            else:
                width = parameter.shape[1] ** -0.5 if parameter.dim() == 2 else 0.3
                center = 1.0 if name.endswith("norm.weight") else 0.0
                parameter.normal_(center, width, generator=numbers)
        theirs.final_logits_bias.normal_(generator=numbers)
    return theirs


def make_ours(theirs: Any) -> Transformer:
    ours = Transformer(
        ModelConfig(
            d_model=D,
            d_ff=F,
            num_heads=H,
            num_encoder_layers=3,
            num_decoder_layers=2,
            activation="swish",
            positions="sinusoidal_halves",
            projection_bias=True,
            source_vocabulary_size=V,
            target_vocabulary_size=V,
            max_source_length=LONGEST,
            max_target_length=LONGEST,
        ),
        has_output_bias=True,
    ).double()
    state = theirs.state_dict()
    weights = {
        "embedding.weight": state["model.shared.weight"],
        "output.bias": state["final_logits_bias"][0],
    }
    for part in ("encoder", "decoder"):
        for index in range(3 if part == "encoder" else 2):
            for name, value in state.items():
                prefix = f"model.{part}.layers.{index}."
                if name.startswith(prefix):
                    module, _, kind = name.removeprefix(prefix).rpartition(".")
                    weights[f"{part}.layers.{index}.{NAMES[module]}.{kind}"] = value
    ours.load_state_dict(weights, strict=True)
    return ours


def make_batch() -> tuple[Tensor, Tensor, Tensor]:
    numbers = torch.Generator().manual_seed(47)
    source_BS = torch.randint(PAD, (B, S), generator=numbers)
    target_BT = torch.randint(PAD, (B, T), generator=numbers)
    source_mask_BS = torch.arange(S) < torch.tensor([[S - 2], [S]])
    return source_BS.masked_fill(~source_mask_BS, PAD), target_BT, source_mask_BS


def assert_near(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    assert actual.shape == expected.shape
    difference = (actual - expected).detach().abs()
    largest, mean = float(difference.max()), float(difference.mean())
    assert largest <= tolerance, f"largest difference {largest:.3g}, mean {mean:.3g}"


def test_model_with_marians_weights_gives_marians_log_probabilities() -> None:
    theirs = make_theirs()
    ours = make_ours(theirs)
    source_BS, target_BT, source_mask_BS = make_batch()
    with torch.no_grad():
        expected_BTV = theirs(
            input_ids=source_BS,
            attention_mask=source_mask_BS.long(),
            decoder_input_ids=target_BT,
            use_cache=False,
        ).logits.log_softmax(-1)
        actual_BTV = ours(source_BS, target_BT, source_mask_BS).log_softmax(-1)
    assert_near(actual_BTV, expected_BTV, 1e-9)


def test_encoder_with_marians_weights_gives_marians_memory() -> None:
    theirs = make_theirs()
    ours = make_ours(theirs)
    source_BS, _, source_mask_BS = make_batch()
    with torch.no_grad():
        expected_BSD = theirs.model.encoder(
            input_ids=source_BS, attention_mask=source_mask_BS.long()
        ).last_hidden_state
        actual_BSD = ours.encode(source_BS, source_mask_BS)
    assert_near(actual_BSD[source_mask_BS], expected_BSD[source_mask_BS], 1e-9)


def test_halved_positions_equal_marians_own_table() -> None:
    module = marian.modeling_marian.MarianSinusoidalPositionalEmbedding(LONGEST, D)
    ours_LD = sinusoidal_positions(LONGEST, D, halves=True)
    assert_near(ours_LD, module.create_weight(), 1e-6)
