"""The package's kernels in turn with PyTorch's: products, the loss, Muon, and whole steps.

    python benchmarks/training_kernels.py
    python benchmarks/training_kernels.py --sizes tiny --precision bfloat16 --threads 1 --rounds 30

A step is forward, backward and Adam on one batch. Lengths differ from batch to batch, as those of
captions do; both ways take the same batches, in turn. The time of a single kernel is the least of
several; that of steps is a median, with the quartiles of the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from side_by_side.machine import has_fast_bfloat16
from side_by_side.results import write_result

from pellucid.config import NAMED_SIZES, ModelConfig, TrainingConfig
from pellucid.data import Batch
from pellucid.machine.hardware import keep_freed_memory
from pellucid.model import Transformer, initialize
from pellucid.native.kernels.kernels import Kernels, find_kernels
from pellucid.training.fast.loss import smoothed_cross_entropy
from pellucid.training.update.batch_parts import BatchPart
from pellucid.training.update.passes import Passes
from pellucid.training.weights.optimizer import COEFFICIENTS, Optimizer, orthogonalize

WAYS = ("own", "pytorch")
ROWS = 1900
WARM_UP = 2


def main() -> None:
    """Measure what was asked for, print it, and write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = "bfloat16" if has_fast_bfloat16() else "float32"
    parser.add_argument("--sizes", nargs="*", default=["tiny", "base"], choices=list(NAMED_SIZES))
    parser.add_argument("--precision", default=default, choices=["float32", "bfloat16"])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--tokens", type=int, default=4096, help="tokens of a batch")
    parser.add_argument("--vocabulary", type=int, default=10_000)
    parser.add_argument(
        "--rounds", type=int, default=12, help="number of batches for comparing steps"
    )
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(arguments.threads)
    kernels = find_kernels(arguments.precision)
    if isinstance(kernels, str):
        raise SystemExit(f"The package's kernels are not available: {kernels}.")
    found: dict[str, Any] = {}
    for size in arguments.sizes:
        width, inner = NAMED_SIZES[size]["d_model"], NAMED_SIZES[size]["d_ff"]
        print(f"\n{size}, {arguments.precision}, {arguments.threads} threads")
        found[size] = {
            "products": products(kernels, width, inner),
            "loss": loss(kernels, width, arguments.vocabulary),
            "muon": muon(kernels, width),
            "steps": steps(size, arguments),
        }
    write_result("training-kernels", found, (), arguments.out)


