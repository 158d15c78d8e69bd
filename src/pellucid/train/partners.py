"""Several processes that share the batches of every update, each with a core or more of its own.

A step of a small model consists of many short operations, which a second thread shortens little: it
waits at the end of each. A process that does all of them for half of the pairs waits once a step.

The weights lie in memory that all processes see, and so do the gradients that the partners leave
for the one that began the run. It adds them up, always in the same order, and moves the weights.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import tempfile
import weakref
from collections.abc import Callable, Sequence
from typing import Literal, NoReturn

import safetensors.torch
import torch
from torch import Tensor

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch
from pellucid.errors import ConfigurationError, TrainingError
from pellucid.hardware import keep_freed_memory, set_threads, share_threads, some_threads
from pellucid.model import Transformer
from pellucid.processes import Child, end_all, serve_parent, to_bytes
from pellucid.train.passes import Passes, Piece, is_out_of_memory, tensors_of, trained
from pellucid.train.starting import freeze

__all__ = ["SharedPasses", "be_partner", "choose_processes"]

TOKENS_A_PROCESS = 512
"""Positions of a batch that a process should have at least: with fewer it does little but calls."""

ADVICE = (
    "The last checkpoint is whole, and the same command goes on from it; with training.processes = "
    "1 a new run needs less memory."
)

ALIGNMENT = 64


def choose_processes(training: TrainingConfig, device: torch.device) -> int:
    """How many processes share a batch: with ``auto`` one a thread, where the batch is worth it.

    Raises:
        ConfigurationError: several are asked for where there can be only one.
    """
    is_possible = device.type == "cpu" and os.name == "posix"
    if training.processes != "auto":
        if training.processes > 1 and not is_possible:
            raise ConfigurationError(
                "Processes can share batches on the processor of a POSIX system alone, but "
                f"training.processes is {training.processes} on {device}. Use 1 or 'auto'."
            )
        return training.processes
    if not is_possible:
        return 1
    worth = training.max_tokens_per_batch // TOKENS_A_PROCESS
    return max(1, min(torch.get_num_threads(), worth))


class SharedPasses:
    """`Passes` whose pieces are dealt out to processes; this one takes the first lot.

    The others start when they are first needed. They leave Ctrl-C and SIGTERM to this process, and
    end with it.

    Args:
        model: on the processor; its weights move into shared memory.
        training: the settings.
        precision: of the passes.
        processes: how many, this one included; the threads in use are shared among them.
    """

    def __init__(
        self,
        model: Transformer,
        training: TrainingConfig,
        precision: Literal["float32", "bfloat16"],
        processes: int,
    ) -> None:
        self._model = model
        self._training = training
        self._precision: Literal["float32", "bfloat16"] = precision
        self._own = Passes(model, training, precision)
        self._num_partners = processes - 1
        self._threads = share_threads(processes)
        self._gradients: list[list[Tensor]] = []
        self._partners: list[Child] = []
        weakref.finalize(self, end_all, self._partners)

    def follow(self) -> None:
        """Take the weights as they are now, as `Passes.follow` does."""
        self._own.follow()

    def sum_gradients(self, step: int, pieces: Sequence[Piece]) -> Tensor:
        """Do as `Passes.sum_gradients` does.

        Raises:
            MemoryError: the memory of a process ran out.
            TrainingError: a process could not start, or ended.
        """
        self._start()
        lots = [pieces[first :: 1 + self._num_partners] for first in range(1 + self._num_partners)]
        asked = [number for number in range(self._num_partners) if lots[number + 1]]
        for number in asked:
            self._partners[number].send(*_lot_to_bytes(step, lots[number + 1]))
        try:
            with some_threads(self._threads):
                total = self._own.sum_gradients(step, lots[0])
        except Exception:
            self._receive(asked)  # or it would be taken for the reply to the next attempt
            raise
        for number, loss in zip(asked, self._receive(asked), strict=True):
            if loss is None:
                raise MemoryError
            total += loss
            for weight, more in zip(trained(self._model), self._gradients[number], strict=True):
                if weight.grad is not None:
                    weight.grad += more
        return total

    def close(self) -> None:
        """End the other processes at once."""
        end_all(self._partners)

    def _receive(self, asked: Sequence[int]) -> list[float | None]:
        return [self._partners[number].receive() for number in asked]

    def _start(self) -> None:
        if self._partners:
            return
        descriptor = _open_memory(_size(self._model, self._num_partners))
        try:
            weights, self._gradients = _map_memory(self._model, self._num_partners, descriptor)
            with torch.no_grad():
                torch._foreach_copy_(weights, list(self._model.parameters()))
            _use(self._model, weights)
            for number in range(self._num_partners):
                self._partners.append(self._partner(number, descriptor))
        finally:
            os.close(descriptor)
        for partner in self._partners:
            partner.receive()

    def _partner(self, number: int, descriptor: int) -> Child:
        told = {
            "memory": descriptor,
            "number": number,
            "num_partners": self._num_partners,
            "model": self._model.config.model_dump_json(),
            "has_output_bias": self._model.output_bias is not None,
            "training": self._training.model_dump_json(),
            "precision": self._precision,
            "threads": self._threads,
        }
        run = "pellucid.train.partners:be_partner"
        return Child(run, told, descriptors=[descriptor], advice=ADVICE)


def be_partner(
    descriptor: int,
    *,
    memory: int,
    number: int,
    num_partners: int,
    model: str,
    has_output_bias: bool,
    training: str,
    precision: Literal["float32", "bfloat16"],
    threads: int,
) -> NoReturn:
    """Be a partner: leave the gradients of the pieces that the parent sends, reply their loss.

    Args:
        descriptor: where the parent is.
        memory: the file of the shared memory.
        number: which partner this is, from 0; of ``num_partners``.
        num_partners: how many there are.
        model: its configuration, as JSON.
        has_output_bias: whether it has one.
        training: the settings, as JSON.
        precision: of the passes.
        threads: how many processor threads to use.
    """

    def set_up() -> Callable[[Callable[[], bytes]], list[float] | float | None]:
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_IGN)
        set_threads(threads)
        keep_freed_memory()
        settings = TrainingConfig.model_validate_json(training)
        config = ModelConfig.model_validate_json(model)
        replica = Transformer(config, has_output_bias=has_output_bias)
        freeze(replica, settings.freeze)
        weights, gradients = _map_memory(replica, num_partners, memory)
        _use(replica, weights)
        passes = Passes(replica, settings, precision)

        def answer(take: Callable[[], bytes]) -> float | None:
            step, heads = json.loads(take())
            pieces = [_piece_of_bytes(take(), *head) for head in heads]
            try:
                passes.follow()
                loss = passes.sum_gradients(step, pieces).item()
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                return None
            for shared, weight in zip(gradients[number], trained(replica), strict=True):
                if weight.grad is not None:
                    shared.copy_(weight.grad)
            return loss

        return answer

    serve_parent(descriptor, set_up)


def _open_memory(size: int) -> int:
    """A file that lies in memory and has no name; its descriptor."""
    try:
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("pellucid-training")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.truncate(descriptor, size)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        raise TrainingError(
            "Processes that share batches must have memory in common, but the system refused "
            f"{size:,} bytes: {error.strerror or error}. Use training.processes = 1."
        ) from error
    return descriptor


def _size(model: Transformer, num_partners: int) -> int:
    weights = sum(map(_room, model.parameters()))
    return weights + num_partners * sum(map(_room, trained(model)))


def _room(tensor: Tensor) -> int:
    return -(-4 * tensor.numel() // ALIGNMENT) * ALIGNMENT


def _map_memory(
    model: Transformer, num_partners: int, descriptor: int
) -> tuple[list[Tensor], list[list[Tensor]]]:
    """All weights in the shared memory, and what each partner has for gradients there."""
    memory = mmap.mmap(descriptor, _size(model, num_partners))
    place = 0

    def take(like: Tensor) -> Tensor:
        nonlocal place
        flat = torch.frombuffer(memory, dtype=torch.float32, count=like.numel(), offset=place)
        place += _room(like)
        return flat.view_as(like)

    weights = [take(weight) for weight in model.parameters()]
    return weights, [[take(weight) for weight in trained(model)] for _ in range(num_partners)]


def _use(model: Transformer, weights: Sequence[Tensor]) -> None:
    for weight, shared in zip(model.parameters(), weights, strict=True):
        weight.data = shared


def _lot_to_bytes(step: int, lot: Sequence[Piece]) -> list[bytes]:
    heads = [
        [piece.part, piece.share, piece.batch.num_source_tokens, piece.batch.num_target_tokens]
        for piece in lot
    ]
    tensors = [
        {name: tensor.contiguous() for name, tensor in tensors_of(piece.batch).items()}
        for piece in lot
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
