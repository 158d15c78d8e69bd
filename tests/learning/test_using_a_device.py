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
