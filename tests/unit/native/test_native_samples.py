"""Samples that one call of the engine in C draws are those of the search on PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_native import (
    DIFFERENT,
    END,
    SPECIAL,
    START,
    SWITCHES,
    engine_of,
    make_requests,
    make_transformer,
    on_pytorch,
)

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.request import Request
from pellucid.decode.decoder import Decoder
from pellucid.decode.search.uniforms import uniforms
from pellucid.errors import InputError
from pellucid.native import loading
from pellucid.native.call import LengthLimits, SearchOptions
from pellucid.native.engine import NativeEngine
from pellucid.native.loading import instruction_sets

OPTIONS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.4, "n_best": 3},
    {"temperature": 2.5, "top_k": 5},
    {"top_p": 0.7},
    {"epsilon": 0.08},
    {"top_k": 9, "top_p": 0.9, "epsilon": 0.01, "temperature": 1.7},
    {"top_k": 1},
    {"temperature": 1e-300},
    {"temperature": 1e300, "top_p": 0.5},
]


def named(model: Any, count: int, seed: int = 1) -> list[Request]:
    requests = make_requests(model, count, seed)
    return [replace(one, key=f"line {place}") for place, one in enumerate(requests)]


def draw(
    engine: NativeEngine, requests: Sequence[Request], sentences: int, threads: int, **options: Any
) -> list[Any]:
    config = DecodingConfig(sample=True, **options)
    return engine.translate(
        [one.source_ids for one in requests],
        [LengthLimits(one.max_length, one.min_length, one.prefix_ids) for one in requests],
        SearchOptions(config, START, END, SPECIAL.never),
        sentences=sentences,
        threads=threads,
        uniforms=[uniforms([one.key], config.seed, one.max_length)[0] for one in requests],
    )


@pytest.mark.sample(changes=DIFFERENT)
@pytest.mark.parametrize("changes", SWITCHES, ids=str)
def test_samples_are_those_of_pytorch(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_transformer(**changes)
    decoder, requests = Decoder([model], SPECIAL), named(model, 13)
    for seed, one in enumerate(OPTIONS, start=1):
        options = {"sample": True, "seed": seed, **one}
        config = DecodingConfig(**options)
        assert decoder.find_reason(config, requests) is None
        found = decoder.decode(requests, config, batch_tokens=512)
        wanted = on_pytorch(model, requests, options, monkeypatch)
        for answer, other in zip(found, wanted, strict=True):
            assert [one.ids for one in answer] == [one.ids for one in other]
            for sample, expected in zip(answer, other, strict=True):
                assert sample.is_finished == expected.is_finished
                assert sample.score == pytest.approx(expected.score, abs=1e-4)
                np.testing.assert_allclose(
                    sample.token_log_probabilities, expected.token_log_probabilities, atol=1e-5
                )


def test_equally_likely_tokens_are_drawn_as_on_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_transformer(target_vocabulary_size=1031, tied_embeddings="none")
    model.output.weight.data.zero_()
    model.output.bias.data = torch.arange(1031) % 7 / 4.0  # the same logit 147 times
    requests = named(model, 17)
    for one in ({}, {"top_k": 300}, {"top_p": 0.31}, {"top_k": 200, "top_p": 0.9}):
        options = {"sample": True, "temperature": 0.7, **one}
        config = DecodingConfig(**options)
        found = Decoder([model], SPECIAL).decode(requests, config, batch_tokens=512)
        wanted = on_pytorch(model, requests, options, monkeypatch)
        assert [answer[0].ids for answer in found] == [answer[0].ids for answer in wanted]
        ids = {id_ for answer in found for id_ in answer[0].ids}
        assert len(ids) > 20


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_samples_are_the_same_bits_in_any_batch_with_any_threads(precision: str) -> None:
    model = make_transformer(d_model=34, d_ff=53, num_heads=3, d_key=17, d_value=19)
    engine, requests = engine_of(model, precision), named(model, 29)
    for options in ({}, {"top_p": 0.8}):
        alone = [draw(engine, [one], 1, 1, **options)[0] for one in requests]
        for sentences, threads in ((1, 1), (7, 1), (64, 1), (5, 2), (3, 4)):
            assert draw(engine, requests, sentences, threads, **options) == alone


def test_samples_are_the_same_on_every_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    def sets() -> Iterator[str]:
        for name in instruction_sets():
            monkeypatch.setenv(loading.VARIABLE, name)
            yield name

    model = make_transformer(target_vocabulary_size=1031, tied_embeddings="none")
    requests = named(model, 17)
    found = {name: draw(engine_of(model), requests, 7, 1, top_p=0.9) for name in sets()}
    exact = {str(one) for name, one in found.items() if name != "portable"}
    if len(found) < 3:
        pytest.skip("this processor has one set of instructions with multiply-add")
    assert len(exact) == 1


def test_seed_and_key_choose_the_sample() -> None:
    model = make_transformer()
    (request,) = named(model, 1, seed=3)
    engine = engine_of(model)
    others = [replace(request, key=str(place)) for place in range(20)]
    ids = {one[0].ids for one in draw(engine, others, 20, 1, temperature=2.0)}
    assert len(ids) > 10
    again = {one[0].ids for one in draw(engine, others, 20, 1, temperature=2.0, seed=2)}
    assert again != ids


@pytest.mark.parametrize(
    "numbers", [np.zeros(4), np.ones(5), np.full(5, -0.1), np.full(5, np.nan), np.zeros((5, 1))]
)
def test_numbers_that_are_no_shares_never_reach_the_engine(numbers: np.ndarray) -> None:
    search = SearchOptions(DecodingConfig(sample=True), START, END)
    with pytest.raises(InputError, match=r"at most 5 tokens needs as many numbers in \[0, 1\)"):
        engine_of(make_transformer()).translate(
            [(5, END)], [LengthLimits(5)], search, sentences=1, threads=1, uniforms=[numbers]
        )


def test_overflow_of_a_sample_is_an_answer_of_its_own() -> None:
    model = make_transformer()
    model.embedding_of("source").weight.data[7] = 1e38  # The first norm overflows.
    requests = [Request((5, 6, END), 9), Request((7, 6, END), 9), Request((8, END), 9)]
    engine = engine_of(model)
    found = draw(engine, requests, 3, 1)
    assert found[1] == "overflowed"
    assert [found[0], found[2]] == draw(engine, [requests[0], requests[2]], 1, 1)
