"""The door of the service: everything that is checked before a route runs, and logged after it."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Callable, Iterable, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pellucid.errors import PellucidError
from pellucid.serve.access import Need, Place, find_place, is_allowed_host, is_allowed_origin
from pellucid.serve.metrics import Metrics
from pellucid.serve.problems import Problem, from_error
from pellucid.serve.scheduler import Scheduler
from pellucid.serve.settings import Settings

__all__ = ["Gate", "key_of", "refuse_key"]

Message = MutableMapping[str, Any]
Headers = list[tuple[bytes, bytes]]

log = logging.getLogger("pellucid.serve")

COMMON: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
CORS_METHODS = "GET, POST"
CORS_HEADERS = "Authorization, Content-Type"


class Gate:
    """Checks each request, reads its body, runs its route, and ends it if its client leaves.

    Args:
        app: the routes.
        settings: limits, keys, hosts.
        scheduler: says whether there is room.
        metrics: where to count.
    """

    def __init__(
        self, app: Any, settings: Settings, scheduler: Scheduler, metrics: Metrics
    ) -> None:
        self._app = app
        self._settings = settings
        self._scheduler = scheduler
        self._metrics = metrics
        self.is_draining = False

    async def __call__(
        self, scope: MutableMapping[str, Any], receive: Callable[[], Any], send: Callable[..., Any]
    ) -> None:
        """Handle one request as ASGI wants it."""
        if scope["type"] != "http":
            return
        request = _Request(scope, receive, send, self._settings)
        began = time.perf_counter()
        self._metrics.running.inc()
        try:
            await self._handle(request)
        except _GoneError:
            self._metrics.gone.inc()
            request.status = request.status or 499
        finally:
            self._metrics.running.dec()
            self._record(request, time.perf_counter() - began)

    async def _handle(self, request: _Request) -> None:
        try:
            place = self._check(request)
            if place is None:
                await request.answer(204, b"", {})
                return
            await request.read_body(self._settings.limits.body_bytes)
            await request.run(self._app)
        except _GoneError:
            raise
        except Problem as problem:
            await request.refuse(problem)
        except PellucidError as error:
            if error.exit_code != 2:
                _log_failure(error)
            await request.refuse(from_error(error))
        except Exception as error:
            _log_failure(error)
            await request.refuse(
                Problem(
                    500,
                    "The server failed on this request. This is a bug: please report it with the "
                    "request.",
                )
            )

    def _check(self, request: _Request) -> Place | None:
        """Refuse what may not enter; None if the request only asks whether it may."""
        settings = self._settings
        method, path = request.method, request.scope["path"]
        found = find_place(method, path)
        if isinstance(found, Place):
            request.route = found.route
        if not is_allowed_host(settings, request.header(b"host")):
            raise Problem(
                421,
                "The Host header must name this server by an address or by a name that it knows. "
                "Its operator adds names with --allow-host.",
            )
        origin = request.header(b"origin")
        if not is_allowed_origin(settings, origin, request.header(b"host")):
            raise Problem(403, "Web pages of other origins may not use this server.")
        if origin in settings.allowed_origins and origin is not None:
            request.allow_origin(origin)
            if method == "OPTIONS" and not isinstance(found, Place) and found:
                return None
        if not isinstance(found, Place):
            raise _no_place(found)
        if found.need is Need.KEY and settings.keys is not None:
            key = key_of(request.header(b"authorization"))
            if not settings.keys.accept(key):
                raise refuse_key(key)
        if found.is_work:
            self._scheduler.check_room()
        elif found.route == "/readyz" and (self.is_draining or not self._scheduler.is_alive):
            raise Problem(503, "The server is ending.", {"Retry-After": "5"})
        return found

    def _record(self, request: _Request, seconds: float) -> None:
        """Count and log a request: never its text, its query, its keys or its address."""
        method = request.method if request.method in ("GET", "HEAD", "POST") else "other"
        self._metrics.requests.labels(method, request.route, str(request.status)).inc()
        self._metrics.seconds.labels(request.route).observe(seconds)
        log.info("%s %s %s %.0f ms", method, request.route, request.status, 1000 * seconds)


class _GoneError(Exception):
    """The client has closed the connection."""


class _Request:
    """One request on its way, and what is known of its answer."""

    def __init__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Any],
        send: Callable[..., Any],
        settings: Settings,
    ) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.route = "other"
        self.status = 0
        self._receive = receive
        self._send = send
        self._settings = settings
        self._body = b""
        self._has_ended = False
        self._headers = list(COMMON)
        self._names = dict(reversed(scope["headers"]))

    def header(self, name: bytes) -> str | None:
        """Return the first header of that name."""
        value = self._names.get(name)
        return None if value is None else value.decode("latin-1")

    def allow_origin(self, origin: str) -> None:
        """Let a browser hand the answer to the page that asked."""
        self._headers += [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-allow-methods", CORS_METHODS.encode()),
            (b"access-control-allow-headers", CORS_HEADERS.encode()),
            (b"access-control-max-age", b"600"),
            (b"vary", b"Origin"),
        ]

    async def read_body(self, limit: int) -> None:
        """Read the whole body.

        Raises:
            Problem: 413 if it is too large, 408 if it does not come in time.
        """
        declared = self.header(b"content-length")
        if declared is not None and declared.isdigit() and int(declared[:20]) > limit:
            raise _too_large(limit)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._settings.limits.body_seconds):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise _GoneError
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > limit:
                        raise _too_large(limit)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            seconds = self._settings.limits.body_seconds
            raise Problem(
                408,
                f"The body of a request must come within {seconds:g} s. Send it faster, or less.",
                {"Connection": "close"},
            ) from None
        self._body = b"".join(parts)

    async def run(self, app: Any) -> None:
        """Run the route, and end it if the client leaves."""
        given = False

        async def receive() -> Message:
            nonlocal given
            if given:  # Nothing more comes; whoever leaves ends the task.
                await asyncio.Event().wait()
            given = True
            return {"type": "http.request", "body": self._body, "more_body": False}

        scope = {**self.scope, "method": "GET" if self.method == "HEAD" else self.method}
        work = asyncio.ensure_future(app(scope, receive, self.send))
        leaving = asyncio.ensure_future(self._receive())
        try:
            await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not self._has_ended:
                raise _GoneError
            await work
        finally:
            for task in (work, leaving):
                if not task.done():
                    task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await asyncio.gather(work, leaving, return_exceptions=True)

    async def send(self, message: Message) -> None:
        """Send a part of the answer, to a client that takes it in time."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name for name, _ in self._headers}
            message = {
                **message,
                "headers": [
                    *self._headers,
                    *(pair for pair in message.get("headers", ()) if pair[0].lower() not in own),
                ],
            }
        elif not message.get("more_body", False):
            self._has_ended = True
        try:
            async with asyncio.timeout(self._settings.limits.body_seconds):
                await self._send(message)
        except TimeoutError:
            raise _GoneError from None

    async def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        """Send a whole answer."""
        pairs: Headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in headers.items()
        ]
        if status != 204:
            pairs.append((b"content-length", str(len(body)).encode()))
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})
        await self.send({"type": "http.response.body", "body": body})

    async def refuse(self, problem: Problem) -> None:
        """Answer with a problem, unless an answer has begun."""
        if self._has_ended:  # a route has answered, and failed at last
            return
        if self.status:
            raise _GoneError
        body = json.dumps({"error": problem.sentence}, ensure_ascii=False).encode()
        headers = {
            "Content-Type": "application/json",
            "Cache-Control": "no-store",
            **problem.headers,
        }
        await self.answer(problem.status, body, headers)


def key_of(authorization: str | None) -> str | None:
    """Take the key out of an ``Authorization: Bearer KEY`` header."""
    scheme, _, key = (authorization or "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None


def refuse_key(key: str | None) -> Problem:
    """Refuse a request without a key, or with a wrong one."""
    sentence = (
        "This server needs a key. Send it as Authorization: Bearer KEY."
        if key is None
        else "The key is not one of this server's. Check it, or ask the operator for one."
    )
    return Problem(401, sentence, {"WWW-Authenticate": "Bearer"})


def _no_place(methods: Iterable[str]) -> Problem:
    known = sorted(methods)
    if not known:
        return Problem(404, "There is nothing at this address. See /openapi.json.")
    allowed = ", ".join(known + (["HEAD"] if "GET" in known else []))
    return Problem(405, f"This address takes {allowed} only.", {"Allow": allowed})


def _too_large(limit: int) -> Problem:
    return Problem(
        413,
        f"The body of a request must have at most {limit:,} bytes. Send fewer texts at once.",
        {"Connection": "close"},
    )


def _log_failure(error: BaseException) -> None:
    """Log the kind of a failure and its place in the code; its message may hold texts."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in reversed(frames[-4:]))
    log.error("failed: %s at %s", type(error).__name__, places)
