"""Training speed next to Marian, Hugging Face, torch.nn and JoeyNMT: same text, same model.

    python benchmarks/train_speed.py --setup
    MULTI30K=DIR python benchmarks/train_speed.py
    MULTI30K=DIR python benchmarks/train_speed.py --sizes tiny --repetitions 1 --steps 10

The first line makes the peers' environments; the last is a short run. Every run is a separate
process that trains a few steps to warm up and some more by the clock; systems take turns, so that
noise hits all of them alike. Ours is the command `pellucid train`, which resumes a run of one step;
the times come from its log. Hugging Face and torch.nn get exactly our batches, in a plain loop;
Marian and JoeyNMT make their own with the same budget. All read the subwords of one SentencePiece
model. Before the rounds, each system tries its variants on fewer steps, and keeps the best.

With --device cuda, and with --here if the peers' packages are installed together with pellucid:

    python benchmarks/train_speed.py --device cuda --here --sizes base big --steps 100
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from side_by_side.environments import python_of, require, set_up
from side_by_side.machine import has_fast_bfloat16
from side_by_side.processes import run_script
from side_by_side.results import write_result
from train_peers.report import PEAKS, compare_losses, print_losses, print_size, ratios

from pellucid.config import NAMED_SIZES

SCRIPTS = Path(__file__).parent / "train_peers"
ENVIRONMENTS = {
    "marian": "marian",
    "hugging_face": "hugging_face",
    "torch_nn": "hugging_face",
    "joeynmt": "joeynmt",
}
"""The peer's environment in which a system runs; pellucid has its own."""

PRECISIONS = {
    "pellucid": ("float32", "bfloat16"),
    "marian": ("float32",),
    "hugging_face": ("float32", "bfloat16"),
    "torch_nn": ("float32", "bfloat16"),
    "joeynmt": ("float32",),
}
ON_CUDA = ("pellucid", "hugging_face", "torch_nn")
STEPS = {"tiny": (5, 30), "small": (5, 20), "base": (2, 8), "big": (2, 4)}
"""Default numbers of steps to warm up, and by the clock."""

LOSS_STEPS, LOSS_LAST = 200, 20


def main() -> None:
    """Measure what was asked for, print it, and write the result file."""
    arguments = parse()
    peers = tuple(dict.fromkeys(ENVIRONMENTS.values()))
    if arguments.setup:
        set_up(arguments.folder, peers)
        return
    needed = dict.fromkeys(ENVIRONMENTS[one] for one in arguments.systems if one in ENVIRONMENTS)
    if not arguments.here:
        require(arguments.folder, needed)
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"sizes": {}}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        arguments.scratch = Path(folder).absolute()
        from train_peers.text import write_lines

        write_lines((arguments.source, arguments.target), arguments.lines, arguments.scratch)
        for size in arguments.sizes:
            found["sizes"][size] = measure_size(size, arguments)
            print_size(size, found["sizes"][size])
        if arguments.losses:
            found["losses"] = measure_losses(arguments)
            print_losses(found["losses"])
    write_result("train-speed", found, tuple(needed), arguments.out)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, several = parser.add_argument, {"nargs": "*"}
    add("--setup", action="store_true", help="only make the peers' environments")
    add("--folder", type=Path, default=Path("build/peers"), help="where they are")
    add("--here", action="store_true", help="run the peers with this Python instead")
    add("--sizes", default=["tiny", "base"], choices=list(NAMED_SIZES), **several)
    add("--source", type=Path, help="the text (default: Multi30k, training, en)")
    add("--target", type=Path, help="its translation (default: fr)")
    add("--lines", type=int, default=0, help="only its first lines (default: all)")
    add("--vocabulary", type=int, default=10_000, help="joint subwords")
    add("--systems", default=None, choices=list(PRECISIONS), **several)
    add("--precisions", default=None, choices=["float32", "bfloat16"], **several)
    add(
        "--kernels",
        default="auto",
        choices=["auto", "own", "pytorch"],
        help="the kernels of our runs",
    )
    add("--device", default="cpu", choices=["cpu", "cuda"])
    add("--peak-tflops", type=float, help="dense bfloat16 peak of the graphics processor")
    add("--compile", action="store_true", help="also try torch.compile on the peers' models")
    add("--threads", type=int, default=os.cpu_count() or 1)
    add("--warm-up", type=int, help="steps before the clock starts, at least 2")
    add("--steps", type=int, help="steps by the clock")
    add("--repetitions", type=int, default=3, help="rounds")
    yes_or_no = argparse.BooleanOptionalAction
    add("--losses", action=yes_or_no, help="compare what our precisions learn (default: if "
        "bfloat16 is fast)")  # fmt: skip
    add("--seeds", type=int, nargs="+", default=[1, 2, 3], help="for --losses")
    add("--out", type=Path, help="the result file (default: a dated one in results/)")
    arguments = parser.parse_args()
    is_fast = arguments.device == "cuda" or has_fast_bfloat16()
    arguments.precisions = arguments.precisions or ["float32", *(["bfloat16"] if is_fast else [])]
    arguments.systems = arguments.systems or list(
        ON_CUDA if arguments.device == "cuda" else PRECISIONS
    )
    if arguments.device == "cuda" and set(arguments.systems) - set(ON_CUDA):
        parser.error(f"with --device cuda, --systems must be among {', '.join(ON_CUDA)}")
    if arguments.losses is None:
        arguments.losses = is_fast
    if (arguments.source is None) != (arguments.target is None):
        parser.error("--source and --target must be given together")
    if arguments.source is None and not arguments.setup:
        if "MULTI30K" not in os.environ:
            parser.error("MULTI30K must be set to the folder of Multi30k, or --source given")
        names = ("train.en.gz", "train.fr.gz")
        arguments.source, arguments.target = (Path(os.environ["MULTI30K"]) / one for one in names)
    return arguments


