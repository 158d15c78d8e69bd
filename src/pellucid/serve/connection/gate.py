"""The door of the service: everything that is checked before a route runs, and logged after it."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Collection, Sequence
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from pellucid.errors import PellucidError
from pellucid.serve.answers.responses import Problem, from_error
from pellucid.serve.connection.exchange import Exchange, GoneError
from pellucid.serve.connection.protocol import MOST_HEADER_BYTES
from pellucid.serve.operations import BASE, Need, Operation
from pellucid.serve.queue.jobs import Account
from pellucid.serve.queue.pauses import Turns
from pellucid.serve.queue.prometheus import Metrics
from pellucid.serve.queue.scheduler import STANDSTILL_SECONDS, Scheduler
from pellucid.serve.settings import Settings, is_prefix, key_of

log = logging.getLogger("pellucid.serve")

# Addresses that routes had, and what to send now.
MOVED = {"/v1/stream": 'Send the text to /v1/translate with "stream": true.'}


class Gate:
    """Checks each request, finds its route and runs it, and ends it if its client leaves.

    Args:
        operations: the routes; all others are refused.
        settings: limits, keys, hosts.
        scheduler: says whether there is room.
        metrics: where to count.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        settings: Settings,
        scheduler: Scheduler,
        metrics: Metrics,
    ) -> None:
        self.operations = operations
        self._settings = settings
        self._scheduler = scheduler
        self._metrics = metrics
        self._turns = Turns()
        self.is_draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request as ASGI wants it."""
        # Before anything is computed: the time of the request begins with its first work.
        Account.begin()
        exchange = Exchange(scope, receive, send, self._settings.limits)
        began = time.perf_counter()
        self._metrics.running.inc()
        try:
            await self._handle(exchange)
        except GoneError:
            self._metrics.gone.inc()
            # No status of HTTP: the number that nginx logs for a client that has left.
            exchange.status = exchange.status or 499
        finally:
            self._metrics.running.dec()
            self._record(exchange, time.perf_counter() - began)

    async def _handle(self, exchange: Exchange) -> None:
        try:
            operation = self._check(exchange)
            if operation is None:
                await exchange.run(Response(status_code=204))
                return
            if operation.is_work:
                # After the checks, so that a refusal does not wait behind those who are let in.
                await self._turns.wait()
            await exchange.run(operation.handle)
        except GoneError:
            raise
        except Problem as problem:
            await exchange.refuse(problem)
        except PellucidError as error:
            # 2 is a fault of the input. Everything else is the server's, and its operator should
            # know.
            if error.exit_code != 2:
                _log_failure(error, exchange)
            await exchange.refuse(from_error(error))
        except Exception as error:
            _log_failure(error, exchange)
            await exchange.refuse(
                Problem(
                    500,
                    "The server failed on this request. This is a bug: please report it with the "
                    "request.",
                )
            )

    def _check(self, exchange: Exchange) -> Operation | None:
        """Refuse what may not enter; None if the request only asks whether it may."""
        settings = self._settings
        headers = exchange.headers
        # First: of two Host headers the checks below would see one, and a proxy perhaps the
        # other.
        _check_head(exchange)
        # Before the route is found, since it sets the prefix under which routes stand.
        host = _place(settings, exchange)
        operation, methods = self._find(exchange.scope)
        if operation is not None:
            # The declared path, so that names of files become no labels of figures.
            exchange.route = operation.path
        origin = headers.get("origin")
        # Both: what a proxy says, and what it sends itself.
        if not all(_is_allowed_host(settings, one) for one in (host, headers.get("host"))):
            raise Problem(
                421,
                "The Host header must name this server by an address or by a name that it knows. "
                "Its operator adds names with --allow-host.",
            )
        if not _is_allowed_origin(settings, origin, host):
            raise Problem(403, "Web pages of other origins may not use this server.")
        if origin in settings.allowed_origins and origin is not None:
            exchange.allow_origin(origin)
            # A browser asks before it sends a key to another origin.
            if exchange.method == "OPTIONS" and operation is None and methods:
                return None
        if operation is None:
            raise _no_operation(methods, exchange.scope)
        # Keys in a body are checked by the route, which reads it (`read_fields`).
        if operation.need is Need.KEY and settings.keys is not None:
            key = key_of(headers.get("authorization"))
            if not settings.keys.accept(key):
                raise _refuse_key(key)
        if operation.is_work:
            # Early: the body of a request that is refused is not even read.
            self._scheduler.check_room()
        elif operation.path == "/readyz":
            self._check_ready()
        return operation

    def _check_ready(self) -> None:
        if self.is_draining or not self._scheduler.is_alive:
            raise Problem(503, "The server is ending.", {"Retry-After": "5"})
        if self._scheduler.stands_still:
            raise Problem(
                503,
                f"Requests wait, but nothing has been computed for {STANDSTILL_SECONDS:g} s. "
                "Restart the server if that lasts.",
            )

    def _find(self, scope: Scope) -> tuple[Operation | None, Collection[str]]:
        """Find the route of a request; None, and the methods that its path has, without one."""
        methods: set[str] = set()
        for operation in self.operations:
            match, found = operation.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                return operation, methods
            if match is Match.PARTIAL:
                methods |= operation.methods or set()
        return None, methods

    def _record(self, exchange: Exchange, seconds: float) -> None:
        """Count and log a request: never its text, its query, its keys or its address."""
        method = exchange.method if exchange.method in ("GET", "HEAD", "POST") else "other"
        self._metrics.requests.labels(method, exchange.route, str(exchange.status)).inc()
        self._metrics.seconds.labels(exchange.route).observe(seconds)
        log.info(
            "%s %s %s %.0f ms %s",
            method,
            exchange.route,
            exchange.status,
            1000 * seconds,
            exchange.request_id,
        )


def _refuse_key(key: str | None) -> Problem:
    """Refuse a request without a key, or with a wrong one."""
    sentence = "The key is not one of this server's. Check it, or ask the operator for one."
    if key is None:
        sentence = "This server needs a key. Send it as Authorization: Bearer KEY."
    return Problem(401, sentence, {"WWW-Authenticate": "Bearer"})


def _check_head(exchange: Exchange) -> None:
    """Refuse a head that is too large, also if it came at once, or that names two hosts.

    Raises:
        Problem: 431 or 400.
    """
    scope = exchange.scope
    size = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    if size > MOST_HEADER_BYTES:
        raise Problem(
            431,
            f"The head of a request must have at most {MOST_HEADER_BYTES:,} bytes. Send what is "
            "long in the body.",
            {"Connection": "close"},
        )
    if len(exchange.headers.getlist("host")) > 1:
        raise Problem(400, "A request must have one Host header, but has several. Leave one.")


def _place(settings: Settings, exchange: Exchange) -> str | None:
    """Find the address under which the client sees this server, and write it into the scope.

    A proxy whose address is trusted says it in headers; the last value counts, as each proxy adds
    its own at the end.

    Returns:
        The host, as the client named it.
    """
    scope = exchange.scope
    headers = exchange.headers
    scheme = scope["scheme"]
    host = headers.get("host")
    prefix = scope.get("root_path") or settings.path_prefix
    if settings.trusts(scope.get("client")):
        proto, forwarded, path = (
            ",".join(headers.getlist(f"x-forwarded-{name}")).rpartition(",")[2].strip()
            for name in ("proto", "host", "prefix")
        )
        # A header may hold anything, and this becomes part of addresses in answers.
        scheme = proto if proto in ("http", "https") else scheme
        host = forwarded or host
        prefix = path.rstrip("/") if is_prefix(path.rstrip("/")) else prefix
    scope["root_path"] = prefix
    scope[BASE] = f"{scheme}://{host}{prefix}"
    return host


def _no_operation(methods: Collection[str], scope: Scope) -> Problem:
    if scope["root_path"] and scope["path"] == scope["root_path"]:
        place = f"{scope['root_path']}/"
        return Problem(307, f"The page is at {place}", {"Location": place})
    if not methods:
        path = scope["path"].removeprefix(scope["root_path"])
        advice = MOVED.get(path, "See /docs.")
        return Problem(404, f"There is nothing at this address. {advice}")
    allowed = ", ".join(sorted(methods))
    return Problem(405, f"This address takes {allowed} only.", {"Allow": allowed})


def _log_failure(error: BaseException, exchange: Exchange) -> None:
    """Log the kind of a failure and its place in the code; its message may hold texts."""
    # Names of files and lines only: messages may hold what clients sent.
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in reversed(frames[-4:]))
    log.error("failed: %s at %s %s", type(error).__name__, places, exchange.request_id)


def _is_allowed_host(settings: Settings, host: str | None) -> bool:
    """Tell whether a ``Host`` header names this server.

    Web pages can make a browser send requests to any name that they own, also if it leads to this
    machine. They do not own addresses and ``localhost``.
    """
    name = _name_of(host)
    if name is None:
        return False
    if name == "localhost" or _is_address(name):
        return True
    return name in {one.lower() for one in (*settings.allowed_hosts, settings.host)}


def _is_allowed_origin(settings: Settings, origin: str | None, host: str | None) -> bool:
    """Tell whether the page that sent a request may use the server: its own, or a listed one."""
    if origin is None:
        return True
    if origin in settings.allowed_origins:
        return True
    try:
        return urlsplit(origin).netloc.lower() == (host or "").lower() != ""
    except ValueError:
        return False


@lru_cache(maxsize=256)
def _name_of(host: str | None) -> str | None:
    """Take the name out of a ``Host`` header; None if the header is not valid."""
    if not host or any(character in host for character in "/@?#\\ "):
        return None
    try:
        parts = urlsplit(f"//{host}")
        # urlsplit looks at the port only when it is asked for.
        _ = parts.port
    except ValueError:
        return None
    return None if parts.hostname is None else parts.hostname.rstrip(".")


@lru_cache(maxsize=256)
def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
