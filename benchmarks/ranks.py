"""Ranks that change and die leave the bytes of one process; and the speed of local ranks.

    python benchmarks/ranks.py [--kills 50] [--updates 200] [--seed 1] [--rounds 5] [--before SRC]

First part: for both kernels, both precisions, Adam and Muon, a small model is trained with dropout
by one process, and again by 1, 2 or 4 ranks, as drawn at every start. Random ranks get SIGKILL or
SIGTERM after a random number of updates, until there were enough of them in all; then the run goes
to its end. Weights, optimizer, average and figures must be byte-equal.

Second part: seconds of an update of the sizes tiny and small, in turn: one process with two
threads, two local ranks with one thread each, and, with ``--before``, the ``src`` folder of a
commit whose processes shared memory.

With a CUDA device, and in place of both parts:

    python benchmarks/ranks.py --gpu [--before SRC]

A small training on a GPU by one process, and by two ranks linked by NCCL; NCCL refuses two ranks on
one GPU, unless each believes to have its own machine. Then the time of updates of two
accumulated batches: by one rank, which adds them in the ranks' tree, and by the commit before,
which had no tree.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pellucid.config import NAMED_SIZES
from pellucid.machine.hardware import describe_machine

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "shared"))  # The criterion stands in one place.

from forked import Forked  # noqa: E402
from killed_runs import SETTINGS, fingerprints, write_recipe  # noqa: E402
from many_ranks import Job, by_torchrun  # noqa: E402

RESULTS = Path(__file__).parent / "results"
WAYS: tuple[dict[str, Any], ...] = (
    {"kernels": "auto", "precision": "float32", "optimizer": "muon"},
    {"kernels": "auto", "precision": "bfloat16", "optimizer": "adam"},
    {"kernels": "pytorch", "precision": "float32", "optimizer": "adam"},
    {"kernels": "pytorch", "precision": "bfloat16", "optimizer": "muon"},
)
SILENT = """from pellucid.training.report import report_page
report_page.write_report = lambda run: None
"""
MAIN = f"{SILENT}from pellucid.cli.main import main\nmain()"

TIME_UPDATES = """
import json, sys, time, torch
from pellucid.config import NAMED_SIZES, ModelConfig, TrainingConfig
from pellucid.data import Batch
from pellucid.model import initialize, make_model
from pellucid.training.update.step import Updater
from pellucid.training.weights.optimizer import Optimizer
size, kernels, processes, threads, rows, updates, device, accumulate = json.loads(sys.argv[1])
torch.set_num_threads(threads)
precision = "bfloat16" if device == "cuda" else "float32"
V, S = 8000, 25
config = ModelConfig.model_validate(
    {**NAMED_SIZES[size], "source_vocabulary_size": V, "target_vocabulary_size": V}
)
settings = {"dropout": 0.1, "kernels": kernels, "precision": precision, "accumulate": accumulate}
training = TrainingConfig(**settings)
model = make_model(config)
initialize(model, 1)
model.to(device)
generator = torch.Generator().manual_seed(1)
ids = torch.randint(4, V, (rows, S), generator=generator)
mask = torch.ones(rows, S, dtype=torch.bool)
batch = Batch(ids, mask, ids.clone(), ids.clone(), mask.clone(), rows * S, rows * S)
batches = [batch] * accumulate
updater = Updater(model, Optimizer(model, training), training, precision, processes)
updater.start()
seconds, waited = [], []
for step in range(1, updates + 3):
    began = time.monotonic()
    updated = updater.update(step, batches, rate=1e-4, muon_rate=1e-3)
    if device == "cuda":
        torch.cuda.synchronize()
    if step > 2:
        seconds.append(time.monotonic() - began)
        waited.append(getattr(updated, "seconds_waited", 0.0))