def measure_size(size: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Let every system find its best variant, then run all in turn, several times."""
    from train_peers.arithmetic import products_per_target_token

    systems = [
        (system, precision)
        for system in arguments.systems
        for precision in PRECISIONS[system]
        if precision in arguments.precisions
    ]
    work, text = prepare(size, arguments)
    variants = {system: best_variant(system, work, arguments) for system in systems}
    found: dict[tuple[str, str], list[dict[str, Any]]] = {system: [] for system in systems}
    rates = []
    for _ in range(arguments.repetitions):
        rates.append(
            run_script(
                sys.executable,
                SCRIPTS / "run_matrix_rate.py",
                work,
                arguments.scratch,
            )
        )
        for system in systems:
            found[system].append(run(system, variants[system], work, arguments))
    rate = {
        precision: statistics.median(one["operations_per_second"][precision] for one in rates)
        for precision in arguments.precisions
    }
    operations = products_per_target_token(NAMED_SIZES[size], text.vocabulary, text.lengths)
    peak = peak_of(rates[-1]["name"], arguments)
    measured = {
        " ".join(system): {
            "variant": variants[system],
            **summarize(found[system], work["steps"], operations, rate[system[1]], peak),
        }
        for system in systems
    }
    return {
        "title": describe_size(size, text),
        "warm_up": work["warm_up"],
        "steps": work["steps"],
        "operations_per_second": rate,
        "operations_per_target_token": operations,
        "systems": measured,
        "ratios": ratios(measured),
    }


def prepare(size: str, arguments: argparse.Namespace) -> tuple[dict[str, Any], Any]:
    """Begin a run of ours for each precision, and write the text as ids.

    Returns:
        The work of every measured process, and the text.
    """
    from train_peers.text import start_run, write_ids

    warm_up, steps = STEPS[size]
    warm_up, steps = arguments.warm_up or warm_up, arguments.steps or steps
    runs = {}
    for precision, processes in itertools.product(arguments.precisions, processes_of(arguments)):
        run_folder = arguments.scratch / f"{size}-{precision}-{processes}"
        training = {
            "device": arguments.device,
            "precision": precision,
            "processes": processes,
            "kernels": arguments.kernels,
            "log_every": math.gcd(warm_up, steps, steps_of_a_try(steps)),
            "max_steps": 1,
        }
        start_run(arguments.scratch, size, arguments.vocabulary, training, run_folder)
        runs[f"{precision} {processes}"] = str(run_folder)
    text = write_ids(arguments.scratch, run_folder, warm_up + steps)
    work = {
        **text.work(),
        "runs": runs,
        "size": NAMED_SIZES[size],
        "scratch": str(arguments.scratch),
        "device": arguments.device,
        "precisions": arguments.precisions,
        "threads": arguments.threads,
        "dropout": 0.3,
        "label_smoothing": 0.1,
        "warm_up": warm_up,
        "steps": steps,
    }
    return work, text


def variants_of(system: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """List what a system may choose from."""
    threads = arguments.threads
    choices: dict[str, list[dict[str, Any]]] = {
        "pellucid": [{"processes": processes} for processes in processes_of(arguments)],
        "marian": [{"workers": workers} for workers in sorted({threads, 1}, reverse=True)],
        "hugging_face": [{"attention": "sdpa"}, {"attention": "eager"}],
    }
    found = choices.get(system, [{}])
    if arguments.compile and system in ("hugging_face", "torch_nn"):
        found = [*found, *({**choice, "compile": True} for choice in found)]
    return found


def processes_of(arguments: argparse.Namespace) -> list[int]:
    """List the numbers of our processes that may share the batches."""
    return [1] if arguments.device == "cuda" else sorted({1, arguments.threads})


def steps_of_a_try(steps: int) -> int:
    """Return the number of timed steps that decide between variants."""
    return max(2, steps // 3)


def best_variant(
    system: tuple[str, str], work: Mapping[str, Any], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Try a system's variants with fewer steps, and return the fastest."""
    choices = variants_of(system[0], arguments)
    if len(choices) == 1:
        return choices[0]
    few = {**work, "steps": steps_of_a_try(work["steps"])}
    return max(
        choices, key=lambda choice: run(system, choice, few, arguments)["subwords_per_second"]
    )


def run(
    system: tuple[str, str],
    variant: Mapping[str, Any],
    work: Mapping[str, Any],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Run one system once, in a separate process."""
    name, precision = system
    python = sys.executable
    if name in ENVIRONMENTS and not arguments.here:
        python = python_of(arguments.folder, ENVIRONMENTS[name])
    found = run_script(
        python,
        SCRIPTS / f"run_{name}.py",
        {**work, "precision": precision, **variant},
        arguments.scratch,
    )
    found["subwords_per_second"] = found["target_tokens"] / found["seconds"]
    print(
        f"{name} {precision} {dict(variant)} {found['subwords_per_second']:,.0f} subwords/s, "
        f"{found['seconds']:.1f} s",
        file=sys.stderr,
        flush=True,
    )
    return found


def summarize(
    runs: list[dict[str, Any]], steps: int, operations: float, rate: float, peak: float | None
) -> dict[str, Any]:
    """Summarize the runs of one system."""
    rounds = [one["subwords_per_second"] for one in runs]
    speed = statistics.median(rounds)
    return {
        "subwords_per_second": speed,
        "rounds": rounds,
        "share_of_matrix_rate": speed * operations / rate,
        **({"share_of_peak": speed * operations / peak} if peak else {}),
        "subwords_per_step": runs[-1]["target_tokens"] / steps,
        "peak_megabytes": statistics.median(one["peak_megabytes"] for one in runs),
        "parameters": runs[-1]["parameters"],
        "versions": runs[-1]["versions"],
    }


def peak_of(device: str, arguments: argparse.Namespace) -> float | None:
    """Return the dense bfloat16 operations per second of a graphics processor, if known."""
    if arguments.peak_tflops:
        return float(arguments.peak_tflops) * 1e12
    return next((peak * 1e12 for name, peak in PEAKS.items() if name in device), None)


def describe_size(size: str, text: Any) -> str:
    """Describe the model and the text in one line."""
    one = NAMED_SIZES[size]
    source, target = (statistics.mean(side) for side in zip(*text.lengths, strict=True))
    return (
        f"{one['num_encoder_layers']} + {one['num_decoder_layers']} layers, d_model "
        f"{one['d_model']}, d_ff {one['d_ff']}, {one['num_heads']} heads, vocabulary "
        f"{text.vocabulary:,}; {len(text.lengths):,} pairs, {source:.1f} and {target:.1f} "
        "subwords each"
    )


def measure_losses(arguments: argparse.Namespace) -> dict[str, Any]:
    """Train tiny in both of our precisions, with several seeds."""
    from train_peers.text import read_metrics, start_run

    seeds: dict[str, dict[str, float]] = {}
    for seed in arguments.seeds:
        seeds[str(seed)] = {}
        for precision in PRECISIONS["pellucid"]:
            training = {
                "seed": seed,
                "device": arguments.device,
                "precision": precision,
                "learning_rate": 0.003,
                "warmup_steps": 100,
                "log_every": LOSS_LAST,
                "max_steps": LOSS_STEPS,
            }
            run_folder = arguments.scratch / f"losses-{seed}-{precision}"
            start_run(arguments.scratch, "tiny", arguments.vocabulary, training, run_folder)
            seeds[str(seed)][precision] = read_metrics(run_folder)[-1]["loss"]
            print(f"seed {seed}: {seeds[str(seed)]}", file=sys.stderr, flush=True)
    return {"steps": LOSS_STEPS, "last": LOSS_LAST, "seeds": seeds, **compare_losses(seeds)}


if __name__ == "__main__":
    main()
