"""Tensors from rank to rank, and the store of a few words where ranks meet.

They go by gloo, on the loopback unless the launcher names more machines; between GPUs weights and
gradients go by NCCL. Nothing is pickled.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pellucid.errors import ConfigurationError, LostRankError, PellucidError
from pellucid.machine.launch import LOOPBACK, RankPlace

if TYPE_CHECKING:  # only in a PyTorch that was built with ranks
    from torch._C._distributed_c10d import PrefixStore

distributed: Any = torch.distributed
"""PyTorch exports most of what is used here without types."""

Guard = Callable[[Callable[[], Any]], Any]
"""Runs a function that may wait for another rank, and returns its result."""

NEVER = timedelta(days=3650)
JOINING = timedelta(seconds=60)
"""Time in which ranks that have come must connect, as gloo tries on to reach one that died."""

SET_UP = -1
END = -2
"""Orders that are no step, which are positive."""

BEAT_SECONDS = 1.0
"""Time between two signs of life of a rank."""

HURRIED_SECONDS = 10.0
"""Time after a signal to end in which a rank that is waited for must show itself. torchrun and
Slurm kill 30 seconds after it."""


class RankLink:
    """Tensors from rank to rank.

    Args:
        place: of this process.
        store: where the ranks meet.
        device: that they compute on.
        guard: called for everything that may wait for another rank.
    """

    def __init__(
        self, place: RankPlace, store: PrefixStore, device: torch.device, guard: Guard
    ) -> None:
        self.rank = place.rank
        self.size = place.num_ranks
        self._guard = guard
        self._groups: dict[str, Any] = {"cpu": guard(lambda: _open_gloo(place, store))}
        # Hands wait for orders while rank 0 validates; the guard finds ranks that are lost.
        self._groups["cpu"]._set_default_timeout(NEVER)
        if device.type == "cuda":
            if not distributed.is_nccl_available():
                raise ConfigurationError(
                    "Ranks on GPUs need a PyTorch with NCCL, but this one lacks it. Install one "
                    "for CUDA, or use training.device = 'cpu'."
                )
            torch.cuda.set_device(place.local_rank % torch.cuda.device_count())
            shared = distributed.PrefixStore("nccl", store)
            nccl = distributed.ProcessGroupNCCL
            self._groups["cuda"] = guard(lambda: nccl(shared, self.rank, self.size, nccl.Options()))

    def send(self, tensor: Tensor, to: int) -> None:
        """Send a tensor to a rank."""
        if tensor.is_cuda:  # NCCL would wait for a dead rank; gloo sees that it is dead.
            torch.cuda.current_stream().synchronize()
            self.send(torch.zeros(1), to)
        group = self._groups[tensor.device.type]
        self._guard(lambda: group.send([tensor], to, 0).wait(NEVER))

    def receive(self, tensor: Tensor, origin: int) -> Tensor:
        """Wait for a tensor of a rank, and return it in the place of this one."""
        if tensor.is_cuda:
            self.receive(torch.zeros(1), origin)
        group = self._groups[tensor.device.type]
        self._guard(lambda: group.recv([tensor], origin, 0).wait(NEVER))
        return tensor

    def broadcast(self, tensor: Tensor) -> None:
        """Give a tensor of rank 0 to all."""
        group = self._groups[tensor.device.type]
        self._guard(lambda: group.broadcast(tensor, 0).wait(NEVER))

    def send_order(self, to: int, order: int, number: int = 0, body: bytes = b" ") -> None:
        """Send an order to a hand: a step or a constant, a number, and bytes."""
        self.send(torch.tensor([order, number, len(body)]), to)
        self.send(torch.frombuffer(bytearray(body), dtype=torch.uint8), to)

    def receive_order(self) -> tuple[int, int, bytes]:
        """Wait for an order."""
        order, number, size = self.receive(torch.zeros(3, dtype=torch.int64), 0).tolist()
        body = self.receive(torch.zeros(size, dtype=torch.uint8), 0)
        return order, number, body.numpy().tobytes()


def _open_gloo(place: RankPlace, store: PrefixStore) -> Any:
    gloo = distributed.ProcessGroupGloo
    shared = distributed.PrefixStore("gloo", store)
    if not place.is_one_machine:
        return gloo(shared, place.rank, place.num_ranks, JOINING)
    options: Any = gloo._Options()
    options._timeout = JOINING
    options._devices = [gloo.create_device(hostname=LOOPBACK)]
    return gloo(shared, place.rank, place.num_ranks, options)


def open_store(place: RankPlace) -> PrefixStore:
    """Open the place where ranks meet; rank 0 makes it, unless the launcher has.

    Raises:
        PellucidError: the port is in use, or rank 0 cannot be reached.
    """
    is_local = place.is_one_machine and not place.is_kept
    address = LOOPBACK if is_local else place.address
    where = f"{address}:{place.port}"
    most = timedelta(seconds=max(1.0, place.wait))
    make = partial(distributed.TCPStore, timeout=most, wait_for_workers=False)
    try:
        if place.rank == 0 and not place.is_kept:
            listener = socket.create_server((LOOPBACK if is_local else "", place.port))
            port = listener.getsockname()[1]
            store = make(LOOPBACK, port, is_master=True, master_listen_fd=listener.detach())
        else:
            _await_listener(address, place.port, place.wait)
            store = make(address, place.port)
    except OSError as error:
        raise PellucidError(
            f"Rank 0 must listen at {where}, but that is not possible: {error.strerror}. Choose "
            "another port with MASTER_PORT."
        ) from error
    except RuntimeError as error:
        raise LostRankError(
            f"Rank 0 did not answer at {where} within {place.wait:g} seconds (--wait). See why, "
            "and start all ranks again."
        ) from error
    prefixed: PrefixStore = distributed.PrefixStore(f"pellucid/{place.attempt}", store)
    return prefixed


def port_of(store: PrefixStore) -> int:
    """Return the port at which a store that this process has opened is reached."""
    tcp: Any = store.underlying_store
    return int(tcp.port)


def _await_listener(address: str, port: int, wait: float) -> None:
    """Wait until a port is open; PyTorch itself would warn in each attempt."""
    deadline = time.monotonic() + wait
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection((address, port), timeout=1.0):
            return
        time.sleep(0.05)
    raise RuntimeError
