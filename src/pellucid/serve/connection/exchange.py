"""One request and its answer on the wire, with limits of time and size."""

from __future__ import annotations

import asyncio
import re
import secrets

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pellucid.serve.answers.responses import Problem, reply
from pellucid.serve.connection.protocol import CONNECTION, Connection
from pellucid.serve.settings import Limits

# Headers of every answer.
COMMON = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]

CORS = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"Authorization, Content-Type, X-Request-Id"),
    (b"access-control-expose-headers", b"X-Request-Id"),
    (b"access-control-max-age", b"600"),
    (b"vary", b"Origin"),
]


# A number of a request that a client or a proxy may give: nothing that a log could not hold.
_REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)


class GoneError(Exception):
    """The client has closed the connection."""


class Exchange:
    """One request on its way, and what is known of its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: Limits) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.headers = Headers(scope=scope)
        self.route = "other"
        self.status = 0
        self._receive = receive
        self._send = send
        self._limits = limits
        # Taken out, because the connection holds the scope: a cycle would outlive the request.
        # Other servers than this package's have none, and tell through `receive` who left.
        self._connection: Connection | None = scope.pop(CONNECTION, None)
        self._watcher: asyncio.Future[None] | None = None
        self._num_bytes = 0
        self._until: float | None = None
        self._has_ended = False
        self._is_gone = False
        given = self.headers.get("x-request-id", "")
        self.request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        self._common = [*COMMON, (b"x-request-id", self.request_id.encode())]

    def allow_origin(self, origin: str) -> None:
        """Let a browser hand the answer to the page that asked."""
        allowed = (b"access-control-allow-origin", origin.encode("latin-1"))
        self._common = [*self._common, allowed, *CORS]

    async def run(self, app: ASGIApp) -> None:
        """Let an application answer, and end it if the client leaves.

        Raises:
            GoneError: it leaves.
        """
        task = asyncio.current_task()
        assert task is not None

        def leave() -> None:
            if not self._has_ended:
                self._is_gone = True
                task.cancel()

        # Cancelling the task is what ends a route, wherever it waits.
        self._leave = leave
        if self._connection is not None:
            # The client may have left while the request waited for its turn at the door.
            if self._connection.is_lost:
                raise GoneError
            self._connection.on_lost = leave
        try:
            await app(self.scope, self._receive_part, self._send_part)
        except asyncio.CancelledError:
            if self._is_gone:
                raise GoneError from None
            raise
        finally:
            if self._connection is not None:
                # The connection outlives the request, and must not hold its task.
                self._connection.on_lost = None
            if self._watcher is not None:
                self._watcher.cancel()

    async def refuse(self, problem: Problem) -> None:
        """Answer with a problem, unless an answer has begun.

        Raises:
            GoneError: one has begun, and cannot be ended.
        """
        if self._has_ended:  # a route has answered, and failed at last
            return
        if self.status:
            raise GoneError
        answer = reply(problem.content, status=problem.status, headers=problem.headers)
        await answer(self.scope, self._receive_part, self._send_part)

    async def _receive_part(self) -> Message:
        """Receive a part of the body.

        Raises:
            GoneError: the client leaves.
            Problem: 413 if the body is too large, 408 if it does not come in time.
        """
        limits = self._limits
        if self._until is None:
            self._until = asyncio.get_running_loop().time() + limits.body_seconds
            declared = self.headers.get("content-length", "")
            # Refused by what it says of itself, before the body is read. Python refuses to read
            # numbers of thousands of digits, hence the cut.
            if declared.isdigit() and int(declared[:20]) > limits.body_bytes:
                raise _too_large(limits.body_bytes)
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise Problem(
                408,
                f"The body of a request must come within {limits.body_seconds:g} s. Send it "
                "faster, or less.",
                {"Connection": "close"},
            ) from None
        if message["type"] == "http.disconnect":
            raise GoneError
        self._num_bytes += len(message.get("body", b""))
        if self._num_bytes > limits.body_bytes:
            raise _too_large(limits.body_bytes)
        # Under another server only `receive` tells that a client leaves, and only after the body.
        if self._connection is None and not message.get("more_body", False):
            self._watcher = asyncio.ensure_future(self._watch())
        return message

    async def _watch(self) -> None:
        """Wait until a client leaves whose connection another server holds."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    async def _send_part(self, message: Message) -> None:
        """Send the head or a part of an answer, to a client that takes it in time.

        Raises:
            GoneError: the client does not take it.
        """
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*self._common, *message["headers"]]
        elif not message.get("more_body", False):
            self._has_ended = True
        connection = self._connection
        if connection is not None and not connection.is_behind:  # nearly always: this does not wait
            await self._send(message)
            return
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                await self._send(message)
        except TimeoutError:
            if connection is not None:
                # Closing would wait for the client to take what it does not take.
                connection.abort()
            raise GoneError from None


def _too_large(limit: int) -> Problem:
    return Problem(
        413,
        f"The body of a request must have at most {limit:,} bytes. Send fewer texts at once.",
        {"Connection": "close"},
    )
