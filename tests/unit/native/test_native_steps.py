"""The engine in C computes the steps of searches in Python as PyTorch does."""

from __future__ import annotations

import random
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from small_native import (
    END,
    SPECIAL,
    START,
    SWITCHES,
    engine_of,
    make_requests,
    make_transformer,
    on_pytorch,
)

import pellucid
from pellucid.config import DecodingConfig, ModelConfig
from pellucid.decode import attending
from pellucid.decode.attending import attend_in_c
from pellucid.decode.constraints.request import Constraints, Request
from pellucid.decode.decoder import Decoder
from pellucid.decode.hypothesis import Hypothesis
from pellucid.decode.native import NativePath
from pellucid.decode.search.search_loop import Search
from pellucid.decode.steppers import NativeStepper
from pellucid.errors import InputError
from pellucid.inside.align.alignment_maps import map_pairs
from pellucid.model import Transformer, make_model
from pellucid.native import session

SEARCHES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"sample": True, "repetition_penalty": 1.2, "n_best": 2}, {}),
    ({"beam": 4, "diverse_groups": 2, "n_best": 4}, {}),
    ({"repetition_penalty": 1.4, "beam": 3}, {}),
    ({"no_repeat_ngram": 2}, {}),
    ({"beam": 5, "n_best": 3}, {"required": ((5, 6), (8,))}),
    ({"beam": 3}, {"forbidden": ((5, 6), (7,), (9, 10, 11))}),
    ({"alternatives": True, "n_best": 3}, {}),
    ({"alternatives": True, "n_best": 3, "beam": 3}, {"prefix_ids": (5,), "required": ((7,),)}),
    ({"strict": True, "beam": 3}, {}),
]


def assert_same(found: list[tuple[Hypothesis, ...]], wanted: list[tuple[Hypothesis, ...]]) -> None:
    """Compare tokens, log-probabilities and scores."""
    assert [[one.ids for one in answer] for answer in found] == [
        [one.ids for one in answer] for answer in wanted
    ]
    for one, other in zip(chain(*found), chain(*wanted), strict=True):
        assert one.is_finished == other.is_finished
        assert one.score == pytest.approx(other.score, abs=1e-4)
        np.testing.assert_allclose(
            one.token_log_probabilities, other.token_log_probabilities, atol=1e-5
        )


def requests_with(model: Transformer, fields: dict[str, Any]) -> list[Request]:
    plain = make_requests(model, 13)
    return [
        Request(
            **{
                "source_ids": one.source_ids,
                "max_length": one.max_length,
                "min_length": one.min_length,
                "key": str(place % 11),
                **fields,
            }
        )
        for place, one in enumerate(plain)
    ]


