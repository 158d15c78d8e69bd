"""Scores of given translations are the log-probabilities of the teacher-forced model."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pellucid.config import ModelConfig
from pellucid.decode.greedy import decode_greedily
from pellucid.decode.scoring import score_tokens
from pellucid.model import Transformer, initialize

B, S, T, V, START, EOS = 3, 5, 7, 37, 2, 3


def make_model(*, has_output_bias: bool = False) -> Transformer:
    config = ModelConfig(
        d_model=22,
        d_ff=19,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=2,
        source_vocabulary_size=V,
        target_vocabulary_size=V,
    )
    model = Transformer(config, has_output_bias=has_output_bias).double()
    initialize(model, seed=3)
    if has_output_bias:
        with torch.no_grad():
            model.output.bias.copy_(torch.arange(V) / V)
    return model


def make_batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    numbers = torch.Generator().manual_seed(5)
    source_BS = torch.randint(V, (B, S), generator=numbers)
    source_mask_BS = torch.arange(S) < torch.tensor([[S], [2], [4]])
    target_out_BT = torch.randint(V, (B, T), generator=numbers)
    start_B1 = torch.full((B, 1), START)
    return source_BS, source_mask_BS, torch.cat([start_B1, target_out_BT[:, :-1]], 1), target_out_BT


@pytest.mark.parametrize("has_output_bias", [False, True])
def test_score_tokens_equals_log_softmax_of_the_forward_pass(has_output_bias: bool) -> None:
    model = make_model(has_output_bias=has_output_bias)
    source_BS, source_mask_BS, target_in_BT, target_out_BT = make_batch()
    actual_BT = score_tokens(model, source_BS, source_mask_BS, target_in_BT, target_out_BT)
    with torch.no_grad():
        logits_BTV = model(source_BS, target_in_BT, source_mask_BS)
    expected_BT = logits_BTV.log_softmax(-1).gather(2, target_out_BT[:, :, None])[:, :, 0]
    assert actual_BT.shape == (B, T)
    assert float((actual_BT - expected_BT).abs().max()) <= 1e-10


def test_score_tokens_of_a_greedy_translation_gives_its_log_probabilities() -> None:
    model = make_model(has_output_bias=True)
    source_BS, source_mask_BS, _, _ = make_batch()
    hypotheses = decode_greedily(
        model, source_BS, source_mask_BS, start_id=START, eos_id=EOS, max_lengths=[11] * B
    )
    for row, hypothesis in enumerate(hypotheses):
        here = slice(row, row + 1)
        scored_1T = score_tokens(
            model,
            source_BS[here],
            source_mask_BS[here],
            torch.tensor([[START, *hypothesis.ids[:-1]]]),
            torch.tensor([hypothesis.ids]),
        )
        assert scored_1T[0].tolist() == pytest.approx(hypothesis.token_log_probabilities, abs=1e-10)


def test_score_tokens_of_every_token_sums_to_one() -> None:
    model = make_model()
    source_BS, source_mask_BS, target_in_BT, _ = make_batch()
    total_BT = torch.zeros(B, T, dtype=torch.float64)
    for token in range(V):
        everywhere_BT = torch.full((B, T), token)
        total_BT += score_tokens(
            model, source_BS, source_mask_BS, target_in_BT, everywhere_BT
        ).exp()
    assert float((total_BT - 1).abs().max()) <= 1e-12


def test_score_tokens_of_real_columns_does_not_depend_on_padding() -> None:
    model = make_model()
    source_BS, source_mask_BS, target_in_BT, target_out_BT = make_batch()
    short = score_tokens(
        model, source_BS, source_mask_BS, target_in_BT[:, :4], target_out_BT[:, :4]
    )
    whole = score_tokens(model, source_BS, source_mask_BS, target_in_BT, target_out_BT)
    assert float((whole[:, :4] - short).abs().max()) <= 1e-10


def test_without_a_look_ahead_mask_padding_is_not_seen() -> None:
    config = make_model(has_output_bias=False).config.model_copy(update={"look_ahead_mask": False})
    model = Transformer(config).double()
    initialize(model, seed=3)
    source_BS, source_mask_BS, target_in_BT, target_out_BT = make_batch()
    lengths = (T, 2, 3)
    target_mask_BT = torch.arange(T) < torch.tensor(lengths)[:, None]
    batch = (source_BS, source_mask_BS, target_in_BT, target_out_BT)
    together_BT = score_tokens(model, *batch, target_mask_BT)
    for row, length in enumerate(lengths):
        one = [tensor[row, None] for tensor in batch]
        alone_1T = score_tokens(model, *one[:2], *(tensor[:, :length] for tensor in one[2:]))
        assert torch.allclose(together_BT[row, :length], alone_1T[0], atol=1e-10)
