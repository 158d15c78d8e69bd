"""Clients' documents, read and written one at a time by a process with bounded time and memory.

A reader may spend long inside one call, which holds Python's lock: in a thread of the server it
would stop everything else, and nothing could end it (docs/decisions/0030-strangers-bytes.md).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pellucid.errors import DataError, PellucidError
from pellucid.machine.processes import Child, end_all, to_bytes
from pellucid.serve.answers.responses import Problem
from pellucid.serve.queue.jobs import Account
from pellucid.serve.settings import Limits

# The exit code of a process whose memory ran out; no other end has it.
OUT_OF_MEMORY = 97

_RUN = "pellucid.serve.worker.document_child:serve_documents"
_LESS = "Send it in smaller parts."

Described = tuple[str, bool, bool, bool, Sequence[tuple[int, int]]]
"""The text of a segment; whether it has tags; whether several translations are searched; whether
its format reads tags in texts; the places of its copies."""

WrittenTexts = tuple[str, Sequence[tuple[int, str, str]], Sequence[tuple[int, bool]]]


@dataclass(order=True)
class _Job:
    """A task that waits. The shortest document is next, then the one that came first."""

    size: int
    number: int
    message: bytes = field(compare=False)
    loop: asyncio.AbstractEventLoop = field(compare=False)
    future: asyncio.Future[Any] = field(compare=False)

    def finish(self, result: Any) -> None:
        """Hand over the result, in the event loop."""
        if self.future.done():  # The client has left, or was told that it is late.
            return
        if isinstance(result, BaseException):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)


class DocumentWorker:
    """Reads and writes documents in a process, which starts with the first one.

    Args:
        limits: time and memory of a document, and how many may wait.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._changed = threading.Condition()
        self._waiting: list[_Job] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None
        self._children: list[Child] = []
        self._is_over = False

    @property
    def process_id(self) -> int | None:
        """The number of the process; None before it starts and after it has ended."""
        return next((one.process.pid for one in self._children), None)

    async def read(self, text: str, form: str, languages: tuple[str, str]) -> Sequence[Described]:
        """Find the distinct segments of a document.

        Args:
            text: the document; an archive is in Base64.
            form: the name of its format.
            languages: codes of source and target.

        Returns:
            The segments.

        Raises:
            DataError: the document is not of its format.
            Problem: 413 if it takes too much time or memory, 503 if the process ended, 429 if too
                many documents wait, 504 if the time of the request is over.
        """
        found: Sequence[Any] = await self._ask(text, form=form, languages=languages)
        return found

    async def write(
        self, text: str, form: str, languages: tuple[str, str], translations: Sequence[Any]
    ) -> WrittenTexts:
        """Write a document with the translations of the segments that `read` has found.

        Args:
            text: the document.
            form: as for `read`.
            languages: as for `read`.
            translations: for each the source's words, the hypotheses (text, words, links), and why
                to look at them. Without a hypothesis the source stays.

        Returns:
            The document; of texts to look at the line, the key and the reason; of each text in
            it the number in ``translations``, and whether a translation is written.

        Raises:
            Problem: as for `read`.
        """
        written, unsure, places = await self._ask(
            text, form=form, languages=languages, translations=translations
        )
        return written, unsure, places

    def stop(self) -> None:
        """End the process and the thread that talks with it."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        for child in self._children:
            child.process.kill()

    async def _ask(self, text: str, **task: Any) -> Any:
        loop = asyncio.get_running_loop()
        seconds = self._limits.request_seconds
        account = Account.of_request(loop, seconds)
        message = to_bytes({"text": text, **task})
        job = _Job(len(message), next(self._numbers), message, loop, loop.create_future())
        with self._changed:
            if len(self._waiting) >= self._limits.queue_requests:
                raise Problem(
                    429, "Too many documents wait. Try again in 10 s.", {"Retry-After": "10"}
                )
            heapq.heappush(self._waiting, job)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="pellucid-documents", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()
        try:
            async with asyncio.timeout_at(account.until):
                return await job.future
        except TimeoutError:
            raise Problem(
                504, f"There was no answer within {seconds:g} s. Send less, or try again later."
            ) from None

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_over)
                if self._is_over:
                    break
                job = heapq.heappop(self._waiting)
            if job.future.done():
                continue
            result: Any
            # Also a bug, as the thread must live on for the documents of others.
            try:
                result = self._do(job.message)
            except Exception as error:
                result = error
            with suppress(RuntimeError):  # the loop is closed, and with it everyone who waits
                job.loop.call_soon_threadsafe(partial(job.finish, result))
        end_all(self._children)

    def _do(self, message: bytes) -> Any:
        """Let the process do a task, and end it if that fails."""
        try:
            is_right, found = self._exchange(message)
        except BaseException:
            end_all(self._children)
            raise
        if not is_right:
            raise DataError(found)
        return found

    def _exchange(self, message: bytes) -> tuple[bool, Any]:
        limits = self._limits
        # Something may have ended it while it had nothing to do.
        if self._children and self._children[0].process.poll() is not None:
            end_all(self._children)
        if not self._children:
            arguments = {
                "seconds": limits.document_seconds,
                "most_bytes": limits.document_memory_bytes,
                "memory_code": OUT_OF_MEMORY,
            }
            self._children.append(Child(_RUN, arguments, advice="Try again."))
            self._children[0].receive()  # It says that it is ready.
        (child,) = self._children
        try:
            child.send(message)
            # The system measures processor time, which does not pass while the process waits.
            if not child.connection.poll(limits.request_seconds):
                raise self._too_long()
            is_right, found = child.receive()
        except PellucidError:
            raise self._end_of(child.process.poll()) from None
        return is_right, found

    def _end_of(self, code: int | None) -> Problem:
        """Say why the process ended, by its exit code."""
        if code == -signal.SIGXCPU:
            return self._too_long()
        if code == OUT_OF_MEMORY:
            most = self._limits.document_memory_bytes
            return Problem(413, f"The document takes more than {most:,} bytes of memory. {_LESS}")
        return Problem(
            503,
            "The process that reads documents ended. Try again in a second.",
            {"Retry-After": "1"},
        )

    def _too_long(self) -> Problem:
        seconds = self._limits.document_seconds
        return Problem(413, f"The document takes more than {seconds:g} s to read. {_LESS}")
