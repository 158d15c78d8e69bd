"""``benchmarks/gpu.py`` runs from end to end at tiny sizes on a processor."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

BENCHMARKS = str(Path(__file__).parents[3] / "benchmarks")


@pytest.fixture
def _in_benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(BENCHMARKS)
    with torch.random.fork_rng():
        yield


@pytest.mark.usefixtures("_in_benchmarks")
def test_a_dry_run_writes_every_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gpu

    out = tmp_path / "gpu.json"
    command = ["gpu.py", "--dry", "--device", "cpu", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)
    gpu.main()
    found = json.loads(out.read_text())
    assert found["is_dry"] is True
    assert found["products"]["tflops"] > 0
    assert found["exactness"]["logits_off_by"] < 1e-4
    assert found["exactness"]["gradient_off_by"] < 1e-4
    assert found["exactness"]["sentences_with_other_tokens"] == 0
    assert found["exactness"]["loss_off_by"] < 1e-5
    for name, value in found["updates"].items():
        if " from " in name:
            assert value < (0.03 if "float64" in name else 1e-6), name
    assert found["train"]["few"]["shapes"] <= 16
    assert found["train"]["recorded"]["tokens_per_second"] > 0
    assert found["train"]["any"]["tokens_per_second"] > 0
    assert found["decode"]["beam 5, 1 sentences"]["bfloat16"] > 0
    assert found["decode"]["beam 5, 1 sentences"]["bfloat16, step by step"] > 0
