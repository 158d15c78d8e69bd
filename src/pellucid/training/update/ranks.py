"""Ranks: processes, on one machine or on several, that share the pieces of every update.

Rank 0 is the process that trains: data, optimizer, files and decisions are its own. The others are
its hands: for every update they get the weights and some pieces, and return a gradient. At the
store where ranks meet, each hand shows that it is alive, so that the one that is lost can be named.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import torch
from torch import Tensor

import pellucid
from pellucid.config import TrainingConfig
from pellucid.errors import LostRankError, PellucidError, TrainingError
from pellucid.machine.devices import is_out_of_memory
from pellucid.machine.hardware import share_threads, some_threads
from pellucid.machine.launch import RankPlace
from pellucid.machine.processes import Child, end_all, to_bytes
from pellucid.model import EncoderDecoder
from pellucid.training.run.interruption import Interruption
from pellucid.training.update.batch_parts import BatchPart, pieces_to_bytes, run_of
from pellucid.training.update.hands import require_version
from pellucid.training.update.link import (
    BEAT_SECONDS,
    END,
    HURRIED_SECONDS,
    SET_UP,
    RankLink,
    open_store,
    port_of,
)
from pellucid.training.update.passes import Passes
from pellucid.training.update.recorded import RecordedPasses
from pellucid.training.update.tree import Flat, GradientTree, flatten_weights

if TYPE_CHECKING:
    from torch._C._distributed_c10d import PrefixStore

SILENT_SECONDS = 60.0
"""Time after which a rank that is waited for counts as lost, besides ten times the longest share
of an update."""

LINGER_SECONDS = 10.0
"""Time in which a training that ends before it began tells hands that come late."""

CONTINUE = "The same command continues from the last checkpoint, if there is one."
ADVICE = f"{CONTINUE} A new run with training.processes = 1 needs less memory."


class Ranks:
    """All ranks of one training, as rank 0 sees them.

    Args:
        place: of this process among those of a launcher; None to start hands on this machine, as
            many as the settings say.

    Attributes:
        interruption: gets the signals that come to hands.
        longest: seconds of the longest share of an update.
    """

    def __init__(self, place: RankPlace | None = None) -> None:
        self.interruption = Interruption()
        self.longest = 0.0
        self.place = place
        self._children: list[Child] = []
        self._hosts: dict[int, str] = {}
        self._store: PrefixStore | None = None
        self._link: RankLink | None = None
        # Hands must not outlive a training that ends without closing this.
        weakref.finalize(self, end_all, self._children)
        if place is not None:
            self._open(place)

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(PellucidError, RuntimeError):
            if self._link is not None:
                for hand in range(1, self._link.size):
                    self._link.send_order(hand, END)
            elif self._store is not None and self.place is not None:
                self._store.set("go", "end")
                # Hands that come late would find an empty place, and wait.
                ends = [f"end/{rank}" for rank in range(1, self.place.num_ranks)]
                deadline = time.monotonic() + LINGER_SECONDS
                while not self._store.check(ends) and time.monotonic() < deadline:
                    time.sleep(0.05)
        self.leave(is_over=True)

    def count(self, device: torch.device, processes: int) -> int:
        """Count the ranks of a training that cuts batches into so many parts."""
        if self.place is not None:
            return self.place.num_ranks
        can_start = device.type == "cpu" and os.name == "posix"
        return 1 << (processes.bit_length() - 1) if can_start else 1

    def join(self, number: int, device: torch.device) -> RankLink:
        """Link the ranks, unless they are; those that no launcher started are started.

        Raises:
            PellucidError: one did not come, or cannot take part.
        """
        if self._link is None:
            place = self.place or RankPlace(0, number, 0, number)
            store = self._store or self._open(place)
            if self.place is None:
                # For hands: PyTorch's messages about lost connections have traces of its own calls.
                os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
                for rank in range(1, place.num_ranks):
                    theirs = replace(place, rank=rank, local_rank=rank, port=port_of(store))
                    run = "pellucid.training.update.hands:be_local_hand"
                    self._children.append(Child(run, asdict(theirs), advice=ADVICE))
            self._await_hands(place, store)
            store.set("go", device.type)
            self._link = RankLink(place, store, device, self._guard)
        return self._link

    def leave(self, *, is_over: bool = False) -> None:
        """End the hands that were started here; others wait for the next updates until all is over.

        Args:
            is_over: the link is of no further use.
        """
        end_all(self._children)
        if self.place is None or is_over:
            self._link = self._store = None

    def _open(self, place: RankPlace) -> PrefixStore:
        self._opened = time.monotonic()
        store = open_store(place)
        self._store = store
        store.set("version", pellucid.__version__)
        threading.Thread(target=self._listen, args=(store,), daemon=True).start()
        return store

    def _listen(self, store: PrefixStore) -> None:
        """Show that rank 0 is alive, and pass on the signal of a hand.

        Also while rank 0 validates and sends no pieces.
        """
        beats = 0
        with suppress(RuntimeError):
            while self._store is store:
                beats += 1
                store.set("beat/0", str(beats))
                time.sleep(BEAT_SECONDS)
                if self.interruption.signal is None and store.check(["signal"]):
                    self.interruption.pass_on(int(store.get("signal")))

    def _await_hands(self, place: RankPlace, store: PrefixStore) -> None:
        hands = range(1, place.num_ranks)
        while missing := [rank for rank in hands if not store.check([f"here/{rank}"])]:
            self.interruption.exit_if_signaled()
            self._raise_if_ended()
            if time.monotonic() > self._opened + place.wait:
                raise LostRankError(
                    f"Rank {', '.join(map(str, missing))} of {place.num_ranks} did not come within "
                    f"{place.wait:g} seconds (--wait). See why, and start all ranks again."
                )
            time.sleep(0.02)
        for rank in hands:
            version, self._hosts[rank] = json.loads(store.get(f"here/{rank}"))
            require_version(rank, self._hosts[rank], version, pellucid.__version__)

    def _guard(self, work: Callable[[], Any]) -> Any:
        """Run a function in a thread, because in it signals could not be heard.

        Raises:
            LostRankError: it failed, or a rank was silent for too long.
        """
        results: list[Any] = []
        failures: list[BaseException] = []

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        began = time.monotonic()
        limit = SILENT_SECONDS + 10 * self.longest
        while thread.is_alive() and (waited := time.monotonic() - began) < limit:
            if self.interruption.signal is not None:
                limit = min(limit, waited + HURRIED_SECONDS)
            thread.join(0.1)
        if not results:
            self._raise_lost(failures[0] if failures else None)
        return results[0]

    def _raise_if_ended(self) -> None:
        for child in self._children:
            if child.process.poll() is not None:
                try:
                    child.receive()
                except PellucidError as error:
                    raise LostRankError(str(error)) from None

    def _raise_lost(self, cause: BaseException | None) -> NoReturn:
        """Find the ranks that ended or fell silent."""
        lost: list[int] = []
        said: dict[int, str] = {}
        with suppress(RuntimeError):  # The store may have ended too.
            before = self._words("beat")
            time.sleep(2.5 * BEAT_SECONDS)
            after = self._words("beat")
            said = self._words("end")
            silent = [rank for rank in self._hosts if after.get(rank) == before.get(rank)]
            lost = [rank for rank in silent if said.get(rank, "lost")]
        if not any(said.values()):
            self._raise_if_ended()
        names = ", ".join(f"{rank} ({self._hosts[rank]})" for rank in lost or self._hosts)
        reasons = "".join(f" {reason}" for reason in said.values() if reason)
        raise LostRankError(f"Rank {names} ended or fell silent.{reasons} {CONTINUE}") from cause

    def _words(self, name: str) -> dict[int, str]:
        """Read what hands have left at the store under a name."""
        store = self._store
        assert store is not None
        found = [rank for rank in self._hosts if store.check([f"{name}/{rank}"])]
        return {rank: store.get(f"{name}/{rank}").decode() for rank in found}


class RankedPasses:
    """`Passes` whose pieces are shared among ranks and added in one tree.

    Args:
        model: its weights move into one flat buffer.
        training: the settings.
        precision: of the passes.
        ranks: all of them.
        number: of ranks.
        passes: those of this process.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        training: TrainingConfig,
        precision: Literal["float32", "bfloat16"],
        ranks: Ranks,
        number: int,
        passes: Passes | RecordedPasses,
    ) -> None:
        self._model = model
        self._ranks = ranks
        self._number = number
        self._tree = GradientTree(passes, model)
        self._link: RankLink | None = None
        self._weights: Flat | None = None
        self._threads = share_threads(1 if ranks.place else number)
        self._settings = {
            "model": model.config.model_dump(mode="json"),
            "has_output_bias": model.output_bias is not None,
            "training": training.model_dump(mode="json"),
            "precision": precision,
            "kernels": passes.kernels,
            "is_recorded": isinstance(passes, RecordedPasses),
            "threads": None if ranks.place else self._threads,
        }
        self.seconds_waited = 0.0

    def refresh_weights(self) -> None:
        """Take the weights as they are now, as `Passes.refresh_weights` does."""
        self._tree.passes.refresh_weights()

    def start(self) -> None:
        """Link the ranks and tell them what to compute, unless that is done.

        Raises:
            PellucidError: one did not come, or cannot take part.
        """
        if self._number == 1 or self._link is not None:
            return
        try:
            link = self._ranks.join(self._number, next(self._model.parameters()).device)
            if self._weights is None:  # Recorded passes read the weights at their old addresses.
                self._weights = flatten_weights(self._model)
            for hand in range(1, link.size):
                link.send_order(hand, SET_UP, body=to_bytes(self._settings))
            for hand in range(1, link.size):
                # A hand answers once it is set up: its failure is known before the first update.
                link.receive(torch.zeros(1), hand)
        except BaseException as error:
            self._ranks.leave(is_over=True)
            if isinstance(error, Exception) and is_out_of_memory(error):
                raise TrainingError(
                    "Processes that share batches need memory, but it ran out. Free some, or start "
                    "a new run with training.processes = 1."
                ) from error
            raise
        self._link = link

    def sum_gradients(self, step: int, pieces: Sequence[BatchPart]) -> Tensor:
        """Do as `Passes.sum_gradients` does.

        Raises:
            MemoryError: the memory of a rank ran out.
            LostRankError: a rank ended or fell silent.
        """
        self.start()
        link = self._link
        tree = self._tree
        began = time.monotonic()
        try:
            if link is not None:
                self._send_out(step, pieces, link)
            started = time.monotonic()
            # By itself, this process may be trying other numbers of threads.
            threads = torch.get_num_threads() if link is None else self._threads
            with some_threads(threads), tree.noting_memory():
                tree.add_up(step, run_of(pieces, 0, self._number))
            seconds = time.monotonic() - started
            # Other ranks may need as long: none counts as lost before ten times this.
            self._ranks.longest = max(self._ranks.longest, seconds)
            if link is not None:
                tree.add_ranks(link, len(pieces))
                self.seconds_waited = time.monotonic() - began - seconds
        except BaseException:
            # Late replies would be taken for replies to the next attempt.
            self._link = None
            self._ranks.leave(is_over=True)
            raise
        loss, memory, signals = tree.finish()
        if signals:
            self._ranks.interruption.pass_on(signal.SIGTERM)
        if memory:
            raise MemoryError
        return loss

    def _send_out(self, step: int, pieces: Sequence[BatchPart], link: RankLink) -> None:
        """Give the hands their pieces, and all of them the weights."""
        assert self._weights is not None
        for hand in range(1, link.size):
            theirs = pieces_to_bytes(run_of(pieces, hand, link.size))
            link.send_order(hand, step, len(pieces), theirs)
        link.broadcast(self._weights.all)

    def close(self) -> None:
        """End the hands that were started here."""
        self._link = None
        self._ranks.leave()
