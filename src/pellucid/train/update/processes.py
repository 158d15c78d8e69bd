"""Processes that share the batches of every update, each with one core or more.

A step of a small model consists of many short operations. A second thread shortens them little,
because it waits at the end of each. A process that runs all of them for half of the pairs waits
once a step.

The weights lie in shared memory, and so do the gradients of the worker processes. The process that
started the run adds them up, always in the same order, and moves the weights.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Sequence
from typing import BinaryIO, Literal, NoReturn

import safetensors.torch
import torch
from torch import Tensor

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch
from pellucid.errors import ConfigurationError, TrainingError
from pellucid.machine.hardware import keep_freed_memory, set_threads, share_threads, some_threads
from pellucid.machine.processes import Child, end_all, serve_parent, to_bytes
from pellucid.model import EncoderDecoder, make_model
from pellucid.train.fast.pytorch import trained
from pellucid.train.update.passes import Passes, is_out_of_memory
from pellucid.train.update.pieces import Piece, tensors_of
from pellucid.train.weights.optimizer import freeze

TOKENS_A_PROCESS = 1000
"""Positions of a batch that a process should have at least: below, calls cost more than work."""

THREADS_A_PROCESS = {"float32": 1, "bfloat16": 2}
"""Threads that a process should have at least. In bfloat16 products are too short to pay for what
each process repeats, and two cores may share one multiplier."""

ADVICE = (
    "The same command continues from the last checkpoint, if there is one; a new run with "
    "training.processes = 1 needs less memory."
)

ALIGNMENT = 64


def choose_processes(
    training: TrainingConfig,
    device: torch.device,
    precision: Literal["float32", "bfloat16"],
    *,
    has_kernels: bool = False,
) -> int:
    """Choose how many processes share a batch: with ``auto`` the number with the shortest step.

    On the package's kernels that is one, whose threads share all expensive work.

    The estimate assumes that further threads do not shorten a third of a process's work (measured
    with tiny, float32 and two threads), and that its pairs are its share of all.

    Raises:
        ConfigurationError: several are asked for, but the device allows only one.
    """
    if training.processes == "auto":
        if has_kernels or not can_share(device):
            return 1
        threads = torch.get_num_threads()
        enough = training.max_tokens_per_batch // TOKENS_A_PROCESS
        most = max(1, min(threads // THREADS_A_PROCESS[precision], enough))
        return min(range(1, 1 + most), key=lambda number: (1 + 2 / (threads // number)) / number)
    if training.processes > 1 and not can_share(device):
        raise ConfigurationError(
            "Processes can share batches only on the processor of a POSIX system, but "
            f"training.processes is {training.processes} on {device}. Use training.device = "
            "'cpu', or training.processes = 'auto' for a new run."
        )
    return training.processes


def can_share(device: torch.device) -> bool:
    """Tell whether processes can share batches on this device."""
    return device.type == "cpu" and os.name == "posix"


class SharedPasses:
    """`Passes` whose pieces are dealt out to processes; this one takes the first share.

    The workers start when they are first needed, and end with this process.

    Args:
        model: on the processor; its weights move into shared memory.
        training: the settings.
        precision: of the passes.
        processes: their number, this one included; the threads in use are shared among them.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        training: TrainingConfig,
        precision: Literal["float32", "bfloat16"],
        processes: int,
    ) -> None:
        self._model = model
        self._training = training
        self._precision: Literal["float32", "bfloat16"] = precision
        self._own = Passes(model, training, precision)
        self._num_workers = processes - 1
        self._threads = share_threads(processes)
        self._gradients: list[list[Tensor]] = []
        self._workers: list[Child] = []
        weakref.finalize(self, end_all, self._workers)

    def refresh_weights(self) -> None:
        """Copy the weights as they are now, as `Passes.refresh_weights` does."""
        self._own.refresh_weights()

    def start(self) -> None:
        """Start the workers and wait until they are ready, unless they run already.

        Raises:
            TrainingError: memory does not suffice for them.
            PellucidError: one could not start, or ended.
        """
        if self._workers:
            return
        try:
            with _open_shared_memory() as file:
                self._start_with(file.fileno())
        except OSError as error:
            self.close()
            raise _no_room(error.strerror or str(error)) from error
        except BaseException as error:
            self.close()
            if isinstance(error, Exception) and is_out_of_memory(error):
                raise _no_room("memory ran out in one") from error
            raise

    def sum_gradients(self, step: int, pieces: Sequence[Piece]) -> Tensor:
        """Do as `Passes.sum_gradients` does.

        Raises:
            MemoryError: the memory of a process ran out.
            TrainingError: memory does not suffice for the workers.
            PellucidError: one could not start, or ended.
        """
        self.start()
        processes = 1 + self._num_workers
        shares = [pieces[first::processes] for first in range(processes)]
        asked = [number for number in range(self._num_workers) if shares[1 + number]]
        messages = [_pieces_to_bytes(step, shares[1 + number]) for number in asked]
        try:
            for number, message in zip(asked, messages, strict=True):
                self._workers[number].send(*message)
            with some_threads(self._threads):
                total = _sum_or_none(self._own, step, shares[0])
            losses = [self._workers[number].receive() for number in asked]
        except BaseException:
            # Late replies would be taken for replies to the next attempt.
            self.close()
            raise
        if total is None or None in losses:
            raise MemoryError
        for number, loss in zip(asked, losses, strict=True):
            total += loss
            pairs = zip(trained(self._model), self._gradients[number], strict=True)
            grown = [(weight.grad, more) for weight, more in pairs if weight.grad is not None]
            if grown:
                torch._foreach_add_([grad for grad, _ in grown], [more for _, more in grown])
        return total

    def close(self) -> None:
        """End the workers at once."""
        end_all(self._workers)

    def _start_with(self, descriptor: int) -> None:
        size = _size(self._model, self._num_workers)
        os.truncate(descriptor, size)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        weights, self._gradients = _map_memory(self._model, self._num_workers, descriptor)
        with torch.no_grad():
            torch._foreach_copy_(weights, list(self._model.parameters()))
        _point_at(self._model, weights)
        for number in range(self._num_workers):
            self._workers.append(self._start_worker(number, descriptor))
        for worker in self._workers:
            worker.receive()

    def _start_worker(self, number: int, descriptor: int) -> Child:
        arguments = {
            "memory": descriptor,
            "number": number,
            "num_workers": self._num_workers,
            "model": self._model.config.model_dump_json(),
            "has_output_bias": self._model.output_bias is not None,
            "training": self._training.model_dump_json(),
            "precision": self._precision,
            "threads": self._threads,
        }
        run = "pellucid.train.update.processes:be_worker"
        return Child(run, arguments, descriptors=[descriptor], advice=ADVICE)


