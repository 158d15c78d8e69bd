"""Parts of a batch: an update sums the gradients of one or more of them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from pellucid.data import Batch


@dataclass(frozen=True)
class Piece:
    """A part of what one update sees.

    Attributes:
        part: its number within the update, from 0; with the step it decides what dropout drops.
        share: its share of the update's target tokens, between 0 and 1.
        batch: the pairs.
    """

    part: int
    share: float
    batch: Batch


def make_pieces(batches: list[Batch]) -> list[Piece]:
    """Number the batches of an update, and weigh each by its share of the target tokens."""
    num_tokens = sum(batch.num_target_tokens for batch in batches)
    return [
        Piece(part, batch.num_target_tokens / num_tokens, batch)
        for part, batch in enumerate(batches)
    ]


def split_batch(batch: Batch, number: int = 2) -> tuple[Batch, ...]:
    """Cut a batch by its pairs into parts that take equal work; fewer than asked if it is small.

    Pair ``i`` goes to part ``i mod number``, because a batch may be sorted by length.
    """
    number = min(number, len(batch.source_BS))
    if number == 1:
        return (batch,)
    parts = []
    for first in range(number):
        tensors = {name: tensor[first::number] for name, tensor in tensors_of(batch).items()}
        parts.append(
            Batch(
                **tensors,
                num_source_tokens=int(tensors["source_mask_BS"].sum()),
                num_target_tokens=int(tensors["target_mask_BT"].sum()),
            )
        )
    return tuple(parts)


def repeat_batch(batch: Batch) -> Batch:
    """Append all pairs of a batch a second time, for R-Drop: dropout differs between the two."""
    tensors: dict[str, Any] = {
        name: torch.cat((tensor, tensor)) for name, tensor in tensors_of(batch).items()
    }
    return Batch(
        **tensors,
        num_source_tokens=2 * batch.num_source_tokens,
        num_target_tokens=2 * batch.num_target_tokens,
    )


def tensors_of(batch: Batch) -> dict[str, Tensor]:
    """Collect the tensors of a batch by name; a missing guide is left out."""
    found = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return {name: value for name, value in found.items() if isinstance(value, Tensor)}


def to_device(batch: Batch, device: torch.device) -> Batch:
    """Copy a batch to a device, without waiting for the copy."""
    if device.type == "cpu":
        return batch
    tensors = {
        name: tensor.pin_memory().to(device, non_blocking=True)
        for name, tensor in tensors_of(batch).items()
    }
    return replace(batch, **tensors)  # type: ignore[arg-type]
