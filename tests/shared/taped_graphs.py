"""Graphs on the processor: a tape of operations stands for what a GPU records.

Like a CUDA graph, a tape repeats the operations of one call with the same tensors: whatever was a
number of Python's own stays as it was. So a test sees on the processor what would be frozen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten

READS = (
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.equal.default,
    aten.masked_select.default,
)
"""Operations that make the processor wait for a device."""


class TapedGraphs:
    """Records operations, and repeats them.

    Args:
        device: that of the tensors.
        is_taped: False to call the same function again in the place of a tape.
        clock: tells the seconds of the device.
    """

    def __init__(
        self,
        device: torch.device | str = "cpu",
        *,
        is_taped: bool = True,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.device = torch.device(device)
        self.clock = clock
        self._is_taped = is_taped
        self.num_recorded = 0
        self.num_repeated = 0

    def record(self, work: Callable[[], object]) -> Callable[[], object]:
        self.num_recorded += 1
        tape = _Tape()
        if self._is_taped:
            with tape:
                work()
        has_run = self._is_taped

        def repeat() -> None:
            nonlocal has_run
            self.num_repeated += 1
            # A GPU only notes the operations; a tape has run them, too.
            if has_run:
                has_run = False
            elif self._is_taped:
                tape.play()
            else:
                work()

        return repeat

    def run(self, work: Callable[[], object]) -> None:
        work()

    def fill(self, buffers: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
        for name, value in values.items():
            buffers[name].copy_(value)

    def mark(self) -> float:
        return self.clock()

    def read_later(self, numbers: Tensor, since: float) -> Callable[[], list[float]]:
        found = numbers.tolist()
        seconds = self.clock() - since
        return lambda: [*found, seconds]


class _Tape(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._notes: list[tuple[Any, Any, Any, list[Tensor]]] = []

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
        if operation in READS and not _is_check(args):
            raise AssertionError(f"{operation} would wait for the device")
        result = operation(*args, **(kwargs or {}))
        results = [one for one in tree_leaves(result) if isinstance(one, Tensor)]
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        known = {one.untyped_storage().data_ptr() for one in given}
        # Views, and what an operation changed in place, are where they were.
        # Kept as they are now: autograd may give one another shape in its place.
        new = [one.detach() for one in results if one.untyped_storage().data_ptr() not in known]
        self._notes.append((operation, args, kwargs or {}, new))
        return result

    @torch.no_grad()
    def play(self) -> None:
        """Run the operations again, and put the results where they were."""
        for operation, args, kwargs, results in self._notes:
            if not results:
                operation(*args, **kwargs)
                continue
            again = [
                one for one in tree_leaves(operation(*args, **kwargs)) if isinstance(one, Tensor)
            ]
            for old, new in zip(results, [one for one in again if _is_new(one, args)], strict=True):
                old.copy_(new)


def _is_new(one: Tensor, args: Any) -> bool:
    given = [other for other in tree_leaves(args) if isinstance(other, Tensor)]
    return one.untyped_storage().data_ptr() not in {
        other.untyped_storage().data_ptr() for other in given
    }


def _is_check(args: Any) -> bool:
    """True for the one truth value that attention asks for on the processor only."""
    return bool(args[0].dtype == torch.bool and args[0].dim() == 0)
