"""Processes that answer requests side by side, each with the models in its own memory.

A step of decoding has parts that a second thread does not shorten, so with many sentences as many
processes as cores, of one thread each, do more than one process with all threads. Threads of one
process would not: they wait for each other at Python's lock.

A worker is a fresh Python: no fork, which the threads of PyTorch do not survive, and no second run
of the user's script, as `multiprocessing` makes it. Parent and worker are the two ends of a socket
pair that nobody else holds, and talk JSON, which gives floats back bit for bit: nothing is pickled,
and nothing goes to a disk or a network. A worker ends by itself as soon as its parent has.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue
from typing import Any, NoReturn, final

import torch

from pellucid import errors
from pellucid.config import DecodingConfig
from pellucid.decode.decoder import Decoder
from pellucid.decode.forbidden import Spelling
from pellucid.decode.hypothesis import Hypothesis
from pellucid.decode.request import Request
from pellucid.errors import ConfigurationError, PellucidError
from pellucid.hardware import set_threads
from pellucid.text import Tokenizer

__all__ = ["WorkerPool", "is_worth", "share_threads", "work"]

MAX_WORKERS = 256

MIN_REQUESTS = 32
"""How many requests for each worker at least are worth sending."""

_PROGRAM = """
import sys
from json import loads
told = loads(sys.argv[1])
sys.path[:] = told["path"]
from pellucid.decode.workers import work
work(told)
"""

_PLAIN = ("max_length", "min_length", "key")
_IDS = ("source_ids", "prefix_ids", "forbidden", "required", "whole")

Answers = list[tuple[Hypothesis, ...]]
Load = Callable[..., tuple[Decoder, Tokenizer]]


def share_threads(workers: int) -> int:
    """How many of the processor threads in use each of some workers gets, at least one."""
    return max(1, torch.get_num_threads() // workers)


def is_worth(num_requests: int, workers: int) -> bool:
    """Whether there are requests enough to send them to some workers.

    It depends on nothing else, so that the same requests get the same answers to the last bit.
    """
    return num_requests >= MIN_REQUESTS * workers


@final
class WorkerPool:
    """Workers that search with the same models; they start when they are first needed.

    Answers are those of `Decoder`: to a worker the others' requests are other company, which
    changes how sums are rounded, and that alone.

    Args:
        load: where the function is that gives a worker its `Decoder` and the tokenizer, as
            ``module:function``.
        told: what that function is called with.
        workers: how many; the processor threads in use are shared among them.

    Attributes:
        workers: how many there are once they are started.
        threads: how many processor threads each has.

    Raises:
        ConfigurationError: there cannot be as many.
    """

    def __init__(self, load: str, told: Mapping[str, Any], *, workers: int) -> None:
        if not 1 <= workers <= MAX_WORKERS:
            raise ConfigurationError(
                f"The number of workers must be between 1 and {MAX_WORKERS}, but is {workers} "
                "(--workers). As many as the processor has cores are enough."
            )
        self.workers = workers
        self.threads = share_threads(workers)
        self._told = {"load": load, "arguments": dict(told), "threads": self.threads}
        self._running: list[_Worker] = []
        self._lock = threading.RLock()
        weakref.finalize(self, _end, self._running)

    @property
    def pids(self) -> list[int]:
        """The process ids of those that are running, which are none or all."""
        return [worker.process.pid for worker in self._running]

    def start(self) -> None:
        """Start the workers and wait until they have loaded the models, unless they have.

        Raises:
            PellucidError: a worker did not come up, with what kept it.
        """
        with self._lock:
            if self._running:
                return
            try:
                for _ in range(self.workers):
                    self._running.append(_start(self._told))
                for worker in self._running:
                    worker.receive()
            except BaseException:
                self.close()
                raise

    def decode(
        self, requests: Sequence[Request], config: DecodingConfig, *, batch_tokens: int
    ) -> Answers:
        """Answer requests, as `Decoder.decode` does.

        They are dealt out in turn, the longest first, so that all workers get much the same.

        Args:
            requests: in any order.
            config: how to search.
            batch_tokens: how many positions each worker computes at once, about.

        Raises:
            PellucidError: a worker ended, or what it met with.
        """
        with self._lock:
            self.start()
            try:
                return self._deal(requests, config, batch_tokens)
            except BaseException:
                # What the others still send would be taken for answers to the next requests.
                self.close()
                raise

    def close(self) -> None:
        """End the workers at once; a later request starts others."""
        _end(self._running)

    def _deal(
        self, requests: Sequence[Request], config: DecodingConfig, batch_tokens: int
    ) -> Answers:
        order = sorted(range(len(requests)), key=lambda index: -len(requests[index].source_ids))
        lots = [order[first :: self.workers] for first in range(self.workers)]
        for worker, lot in zip(self._running, lots, strict=True):
            asked = [_request_to_json(requests[index]) for index in lot]
            worker.send([asked, config.model_dump(mode="json"), batch_tokens])
        answers: dict[int, tuple[Hypothesis, ...]] = {}
        for worker, lot in zip(self._running, lots, strict=True):
            for index, found in zip(lot, worker.receive(), strict=True):
                answers[index] = tuple(_hypothesis_of_json(*fields) for fields in found)
        return [answers[index] for index in range(len(requests))]


@dataclass(frozen=True)
class _Worker:
    """A worker as its parent sees it."""

    process: subprocess.Popen[bytes]
    connection: Connection

    def send(self, message: Any) -> None:
        try:
            self.connection.send_bytes(_to_bytes(message))
        except OSError:
            raise self._death() from None

    def receive(self) -> Any:
        """Wait for a reply; an error that the worker met with is raised here."""
        try:
            reply = json.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            raise self._death() from None
        if isinstance(reply, dict):
            raise _error_of_json(**reply)
        return reply

    def _death(self) -> PellucidError:
        code = self.process.wait()
        how = f"ended with exit code {code}"
        if code < 0:
            how = f"was ended by signal {-code}"
        if code == -signal.SIGKILL:
            how += ", as happens when memory runs out"
        return PellucidError(
            f"A worker process must last until the end, but one {how}. Use fewer workers "
            "(--workers), since each has the models in its own memory."
        )


def _start(told: Mapping[str, Any]) -> _Worker:
    ours, theirs = Pipe()
    descriptor = theirs.fileno()
    with theirs:
        words = {**told, "descriptor": descriptor, "path": [str(place) for place in sys.path]}
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, json.dumps(words)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[descriptor],
                # Ctrl-C at a terminal is for the parent alone, which then ends its workers.
                process_group=0,
            )
        except OSError as error:
            ours.close()
            raise PellucidError(
                f"A worker process must be able to start, but the system refused: "
                f"{error.strerror or error}. Use fewer workers (--workers)."
            ) from error
    return _Worker(process, ours)


def _end(running: list[_Worker]) -> None:
    """End workers and forget them; they hold nothing that could get lost."""
    for worker in running:
        worker.process.kill()
    for worker in running:
        worker.process.wait()
        worker.connection.close()
    running.clear()


def work(told: Mapping[str, Any]) -> NoReturn:
    """Be a worker: answer what the parent sends, until it closes its end or an error ends it.

    Args:
        told: what the parent says at the start.
    """
    connection = Connection(told["descriptor"])
    lots: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(connection, lots), daemon=True).start()
    # A parent that went away does not want to hear of it.
    with suppress(OSError):
        try:
            set_threads(told["threads"])
            module, _, function = told["load"].partition(":")
            load: Load = getattr(import_module(module), function)
            worker = _Answerer(*load(**told["arguments"]))
            connection.send_bytes(_to_bytes("ready"))
            while True:
                connection.send_bytes(_to_bytes(worker.answer(*json.loads(lots.get()))))
        except Exception as error:
            connection.send_bytes(_to_bytes(_error_to_json(error)))
    os._exit(0)


def _read(connection: Connection, lots: SimpleQueue[bytes]) -> None:
    """Take in what the parent sends; end the process with it, even in the middle of a search."""
    with suppress(EOFError, OSError):
        while True:
            lots.put(connection.recv_bytes())
    os._exit(0)


class _Answerer:
    """What a worker answers with."""

    def __init__(self, decoder: Decoder, tokenizer: Tokenizer) -> None:
        self._decoder = decoder
        self._tokenizer = tokenizer

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling(self._tokenizer)

    def answer(
        self, asked: list[dict[str, Any]], options: dict[str, Any], batch_tokens: int
    ) -> list[list[list[Any]]]:
        """Decode one lot of requests."""
        answers = self._decoder.decode(
            [self.request_of_json(fields) for fields in asked],
            DecodingConfig(**options),
            batch_tokens=batch_tokens,
        )
        return [[_hypothesis_to_json(hypothesis) for hypothesis in found] for found in answers]

    def request_of_json(self, fields: dict[str, Any]) -> Request:
        """Make a request of what `_request_to_json` gave, with this process's spelling."""
        plain = {name: fields[name] for name in _PLAIN}
        ids = {name: _to_tuples(fields[name]) for name in _IDS}
        return Request(
            **plain,
            **ids,
            forbidden_texts=tuple(map(self._spelling.forbid, fields["forbidden_texts"]))
            if fields["forbidden_texts"]
            else (),
            spelling=self._spelling if fields["has_spelling"] else None,
        )


