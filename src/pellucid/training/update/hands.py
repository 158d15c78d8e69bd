"""Hands: the processes besides rank 0, without disk, data or optimizer."""

from __future__ import annotations

import gc
import json
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import torch

import pellucid
from pellucid.config import ModelConfig, TrainingConfig
from pellucid.errors import ConfigurationError, LostRankError, PellucidError
from pellucid.machine.hardware import keep_freed_memory, set_threads
from pellucid.machine.launch import RankPlace
from pellucid.model import make_model
from pellucid.training.run.interruption import ending_signals
from pellucid.training.update.batch_parts import pieces_of_bytes
from pellucid.training.update.link import (
    BEAT_SECONDS,
    END,
    HURRIED_SECONDS,
    SET_UP,
    RankLink,
    open_store,
)
from pellucid.training.update.passes import Passes
from pellucid.training.update.recorded import record_passes
from pellucid.training.update.tree import Flat, GradientTree, flatten_weights
from pellucid.training.weights.optimizer import freeze

if TYPE_CHECKING:
    from torch._C._distributed_c10d import PrefixStore


def be_hand(place: RankPlace) -> int:
    """Be a hand until rank 0 says that all is done.

    The main thread only listens for signals. Other threads speak to rank 0, since each call may
    wait for it, for as long as it is stopped or its machine is gone.

    Returns:
        The exit code: 0, or that of the signal that came.

    Raises:
        PellucidError: this process cannot take part, or lost the others.
    """
    signals: list[int] = []
    failures: list[BaseException] = []
    life = _Life(place, signals, failures)
    for number in ending_signals():
        signal.signal(number, lambda number, _: signals.append(number))

    def work() -> None:
        try:
            store = open_store(place)
            life.begin(store)
            _serve(place, store, signals)
        except BaseException as error:
            failures.append(error)
        finally:
            life.over.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    told = math.inf
    while thread.is_alive() and len(signals) < 2:
        thread.join(BEAT_SECONDS / 10)
        if signals or life.is_alone:
            told = min(told, time.monotonic())
        # After a signal rank 0 saves, and says that all is done, unless it ended or stands still.
        patience = HURRIED_SECONDS if life.heard else 0.0
        if time.monotonic() > max(told, life.heard) + patience:
            failures.append(LostRankError(f"Rank 0 ended, and so does rank {place.rank}."))
            break
    life.end()
    if failures and not (signals and isinstance(failures[0], LostRankError)):
        raise failures[0]
    return 128 + signals[-1] if signals else 0


class _Life:
    """The signs of life of a hand, and those of rank 0, which are exchanged at the store.

    Args:
        place: of this process.
        signals: that came to it.
        failures: of its work.

    Attributes:
        heard: the time of the last sign of rank 0; 0 before the store is reached, where rank 0
            may know of this process.
        is_alone: True once the store has ended, which rank 0 or the launcher keeps.
        over: set once nothing is left to do.
    """

    def __init__(self, place: RankPlace, signals: list[int], failures: list[BaseException]) -> None:
        self.heard = 0.0
        self.is_alone = False
        self.over = threading.Event()
        self._rank = place.rank
        self._signals = signals
        self._failures = failures
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def begin(self, store: PrefixStore) -> None:
        """Begin to show that this process is alive."""
        self._store = store
        self.heard = time.monotonic()
        self._thread.start()

    def end(self) -> None:
        """Say the last word, if somebody listens."""
        self.over.set()
        if self.heard:
            self._thread.join(2 * BEAT_SECONDS)

    def _beat(self) -> None:
        store = self._store
        beats = 0
        before = b""
        try:
            while not self.over.is_set():
                beats += 1
                store.set(f"beat/{self._rank}", str(beats))
                if self._signals:
                    store.set("signal", str(self._signals[0]))
                if store.check(["beat/0"]) and (now := store.get("beat/0")) != before:
                    before = now
                    self.heard = time.monotonic()
                self.over.wait(BEAT_SECONDS)
            own = [error for error in self._failures if not isinstance(error, LostRankError)]
            store.set(f"end/{self._rank}", str(own[0]) if own else "")
        except RuntimeError:
            self.is_alone = True


def be_local_hand(descriptor: int, **place: Any) -> NoReturn:
    """Be a hand that rank 0 started on this machine; it sees the descriptor close at the end."""
    assert descriptor
    with suppress(PellucidError):
        be_hand(RankPlace(**place))
    os._exit(0)


def require_version(rank: int, host: str, version: str, wanted: str) -> None:
    """Refuse a hand with another version of this package than rank 0's."""
    if version != wanted:
        raise ConfigurationError(
            f"All ranks must run the same version of pellucid, but rank 0 has {wanted}, and rank "
            f"{rank} ({host}) has {version}. Install one on all machines."
        )


def _serve(place: RankPlace, store: PrefixStore, signals: list[int]) -> None:
    """Do as rank 0 orders, until it says that all is done."""

    def guard(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except RuntimeError as error:
            raise LostRankError(f"Rank 0 ended, and so does rank {place.rank}.") from error

    def await_word(name: str, seconds: float = math.inf) -> str:
        deadline = time.monotonic() + seconds
        while not guard(lambda: store.check([name])):
            if time.monotonic() > deadline:
                raise LostRankError(f"Rank 0 did not come within {seconds:g} seconds (--wait).")
            time.sleep(0.02)
        return str(guard(lambda: store.get(name)).decode())

    host = socket.gethostname()
    guard(lambda: store.set(f"here/{place.rank}", json.dumps([pellucid.__version__, host])))
    wanted = await_word("version", place.wait)
    require_version(place.rank, host, pellucid.__version__, wanted)
    if (name := await_word("go")) == "end":
        return
    device = torch.device(name)
    link = RankLink(place, store, device, guard)
    while (order := link.receive_order())[0] != END:
        step, num_pieces, body = order
        if step == SET_UP:
            tree, weights = _set_up(json.loads(body), device)
            link.send(torch.zeros(1), 0)
            continue
        link.broadcast(weights.all)
        tree.passes.refresh_weights()
        with tree.noting_memory():
            tree.add_up(step, pieces_of_bytes(body))
        if signals:
            tree.note_signal()
        tree.add_ranks(link, num_pieces)


def _set_up(settings: dict[str, Any], device: torch.device) -> tuple[GradientTree, Flat]:
    """Make a model and its passes as rank 0 has them."""
    set_threads(settings["threads"])
    keep_freed_memory()
    training = TrainingConfig.model_validate(settings["training"])
    config = ModelConfig.model_validate(settings["model"])
    replica = make_model(config, has_output_bias=settings["has_output_bias"])
    freeze(replica, training.freeze)
    weights = flatten_weights(replica.to(device))
    make = record_passes if settings["is_recorded"] else Passes
    passes = make(replica, training, settings["precision"])
    if passes is None:
        raise ConfigurationError(
            f"All ranks must compute alike, but rank 0 has a GPU, and {socket.gethostname()} none."
        )
    tree = GradientTree(passes, replica)
    if tree.passes.kernels != settings["kernels"]:
        raise ConfigurationError(
            f"All ranks must compute alike, but rank 0 uses {settings['kernels']}, and "
            f"{socket.gethostname()} {tree.passes.kernels}. Set training.kernels = 'pytorch'."
        )
    gc.collect()
    gc.freeze()  # As `leave_lasting_objects` does, for as long as the process lives.
    return tree, weights
