"""A service whose device has no memory left continues on the processor."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from served import Live

import pellucid
from pellucid.serve.answers.responses import Problem
from pellucid.serve.models import Models, ServedChain, ServedModel
from pellucid.serve.queue.jobs import _compute
from pellucid.serve.queue.tasks import Text, Translate
from pellucid.serve.routes import inside
from pellucid.translate.chain.chained import Chain
from pellucid.translate.results import Translation
from pellucid.translate.translator import Translator


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> ServedModel:
    """The packaged model, which pretends to be on a device without memory."""
    translator = pellucid.load("demo", beam=2)
    translator._bundle = replace(translator.bundle, device="cuda")
    served = ServedModel("demo", translator)
    run = Translate.run

    def run_out(self: Translate, items: Sequence[Text]) -> list[Translation]:
        if served.translator.bundle.device == "cuda":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")
        return run(self, items)

    monkeypatch.setattr(Translate, "run", run_out)
    return served


def test_texts_are_translated_on_the_processor_with_one_warning(
    on_device: ServedModel, caplog: pytest.LogCaptureFixture
) -> None:
    task = Translate(on_device, ())
    texts = [Text("The cat sleeps."), Text("I am eating the pizza."), Text("Thank you!")]
    with caplog.at_level(logging.WARNING, "pellucid.serve"):
        found: Sequence[Any] = _compute(task, texts)
        _compute(task, texts)
    expected = pellucid.load("demo", beam=2).translate([one.text for one in texts])
    assert [one.text for one in found] == [one.text for one in expected]
    # The options that the model was loaded with stay.
    assert on_device.translator.decoding.beam == 2
    assert [one.getMessage() for one in caplog.records] == [
        "demo is computed on the processor now: its device has no memory left"
    ]


def test_memory_that_runs_out_on_the_processor_is_the_requests_fault(
    on_device: ServedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_out(self: Translate, items: Sequence[Text]) -> list[Translation]:
        raise MemoryError

    monkeypatch.setattr(Translate, "run", run_out)
    assert on_device.move_to_processor()
    (found,) = _compute(Translate(on_device, ()), [Text("Thank you!")])
    assert isinstance(found, MemoryError)


def on_full_device() -> Models:
    """The packaged model, which pretends to be on a device."""
    translator = pellucid.load("demo")
    translator._bundle = replace(translator.bundle, device="cuda")
    return Models([ServedModel("demo", translator)])


def run_out_after(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the memory of the device run out after so many pieces of a stream."""
    stream = Translator.stream

    def streamed(self: Translator, *args: Any, **how: Any) -> Any:
        found = stream(self, *args, **how)
        if self.bundle.device == "cpu":
            return found
        given = iter(list(found)[:pieces])

        class Ending:
            def __iter__(self) -> Any:
                yield from given
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")

        return Ending()

    monkeypatch.setattr(Translator, "stream", streamed)


TEXT = "I am eating the pizza. The cat sleeps."


def streamed_events(live: Live) -> list[tuple[str, dict[str, Any]]]:
    answer = live.client.post("/v1/translate", json={"texts": TEXT, "stream": True})
    assert answer.status_code == 200, answer.text
    found = []
    for event in answer.text.strip().split("\n\n"):
        head, _, data = event.rpartition("data: ")
        found.append((head.removeprefix("event: ").strip(), json.loads(data)))
    return found


@pytest.mark.parametrize("pieces", [0, 2])
def test_a_stream_in_progress_goes_on_on_the_processor(
    pieces: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    models = on_full_device()
    run_out_after(pieces, monkeypatch)
    with Live(models) as live, caplog.at_level(logging.WARNING, "pellucid.serve"):
        *said, (name, whole) = streamed_events(live)
        streamed_events(live)
    assert name == "end"
    # No piece is sent twice, and none is missing.
    assert "".join(one["text"] for _, one in said) == whole["translation"]
    assert whole["translation"] == pellucid.load("demo").translate(TEXT).text
    assert len(caplog.records) == 1


def test_a_stream_whose_words_would_change_ends_with_an_error() -> None:
    served = next(iter(on_full_device()))

    def make() -> Iterator[str]:
        yield "La pizza" if served.translator.bundle.device == "cuda" else "Le four"
        if served.translator.bundle.device == "cuda":
            raise torch.OutOfMemoryError("CUDA out of memory.")

    pieces = served.stream_in_memory(make)
    assert next(pieces) == "La pizza"
    with pytest.raises(Problem, match="ran out in the middle"):
        next(pieces)


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/v1/look", {"text": "The cat sleeps."}),
        ("/v1/change", {"text": "The cat sleeps.", "changes": ["cut decoder.1.cross.0"]}),
    ],
)
def test_a_look_in_progress_is_repeated_on_the_processor(
    route: str,
    body: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    models = on_full_device()
    (served,) = models
    for name in ("compute_look", "compute_change"):
        compute = getattr(inside, name)

        def run_out(model: ServedModel, *args: Any, compute: Any = compute, **how: Any) -> Any:
            if model.translator.bundle.device != "cpu":
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return compute(model, *args, **how)

        monkeypatch.setattr(inside, name, run_out)
    headers = {"Accept": "application/json"}
    with Live(models) as live, caplog.at_level(logging.WARNING, "pellucid.serve"):
        answer = live.client.post(route, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert served.translator.bundle.device == "cpu"
    assert len(caplog.records) == 1


def test_a_chain_moves_every_model_and_joins_them_again() -> None:
    both = [ServedModel(name, pellucid.load("demo")) for name in ("one", "other")]
    chain = ServedChain(both, ["fr"])
    both[1].translator._bundle = replace(both[1].translator.bundle, device="cuda")
    assert chain.move_to_processor()
    assert isinstance(chain.translator, Chain)
    assert list(chain.translator.models) == [one.translator for one in both]
    assert not chain.move_to_processor()
