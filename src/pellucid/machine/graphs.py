"""Work that a GPU repeats by itself: recorded once for each shape, then only started.

A kernel takes the processor 10 µs or more to launch, and a GPU a few to compute, so that it mostly
waits. A CUDA graph launches all kernels of an update, or of a step of decoding, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

Work = Callable[[], object]

WARM_UPS = 2
"""Calls of a shape before it is recorded: libraries make their plans and buffers in the first."""


class GraphDevice(Protocol):
    """A device that can record work; tests replace it to do so on the processor."""

    device: torch.device

    def record(self, work: Work) -> Work:
        """Record what a function does; return a function that repeats exactly that."""

    def run(self, work: Work) -> None:
        """Run recorded work, or work as it may be recorded later."""

    def fill(self, buffers: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
        """Copy values into buffers; those on the processor travel while earlier work runs."""

    def mark(self) -> Any:
        """Note the time at which the device gets here."""

    def read_later(self, numbers: Tensor, since: Any) -> Callable[[], list[float]]:
        """Send numbers to the processor, and after them the seconds since a mark.

        The function returned waits for them.
        """


class CudaGraphs:
    """Records work as CUDA graphs, which share one pool of memory.

    Args:
        device: the GPU.
        generator: random numbers that the work draws, if any.

    Source:
        "CUDA Graphs" in PyTorch's notes on CUDA semantics: one stream for warm-up, recording and
        repeating; generators must be registered with a graph, which then takes their seeds anew
        each time it is repeated.
    """

    def __init__(self, device: torch.device, generator: torch.Generator | None = None) -> None:
        self.device = device
        self._generator = generator
        self._pool: Any = None
        self._works = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._copies = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def record(self, work: Work) -> Work:
        """Record a graph."""
        graph = torch.cuda.CUDAGraph()
        if self._generator is not None:
            graph.register_generator_state(self._generator)
        # Threads of a service may use the device meanwhile.
        mode = "thread_local"
        with torch.cuda.graph(graph, self._pool, self._works, capture_error_mode=mode):
            work()
        self._pool = self._pool or graph.pool()
        return graph.replay

    def run(self, work: Work) -> None:
        """Run work on the stream of the graphs, in order with all other work."""
        current = torch.cuda.current_stream(self.device)
        self._works.wait_stream(current)
        with torch.cuda.stream(self._works):
            work()
        current.wait_stream(self._works)

    def fill(self, buffers: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
        """Copy on a stream of its own to new memory, and in order from there."""
        current = torch.cuda.current_stream(self.device)
        with torch.cuda.stream(self._copies):
            there = {
                name: value.pin_memory().to(self.device, non_blocking=True)
                for name, value in values.items()
                if value.device.type == "cpu"
            }
        current.wait_stream(self._copies)
        for name, value in {**values, **there}.items():
            buffers[name].copy_(value)
        for value in there.values():
            value.record_stream(current)

    def mark(self) -> Any:
        """Record an event."""
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self.device))
        return event

    def read_later(self, numbers: Tensor, since: Any) -> Callable[[], list[float]]:
        """Copy to pinned memory, and remember when that will be done."""
        kept = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
        kept.copy_(numbers, non_blocking=True)
        done = self.mark()

        def read() -> list[float]:
            done.synchronize()
            return [*kept.tolist(), since.elapsed_time(done) / 1000]

        return read


def make_graphs(
    device: torch.device, generator: torch.Generator | None = None
) -> GraphDevice | None:
    """Make what records work on a device; None if it has no graphs."""
    return CudaGraphs(device, generator) if device.type == "cuda" else None


class GraphSchedule:
    """Runs work over buffers of a fixed place: first as it is, then recorded, one graph a key.

    Work must follow from its buffers and from tensors of a fixed place, and leave its results in
    such tensors. A number of Python's own would be repeated as it was when the work was recorded.

    Args:
        graphs: the device.

    Attributes:
        fault: why work could not be recorded, if so. It then runs as it is, which is only slower.
    """

    def __init__(self, graphs: GraphDevice) -> None:
        self.graphs = graphs
        self.fault = ""
        self._buffers: dict[Hashable, dict[str, Tensor]] = {}
        self._calls: dict[Hashable, int] = {}
        self._recorded: dict[Hashable, Work] = {}

    def run(
        self,
        key: Hashable,
        values: Mapping[str, Tensor],
        work: Callable[[Mapping[str, Tensor]], object],
    ) -> None:
        """Run the work of a key.

        Args:
            key: of the same work with values of the same names, shapes and types.
            values: tensors, copied into the buffers that the work is given.
            work: must be the same for the same key.
        """
        if key not in self._buffers:
            device = self.graphs.device
            self._buffers[key] = {
                name: torch.empty(value.shape, dtype=value.dtype, device=device)
                for name, value in values.items()
            }
        buffers = self._buffers[key]
        self.graphs.fill(buffers, values)
        call: Work = partial(work, buffers)
        number = self._calls.get(key, 0)
        if number == WARM_UPS and not self.fault:
            try:
                self._recorded[key] = self.graphs.record(call)
            except RuntimeError as error:
                # Also if memory is short: what ran before still runs.
                self.fault = str(error).strip().partition("\n")[0].rstrip(".")
        self._calls[key] = number + 1
        self.graphs.run(self._recorded.get(key, call))

    def forget(self, key: Hashable) -> None:
        """Drop the buffers of a key, and what was recorded."""
        for kept in (self._buffers, self._calls, self._recorded):
            kept.pop(key, None)
