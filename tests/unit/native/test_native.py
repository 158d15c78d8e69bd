"""The engine in C finds what the search on PyTorch finds, in any batch and on any processor."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
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
    answers_of,
    engine_of,
    make_requests,
    make_transformer,
    on_pytorch,
)

from pellucid.config import (
    BundleConfig,
    DecodingConfig,
    LanguagesConfig,
    ModelConfig,
    Precision,
    TokenizerConfig,
)
from pellucid.decode.constraints.request import Request
from pellucid.decode.decoder import Decoder
from pellucid.errors import ConfigurationError, InputError
from pellucid.machine.turns import StoppedError, taking_turns
from pellucid.model import Transformer, make_model
from pellucid.model.stored_tensors import pack_weights, serialize_tensors, unpack_weights
from pellucid.native import engine as native_engine
from pellucid.native import loading
from pellucid.native.call import LengthLimits, SearchOptions
from pellucid.native.engine import NativeEngine
from pellucid.native.loading import find_library, instruction_sets
from pellucid.native.quantization import quantize_rows
from pellucid.native.stored_weights import read_stored
from pellucid.native.weights import encode_positions

OPTIONS: list[dict[str, Any]] = [
    {},
    {"beam": 5, "n_best": 3},
    {"beam": 7, "stopping": "heuristic", "length_penalty": "average", "alpha": 1.0},
    {"beam": 3, "stopping": "never", "length_penalty": "none", "n_best": 2},
]


@pytest.fixture
def each_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[Iterator[str]]:
    """The sets of instructions of this machine, each in use while it is the loop's turn."""

    def forced() -> Iterator[str]:
        for name in instruction_sets():
            monkeypatch.setenv(loading.VARIABLE, name)
            yield name

    return forced()


