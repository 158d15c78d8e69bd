"""Parts of a batch: an update sums the gradients of one or more of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import safetensors.torch
import torch
from torch import Tensor

from pellucid.data import Batch

T = TypeVar("T")


@dataclass(frozen=True)
class BatchPart:
    """A part of what one update sees.

    Attributes:
        part: its number within the update, from 0; with the step it decides what dropout drops.
        share: its share of the update's target tokens, between 0 and 1.
        batch: the pairs.
    """

    part: int
    share: float
    batch: Batch


def make_pieces(batches: list[Batch]) -> list[BatchPart]:
    """Number the batches of an update, and weigh each by its share of the target tokens."""
    num_tokens = sum(batch.num_target_tokens for batch in batches)
    return [
        BatchPart(part, batch.num_target_tokens / num_tokens, batch)
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


def halve(pieces: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Cut pieces into the two branches of the tree that adds them; the first is never smaller."""
    middle = (len(pieces) + 1) // 2
    return pieces[:middle], pieces[middle:]


def run_of(pieces: Sequence[T], rank: int, num_ranks: int) -> Sequence[T]:
    """Find the branch of the tree that one of some ranks, a power of two, computes."""
    while num_ranks > 1:
        num_ranks //= 2
        pieces = halve(pieces)[rank >= num_ranks]
        rank %= num_ranks
    return pieces


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
    """Copy a batch to a device, unless it is there, without waiting for the copy."""
    if batch.source_BS.device.type == device.type:
        return batch
    tensors = {
        name: tensor.pin_memory().to(device, non_blocking=True)
        for name, tensor in tensors_of(batch).items()
    }
    return replace(batch, **tensors)  # type: ignore[arg-type]


def pieces_to_bytes(pieces: Sequence[BatchPart]) -> bytes:
    """Write pieces as safetensors."""
    tensors = {}
    for number, piece in enumerate(pieces):
        batch = piece.batch
        numbers = (piece.part, piece.share, batch.num_source_tokens, batch.num_target_tokens)
        tensors[f"{number}.numbers"] = torch.tensor(numbers, dtype=torch.float64)
        for name, tensor in tensors_of(batch).items():
            tensors[f"{number}.{name}"] = tensor.clone(memory_format=torch.contiguous_format)
    return safetensors.torch.save(tensors)


def pieces_of_bytes(body: bytes) -> list[BatchPart]:
    """Read pieces that `pieces_to_bytes` wrote."""
    by_piece: dict[int, dict[str, Any]] = {}
    for name, tensor in safetensors.torch.load(body).items():
        number, _, field = name.partition(".")
        by_piece.setdefault(int(number), {})[field] = tensor
    pieces = []
    for _, named in sorted(by_piece.items()):
        part, share, num_source, num_target = named.pop("numbers").tolist()
        batch = Batch(**named, num_source_tokens=int(num_source), num_target_tokens=int(num_target))
        pieces.append(BatchPart(int(part), share, batch))
    return pieces
