"""One request and its answer on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qsl

from pellucid.serve.problems import Problem
from pellucid.serve.responses import Reply, reply
from pellucid.serve.settings import Limits

Message = MutableMapping[str, Any]
Headers = list[tuple[bytes, bytes]]

CONNECTION = "pellucid.connection"
"""The key of a request's scope that holds its `Connection`."""

COMMON: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
CORS_METHODS = "GET, POST"
CORS_HEADERS = "Authorization, Content-Type"


class Connection(Protocol):
    """The connection of a request.

    Attributes:
        on_lost: is called once the client has closed it.
    """

    on_lost: Callable[[], None] | None

    @property
    def is_lost(self) -> bool:
        """True if the client has closed it."""

    @property
    def is_behind(self) -> bool:
        """True if the client takes its answers more slowly than they come."""


class GoneError(Exception):
    """The client has closed the connection."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A request whose body is in memory.

    Attributes:
        scope: as ASGI has it.
        headers: the first value of each.
        body: the whole body.
    """

    scope: MutableMapping[str, Any]
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def path(self) -> str:
        """The path, decoded."""
        path: str = self.scope["path"]
        return path

    @property
    def query(self) -> list[tuple[str, str]]:
        """The fields of the query string, in their order."""
        query = self.scope["query_string"]
        return parse_qsl(query.decode("latin-1"), keep_blank_values=True) if query else []

    def header(self, name: bytes) -> str | None:
        """Return the first header of that name."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class Exchange:
    """One request on its way, and what is known of its answer."""

    def __init__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Any],
        send: Callable[..., Any],
        limits: Limits,
    ) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.route = "other"
        self.status = 0
        self._receive = receive
        self._send = send
        self._limits = limits
        # Taken out, because the connection holds the scope: a cycle would outlive the request.
        self._connection: Connection = scope.pop(CONNECTION)
        self._body = b""
        self._has_ended = False
        self._is_gone = False
        self._headers = COMMON
        self._names: dict[bytes, bytes] = dict(reversed(scope["headers"]))

    def header(self, name: bytes) -> str | None:
        """Return the first header of that name."""
        value = self._names.get(name)
        return None if value is None else value.decode("latin-1")

    def allow_origin(self, origin: str) -> None:
        """Let a browser hand the answer to the page that asked."""
        self._headers = [
            *COMMON,
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-allow-methods", CORS_METHODS.encode()),
            (b"access-control-allow-headers", CORS_HEADERS.encode()),
            (b"access-control-max-age", b"600"),
            (b"vary", b"Origin"),
        ]

    async def read_body(self) -> None:
        """Read the whole body.

        Raises:
            GoneError: the client leaves.
            Problem: 413 if it is too large, 408 if it does not come in time.
        """
        limit = self._limits.body_bytes
        declared = self.header(b"content-length")
        if declared is not None and declared.isdigit() and int(declared[:20]) > limit:
            raise _too_large(limit)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise GoneError
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > limit:
                        raise _too_large(limit)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            seconds = self._limits.body_seconds
            raise Problem(
                408,
                f"The body of a request must come within {seconds:g} s. Send it faster, or less.",
                {"Connection": "close"},
            ) from None
        self._body = b"".join(parts)

    async def run(self, route: Callable[[Asked], Any]) -> None:
        """Run the route and send its answer, and end both if the client leaves.

        Raises:
            GoneError: it leaves.
        """
        task = asyncio.current_task()
        assert task is not None

        def leave() -> None:
            if not self._has_ended:
                self._is_gone = True
                task.cancel()

        if self._connection.is_lost:
            raise GoneError
        self._connection.on_lost = leave
        try:
            await self.answer(await route(Asked(self.scope, self._names, self._body)))
        except asyncio.CancelledError:
            if self._is_gone:
                raise GoneError from None
            raise
        finally:
            self._connection.on_lost = None

    async def answer(self, given: Reply) -> None:
        """Send an answer, to a client that takes it in time.

        Raises:
            GoneError: the client does not take it.
        """
        self.status = given.status
        own = self._headers
        start = {
            "type": "http.response.start",
            "status": given.status,
            "headers": [*own, *given.raw_headers()],
        }
        await self._send_message(start)
        if given.pieces is not None:
            async with aclosing(given.pieces) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    await self._send_message(
                        {"type": "http.response.body", "body": piece, "more_body": True}
                    )
        self._has_ended = True
        await self._send_message({"type": "http.response.body", "body": given.body})

    async def refuse(self, problem: Problem) -> None:
        """Answer with a problem, unless an answer has begun.

        Raises:
            GoneError: one has begun, and cannot be ended.
        """
        if self._has_ended:  # a route has answered, and failed at last
            return
        if self.status:
            raise GoneError
        await self.answer(reply({"error": problem.sentence}, problem.status, problem.headers))

    async def _send_message(self, message: Message) -> None:
        if not self._connection.is_behind:  # nearly always: this does not wait
            await self._send(message)
            return
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                await self._send(message)
        except TimeoutError:
            raise GoneError from None


def _too_large(limit: int) -> Problem:
    return Problem(
        413,
        f"The body of a request must have at most {limit:,} bytes. Send fewer texts at once.",
        {"Connection": "close"},
    )