def _request_to_json(request: Request) -> dict[str, Any]:
    return {
        **{name: getattr(request, name) for name in (*_PLAIN, *_IDS)},
        "forbidden_texts": [phrase.text.decode() for phrase in request.forbidden_texts],
        "has_spelling": request.spelling is not None,
    }


def _hypothesis_to_json(hypothesis: Hypothesis) -> list[Any]:
    logs = hypothesis.token_log_probabilities
    return [hypothesis.ids, logs, hypothesis.is_finished, hypothesis.score]


def _hypothesis_of_json(
    ids: list[int], logs: list[float], is_finished: bool, score: float
) -> Hypothesis:
    return Hypothesis(tuple(ids), tuple(logs), is_finished, score)


def _error_to_json(error: Exception) -> dict[str, str]:
    trace = "".join(traceback.format_exception(error))
    return {"kind": type(error).__name__, "message": str(error), "trace": trace}


def _error_of_json(kind: str, message: str, trace: str) -> Exception:
    """The error that a worker met with, of its own kind where that is one of ours."""
    found = {**vars(errors), "MemoryError": MemoryError}.get(kind)
    if isinstance(found, type) and issubclass(found, PellucidError | MemoryError):
        error: Exception = found(message)
    else:
        error = RuntimeError(f"{kind} in a worker process: {message}")
    error.add_note(trace)
    return error


def _to_bytes(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _to_tuples(value: Any) -> Any:
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value
