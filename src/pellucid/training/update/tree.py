"""Sums of gradients in one binary tree over an update's pieces, whoever computes its branches.

Float32 sums depend on their order. Here each piece is summed from zero, and pieces are added in
halves, halves of halves and so on. A rank computes a branch of that tree, and ranks add their
branches as one process does, so the number of ranks changes no bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from pellucid.machine.devices import is_out_of_memory
from pellucid.model import EncoderDecoder
from pellucid.training.fast.pytorch import trained
from pellucid.training.update.batch_parts import BatchPart, halve, run_of
from pellucid.training.update.link import RankLink
from pellucid.training.update.passes import Passes
from pellucid.training.update.recorded import RecordedPasses

LOSS = 0
MEMORY = 1
SIGNAL = 2
"""Places of the numbers that travel with a sum."""

ALIGNMENT = 16
"""Every tensor in a flat buffer begins at a multiple of so many numbers, 64 bytes."""


class Flat:
    """Tensors like some others in one flat buffer that ends with three numbers.

    Attributes:
        all: the buffer.
        views: the tensors in it.
        numbers: the loss, whether memory ran out, and whether a signal came.
    """

    def __init__(self, like: Sequence[Tensor]) -> None:
        sizes = [-(-tensor.numel() // ALIGNMENT) * ALIGNMENT for tensor in like]
        self.all = torch.zeros(sum(sizes) + ALIGNMENT, device=like[0].device)
        *parts, self.numbers = torch.split(self.all, [*sizes, ALIGNMENT])
        pairs = zip(parts, like, strict=True)
        self.views = [part[: tensor.numel()].view_as(tensor) for part, tensor in pairs]


def flatten_weights(model: EncoderDecoder) -> Flat:
    """Move the weights of a model into one flat buffer."""
    flat = Flat(list(model.parameters()))
    for weight, view in zip(model.parameters(), flat.views, strict=True):
        view.copy_(weight.detach())
        weight.data = view
    return flat


class GradientTree:
    """One rank's part of every sum of gradients, and the tree in which ranks add their parts.

    Args:
        passes: compute the gradients.
        model: its parameters get them.
    """

    def __init__(self, passes: Passes | RecordedPasses, model: EncoderDecoder) -> None:
        self.passes = passes
        self._weights = trained(model)
        # The second also receives the sums of other ranks.
        self._sums = [Flat(self._weights), Flat(self._weights)]
        self._has_gradient = [True] * len(self._weights)

    def add_up(self, step: int, pieces: Sequence[BatchPart], level: int = 0) -> None:
        """Leave the sum of some pieces in the buffer of a level; deeper ones are overwritten."""
        if len(pieces) > 1:
            first, second = halve(pieces)
            self.add_up(step, first, level)
            if len(self._sums) == level + 1:
                self._sums.append(Flat(self._weights))
            self.add_up(step, second, level + 1)
            self._sums[level].all += self._sums[level + 1].all
        elif pieces:
            into = self._sums[level]
            into.numbers.zero_()  # It may hold what another rank sent for the update before.
            into.numbers[LOSS] = self.passes.sum_gradients(step, pieces, into.views)
            self._move_gradients(into)

    @contextmanager
    def noting_memory(self) -> Iterator[None]:
        """Begin a sum, and note if memory runs out in it: the other ranks wait for this one."""
        numbers = self._sums[0].numbers
        numbers.zero_()
        try:
            yield
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            numbers[MEMORY] = 1

    def note_signal(self) -> None:
        """Tell rank 0 with the sum that a signal has come."""
        self._sums[0].numbers[SIGNAL] = 1

    def add_ranks(self, link: RankLink, num_pieces: int) -> None:
        """Add the sums of all ranks, each to that of its neighbor in the tree; rank 0 gets all."""
        total = self._sums[0]
        other = self._sums[1]
        distance = 1
        while distance < link.size:
            if link.rank & distance:
                link.send(total.all, link.rank - distance)
                return
            neighbor = link.rank + distance
            link.receive(other.all, neighbor)
            if run_of(range(num_pieces), neighbor, link.size):
                total.all += other.all
            else:  # Nothing is added, because −0 + 0 is another bit.
                total.numbers += other.numbers
            distance *= 2

    def finish(self) -> tuple[Tensor, float, float]:
        """Leave the sum in the model; return loss, memory that ran out, and signals."""
        for weight, view, has_one in zip(
            self._weights, self._sums[0].views, self._has_gradient, strict=True
        ):
            weight.grad = view if has_one else None
        numbers = self._sums[0].numbers
        # One transfer for all three: on a GPU each one waits for the device.
        _, memory, signals = numbers[:3].tolist()
        return numbers[LOSS].clone(), memory, signals

    def _move_gradients(self, into: Flat) -> None:
        """Copy the gradients that the passes have not left in a buffer into it."""
        gradients = [weight.grad for weight in self._weights]
        self._has_gradient = [gradient is not None for gradient in gradients]
        views: list[Tensor] = []
        moved: list[Tensor] = []
        for view, gradient in zip(into.views, gradients, strict=True):
            if gradient is None:
                view.zero_()
            elif gradient is not view:
                views.append(view)
                moved.append(gradient)
        if moved:
            torch._foreach_copy_(views, moved)
