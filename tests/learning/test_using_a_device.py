"""Translating and looking inside on a device that is not the processor: a pretended one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Forked
from small_recurrent import save_recurrent

Run = Callable[..., subprocess.CompletedProcess[str]]

ASK = """
import json, sys
from unittest import mock

import pellucid
from asked_of_a_model import ask, differences
from pretended_device import NAME, leave, pretended_device

what, folder, *lines = sys.argv[1:]
lines = lines[::2], lines[1::2]
# First, because PyTorch counts devices at the first backward pass.
with pretended_device(), mock.patch(
    "pellucid.translate.translator.resolve_device", lambda name: f"{name}:0"
):
    translator = pellucid.load(folder, device=NAME)
    there = ask(what, translator, *lines)
here = ask(what, pellucid.load(folder), *lines)
print(json.dumps([len(here), differences(here, there), str(translator.model.output_weight.device)]))
leave()
"""


PIZZA = (
    *("The pizza came out of the oven .", "La pizza est sortie du four ."),
    *("out of The oven", "four"),
    *("pizza of the oven came out", "La pizza sortie"),
)
WORDS = ("word1 word2 word7", "word4 word3 word1 word9", "word5 word1", "word6")

CASES = [
    *(("transformer", what) for what in ("search", "look", "measure", "study")),
    *(("recurrent", what) for what in ("search", "look", "measure")),
]


@pytest.mark.sample(case=(("transformer", "search"),))
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_whatever_is_asked_there_has_the_answer_of_the_processor(
    case: tuple[str, str], tmp_path: Path, bundle_folder: Path, run_python: Run
) -> None:
    """An operation on tensors of both devices would fail there, as it would on a GPU."""
    form, what = case
    folder = bundle_folder
    lines = PIZZA
    if form == "recurrent":
        folder = save_recurrent(tmp_path / "model", "additive")
        lines = WORDS
    done = run_python("-c", ASK, what, str(folder), *lines, kind=Forked)
    assert done.returncode == 0, done.stderr[-3000:]
    number, different, device = json.loads(done.stdout.splitlines()[-1])
    assert number > 0
    assert (different, device) == ([], "pretended:0")


STEPS = """
import json
from dataclasses import replace
from pretended_device import leave, pretended_device, waits
from small_native import SPECIAL, make_requests, make_transformer
from taped_graphs import TapedGraphs
from pellucid.config import DecodingConfig
from pellucid.decode.recorded_steps import RecordedStepper
from pellucid.decode.search.search_loop import Search
from pellucid.decode.steppers import ModelStepper

def search(stepper, beam):
    config = DecodingConfig(beam=beam)
    found, counts = {}, []
    search = Search(stepper, requests, config, SPECIAL, sentences=len(requests))
    while not search.is_over:
        waits.clear()
        answers = dict(search.step())
        if not answers:
            counts.append(sum(waits.values()))
        found.update(answers)
    return [[one.ids for one in found[place].hypotheses] for place in sorted(found)], counts

model = make_transformer(norm="pre")
# A prefix must be compared with the words, which takes a question more.
requests = [replace(one, prefix_ids=()) for one in make_requests(model, 7)]
here = [search(ModelStepper(model), beam)[0] for beam in (1, 3)]
with pretended_device() as device:
    stepper = RecordedStepper(model.to(device), "float32", TapedGraphs(device, is_taped=False))
    there = [search(stepper, beam) for beam in (1, 3)]
print(json.dumps([[one[0] for one in there] == here, [sorted(set(one[1])) for one in there]]))
leave()
"""


def test_a_step_asks_the_device_once(run_python: Run) -> None:
    done = run_python("-c", STEPS, kind=Forked)
    assert done.returncode == 0, done.stderr[-3000:]
    are_same, counts = json.loads(done.stdout.splitlines()[-1])
    assert are_same
    # Where a hypothesis ended, what ended is handed over, too.
    assert min(counts[0]) == min(counts[1]) == 1