def be_worker(
    descriptor: int,
    *,
    memory: int,
    number: int,
    num_workers: int,
    model: str,
    has_output_bias: bool,
    training: str,
    precision: Literal["float32", "bfloat16"],
    threads: int,
) -> NoReturn:
    """Run a worker: leave the gradients of the pieces that the parent sends, and reply their loss.

    Args:
        descriptor: the connection to the parent.
        memory: the file of the shared memory.
        number: this worker's number, from 0.
        num_workers: the number of workers.
        model: its configuration, as JSON.
        has_output_bias: whether the output has one.
        training: the settings, as JSON.
        precision: of the passes.
        threads: processor threads to use.
    """

    def set_up() -> Callable[[Callable[[], bytes]], float | None]:
        set_threads(threads)
        keep_freed_memory()
        settings = TrainingConfig.model_validate_json(training)
        config = ModelConfig.model_validate_json(model)
        replica = make_model(config, has_output_bias=has_output_bias)
        freeze(replica, settings.freeze)
        weights, gradients = _map_memory(replica, num_workers, memory)
        _point_at(replica, weights)
        passes = Passes(replica, settings, precision, gradients=gradients[number])

        def answer(take: Callable[[], bytes]) -> float | None:
            step, heads = json.loads(take())
            pieces = [_piece_of_bytes(take(), *head) for head in heads]
            passes.refresh_weights()
            total = _sum_or_none(passes, step, pieces)
            if total is None:
                return None
            for shared, weight in zip(gradients[number], trained(replica), strict=True):
                if weight.grad is None:
                    shared.zero_()
                elif weight.grad is not shared:
                    shared.copy_(weight.grad)
            return total.item()

        gc.collect()
        gc.freeze()  # As `leave_lasting_objects` does, for as long as the process lives.
        return answer

    serve_parent(descriptor, set_up)


def _sum_or_none(passes: Passes, step: int, pieces: Sequence[Piece]) -> Tensor | None:
    """Do as `Passes.sum_gradients` does, but return None if memory ran out."""
    try:
        return passes.sum_gradients(step, pieces)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return None


def _open_shared_memory() -> BinaryIO:
    """Open a file without a name, in memory if the system has such files."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("pellucid-training"), "r+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


def _no_room(reason: str) -> TrainingError:
    return TrainingError(
        f"Processes that share batches need memory, but the system refused it: {reason}. Free "
        "some memory, or start a new run with training.processes = 1."
    )


def _size(model: EncoderDecoder, num_workers: int) -> int:
    weights = sum(map(_room, model.parameters()))
    return weights + num_workers * sum(map(_room, trained(model)))


def _room(tensor: Tensor) -> int:
    return -(-4 * tensor.numel() // ALIGNMENT) * ALIGNMENT


def _map_memory(
    model: EncoderDecoder, num_workers: int, descriptor: int
) -> tuple[list[Tensor], list[list[Tensor]]]:
    """Map all weights in the shared memory, and the gradients of each worker."""
    memory = mmap.mmap(descriptor, _size(model, num_workers))
    place = 0

    def take(like: Tensor) -> Tensor:
        nonlocal place
        flat = torch.frombuffer(memory, dtype=torch.float32, count=like.numel(), offset=place)
        place += _room(like)
        return flat.view_as(like)

    weights = [take(weight) for weight in model.parameters()]
    return weights, [[take(weight) for weight in trained(model)] for _ in range(num_workers)]


def _point_at(model: EncoderDecoder, weights: Sequence[Tensor]) -> None:
    for weight, shared in zip(model.parameters(), weights, strict=True):
        weight.data = shared


def _pieces_to_bytes(step: int, pieces: Sequence[Piece]) -> list[bytes]:
    heads = [
        [piece.part, piece.share, piece.batch.num_source_tokens, piece.batch.num_target_tokens]
        for piece in pieces
    ]
    tensors = [
        {name: tensor.contiguous() for name, tensor in tensors_of(piece.batch).items()}
        for piece in pieces
    ]
    return [to_bytes([step, heads]), *map(safetensors.torch.save, tensors)]


def _piece_of_bytes(
    tensors: bytes, part: int, share: float, num_source_tokens: int, num_target_tokens: int
) -> Piece:
    batch = Batch(
        **safetensors.torch.load(tensors),
        num_source_tokens=num_source_tokens,
        num_target_tokens=num_target_tokens,
    )
    return Piece(part, share, batch)