@pytest.mark.parametrize("place", range(len(SEARCHES)), ids=lambda place: str(SEARCHES[place]))
def test_searches_of_every_kind_find_what_pytorch_finds(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, fields = SEARCHES[place]
    # Without residual connections a row does not see its token: orders of tokens tie.
    changes = [one for one in SWITCHES if one.get("residual", True)]
    model = make_transformer(**changes[place % len(changes)])
    decoder = Decoder([model], SPECIAL)
    assert decoder.find_obstacle("float32") is None
    requests, config = requests_with(model, fields), DecodingConfig(**options)
    assert decoder.find_reason(config, requests) is not None
    found = decoder.decode(requests, config, batch_tokens=256)
    assert_same(found, on_pytorch(model, requests, options, monkeypatch))


@pytest.mark.parametrize("options", [{}, {"beam": 3, "n_best": 2}, {"sample": True}], ids=str)
def test_ensembles_find_what_pytorch_finds(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [make_transformer(seed=2), make_transformer(seed=3, norm="pre", d_model=10)]
    requests = make_requests(models[0], 13)
    found = Decoder(models, SPECIAL).decode(requests, DecodingConfig(**options), batch_tokens=256)
    assert_same(found, on_pytorch(models, requests, options, monkeypatch))


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize(
    "options",
    [{}, {"beam": 5, "n_best": 3}, {"beam": 3, "stopping": "never", "length_penalty": "none"}],
    ids=str,
)
def test_steps_find_what_one_call_finds(precision: Any, options: dict[str, Any]) -> None:
    model = make_transformer(d_model=34, d_ff=53, num_heads=3, d_key=17, d_value=19)
    requests = make_requests(model, 17)
    config = DecodingConfig(**options, precision=precision)
    whole = Decoder([model], SPECIAL).decode(requests, config, batch_tokens=512)
    stepper = NativeStepper(engine_of(model, precision))
    search = Search(stepper, requests, config, SPECIAL, sentences=5)
    found = {place: one.hypotheses for place, one in search.answers()}
    assert_same([found[place] for place in range(17)], whole)


def test_demo_obeys_words_as_on_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = pellucid.load("demo")
    lines = [
        "They did not eat the bread because they were tired.",
        "The pizza came out of the oven and it tasted good.",
    ]
    asked: list[tuple[Constraints, dict[str, Any]]] = [
        (Constraints(forbidden=("ils", "elle")), {"beam": 5}),
        (Constraints(required=("elles",)), {"beam": 5}),
        (Constraints(), {"sample": True, "n_best": 3, "top_p": 0.9, "temperature": 1.3}),
        (Constraints(prefix="Ils"), {"alternatives": True, "n_best": 4}),
    ]

    def translate() -> list[Any]:
        return [
            translator.translate(lines, constraints=constraints, precision="float32", **options)
            for constraints, options in asked
        ]

    assert translator.decoder.describe(
        translator.options(sample=True, no_repeat_ngram=3)
    ).startswith("the engine in C")
    found = translate()
    with monkeypatch.context() as patch:
        patch.setattr(NativePath, "find_obstacle", lambda *_: "this test compares with PyTorch")
        translator = pellucid.load("demo")
        wanted = translate()
    assert [[one.text for one in answer] for answer in found] == [
        [one.text for one in answer] for answer in wanted
    ]


def test_overflow_is_an_answer_of_its_own_and_leaves_other_sentences_alone() -> None:
    model = make_transformer()
    model.embedding_of("source").weight.data[7] = 1e38  # The first norm overflows.
    requests = [Request((5, 6, END), 9), Request((7, 6, END), 9), Request((8, END), 9)]
    decoder, config = Decoder([model], SPECIAL), DecodingConfig(beam=4, diverse_groups=2)
    found = decoder.decode(requests, config, batch_tokens=512)
    assert found[1][0].has_overflowed
    healthy = decoder.decode([requests[0], requests[2]], config, batch_tokens=512)
    assert [found[0], found[2]] == healthy


def test_stream_is_that_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_transformer(seed=5)
    (request,) = make_requests(model, 1, seed=4)
    # The sums of log-probabilities are rounded in another order.
    pieces = [ids for ids, _ in Decoder([model], SPECIAL).stream(request, DecodingConfig(beam=3))]
    assert pieces
    monkeypatch.setattr(NativePath, "find_obstacle", lambda *_: "this test compares with PyTorch")
    again = Decoder([model], SPECIAL).stream(request, DecodingConfig(beam=3))
    assert pieces == [ids for ids, _ in again]


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_logits_are_the_same_bits_alone_and_with_any_threads(
    precision: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "WORK_OF_A_THREAD", 1)
    model = make_transformer(d_model=34, d_ff=53, num_heads=3, d_key=17, d_value=19)
    engine, width, count = engine_of(model, precision), 3, 41
    sources = [one.source_ids for one in make_requests(model, count)]
    numbers = np.random.default_rng(1)
    newest = numbers.integers(0, 23, (9, count, width))
    parents = numbers.integers(0, width, (9, count, width))

    def run(places: list[int], threads: int) -> np.ndarray:
        state = engine.open_session(sentences=len(places), width=width)
        encoded = engine.encode([sources[place] for place in places], threads=threads)
        state.insert(range(len(places)), encoded, range(len(places)))
        found = []
        for step in range(9):
            logits = state.step(newest[step, places].ravel(), threads=threads)
            found.append(logits.copy().reshape(len(places), width, -1))
            state.reorder(parents[step, places])
        return np.stack(found)

    alone = np.concatenate([run([place], 1) for place in range(count)], axis=1)
    for threads in (1, 2, 3, 5):
        np.testing.assert_array_equal(run(list(range(count)), threads), alone)


@torch.inference_mode()
def test_logits_while_sentences_and_rows_come_and_go_are_those_of_the_model() -> None:
    model = make_transformer(norm="pre")
    stepper, width, chance = NativeStepper(engine_of(model)), 3, random.Random(7)
    sources = [one.source_ids for one in make_requests(model, 5)]
    state, memory = stepper.new_state(4, width), stepper.encode(sources)
    state.insert(torch.arange(4), memory, torch.arange(4))
    owners = [0, 1, 2, 3]
    texts: list[list[list[int]]] = [[[] for _ in range(width)] for _ in range(4)]
    for step in range(61):
        if step in (9, 20, 33):  # one is done and another comes
            place = step % len(owners)
            state.insert(torch.tensor([place]), memory, torch.tensor([4]))
            owners[place], texts[place] = 4, [[] for _ in range(width)]
        if step == 27:  # one leaves
            state.retire(torch.tensor([1]))
        if step == 29:
            state.keep(torch.tensor([0, 2, 3]))
            owners, texts = [owners[i] for i in (0, 2, 3)], [texts[i] for i in (0, 2, 3)]
        newest_A = torch.tensor([chance.randrange(23) for _ in range(len(owners) * width)])
        is_growing_A = torch.ones(len(newest_A), dtype=torch.bool)
        is_growing_A[5] = step < 60  # nothing continues it
        logits_AV = stepper.step(state, newest_A, is_growing_A)
        for row, token in enumerate(newest_A.tolist()):
            owner, text = owners[row // width], texts[row // width][row % width]
            text.append(token)
            if (step in (27, 28) and row // width == 1) or not is_growing_A[row]:
                assert not logits_AV[row].any()
                continue
            if step % 4 and step not in (9, 27, 29, 33):
                continue  # the whole text is looked at again at the next of these steps
            wanted_V = model(torch.tensor([sources[owner]]), torch.tensor([text]))[0, -1]
            torch.testing.assert_close(logits_AV[row], wanted_V, atol=2e-5, rtol=1e-4)
        parents = [[chance.randrange(width) for _ in range(width)] for _ in owners]
        state.reorder(torch.tensor(parents))
        texts = [
            [list(text[parent]) for parent in chosen]
            for text, chosen in zip(texts, parents, strict=True)
        ]


def test_logits_lie_where_the_engine_wrote_them() -> None:
    stepper = NativeStepper(engine_of(make_transformer()))
    state, first = stepper.new_state(1, 1), torch.tensor([0])
    state.insert(first, stepper.encode([(5, 6, END)]), first)
    logits_AV = stepper.step(state, torch.tensor([START]))
    before_AV = logits_AV.clone()
    stepper.step(state, torch.tensor([7]))
    assert not torch.equal(logits_AV, before_AV)


@pytest.mark.parametrize(
    ("newest", "parents", "message"),
    [
        ([23], None, "does not exist"),
        ([-1], None, "does not exist"),
        ([5, 6], None, r"fill the rows, but have the shape \(2,\)"),
        ([5], [[1]], "does not exist"),
        ([5], [[-1]], "does not exist"),
        ([5], [0], r"fill the slots, but have the shape \(1,\)"),
    ],
)
def test_what_a_step_cannot_read_is_refused(
    newest: list[int], parents: list[Any] | None, message: str
) -> None:
    engine = engine_of(make_transformer())
    state = engine.open_session(sentences=1, width=1)
    state.insert([0], engine.encode([(5, END)], threads=1), [0])

    def step() -> None:
        state.step(np.array(newest), threads=1)
        state.reorder(np.array(parents))

    with pytest.raises(InputError, match=message):
        step()


def test_positions_that_were_not_learned_are_refused() -> None:
    engine = engine_of(make_transformer(positions="learned", max_target_length=3))
    state = engine.open_session(sentences=1, width=1)
    state.insert([0], engine.encode([(5, END)], threads=1), [0])
    for _ in range(3):
        state.step(np.array([5]), threads=1)
    with pytest.raises(InputError, match="at most 3 tokens"):
        state.step(np.array([5]), threads=1)
    for source in ((), (5,) * 98, (23, END)):
        with pytest.raises(InputError, match="source"):
            engine.encode([source], threads=1)


def test_what_computes_is_described() -> None:
    decoder = Decoder([make_transformer()], SPECIAL)
    assert decoder.describe(DecodingConfig()).startswith("the engine in C (")
    assert "step" not in decoder.describe(DecodingConfig())
    groups = DecodingConfig(beam=4, diverse_groups=2)
    assert decoder.describe(groups).endswith("), step by step, since decoding.diverse_groups is 2")
    required = decoder.describe(DecodingConfig(), "phrases are required")
    assert required.endswith("), step by step, since phrases are required")
    values = {"architecture": "recurrent", "d_model": 14}
    values |= {"source_vocabulary_size": 23, "target_vocabulary_size": 23}
    recurrent = make_model(ModelConfig.model_validate(values))
    mixed = Decoder([make_transformer(), recurrent], SPECIAL)
    assert mixed.describe(DecodingConfig()) == "PyTorch, since the model is recurrent"


def test_rows_that_were_left_out_cannot_be_continued() -> None:
    engine = engine_of(make_transformer())
    encoded = engine.encode([(5, 6, END), (7, END)], threads=1)
    state = engine.open_session(sentences=2, width=3)
    state.insert([0, 1], encoded, [0, 1])
    nobody = np.zeros(6, bool)
    newest = np.full(6, START, np.int64)
    state.step(newest, nobody, threads=1)
    state.reorder(np.array([[2, 1, 0], [0, 0, 0]]))  # Harmless if nothing continues these rows.
    with pytest.raises(InputError, match="an earlier step left out"):
        state.step(newest, threads=1)
    state.insert([1], encoded, [0])
    first_of_second = np.arange(6) == 3
    state.step(newest, first_of_second, threads=1)
    state.reorder(np.array([[0, 1, 2], [0, 0, 0]]))
    state.step(newest, np.arange(6) >= 3, threads=1)
    for left_out in ([[0, 0, 0]] * 2, [[0, 0, 0], [1, 1, 1]]):
        state.reorder(np.array(left_out))
    state.keep([1])
    state.step(newest[:3], threads=1)


def test_sentences_of_another_model_are_not_put_into_a_session() -> None:
    engine, other = engine_of(make_transformer()), engine_of(make_transformer(d_key=7))
    state = engine.open_session(sentences=1, width=1)
    with pytest.raises(InputError, match="the model of the session"):
        state.insert([0], other.encode([(5, END)], threads=1), [0])


@pytest.mark.parametrize("place", range(len(SWITCHES)), ids=lambda place: str(SWITCHES[place]))
@pytest.mark.parametrize("threads", [1, 3])
def test_weights_of_cross_attention_are_those_of_pytorch(
    place: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_transformer(**SWITCHES[place])
    monkeypatch.setattr(attending, "threads_in_use", lambda: threads)
    draw = random.Random(place)
    sources = [[draw.randrange(4, 23) for _ in range(length)] + [END] for length in (3, 1, 19, 7)]
    targets = [[draw.randrange(4, 23) for _ in range(length)] + [END] for length in (5, 11, 2, 1)]

    found = attend_in_c(engine_of(model), sources, targets, START)

    pairs = list(zip(sources, targets, strict=True))
    layers = range(model.config.num_decoder_layers)
    wanted = map_pairs(model, pairs, layers, pad_id=0, start_id=START, has_norms=False)
    for maps in wanted:
        heads = [maps.layers[layer][: maps.num_heads] for layer in layers]
        np.testing.assert_allclose(found[maps.index], np.stack(heads), atol=2e-5)
    assert {weights.shape[2:] for weights in found} == {(6, 4), (12, 2), (3, 20), (2, 8)}


def test_weights_of_rows_that_are_not_needed_are_0() -> None:
    engine = engine_of(make_transformer())
    opened = engine.open_session(sentences=3, width=1)
    opened.insert(
        range(3), engine.encode([[5, END], [6, 7, 8, END], [9, END]], threads=1), range(3)
    )
    opened.retire([2])

    weights_ANHS = opened.attend(np.full(3, START), np.array([False, True, True]), threads=2)

    assert weights_ANHS.shape == (3, 3, 2, 4)
    np.testing.assert_allclose(weights_ANHS.sum(-1)[1], 1, atol=1e-6)
    assert not weights_ANHS[[0, 2]].any()
