"""A service whose device has no memory left continues on the processor."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

import pellucid
from pellucid.serve.models import ServedModel
from pellucid.serve.queue.jobs import _compute
from pellucid.serve.queue.tasks import Text, Translate
from pellucid.translate.results import Translation


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
