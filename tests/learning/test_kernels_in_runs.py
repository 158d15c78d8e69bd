"""Whole runs on the package's own kernels: their log, and the memory that they take."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from built_kernels import kernels_of_machine
from forked import Forked
from killed_runs import write_recipe
from small_runs import NO_REPORT, make_recipe, model_bytes, write_text

from pellucid.training.fast.kernels import kernel_model as kernel_model
from pellucid.training.loop import train


def peak_memory(process: int) -> int:
    """The peak memory of a process in bytes; that of `wait4` would include its parent's."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return 0 if found is None else 1024 * int(found[1])


def log_of(run: Path) -> str:
    return (run / "log.txt").read_text()


def test_a_run_says_what_it_runs_on_and_where_that_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels_of_machine("float32")
    write_text(tmp_path)
    settings: dict[str, Any] = {"precision": "float32", "validate_every": 2, "max_steps": 2}
    train(make_recipe(training=settings), tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert re.search(r"float32, own kernels \(\w+_float32\)", log_of(tmp_path / "run"))
    assert "So far this run used" not in log_of(tmp_path / "run")
    monkeypatch.setattr(kernel_model, "find_kernels", lambda _precision: "they are elsewhere")
    settings["max_steps"] = 4
    train(make_recipe(training=settings), tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert re.search(
        r"So far this run used own kernels \(\w+\); from here on it uses PyTorch's kernels, "
        r"not own: they are elsewhere\. The last digits",
        log_of(tmp_path / "run"),
    )


def test_own_and_pytorchs_kernels_learn_alike(tmp_path: Path) -> None:
    kernels_of_machine("float32")
    write_text(tmp_path)
    found = []
    for kernels in ("own", "pytorch"):
        training = {"kernels": kernels, "processes": 1, "precision": "float32"}
        # At the paper's rate for so narrow a model, Adam would amplify gradients that are rounding.
        training |= {"max_steps": 20, "dropout": 0.0, "learning_rate": 0.01}
        run = tmp_path / kernels
        train(make_recipe(training=training), run, recipe_folder=tmp_path, progress=False)
        found.append(re.findall(r"step +20 +validation: loss ([\d.]+)", log_of(run)))
    assert len(found[0]) == 1
    assert float(found[0][0]) == pytest.approx(float(found[1][0]), abs=0.002)
    assert model_bytes(tmp_path / "own/bundle") != model_bytes(tmp_path / "pytorch/bundle")


@pytest.mark.sample(kernels="own")
@pytest.mark.parametrize("kernels", ["own", "pytorch"])
def test_the_memory_that_is_said_is_about_what_is_taken(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]], kernels: str
) -> None:
    if kernels == "own":
        kernels_of_machine("float32")
    settings = {
        **{"kernels": kernels, "precision": "float32", "processes": 1},
        **{"max_tokens_per_batch": 2048, "max_steps": 3, "validate_every": 3},
    }
    recipe = write_recipe(tmp_path, settings)
    for path in tmp_path.glob("validation.*"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    sizes = {"d_model": 512, "d_ff": 2048, "num_heads": 8}
    changes = [word for name, size in sizes.items() for word in ("--set", f"model.{name}={size}")]
    command = [sys.executable, "-c", f"{NO_REPORT}\nfrom pellucid.cli.main import main\nmain()"]
    command += ["train", str(recipe), "-o", "run", *changes]
    with (tmp_path / "said").open("wb") as said:
        process = start(command, kind=Forked, cwd=tmp_path, stderr=said)
    taken = 0
    while process.poll() is None:
        taken = max(taken, peak_memory(process.pid))
        time.sleep(0.02)
    assert process.returncode == 0, (tmp_path / "said").read_text()
    (told,) = re.findall(r"Memory +about ([\d,.]+) (MiB|GiB)", log_of(tmp_path / "run"))
    predicted = float(told[0].replace(",", "")) * {"MiB": 2**20, "GiB": 2**30}[told[1]]
    assert 0.6 * predicted < taken < 1.1 * predicted, f"{taken:,} where {predicted:,.0f} was said"