def least(run: Callable[[], Any], times: int = 9) -> float:
    """Return the least seconds that a call takes."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def products(kernels: Kernels, width: int, inner: int) -> dict[str, Any]:
    """Measure operations per second of layers' products, forward and for the weights' gradients."""
    found = {}
    for columns, rows in ((width, width), (width, 3 * width), (width, inner), (inner, width)):
        x_JD, grad_JF = (torch.randn(ROWS, one).to(kernels.dtype) for one in (columns, rows))
        weight_FD, sum_FD = torch.randn(rows, columns), torch.zeros(rows, columns)
        packed, turned_DF = kernels.pack(weight_FD, transposed=True), weight_FD.to(kernels.dtype).T
        billions = 2 * ROWS * columns * rows / 1e9
        rates = {
            "linear, own": least(lambda x=x_JD, p=packed, n=rows: kernels.linear(x, p, n)),
            "linear, PyTorch": least(lambda x=x_JD, w=turned_DF: x @ w),
            "gradient, own": least(
                lambda x=x_JD, g=grad_JF, s=sum_FD: kernels.weight_gradient(x, g, [s], [None])
            ),
            "gradient, PyTorch": least(lambda x=x_JD, g=grad_JF: g.T @ x),
        }
        found[f"{columns} to {rows}"] = {name: billions / one for name, one in rates.items()}
        shown = "  ".join(f"{name} {billions / one:.0f}" for name, one in rates.items())
        print(f"  {columns} to {rows} columns, GFLOP/s: {shown}")
    return found


def loss(kernels: Kernels, width: int, vocabulary: int) -> dict[str, float]:
    """Time projection, loss and all gradients, in milliseconds."""
    states_PD = torch.randn(ROWS, width).to(kernels.dtype)
    table_VD, target_P = torch.randn(vocabulary, width) / 4, torch.randint(vocabulary, (ROWS,))
    packed = (
        kernels.pack(table_VD, transposed=True),
        kernels.pack(
            table_VD, transposed=False, padded_depth=kernels.padded_vocabulary(vocabulary)
        ),
    )
    table_sum_D, grad_VD = kernels.sum_rows(table_VD), torch.zeros_like(table_VD)

    def own() -> None:
        kernels.cross_entropy(
            states_PD,
            table_VD,
            packed,
            table_sum_D,
            target_P,
            smoothing=0.1,
            factor=1.0,
            grad_table_VD=grad_VD,
        )

    def pytorch() -> None:
        leaves = [one.detach().requires_grad_() for one in (states_PD, table_VD.to(kernels.dtype))]
        smoothed_cross_entropy(leaves[0], leaves[1], None, target_P, smoothing=0.1)[0].backward()

    found = {"own": 1e3 * least(own), "pytorch": 1e3 * least(pytorch)}
    print(f"  loss of {ROWS} rows, ms: own {found['own']:.0f}, PyTorch {found['pytorch']:.0f}")
    return found


def muon(kernels: Kernels, width: int) -> dict[str, float]:
    """Time Muon's iteration for matrices of a layer's size, in milliseconds."""
    matrices = torch.randn(16, width, width)
    found = {
        "own": 1e3 * least(lambda: kernels.orthogonalize(matrices, COEFFICIENTS)),
        "pytorch": 1e3 * least(lambda: orthogonalize(matrices, kernels.dtype)),
    }
    shown = f"own {found['own']:.1f}, PyTorch {found['pytorch']:.1f}"
    print(f"  16 matrices of {width} x {width} made orthogonal, ms: {shown}")
    return found


def steps(size: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Time whole updates with Adam, in turn."""
    config = ModelConfig(
        **NAMED_SIZES[size],
        source_vocabulary_size=arguments.vocabulary,
        target_vocabulary_size=arguments.vocabulary,
    )
    runs: dict[str, Callable[[int, Batch], float]] = {}
    for way in WAYS:
        training = TrainingConfig(dropout=0.3, kernels=way)
        runs[way] = update_of(config, training, arguments.precision)
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    speeds: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(WARM_UP + arguments.rounds):
        batch = make_batch(number, arguments.tokens, arguments.vocabulary)
        for way in WAYS:
            taken = runs[way](number + 1, batch)
            if number >= WARM_UP:
                seconds[way].append(taken)
                speeds[way].append(batch.num_target_tokens / taken)
    ratios = [ours / theirs for ours, theirs in zip(*seconds.values(), strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    found = {way: statistics.median(speeds[way]) for way in WAYS}
    print(
        f"  steps of {arguments.tokens} tokens: own {found['own']:,.0f} target tokens/s, PyTorch "
        f"{found['pytorch']:,.0f}; {middle:.3f} of the time ({low:.3f} to {high:.3f})"
    )
    return {"tokens_per_second": found, "ratio": middle, "quartiles": [low, high]}


def update_of(
    config: ModelConfig, training: TrainingConfig, precision: Any
) -> Callable[[int, Batch], float]:
    """Make a model, and return a function that updates it once and returns the seconds."""
    model = Transformer(config)
    initialize(model, seed=1)
    passes, optimizer = Passes(model, training, precision), Optimizer(model, training, precision)

    def update(step: int, batch: Batch) -> float:
        begin = time.perf_counter()
        passes.refresh_weights()
        passes.sum_gradients(step, [BatchPart(0, 1.0, batch)])
        optimizer.gradient_norm().item()
        optimizer.step(1e-4, 0.0)
        return time.perf_counter() - begin

    return update


def make_batch(seed: int, tokens: int, vocabulary: int) -> Batch:
    """Make sentences of about one length, which differs from batch to batch."""
    draw = torch.Generator().manual_seed(seed)
    mean = int(torch.randint(10, 22, (1,), generator=draw))
    ids, masks = [], []
    for length in (mean - 1, mean):
        lengths = (torch.randn(tokens // mean, generator=draw) + length).round().clamp(2, 60)
        longest = int(lengths.max())
        masks.append(torch.arange(longest) < lengths[:, None])
        ids.append(torch.randint(4, vocabulary, (len(lengths), longest), generator=draw))
    following = torch.randint(4, vocabulary, ids[1].shape, generator=draw)
    sizes = {"num_source_tokens": int(masks[0].sum()), "num_target_tokens": int(masks[1].sum())}
    return Batch(ids[0], masks[0], ids[1], following, masks[1], **sizes)


if __name__ == "__main__":
    main()
