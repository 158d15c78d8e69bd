"""Connections that end when their clients are too slow, send too much, or the server ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pellucid.serve.settings import Limits

# The key of a request's scope that holds its `Connection`.
CONNECTION = "pellucid.connection"

MOST_HEADER_BYTES = 64 * 1024

# Time for a request that is already on its way when the server is to end.
GRACE_SECONDS = 0.5

# Time to read what has arrived before a client counts as too slow.
LAST_CHANCE_SECONDS = 0.1

# Time for the rest of an unread body: to close at once could destroy the answer.
REST_SECONDS = 1.0

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n"
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\n"
    b"content-length: 0\r\n\r\n"
)


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with a time and a size for the head of each request.

    Attributes:
        server_limits: the limits; each server has its own class, from `make_protocol`.
        on_lost: is called once the client has closed the connection.
    """

    server_limits: Limits

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Cut: an answer was sent in the middle of a request, and nothing that still comes is
        # read.
        self._is_ending = self._is_cut = False
        self._is_in_head = True
        self._num_head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._rest_timer: asyncio.TimerHandle | None = None
        self._num_rest_bytes = 0
        self.on_lost: Callable[[], None] | None = None

    @property
    def is_lost(self) -> bool:
        """True if the client has closed the connection."""
        return self.transport.is_closing()

    @property
    def is_behind(self) -> bool:
        """True if the client takes its answers more slowly than they come."""
        return self.flow.write_paused

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request, or refuse a client too many."""
        super().connection_made(transport)
        if len(self.connections) > self.server_limits.connections:
            transport.write(_FULL)
            transport.close()
            return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever answers a request of this client."""
        self._cancel_timer()
        self._end_rest()
        super().connection_lost(exc)
        if self.on_lost is not None:
            # Else a route would continue to compute what no client waits for.
            self.on_lost()

    def data_received(self, data: bytes) -> None:
        """Read what has arrived, up to the largest head, or the largest rest of a body."""
        if self._is_cut:
            return
        if self._rest_timer is not None:
            # The answer is on its way already. The rest is read and dropped, but not without an
            # end.
            self._num_rest_bytes += len(data)
            if self._num_rest_bytes > self.server_limits.body_bytes:
                self.transport.close()
                return
        while data and not self.transport.is_closing():
            part = data
            if self._is_in_head:
                if self._head_timer is None:
                    self._expect_head()
                # Cut here, because httptools itself takes a head of any size.
                part = data[: MOST_HEADER_BYTES - self._num_head_bytes]
                if not part:
                    self._end(_TOO_LARGE)
                    return
                self._num_head_bytes += len(part)
            data = data[len(part) :]
            super().data_received(part)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._is_in_head = True

    def on_headers_complete(self) -> None:
        """Hand the request over, with this connection in its scope."""
        self._is_in_head = False
        self._num_head_bytes = 0
        self._cancel_timer()
        # ASGI tells of a client that left only to those who receive, and a route that computes
        # does not.
        self.scope[CONNECTION] = self  # type: ignore[literal-required]
        super().on_headers_complete()
        if self._is_ending:
            # The last answer says `connection: close`, so that the client sends nothing more.
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """End a request; the next head may follow."""
        super().on_message_complete()
        self._is_in_head = True
        self._end_rest()

    def on_response_complete(self) -> None:
        """Bound what may follow an answer: the rest of its request, and the time to take it."""
        super().on_response_complete()
        if self.transport.is_closing():
            if self.transport.get_write_buffer_size():
                # A client that never takes its answer would hold the connection for ever.
                self.loop.call_later(self.server_limits.body_seconds, self.transport.abort)
        elif self.cycle.response_complete and not self._is_in_head:
            self._num_rest_bytes = 0
            self._rest_timer = self.loop.call_later(REST_SECONDS, self.transport.close)

    def abort(self) -> None:
        """Close the connection at once, with whatever its client has not taken."""
        self.transport.abort()

    def shutdown(self) -> None:
        """Answer what has arrived or is about to, then close."""
        self._is_ending = True
        if self.cycle is None or self.cycle.response_complete:
            # A request may be on its way; closing at once would lose it.
            self.loop.call_later(GRACE_SECONDS, self._close_if_idle)
        else:
            self.cycle.keep_alive = False

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, also if its client has not taken the last answer."""
        if not self.transport.is_closing():
            if self.transport.get_write_buffer_size():
                self.transport.abort()
            else:
                self.transport.close()

    def _close_if_idle(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def _expect_head(self) -> None:
        self._cancel_timer()
        self._head_timer = self.loop.call_later(
            self.server_limits.header_seconds, self._wait_once_more
        )

    def _wait_once_more(self) -> None:
        # A busy machine may have kept this process from reading what is there.
        self._head_timer = self.loop.call_later(LAST_CHANCE_SECONDS, self._end, _TOO_SLOW)

    def _cancel_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_rest(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None

    def _end(self, answer: bytes) -> None:
        """Close the connection with an answer, unless another one is being sent."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            self._cancel_timer()
            self.transport.write(answer)
            self._is_cut = True
            # What is still on its way is read for a moment, as it would destroy the answer.
            self.loop.call_later(REST_SECONDS, self.transport.close)


def make_protocol(limits: Limits) -> type[Connection]:
    """Make the class of connections for some limits."""
    return type("Connection", (Connection,), {"server_limits": limits})
