"""Steps that a device would repeat by itself, with tapes in the place of graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from small_native import END, SPECIAL, START, make_requests, make_transformer
from taped_graphs import TapedGraphs

from pellucid.config import DecodingConfig
from pellucid.decode import on_pytorch, recorded_steps
from pellucid.decode.constraints.request import Request
from pellucid.decode.decoder import Decoder
from pellucid.decode.hypothesis import Hypothesis
from pellucid.decode.native import NativePath
from pellucid.decode.on_pytorch import PyTorchDecoder
from pellucid.decode.recorded_steps import FIRST_TARGET, RecordedStepper, explain_unrecorded
from pellucid.decode.search.search_loop import Search
from pellucid.decode.steppers import ModelStepper
from pellucid.errors import InputError
from pellucid.model import Transformer

MODELS: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "activation": "gelu", "positions": "learned"},
    {"positions": "none", "tied_embeddings": "none", "scale_scores": False},
    {"projections": "qk", "d_value": 5},
    {"num_heads": 4, "num_key_value_heads": 2, "d_model": 16},
]

SEARCHES: list[dict[str, Any]] = [
    {},
    {"beam": 3, "n_best": 2},
    {"beam": 4, "diverse_groups": 2, "diversity": 0.5},
    {"sample": True, "n_best": 2, "seed": 5},
    {"beam": 2, "no_repeat_ngram": 2, "repetition_penalty": 1.2, "length_penalty": "average"},
]


class NoEngine(NativePath):
    """A path on which the engine in C serves nothing, as for a model on a device."""

    def find_obstacle(self, precision: Any) -> str:
        return "the model is on the device cuda"


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[TapedGraphs]:
    """The tapes of all steppers that a test makes."""
    made: list[TapedGraphs] = []

    def make(device: Any) -> TapedGraphs:
        made.append(TapedGraphs(device))
        return made[-1]

    monkeypatch.setattr(on_pytorch, "make_graphs", make)
    return made


def search(
    model: Transformer, requests: list[Request], batch_tokens: int = 300, **options: Any
) -> list[tuple[Hypothesis, ...]]:
    decoder = PyTorchDecoder([model], SPECIAL, NoEngine([model], SPECIAL))
    return decoder.decode(
        requests, DecodingConfig.model_validate(options), batch_tokens=batch_tokens
    )


def assert_same(
    found: list[tuple[Hypothesis, ...]], expected: list[tuple[Hypothesis, ...]]
) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
            assert one.token_log_probabilities == pytest.approx(
                other.token_log_probabilities, abs=1e-4
            )


@pytest.mark.parametrize("options", SEARCHES, ids=str)
def test_every_search_finds_the_words_and_scores_of_steps_without_graphs(
    options: dict[str, Any], graphs: list[TapedGraphs], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_transformer(norm="pre")
    requests = make_requests(model, 13)
    found = search(model, requests, **options)
    (one,) = graphs
    assert one.num_repeated > one.num_recorded > 0
    monkeypatch.setattr(on_pytorch, "make_graphs", lambda device: None)
    assert_same(found, search(model, requests, **options))


@pytest.mark.parametrize("options", MODELS, ids=str)
def test_every_model_finds_the_words_and_scores_of_steps_without_graphs(
    options: dict[str, Any], graphs: list[TapedGraphs], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_transformer(**options)
    requests = make_requests(model, 7, seed=3)
    found = search(model, requests, beam=2)
    assert graphs[0].num_repeated
    monkeypatch.setattr(on_pytorch, "make_graphs", lambda device: None)
    assert_same(found, search(model, requests, beam=2))


def test_required_phrases_and_prefixes_go_through_the_same_steps(
    graphs: list[TapedGraphs], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_transformer()
    requests = [replace(one, required=((7, 9),)) for one in make_requests(model, 5)]
    found = search(model, requests, beam=3)
    monkeypatch.setattr(on_pytorch, "make_graphs", lambda device: None)
    assert_same(found, search(model, requests, beam=3))


def test_texts_longer_than_a_bucket_move_to_the_next(graphs: list[TapedGraphs]) -> None:
    model = make_transformer()
    length = 2 * FIRST_TARGET + 3
    requests = [Request((5, 7, END), length, length), Request((9, END), length, length)]
    found = search(model, requests, beam=2)
    expected = search_without(model, requests, beam=2)
    assert {len(one.ids) for answer in found for one in answer} == {length}
    assert_same(found, expected)


def search_without(
    model: Transformer, requests: list[Request], **options: Any
) -> list[tuple[Hypothesis, ...]]:
    config = DecodingConfig.model_validate(options)
    answers = dict(
        Search(ModelStepper(model), requests, config, SPECIAL, sentences=len(requests)).answers()
    )
    return [answers[index].hypotheses for index in range(len(requests))]


def test_two_searches_that_take_turns_do_not_share_memory() -> None:
    model = make_transformer()
    stepper = RecordedStepper(model, "float32", TapedGraphs())
    requests = make_requests(model, 6)
    config = DecodingConfig(beam=2)
    halves = [requests[:3], requests[3:]]
    searches = [Search(stepper, half, config, SPECIAL, sentences=3) for half in halves]
    found: list[dict[int, tuple[Hypothesis, ...]]] = [{}, {}]
    while not all(one.is_over for one in searches):
        for place, one in enumerate(searches):
            if not one.is_over:
                found[place].update((index, answer.hypotheses) for index, answer in one.step())
    for half, answers in zip(halves, found, strict=True):
        expected = search_without(model, half, beam=2)
        assert_same([answers[index] for index in range(3)], expected)


def test_memory_of_finished_searches_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_steps, "MOST_BYTES", 0)
    model = make_transformer()
    stepper = RecordedStepper(model, "float32", TapedGraphs())
    for count in (2, 5, 9):
        requests = make_requests(model, count)
        config = DecodingConfig(beam=2)
        list(Search(stepper, requests, config, SPECIAL, sentences=count).answers())
        assert len(stepper._buckets) <= 2


def test_what_is_not_finite_stays_in_its_own_search(graphs: list[TapedGraphs]) -> None:
    model = make_transformer(positions="none")
    stepper = RecordedStepper(model, "float32", TapedGraphs())
    config = DecodingConfig()
    weight = model.embedding_of("source").weight
    kept = weight.detach().clone()
    request = Request((5, 7, END), 9)

    def answer() -> tuple[Hypothesis, ...]:
        found = dict(Search(stepper, [request], config, SPECIAL, sentences=1).answers())
        return found[0].hypotheses

    expected = answer()
    weight.data[7] = torch.inf
    assert answer()[0].has_overflowed
    weight.data.copy_(kept)
    assert_same([answer()], [expected])


@pytest.mark.parametrize("changes", [{"positions": "rotary"}, {"decoder": "ssru"}], ids=str)
def test_models_that_cannot_be_recorded_take_plain_steps(
    changes: dict[str, Any], graphs: list[TapedGraphs]
) -> None:
    model = make_transformer(**changes | {"d_key": 6})
    assert explain_unrecorded(model.config) is not None
    requests = make_requests(model, 3)
    assert_same(search(model, requests, beam=2), search_without(model, requests, beam=2))
    assert all(not one.num_recorded for one in graphs)


def test_a_step_beyond_the_model_is_refused_as_elsewhere() -> None:
    model = make_transformer(max_target_length=3)
    stepper = RecordedStepper(model, "float32", TapedGraphs())
    state = stepper.new_state(1, 1)
    slots = torch.zeros(1, dtype=torch.long)
    with torch.inference_mode():
        state.insert(slots, stepper.encode([[5, END]]), slots)
        for _ in range(3):
            stepper.step(state, torch.tensor([START]))
        with pytest.raises(InputError, match="at most 3 tokens"):
            stepper.step(state, torch.tensor([START]))


def test_progress_says_why_a_device_cannot_record_steps() -> None:
    model = make_transformer(positions="rotary", d_key=6).to("meta")
    said = Decoder([model], SPECIAL).describe(DecodingConfig())
    assert said == (
        "PyTorch, since the model is on the device meta; step by step, since its positions are "
        "rotary"
    )
