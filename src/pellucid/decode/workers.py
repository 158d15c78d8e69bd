"""Processes that answer requests side by side, each with the models in its own memory.

A step of decoding has parts that a second thread does not shorten, so with many sentences as many
processes as cores, of one thread each, do more than one process with all threads. Threads of one
process would not: they wait for each other at Python's lock.
"""

from __future__ import annotations

import json
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
from pellucid.hardware import set_threads, share_threads
from pellucid.processes import Child, end_all, serve_parent, to_bytes
from pellucid.text import Tokenizer

__all__ = ["WorkerPool", "is_worth", "work"]

MAX_WORKERS = 256

MIN_REQUESTS = 32
"""How many requests for each worker at least are worth sending."""

ADVICE = "Use fewer workers (--workers), since each has the models in its own memory."

_PLAIN = ("max_length", "min_length", "key")
_IDS = ("source_ids", "prefix_ids", "forbidden", "required", "whole")

Answers = list[tuple[Hypothesis, ...]]
Load = Callable[..., tuple[Decoder, Tokenizer]]


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
        self._running: list[Child] = []
        self._lock = threading.RLock()
        weakref.finalize(self, end_all, self._running)

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
                    child = Child("pellucid.decode.workers:work", self._told, advice=ADVICE)
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
        end_all(self._running)

    def _deal(
        self, requests: Sequence[Request], config: DecodingConfig, batch_tokens: int
    ) -> Answers:
        order = sorted(range(len(requests)), key=lambda index: -len(requests[index].source_ids))
        lots = [order[first :: self.workers] for first in range(self.workers)]
        for worker, lot in zip(self._running, lots, strict=True):
            asked = [_request_to_json(requests[index]) for index in lot]
            worker.send(to_bytes([asked, config.model_dump(mode="json"), batch_tokens]))
        answers: dict[int, tuple[Hypothesis, ...]] = {}
        for worker, lot in zip(self._running, lots, strict=True):
            for index, found in zip(lot, worker.receive(), strict=True):
                answers[index] = tuple(_hypothesis_of_json(*fields) for fields in found)
        return [answers[index] for index in range(len(requests))]


def work(descriptor: int, load: str, arguments: Mapping[str, Any], threads: int) -> NoReturn:
    """Be a worker.

    Args:
        descriptor: where the parent is.
        load: the function that gives the `Decoder` and the tokenizer, as ``module:function``.
        arguments: what it is called with.
        threads: how many processor threads to use.
    """

    def set_up() -> Callable[[Callable[[], bytes]], Any]:
        set_threads(threads)
        module, _, function = load.partition(":")
        make: Load = getattr(import_module(module), function)
        answerer = _Answerer(*make(**arguments))
        return lambda take: answerer.answer(*json.loads(take()))

    serve_parent(descriptor, set_up)


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


def _to_tuples(value: Any) -> Any:
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value
