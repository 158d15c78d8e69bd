"""``benchmarks/gpu.py`` runs from end to end at the smallest sizes on a processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"

SMALLEST = ("--smallest", "--device", "cpu")


def run(out: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "gpu.py", *SMALLEST, "--out", out, *words],
        env={name: value for name, value in os.environ.items() if name != "MULTI30K"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(out.read_text())
    return found


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu

    return gpu


def check_updates(found: dict[str, Any]) -> None:
    assert found["graphs"]["fault"] == ""
    assert found["graphs"]["same_seed_same_numbers"]
    assert found["graphs"]["other_seed_other_numbers"]
    assert found["updates"]["adamw: fault"] == found["updates"]["muon: fault"] == ""
    for name, value in found["updates"].items():
        if " from " in name:
            assert value < (0.03 if "float64" in name else 1e-6), name


def check_exactness(found: dict[str, Any]) -> None:
    assert found["products"]["tflops"] > 0
    assert found["exactness"]["logits_off_by"] < 1e-4
    assert found["exactness"]["gradient_off_by"] < 1e-4
    assert found["exactness"]["loss_off_by"] < 1e-5
    assert found["exactness"]["look_off_by"] == 0
    assert found["exactness"]["sentences_with_other_tokens"] == 0


def check_training(found: dict[str, Any]) -> None:
    for name in ("recorded", "few", "any"):
        assert found["train"][name]["tokens_per_second"] > 0
    assert found["train"]["times_the_one_line"] > 0
    assert found["train"]["times_hugging_face"] > 0
    assert "wanted 800,000: NOT reached" in found["wanted"]["base, tokens/s"]
    assert found["wanted"]["recipe, BLEU"] == "not measured"


def check_decoding(found: dict[str, Any]) -> None:
    assert found["decode"]["512 sentences, beam 5"]["bfloat16, step by step"] > 0
    assert found["decode"]["1 sentence, beam 1"]["times"] > 0


def check_recipe(found: dict[str, Any]) -> None:
    assert found["recipe"]["minutes"] > 0
    assert found["recipe"]["bleu"] >= 0
    assert any(line.startswith("Done:") for line in found["recipe"]["log"])


def check_seeds(found: dict[str, Any]) -> None:
    assert found["seeds"]["usual"]["equal"] is True
    assert found["seeds"]["deterministic"]["furthest"] == 0


@pytest.mark.timeout(400)
@pytest.mark.sample(steps=(("graphs", "updates"),))
@pytest.mark.parametrize(
    ("steps", "check"),
    [
        (("graphs", "updates"), check_updates),
        (("products", "exactness"), check_exactness),
        (("train",), check_training),
        (("decode",), check_decoding),
        (("recipe",), check_recipe),
        (("seeds",), check_seeds),
    ],
    ids=["updates", "exactness", "train", "decode", "recipe", "seeds"],
)
def test_a_step_runs_at_the_smallest_sizes(
    tmp_path: Path, steps: tuple[str, ...], check: Callable[[dict[str, Any]], None]
) -> None:
    out = tmp_path / "gpu.json"
    # What an earlier call found stays.
    out.write_text('{"german": {"bleu": 42}}')
    found = run(out, "--steps", *steps)
    assert found["german"]["bleu"] == 42
    check(found)


def test_a_step_that_is_cut_off_keeps_what_it_has(gpu: Any) -> None:
    def measure(note: Any) -> None:
        note({"first": 1})
        time.sleep(60)

    found = gpu.run_step(measure, 1.0, 100.0)
    assert (found["first"], found["cut_off"]) == (1, True)


def test_a_step_that_fails_says_why(gpu: Any) -> None:
    def measure(note: Any) -> None:
        note({"first": 1})
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    found: Mapping[str, Any] = gpu.run_step(measure, 100.0, 100.0)
    assert found["first"] == 1
    assert found["failed"] == "RuntimeError: CUDA error: an illegal memory access was encountered"