updater.close()
print(json.dumps([seconds, sum(waited) / sum(seconds)]))
"""


def kill_and_compare(folder: Path, way: dict[str, Any], kills: int, updates: int, seed: int) -> Any:
    """Train by one process, and by ranks that change and are killed; compare all bytes."""
    every = max(1, updates // 4)
    settings = SETTINGS | {"accumulate": 4, "max_steps": updates, "validate_every": every} | way
    write_recipe(folder, settings | {"log_every": 1, "learning_rate": 0.003})
    words = ["train", "recipe.toml", "-o"]
    whole = Job(folder, 1, [*words, "whole"], program={0: MAIN}, popen=Forked)
    assert whole.wait() == [0], whole.said
    rng, log, hits = random.Random(seed), folder / "many" / "log.txt", Counter[str]()
    step, slowest = 0, 0.0
    while True:
        number = rng.choice((1, 2, 4))
        # A rank 0 that is killed before it listens leaves hands that wait for it.
        more = ["--wait", "20"] if number > 1 else []
        job = Job(folder, number, [*words, "many", *more], program={0: MAIN}, popen=Forked)
        is_last = hits.total() == kills
        if not is_last:
            ahead = max(1, round((updates - step) / (kills - hits.total() + 1)))
            step = min(updates - 1, step + rng.randint(1, 2 * ahead))
            if job.wait_for(log, f"step {step:6d} "):
                rank, sent = rng.randrange(number), rng.choice((signal.SIGKILL, signal.SIGTERM))
                time.sleep(0.1 * rng.random())
                if all(process.poll() is None for process in job.processes):
                    job.send(rank, sent)
                    hits[f"{sent.name} of rank {rank} of {number}"] += 1
        began = time.monotonic()
        codes = job.wait()
        said = job.said
        assert not any("Traceback" in one or "a bug" in one for one in said), said
        if not is_last:
            slowest = max(slowest, time.monotonic() - began)
        if codes[0] == 0:
            break
        steps = [path.name[5:] for path in (folder / "many" / "checkpoints").glob("step-*")]
        step = int(max(steps, default="0"))
    expected, found = fingerprints(folder / "whole"), fingerprints(folder / "many")
    differing = [name for name in expected if expected[name] != found[name]]
    return {
        **way,
        "updates": updates,
        "hits": dict(hits),
        "differing": differing,
        "slowest_end_seconds": round(slowest, 1),
    }


def measure_speed(rounds: int, before: Path | None, sizes: list[str]) -> list[dict[str, Any]]:
    """Time updates in turn: threads, local ranks, and the processes of an earlier commit."""
    found = []
    here = ROOT / "src"
    for size in sizes:
        rows, updates = (160, 5) if size == "tiny" else (160, 3) if size == "small" else (80, 2)
        for kernels in ("auto", "pytorch"):
            ways = {"1 process, 2 threads": (here, 1), "2 ranks, 1 thread each": (here, 2)}
            if before is not None:
                ways["2 processes, shared memory"] = (before, 2)
            seconds: dict[str, list[float]] = {name: [] for name in ways}
            shares: list[float] = []
            for _ in range(rounds):
                for name, (source, processes) in ways.items():
                    task = [size, kernels, processes, 2, rows, updates, "cpu", 1]
                    times, share = time_updates(source, task)
                    seconds[name] += times
                    if name.startswith("2 ranks"):
                        shares.append(share)
            found.append(
                {
                    "size": size,
                    "kernels": kernels,
                    "tokens": rows * 25,
                    "seconds": {
                        name: {
                            "median": round(statistics.median(times), 4),
                            "lowest": round(min(times), 4),
                        }
                        for name, times in seconds.items()
                    },
                    "share_not_computing": round(statistics.median(shares), 3),
                }
            )
            print(json.dumps(found[-1]), flush=True)
    return found


def time_updates(source: Path, task: list[Any]) -> Any:
    """Run `TIME_UPDATES` with a ``src`` folder; return the seconds, and the share waited."""
    path = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", TIME_UPDATES, json.dumps(task)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "2"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def measure_gpu(rounds: int, before: Path | None, sizes: list[str]) -> list[dict[str, Any]]:
    """Time updates of two batches on a GPU in turn: the ranks' tree, and a commit without it."""
    import torch
    from train_peers.arithmetic import products_per_target_token
    from train_peers.report import PEAKS

    name, found = torch.cuda.get_device_name(), []
    peak = next((1e12 * peak for part, peak in PEAKS.items() if part in name), None)
    for size in sizes:
        rows = 500 if size == "big" else 1000
        operations = products_per_target_token(NAMED_SIZES[size], 8000, [(25, 25)])
        ways = {"tree": ROOT / "src"} | ({"no tree": before} if before else {})
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, source in ways.items():
                task = [size, "pytorch", 1, 2, rows, 20, "cuda", 2]
                seconds[way] += time_updates(source, task)[0]
        row: dict[str, Any] = {"device": name, "size": size, "tokens": 50 * rows}
        for way, times in seconds.items():
            speed = 50 * rows / statistics.median(times)
            row[way] = {"seconds": statistics.median(times), "tokens_per_second": round(speed)}
            row[way] |= {"share_of_peak": round(speed * operations / peak, 3)} if peak else {}
        print(json.dumps(row), flush=True)
        found.append(row)
    return found


