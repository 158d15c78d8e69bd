"""Greedy search against a simple loop without cache and batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pellucid.config import ModelConfig
from pellucid.decode.greedy import choose_likeliest, decode_greedily
from pellucid.decode.hypothesis import Hypothesis
from pellucid.model import Transformer

S, V, START, EOS = 7, 13, 2, 3


def make_model(seed: int, **changes: Any) -> Transformer:
    sizes: dict[str, Any] = {
        "d_model": 22,
        "d_ff": 19,
        "num_heads": 2,
        "num_encoder_layers": 1,
        "num_decoder_layers": 2,
        "positions": "learned",
        "tied_embeddings": "none",
        "source_vocabulary_size": V,
        "target_vocabulary_size": V,
        "max_target_length": 61,
    }
    model = Transformer(ModelConfig(**{**sizes, **changes}), has_output_bias=True).double()
    numbers = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Positions and tokens outweigh the rest, so that the likeliest token keeps changing.
            width = 0.7 * parameter.shape[1] ** -0.5 if parameter.dim() == 2 else 0.1
            width = 1.0 if "embedding" in name else 5.0 if "positions" in name else width
            center = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.normal_(center, width, generator=numbers)
    return model


def make_sources(seed: int, lengths: tuple[int, ...] = (7, 3, 1, 5, 6)) -> tuple[Tensor, Tensor]:
    numbers = torch.Generator().manual_seed(seed)
    source_BS = torch.randint(V, (len(lengths), S), generator=numbers)
    return source_BS, torch.arange(S) < torch.tensor(lengths)[:, None]


@torch.no_grad()
def decode_naively(model: Transformer, source: list[int], max_length: int) -> Hypothesis:
    ids: list[int] = []
    logs: list[float] = []
    while len(ids) < max_length and EOS not in ids:
        logits_1TV = model(torch.tensor([source]), torch.tensor([[START, *ids]]))
        values = logits_1TV[0, -1].log_softmax(-1).tolist()
        best = min(range(V), key=lambda token: (-values[token], token))
        ids.append(best)
        logs.append(values[best])
    return Hypothesis(tuple(ids), tuple(logs), ids[-1] == EOS, score=sum(logs))


def assert_same(actual: Hypothesis, expected: Hypothesis) -> None:
    assert actual.ids == expected.ids
    assert actual.is_finished == expected.is_finished
    assert actual.token_log_probabilities == pytest.approx(
        expected.token_log_probabilities, rel=0, abs=1e-10
    )


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_greedy_on_random_models_equals_a_naive_loop(norm: str) -> None:
    limits = [19, 9, 23, 1, 17]
    finished_lengths, unfinished = set(), 0
    for seed in range(4):
        model = make_model(seed, norm=norm)
        source_BS, mask_BS = make_sources(seed)
        hypotheses = decode_greedily(
            model, source_BS, mask_BS, start_id=START, eos_id=EOS, max_lengths=limits
        )
        for row, (hypothesis, limit) in enumerate(zip(hypotheses, limits, strict=True)):
            source = source_BS[row][mask_BS[row]].tolist()
            assert_same(hypothesis, decode_naively(model, source, limit))
            if hypothesis.is_finished:
                finished_lengths.add(len(hypothesis.ids))
            else:
                assert len(hypothesis.ids) == limit
                unfinished += 1
    # The models are such that both ends occur, and at many different steps.
    assert len(finished_lengths) >= 3
    assert unfinished >= 5


def test_greedy_of_a_batch_of_one_equals_its_row_in_a_batch() -> None:
    model = make_model(1)
    source_BS, mask_BS = make_sources(1)
    options: dict[str, Any] = {"start_id": START, "eos_id": EOS}
    together = decode_greedily(model, source_BS, mask_BS, max_lengths=[19] * 5, **options)
    for row in range(5):
        here = slice(row, row + 1)
        (alone,) = decode_greedily(
            model, source_BS[here], mask_BS[here], max_lengths=[19], **options
        )
        assert_same(together[row], alone)


def test_greedy_keeps_the_order_of_rows_whatever_their_order() -> None:
    model = make_model(4)
    source_BS, mask_BS = make_sources(4)
    limits = torch.tensor([31, 5, 31, 2, 11])
    order = torch.tensor([3, 1, 4, 0, 2])
    options: dict[str, Any] = {"start_id": START, "eos_id": EOS}
    straight = decode_greedily(model, source_BS, mask_BS, max_lengths=limits.tolist(), **options)
    shuffled = decode_greedily(
        model, source_BS[order], mask_BS[order], max_lengths=limits[order].tolist(), **options
    )
    for place, row in enumerate(order.tolist()):
        assert_same(shuffled[place], straight[row])


def test_greedy_stops_each_row_at_its_own_limit() -> None:
    model = make_model(2)
    with torch.no_grad():
        model.output.bias[EOS] = -1e9
    source_BS, mask_BS = make_sources(2)
    limits = [1, 59, 2, 17, 33]
    hypotheses = decode_greedily(
        model, source_BS, mask_BS, start_id=START, eos_id=EOS, max_lengths=limits
    )
    assert [len(hypothesis.ids) for hypothesis in hypotheses] == limits
    assert not any(hypothesis.is_finished for hypothesis in hypotheses)


def test_greedy_at_once_finished_gives_the_end_alone() -> None:
    model = make_model(2)
    with torch.no_grad():
        model.output.bias[EOS] = 1e3
    source_BS, mask_BS = make_sources(2)
    for hypothesis in decode_greedily(
        model, source_BS, mask_BS, start_id=START, eos_id=EOS, max_lengths=[9] * 5
    ):
        assert hypothesis == Hypothesis((EOS,), (0.0,), is_finished=True, score=0.0)
        assert hypothesis.log_probability == 0.0


def test_greedy_ending_exactly_at_the_limit_is_finished() -> None:
    model = make_model(1)
    source_BS, mask_BS = make_sources(1)
    options: dict[str, Any] = {"start_id": START, "eos_id": EOS}
    free = decode_greedily(model, source_BS, mask_BS, max_lengths=[29] * 5, **options)
    lengths = [len(hypothesis.ids) for hypothesis in free]
    exact = decode_greedily(model, source_BS, mask_BS, max_lengths=lengths, **options)
    assert any(hypothesis.is_finished for hypothesis in free)
    for one, other in zip(free, exact, strict=True):
        assert_same(other, one)


def test_greedy_of_no_sentences_gives_none() -> None:
    source_BS = torch.zeros(0, S, dtype=torch.long)
    assert (
        decode_greedily(
            make_model(1), source_BS, source_BS.bool(), start_id=START, eos_id=EOS, max_lengths=[]
        )
        == []
    )


def test_greedy_of_tied_tokens_takes_the_lowest_index() -> None:
    """Two tokens with equal rows of the output matrix have equal logits, the highest of all."""
    model = make_model(2)
    with torch.no_grad():
        model.output.bias[:] = 0
        model.output.bias[[5, 11]] = 50.0
        model.output.weight[11] = model.output.weight[5]
    source_BS, mask_BS = make_sources(2)
    for hypothesis in decode_greedily(
        model, source_BS, mask_BS, start_id=START, eos_id=EOS, max_lengths=[8] * 5
    ):
        assert set(hypothesis.ids) == {5}
        logs = hypothesis.token_log_probabilities
        assert logs == pytest.approx([-0.6931471805599453] * 8, abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("places", [(0, 1), (7, 4099), (5000, 5001), (31, 2048, 4999)])
def test_choose_likeliest_of_equal_values_takes_the_lowest_index(
    places: tuple[int, ...], dtype: torch.dtype
) -> None:
    logits_BV = torch.randn(3, 5003).to(dtype).clamp(max=4)
    logits_BV[:, list(places)] = 6.0
    chosen_B, _ = choose_likeliest(logits_BV)
    assert chosen_B.tolist() == [places[0]] * 3


def test_choose_likeliest_of_all_equal_values_takes_index_zero() -> None:
    chosen_B, log_B = choose_likeliest(torch.full((2, 997), 1.5, dtype=torch.float64))
    assert chosen_B.tolist() == [0, 0]
    assert torch.allclose(log_B, -torch.tensor(997.0, dtype=torch.float64).log())


def test_choose_likeliest_of_large_values_gives_finite_log_probabilities() -> None:
    chosen_B, log_B = choose_likeliest(torch.tensor([[1e4, -1e4, 0.0], [-1e4, -1e4, -2e4]]))
    assert chosen_B.tolist() == [0, 0]
    assert log_B.tolist() == pytest.approx([0.0, -0.6931472], abs=1e-3)


def test_hypothesis_log_probability_is_the_sum_of_its_tokens() -> None:
    assert Hypothesis((5, 3), (-0.25, -0.5), is_finished=True, score=-0.4).log_probability == -0.75
