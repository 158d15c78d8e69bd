"""Processes that answer requests in parallel, each with the models in its own memory.

A second thread does not speed up all parts of a decoding step. So with many sentences, one process
for each core with one thread each is faster than one process with all threads. Several threads in
one process would not be: they wait for each other at Python's lock.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, NoReturn, final

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.forbidden import Spelling
from pellucid.decode.constraints.request import Request
from pellucid.decode.decoder import Decoder
from pellucid.decode.hypothesis import Hypothesis
from pellucid.errors import ConfigurationError
from pellucid.machine.hardware import set_threads, share_threads
from pellucid.machine.processes import Child, end_all, serve_parent, to_bytes
from pellucid.text.tokenizers.tokenizer import Tokenizer

MAX_WORKERS = 256

MIN_REQUESTS = 32
"""The fewest requests for each worker that are worth sending."""

ADVICE = "Use fewer workers (--workers), since each has the models in its own memory."

Answers = list[tuple[Hypothesis, ...]]
Load = Callable[..., tuple[Decoder, Tokenizer]]


def is_worth(num_requests: int, workers: int) -> bool:
    """Tell whether there are enough requests to send them to workers.

    It depends on nothing else, so that the same requests get the same answers to the last bit.
    """
    return num_requests >= MIN_REQUESTS * workers


@final
class WorkerPool:
    """Workers that search with the same models; they start when they are first needed.

    Answers are those of `Decoder`, except for rounding: each worker forms other batches.

    Args:
        load: the function that gives a worker its `Decoder` and the tokenizer, as
            ``module:function``.
        arguments: the arguments of that function.
        workers: the number of workers; the processor threads in use are shared among them.

    Attributes:
        workers: the number of workers.
        threads: the processor threads of each.

    Raises:
        ConfigurationError: there cannot be as many workers.
    """

    def __init__(self, load: str, arguments: Mapping[str, Any], *, workers: int) -> None:
        if not 1 <= workers <= MAX_WORKERS:
            raise ConfigurationError(
                f"The number of workers must be between 1 and {MAX_WORKERS}, but is {workers} "
                "(--workers). As many as the processor has cores are enough."
            )
        self.workers = workers
        self.threads = share_threads(workers)
        self._arguments = {"load": load, "arguments": dict(arguments), "threads": self.threads}
        self._running: list[Child] = []
        self._lock = threading.RLock()
        self._process = os.getpid()
        weakref.finalize(self, end_all, self._running)

    @property
    def pids(self) -> list[int]:
        """The process ids of the running workers: of all, or an empty list before they start."""
        return [worker.process.pid for worker in self._running]

    def start(self) -> None:
        """Start the workers, if they do not run yet, and wait until they have loaded the models.

        Raises:
            PellucidError: a worker failed to start; the message gives the reason.
        """
        self._leave_to_parent()
        with self._lock:
            if self._running:
                return
            try:
                for _ in range(self.workers):
                    child = Child("pellucid.decode.workers:work", self._arguments, advice=ADVICE)
                    self._running.append(child)
                for worker in self._running:
                    worker.receive()
            except BaseException:
                self.close()
                raise

    def decode(
        self, requests: Sequence[Request], config: DecodingConfig, *, batch_tokens: int
    ) -> Answers:
        """Answer requests, as `Decoder.decode` does.

        Workers get requests in turn, the longest first, so that all get about the same work.

        Args:
            requests: in any order.
            config: the options of the search.
            batch_tokens: about how many positions each worker computes at once.

        Raises:
            PellucidError: a worker ended, or raised this error.
        """
        self._leave_to_parent()
        with self._lock:
            self.start()
            try:
                return self._distribute(requests, config, batch_tokens)
            except BaseException:
                # The other workers' answers would be taken for answers to the next requests.
                self.close()
                raise

    def _leave_to_parent(self) -> None:
        """In a fork of the process that started the workers, leave them to it, and need own ones.

        Both would read each other's answers; and a lock that is held at the fork stays locked.
        """
        if self._process == os.getpid():
            return
        self._process = os.getpid()
        self._lock = threading.RLock()
        for worker in self._running:
            worker.connection.close()
            worker.process.returncode = 0  # They are no children of this process.
        self._running.clear()

    def close(self) -> None:
        """End the workers at once; a later request starts new ones."""
        end_all(self._running)

    def _distribute(
        self, requests: Sequence[Request], config: DecodingConfig, batch_tokens: int
    ) -> Answers:
        order = sorted(range(len(requests)), key=lambda index: -len(requests[index].source_ids))
        shares = [order[first :: self.workers] for first in range(self.workers)]
        options = config.model_dump(mode="json")
        for worker, share in zip(self._running, shares, strict=True):
            asked = [_request_to_json(requests[index]) for index in share]
            worker.send(to_bytes([asked, options, batch_tokens]))
        answers: dict[int, tuple[Hypothesis, ...]] = {}
        for worker, share in zip(self._running, shares, strict=True):
            for index, found in zip(share, worker.receive(), strict=True):
                answers[index] = tuple(Hypothesis(**_of_json(fields)) for fields in found)
        return [answers[index] for index in range(len(requests))]


def work(descriptor: int, load: str, arguments: Mapping[str, Any], threads: int) -> NoReturn:
    """Run a worker until its parent ends.

    Args:
        descriptor: the worker's end of the connection to its parent.
        load: the function that gives the `Decoder` and the tokenizer, as ``module:function``.
        arguments: the arguments of that function.
        threads: the processor threads to use.
    """

    def set_up() -> Callable[[Callable[[], bytes]], Any]:
        set_threads(threads)
        module, _, function = load.partition(":")
        make: Load = getattr(import_module(module), function)
        answerer = _Answerer(*make(**arguments))
        return lambda take: answerer.answer(*json.loads(take()))

    serve_parent(descriptor, set_up)


class _Answerer:
    """Answers the messages of a worker's parent."""

    def __init__(self, decoder: Decoder, tokenizer: Tokenizer) -> None:
        self._decoder = decoder
        self._tokenizer = tokenizer

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling(self._tokenizer)

    def answer(
        self, asked: list[dict[str, Any]], options: dict[str, Any], batch_tokens: int
    ) -> list[list[dict[str, Any]]]:
        """Decode one share of the requests."""
        answers = self._decoder.decode(
            [self.request_of_json(fields) for fields in asked],
            DecodingConfig(**options),
            batch_tokens=batch_tokens,
        )
        return [[vars(hypothesis) for hypothesis in found] for found in answers]

    def request_of_json(self, fields: dict[str, Any]) -> Request:
        """Make a request from the result of `_request_to_json`, with this process's spelling."""
        values = _of_json(fields)
        forbidden = [self._spelling.forbid(phrase) for phrase in values["forbidden_texts"]]
        values["forbidden_texts"] = tuple(forbidden)
        values["spelling"] = self._spelling if values["spelling"] else None
        return Request(**values)


def _request_to_json(request: Request) -> dict[str, Any]:
    """Make a dictionary for JSON; the spelling is too large to send, so each process has one."""
    return vars(request) | {
        "forbidden_texts": [phrase.text.decode() for phrase in request.forbidden_texts],
        "spelling": request.spelling is not None,
    }


def _of_json(fields: dict[str, Any]) -> dict[str, Any]:
    """Restore the tuples, which JSON has made lists."""
    return {name: _to_tuples(value) for name, value in fields.items()}


def _to_tuples(value: Any) -> Any:
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value