def compare_nccl(folder: Path, updates: int) -> dict[str, Any]:
    """Train on a GPU by one process, again by it, and by two ranks over NCCL."""

    def apart(rank: int, number: int, port: int) -> dict[str, str]:
        hidden = {"NCCL_HOSTID": f"machine-{rank}", "NCCL_SOCKET_IFNAME": "lo"}
        return by_torchrun(rank, number, port) | hidden

    way = {"device": "cuda", "kernels": "pytorch", "precision": "bfloat16", "accumulate": 4}
    write_recipe(folder, SETTINGS | way | {"max_steps": updates, "validate_every": updates})
    seconds = {}
    for name, number in {"one": 1, "again": 1, "two": 2}.items():
        words, began = ["train", "recipe.toml", "-o", name], time.monotonic()
        job = Job(folder, number, words, program={0: MAIN}, variables=apart)
        codes = job.wait()
        if any(codes):
            return {"failed": job.said, "codes": codes}
        seconds[name] = round(time.monotonic() - began, 1)
    prints = {name: fingerprints(folder / name) for name in seconds}
    differing = {
        name: sorted(one for one in prints["one"] if prints["one"][one] != prints[name][one])
        for name in ("again", "two")
    }
    log = (folder / "two" / "log.txt").read_text()
    return {**way, "updates": updates, "seconds": seconds, "differing": differing, "log": log}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="in all four ways together")
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", type=int, nargs="*", default=list(range(len(WAYS))))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--sizes", nargs="*", default=["tiny", "small"])
    parser.add_argument("--gpu", action="store_true", help="measure on a CUDA device")
    asked = parser.parse_args()
    record: dict[str, Any] = {"machine": describe_machine(), "load": os.getloadavg()}
    record["note"] = "Other programs used the machine, so compare only figures of the same row."
    name = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}-ranks.json"
    if (RESULTS / name).exists():
        record = json.loads((RESULTS / name).read_text()) | record
    if asked.gpu:
        if asked.updates:
            with tempfile.TemporaryDirectory() as folder:
                record["nccl"] = compare_nccl(Path(folder), asked.updates)
            print(json.dumps(record["nccl"]), flush=True)
        record["gpu"] = measure_gpu(asked.rounds, asked.before, asked.sizes)
        asked.kills = asked.rounds = 0
    if asked.kills:
        kept = [one for one in record.get("killed", []) if one["way"] not in asked.ways]
        record["killed"] = kept
        for place in asked.ways:
            way, kills = WAYS[place], asked.kills // 4 + (place < asked.kills % 4)
            with tempfile.TemporaryDirectory() as folder:
                one = kill_and_compare(Path(folder), way, kills, asked.updates, asked.seed + place)
            record["killed"].append({"way": place, **one})
            print(json.dumps(one), flush=True)
            (RESULTS / name).write_text(json.dumps(record, indent=2) + "\n")
    if asked.rounds:
        record["speed"] = measure_speed(asked.rounds, asked.before, asked.sizes)
    (RESULTS / name).write_text(json.dumps(record, indent=2) + "\n")
    if any(one["differing"] for one in record.get("killed", [])):
        sys.exit("Some runs differ.")


if __name__ == "__main__":
    main()
