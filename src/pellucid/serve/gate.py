"""The door of the service: everything that is checked before a route runs, and logged after it."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any

from pellucid.errors import PellucidError
from pellucid.serve.access import Need, Place, find_place, is_allowed_host, is_allowed_origin
from pellucid.serve.exchange import Exchange, GoneError
from pellucid.serve.keys import key_of
from pellucid.serve.metrics import Metrics
from pellucid.serve.problems import Problem, from_error
from pellucid.serve.responses import Reply
from pellucid.serve.scheduler import Scheduler
from pellucid.serve.settings import Settings
from pellucid.serve.table import Table
from pellucid.serve.turns import Turns

log = logging.getLogger("pellucid.serve")


class Gate:
    """Checks each request, reads its body, runs its route, and ends it if its client leaves.

    Args:
        table: the routes.
        settings: limits, keys, hosts.
        scheduler: says whether there is room.
        metrics: where to count.
    """

    def __init__(
        self, table: Table, settings: Settings, scheduler: Scheduler, metrics: Metrics
    ) -> None:
        self._routes = table.routes
        self._settings = settings
        self._scheduler = scheduler
        self._metrics = metrics
        self._turns = Turns()
        self.is_draining = False

    async def __call__(
        self, scope: MutableMapping[str, Any], receive: Callable[[], Any], send: Callable[..., Any]
    ) -> None:
        """Handle one request as ASGI wants it."""
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send, self._settings.limits)
        began = time.perf_counter()
        self._metrics.running.inc()
        try:
            await self._handle(exchange)
        except GoneError:
            self._metrics.gone.inc()
            exchange.status = exchange.status or 499
        finally:
            self._metrics.running.dec()
            self._record(exchange, time.perf_counter() - began)

    async def _handle(self, exchange: Exchange) -> None:
        try:
            place = self._check(exchange)
            if place is None:
                await exchange.answer(Reply(status=204, media_type=""))
                return
            if place.is_work:
                await self._turns.wait()
            method = "GET" if exchange.method == "HEAD" else exchange.method
            if method != "GET":
                await exchange.read_body()
            await exchange.run(self._routes[method, place.route])
        except GoneError:
            raise
        except Problem as problem:
            await exchange.refuse(problem)
        except PellucidError as error:
            if error.exit_code != 2:
                _log_failure(error)
            await exchange.refuse(from_error(error))
        except Exception as error:
            _log_failure(error)
            await exchange.refuse(
                Problem(
                    500,
                    "The server failed on this request. This is a bug: please report it with the "
                    "request.",
                )
            )

    def _check(self, exchange: Exchange) -> Place | None:
        """Refuse what may not enter; None if the request only asks whether it may."""
        settings = self._settings
        method, path = exchange.method, exchange.scope["path"]
        found = find_place(method, path)
        if isinstance(found, Place):
            exchange.route = found.route
        if not is_allowed_host(settings, exchange.header(b"host")):
            raise Problem(
                421,
                "The Host header must name this server by an address or by a name that it knows. "
                "Its operator adds names with --allow-host.",
            )
        origin = exchange.header(b"origin")
        if not is_allowed_origin(settings, origin, exchange.header(b"host")):
            raise Problem(403, "Web pages of other origins may not use this server.")
        if origin in settings.allowed_origins and origin is not None:
            exchange.allow_origin(origin)
            if method == "OPTIONS" and not isinstance(found, Place) and found:
                return None
        if not isinstance(found, Place):
            raise _no_place(found)
        if found.need is Need.KEY and settings.keys is not None:
            key = key_of(exchange.header(b"authorization"))
            if not settings.keys.accept(key):
                raise _refuse_key(key)
        if found.is_work:
            self._scheduler.check_room()
        elif found.route == "/readyz" and (self.is_draining or not self._scheduler.is_alive):
            raise Problem(503, "The server is ending.", {"Retry-After": "5"})
        return found

    def _record(self, exchange: Exchange, seconds: float) -> None:
        """Count and log a request: never its text, its query, its keys or its address."""
        method = exchange.method if exchange.method in ("GET", "HEAD", "POST") else "other"
        self._metrics.requests.labels(method, exchange.route, str(exchange.status)).inc()
        self._metrics.seconds.labels(exchange.route).observe(seconds)
        log.info("%s %s %s %.0f ms", method, exchange.route, exchange.status, 1000 * seconds)


def _refuse_key(key: str | None) -> Problem:
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


def _log_failure(error: BaseException) -> None:
    """Log the kind of a failure and its place in the code; its message may hold texts."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in reversed(frames[-4:]))
    log.error("failed: %s at %s", type(error).__name__, places)
