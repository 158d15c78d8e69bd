"""A plain training loop around a model in PyTorch, as a user would write it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from side_by_side.processes import exchange, peak_megabytes
from torch import Tensor, nn

PAD, START, END = 0, 2, 3

Logits = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Logits from source ids, a mask that is True for tokens, and what the decoder reads."""


def measure(build: Callable[[dict[str, Any]], tuple[nn.Module, Logits, dict[str, str]]]) -> None:
    """Measure what was asked for.

    Args:
        build: returns the model, a function for its logits, and the versions of its packages.
    """
    exchange(lambda work: train(build, work))


def train(
    build: Callable[[dict[str, Any]], tuple[nn.Module, Logits, dict[str, str]]],
    work: dict[str, Any],
) -> dict[str, Any]:
    """Train for some steps, and time those after the warm-up."""
    torch.manual_seed(1)
    device = torch.device(work["device"])
    model, logits_of, versions = build(work)
    model.to(device).train()
    if work.get("compile"):
        logits_of = torch.compile(logits_of, dynamic=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.98), fused=True)
    batches = read_batches(work)
    seconds = tokens = 0.0
    for number, (source, read, predicted) in enumerate(batches):
        if number == work["warm_up"]:
            seconds, tokens = -_now(device), 0
        source, read, predicted = (one.to(device) for one in (source, read, predicted))
        with _autocast(work["precision"], device):
            logits = logits_of(source, source != PAD, read)
            loss = nn.functional.cross_entropy(
                logits.flatten(0, 1),
                predicted.flatten(),
                ignore_index=PAD,
                label_smoothing=work["label_smoothing"],
            )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        tokens += int((batches[number][2] != PAD).sum())
    return {
        "seconds": seconds + _now(device),
        "target_tokens": tokens,
        "peak_megabytes": peak_megabytes(),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "loss": float(loss),
        "versions": {"torch": torch.__version__, **versions},
    }


def read_batches(work: dict[str, Any]) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Read sources, what the decoder reads, and what it must predict, for every step."""
    folder = Path(work["text"])
    sources, targets = (
        [[*map(int, line.split()), END] for line in (folder / name).read_text().splitlines()]
        for name in ("train.source.ids", "train.target.ids")
    )
    planned = json.loads((folder / "batches.json").read_text())
    return [
        (
            _pad([sources[i] for i in pairs]),
            _pad([[START, *targets[i][:-1]] for i in pairs]),
            _pad([targets[i] for i in pairs]),
        )
        for pairs in planned[: work["warm_up"] + work["steps"]]
    ]


def _pad(rows: list[list[int]]) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


def _autocast(precision: str, device: torch.device) -> Any:
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