@pytest.mark.sample(changes=DIFFERENT)
@pytest.mark.parametrize("changes", SWITCHES, ids=str)
def test_engine_of_every_architecture_finds_what_pytorch_finds(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_transformer(**changes)
    requests = make_requests(model, 13)
    decoder = Decoder([model], SPECIAL)
    for options in OPTIONS:
        config = DecodingConfig(**options)
        assert decoder.find_reason(config, requests) is None
        wanted = on_pytorch(model, requests, options, monkeypatch)
        found = decoder.decode(requests, config, batch_tokens=512)
        # Without residual connections a row does not see its token: orders of tokens tie.
        if changes.get("residual", True):
            assert [[one.ids for one in answer] for answer in found] == [
                [one.ids for one in answer] for answer in wanted
            ]
        for one, other in zip(chain(*found), chain(*wanted), strict=True):
            assert one.is_finished == other.is_finished
            assert one.score == pytest.approx(other.score, abs=1e-4)
            np.testing.assert_allclose(
                sorted(one.token_log_probabilities),
                sorted(other.token_log_probabilities),
                atol=1e-5,
            )


def test_tokens_that_all_requests_forbid_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_transformer(seed=2)
    plain = make_requests(model, 11)
    common = Decoder([model], SPECIAL).decode(plain, DecodingConfig(), batch_tokens=512)
    frequent = max(range(4, 23), key=lambda id_: sum(id_ in one[0].ids for one in common))
    forbidding = [Request(one.source_ids, 19, forbidden=((frequent,),)) for one in plain]
    decoder = Decoder([model], SPECIAL)
    assert decoder.find_reason(DecodingConfig(), forbidding) is None
    found = decoder.decode(forbidding, DecodingConfig(), batch_tokens=512)
    assert len(found) == 11
    assert not any(frequent in one[0].ids for one in found)
    wanted = on_pytorch(model, forbidding, {}, monkeypatch)
    assert [one[0].ids for one in found] == [one[0].ids for one in wanted]


def test_length_penalty_beyond_all_numbers_searches_as_pytorch_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = make_transformer(seed=3)
    requests, options = make_requests(model, 7), {"beam": 3, "alpha": 1e300}
    found = Decoder([model], SPECIAL).decode(requests, DecodingConfig(**options), batch_tokens=512)
    wanted = on_pytorch(model, requests, options, monkeypatch)
    assert [one[0].ids for one in found] == [one[0].ids for one in wanted]


@pytest.mark.parametrize("reader", ["attention", "ssru"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_answers_are_the_same_bits_in_any_batch_with_any_threads(
    precision: str, reader: str
) -> None:
    sizes = {"d_model": 34, "d_ff": 53, "num_heads": 3, "d_key": 17, "d_value": 19}
    model = make_transformer(**sizes, decoder=reader)
    requests = make_requests(model, 29)
    engine = engine_of(model, precision)
    for options in ({}, {"beam": 5, "n_best": 2}):
        alone = [answers_of(engine, [one], 1, 1, **options)[0] for one in requests]
        for sentences, threads in ((1, 1), (7, 1), (64, 1), (5, 2), (3, 4)):
            assert answers_of(engine, requests, sentences, threads, **options) == alone
        backwards = answers_of(engine, requests[::-1], 11, 1, **options)
        assert backwards[::-1] == alone


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_threads_that_share_the_products_of_a_sentence_change_no_bit(
    precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Large enough that each product of the decoder, and of the logits, is cut into pieces.
    sizes = {"target_vocabulary_size": 9001, "tied_embeddings": "none"}
    model = make_transformer(d_model=74, d_ff=1013, **sizes)
    engine, requests = engine_of(model, precision), make_requests(model, 3)
    for options in OPTIONS[:2]:
        alone = answers_of(engine, requests, 1, 1, **options)
        for shared_bytes in (0, 2**40):
            monkeypatch.setattr(native_engine, "SHARED_BYTES", shared_bytes)
            monkeypatch.setattr(native_engine, "has_free_cores", lambda threads: True)
            for threads in (2, 3, 5):
                answers = [answers_of(engine, [one], 1, threads, **options)[0] for one in requests]
                assert answers == alone


@pytest.mark.parametrize("reader", ["attention", "ssru"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_processors_with_multiply_add_give_the_same_bits(
    precision: str, reader: str, each_set: Iterator[str]
) -> None:
    sizes = {"d_model": 34, "d_ff": 53, "num_heads": 3, "d_key": 17, "d_value": 19}
    model = make_transformer(**sizes, norm="pre", decoder=reader)
    requests = make_requests(model, 17)
    found = {
        name: answers_of(engine_of(model, precision), requests, 7, 1, beam=3) for name in each_set
    }
    exact = {name: one for name, one in found.items() if name != "portable"}
    if len(exact) < 2:
        pytest.skip("this processor has one set of instructions with multiply-add")
    assert len({str(one) for one in exact.values()}) == 1
    wanted = next(iter(exact.values()))
    for name, one in found.items():
        same = [a[0].ids == b[0].ids for a, b in zip(one, wanted, strict=True)]
        assert sum(same) >= 16, name  # without multiply-add, rounding may decide a close call


def test_int8_translates_as_the_dequantized_weights_do_but_for_the_rows() -> None:
    model = make_transformer(d_model=34, d_ff=53, num_heads=3, d_key=17, d_value=19)
    requests = make_requests(model, 23)
    exact = answers_of(engine_of(model), requests, 7, 1)
    coarse = answers_of(engine_of(model, "int8"), requests, 7, 1)
    assert coarse != exact  # Something was rounded.
    firsts = [(a[0].logs[0], b[0].logs[0]) for a, b in zip(exact, coarse, strict=True)]
    assert max(abs(one - other) for one, other in firsts) < 0.2


@pytest.mark.parametrize("activation", ["relu", "gelu"])  # rows without and with negative numbers
def test_largest_bytes_of_rows_and_weights_are_summed_exactly(
    activation: str, each_set: Iterator[str]
) -> None:
    model = make_transformer(d_ff=53, activation=activation)
    for name, weight in model.named_parameters():
        if "feed_forward.inner.weight" in name:
            weight.data.zero_()  # all numbers of a row are the bias: the largest byte each
        elif "feed_forward.inner.bias" in name:
            weight.data.fill_(3.0)
        elif "feed_forward.outer.weight" in name:
            weight.data.copy_(torch.linspace(-0.1, 0.1, len(weight))[:, None].expand_as(weight))
    requests = make_requests(model, 17)
    wanted = [answer[0].logs[0] for answer in answers_of(engine_of(model), requests, 7, 1)]
    found = {name: answers_of(engine_of(model, "int8"), requests, 7, 1) for name in each_set}
    assert len({str([answer[0].ids for answer in answers]) for answers in found.values()}) == 1
    for answers in found.values():
        logs = [answer[0].logs[0] for answer in answers]
        np.testing.assert_allclose(logs, wanted, atol=0.1)


def with_rounded_products(model: Transformer) -> Transformer:
    """Round the weights of products to bfloat16; embeddings stay what they are."""
    weights = model.state_dict()
    own = {"source": "source_embedding.weight", "target": "target_embedding.weight"}
    names = {"all": "embedding.weight", "decoder": own["target"], "none": "output.weight"}
    untied = model.config.model_copy(update={"tied_embeddings": "none"})
    rounded = {
        name: weight.bfloat16().float() if weight.dim() == 2 and "positions" not in name else weight
        for name, weight in weights.items()
        if "embedding" not in name
    }
    rounded |= {name: weights.get(name, weights.get("embedding.weight")) for name in own.values()}
    rounded["output.weight"] = weights[names[model.config.tied_embeddings]].bfloat16().float()
    other = Transformer(untied, has_output_bias="output.bias" in weights)
    other.load_state_dict(rounded)
    return other.eval()


@pytest.mark.sample(changes=DIFFERENT)
@pytest.mark.parametrize("changes", SWITCHES, ids=str)
def test_bfloat16_is_float32_with_rounded_weights_of_products(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_transformer(**changes)
    rounded, requests = with_rounded_products(model), make_requests(model, 13)
    decoder = Decoder([model], SPECIAL)
    for options in OPTIONS[:2]:
        config = DecodingConfig(**options, precision="bfloat16")
        assert decoder.find_reason(config, requests) is None
        found = decoder.decode(requests, config, batch_tokens=512)
        wanted = on_pytorch(rounded, requests, options, monkeypatch)
        # Without residual connections a row does not see its token: orders of tokens tie.
        if changes.get("residual", True):
            assert [[one.ids for one in answer] for answer in found] == [
                [one.ids for one in answer] for answer in wanted
            ]
        for one, other in zip(chain(*found), chain(*wanted), strict=True):
            np.testing.assert_allclose(
                sorted(one.token_log_probabilities),
                sorted(other.token_log_probabilities),
                atol=1e-5,
            )
        exact = decoder.decode(requests, DecodingConfig(**options), batch_tokens=512)
        assert [one[0].score for one in found] != [one[0].score for one in exact]


def test_weights_become_the_integers_of_a_stored_bundle() -> None:
    from pellucid.model.stored_tensors import quantize_tensor_rows as stored

    weight = torch.randn(7, 13)
    weight[3] = 0
    weight[5] = 1e-37
    values, scale = quantize_rows(weight.numpy())
    wanted_values, wanted_scale = stored(weight)
    np.testing.assert_array_equal(values, wanted_values.numpy())
    np.testing.assert_array_equal(scale, wanted_scale.numpy())


@pytest.mark.parametrize("halves", [False, True])
def test_positions_are_those_of_the_model(halves: bool) -> None:
    from pellucid.attention.positions import sinusoidal_positions

    wanted = sinusoidal_positions(97, 14, halves=halves).numpy()
    np.testing.assert_allclose(encode_positions(97, 14, halves=halves), wanted, atol=1e-7)


def test_overflow_is_an_answer_of_its_own_and_leaves_other_sentences_alone() -> None:
    model = make_transformer()
    model.embedding_of("source").weight.data[7] = 1e38  # The first norm overflows.
    requests = [Request((5, 6, END), 9), Request((7, 6, END), 9), Request((8, END), 9)]
    healthy = [requests[0], requests[2]]
    engine = engine_of(model)
    found = answers_of(engine, requests, 1, 1)
    assert found[1] == "overflowed"
    assert [found[0], found[2]] == answers_of(engine, healthy, 2, 1)
    (answer,) = Decoder([model], SPECIAL).decode(requests[1:2], DecodingConfig(), batch_tokens=512)
    assert answer[0].has_overflowed


@pytest.mark.parametrize(
    ("source", "limits", "message"),
    [
        ((23, END), LengthLimits(5), "ids of a source"),
        ((-1, END), LengthLimits(5), "ids of a source"),
        ((5, END), LengthLimits(5, prefix_ids=(99,)), "ids of a target"),
        ((), LengthLimits(5), "from 1 to 97 tokens, but one has 0"),
        ((5,) * 98, LengthLimits(5), "but one has 98"),
        ((5, END), LengthLimits(0), "maximum length"),
        ((5, END), LengthLimits(98), "maximum length"),
    ],
)
def test_what_the_engine_cannot_read_never_reaches_it(
    source: tuple[int, ...], limits: LengthLimits, message: str
) -> None:
    engine = engine_of(make_transformer())
    with pytest.raises(InputError, match=message):
        engine.translate(
            [source], [limits], SearchOptions(DecodingConfig(), START, END), sentences=1, threads=1
        )


def test_weights_that_are_not_finite_stay_with_pytorch() -> None:
    model = make_transformer()
    model.encoder.layers[0].feed_forward.inner.weight.data[3, 2] = float("nan")
    reason = Decoder([model], SPECIAL).find_reason(DecodingConfig())
    assert reason is not None
    assert "feed_forward.inner.weight are not finite" in reason


@pytest.mark.parametrize(
    ("options", "fields", "reason"),
    [
        ({"strict": True}, {}, "strict"),
        ({"beam": 4, "diverse_groups": 2}, {}, "diverse_groups"),
        ({"no_repeat_ngram": 2}, {}, "no_repeat_ngram"),
        ({"repetition_penalty": 1.5}, {}, "repetition_penalty"),
        ({}, {"required": ((5, 6),)}, "required"),
        ({}, {"forbidden": ((5, 6),)}, "forbidden"),
    ],
)
def test_what_the_engine_does_not_do_has_a_reason(
    options: dict[str, Any], fields: dict[str, Any], reason: str
) -> None:
    decoder = Decoder([make_transformer()], SPECIAL)
    found = decoder.find_reason(DecodingConfig(**options), [Request((5, END), 9, **fields)])
    assert found is not None
    assert reason in found


def test_other_models_have_a_reason() -> None:
    model = make_transformer()
    assert "several models" in str(Decoder([model, model], SPECIAL).find_reason(DecodingConfig()))
    double = make_transformer().double()
    assert "float64" in str(Decoder([double], SPECIAL).find_reason(DecodingConfig()))
    values = {"architecture": "recurrent", "d_model": 14}
    values |= {"source_vocabulary_size": 23, "target_vocabulary_size": 23}
    recurrent = make_model(ModelConfig.model_validate(values))
    assert "recurrent" in str(Decoder([recurrent], SPECIAL).find_reason(DecodingConfig()))


def test_unknown_instructions_are_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(loading.VARIABLE, "mmx")
    with pytest.raises(ConfigurationError, match=r"portable.* but is mmx\. Choose"):
        find_library()


def test_without_a_library_the_reason_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loading.load_library.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(loading, "BUILT", tmp_path)
        assert "C compiler" in str(find_library())
        (tmp_path / "portable.so").write_bytes(b"not a library")
        loading.load_library.cache_clear()
        assert "cannot be read" in str(find_library())
    loading.load_library.cache_clear()
    assert not isinstance(find_library(), str)


def make_endless() -> Transformer:
    """Make a model that never ends a translation by itself, and is slow."""
    model = make_transformer(max_target_length=10**6, d_model=34, d_ff=4099)
    model.output.bias = torch.nn.Parameter(torch.zeros(23))
    model.output.bias.data[END] = -1e4
    return model


@pytest.mark.parametrize("count", [1, 31])
def test_a_long_search_can_be_interrupted(count: int) -> None:
    engine = engine_of(make_endless())
    # Hours of work, if it were not interrupted.
    requests = [Request((5, END), 20_000) for _ in range(count)]
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        answers_of(engine, requests, count, 1, beam=5)
    assert answers_of(engine, [Request((5, END), 3)], 1, 1)[0][0].ids


@pytest.mark.parametrize("count", [1, 31])
@pytest.mark.parametrize("threads", [1, 2])
def test_search_that_gives_way_can_be_stopped(count: int, threads: int) -> None:
    engine = engine_of(make_endless())
    requests = [Request((5, END), 20_000) for _ in range(count)]
    asked: list[float] = []

    def turn() -> None:
        asked.append(time.monotonic())
        if len(asked) == 3:
            with taking_turns(lambda: None):  # Another call is let in meanwhile.
                assert answers_of(engine, [Request((5, END), 3)], 1, 1)[0][0].ids
            raise StoppedError

    began = time.monotonic()
    with pytest.raises(StoppedError), taking_turns(turn):
        answers_of(engine, requests, count, threads, beam=5)
    assert len(asked) == 3
    assert time.monotonic() - began < 30  # instead of hours
    assert answers_of(engine, [Request((5, END), 3)], 1, 1)[0][0].ids


def test_search_that_gives_way_finds_the_same() -> None:
    engine = engine_of(make_endless())
    requests = [Request((5, 6, END), 200), Request((7, END), 300)]
    asked: list[int] = []
    alone = answers_of(engine, requests, 2, 1, beam=3)
    for threads in (1, 2):
        with taking_turns(lambda: asked.append(1)):
            assert answers_of(engine, requests, 2, threads, beam=3) == alone
    assert asked


@pytest.fixture
def stored(tmp_path: Path) -> Any:
    """Write the weights of a model in a precision; return the file and the configuration."""

    def write(precision: Any, **changes: Any) -> tuple[Path, BundleConfig, Transformer]:
        model = make_transformer(**changes)
        tensors = pack_weights(model.state_dict(), precision)
        path = tmp_path / "model.safetensors"
        path.write_bytes(serialize_tensors(tensors))
        config = BundleConfig(
            format=1,
            precision=precision,
            model=model.config,
            tokenizer=TokenizerConfig(kind="words"),
            languages=LanguagesConfig(source="en", target="fr"),
        )
        model.load_state_dict(unpack_weights(tensors))
        return path, config, model

    return write


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("changes", SWITCHES[1::3], ids=str)
def test_stored_weights_translate_as_the_loaded_model_does(
    precision: Any, changes: dict[str, Any], stored: Any
) -> None:
    path, config, model = stored(precision, **changes)
    weights = read_stored(path, config)
    assert weights is not None
    requests = make_requests(model, 7)
    for computed in ("float32", "bfloat16", "int8"):
        engine = NativeEngine(config.model, weights, computed)
        assert engine.obstacle is None
        wanted = answers_of(engine_of(model, computed), requests, 3, 1, beam=2)
        assert answers_of(engine, requests, 3, 1, beam=2) == wanted


def test_stored_weights_that_are_damaged_are_left_to_pytorch(stored: Any) -> None:
    path, config, _ = stored("float32")
    whole = path.read_bytes()
    assert read_stored(path, config) is not None
    other = ModelConfig.model_validate(config.model.model_dump() | {"d_ff": 13})
    assert read_stored(path, config.model_copy(update={"model": other})) is None
    assert read_stored(path, config.model_copy(update={"precision": "int8"})) is None
    for damaged in (
        b"",
        whole[:100],
        whole[:-4],
        whole.replace(b'"F32"', b'"F64"', 1),
        whole[:-4] + np.float32(np.nan).tobytes(),
        whole.replace(b"self_attention.query", b"self_attention.querz", 1),
    ):
        path.write_bytes(damaged)
        assert read_stored(path, config) is None
    path.unlink()
    assert read_stored(path, config) is None


def test_stored_bytes_that_no_quantization_makes_are_left_to_pytorch(stored: Any) -> None:
    path, config, model = stored("int8")
    tensors = pack_weights(model.state_dict(), "int8")
    assert read_stored(path, config) is not None
    name = "encoder.layers.0.feed_forward.inner.weight"
    tensors[name][2, 3] = -128
    path.write_bytes(serialize_tensors(tensors))
    assert read_stored(path, config) is None
