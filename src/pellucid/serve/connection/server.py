"""The server process: sockets, signals, and an end that leaves no request unanswered."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import socket
import struct
import sys
import warnings
from collections.abc import Callable, Iterator

from uvicorn import Config, Server

from pellucid.errors import InputError, PellucidError
from pellucid.serve.connection.protocol import make_protocol
from pellucid.serve.queue.pauses import freeze_objects, share_memory, watch_for_pytorch
from pellucid.serve.service import Service
from pellucid.serve.settings import Settings

# The first socket that systemd passes on.
FIRST_PASSED = 3

# Connections that are accepted in one pass of the event loop: some milliseconds.
ACCEPTED_A_PASS = 64

# Connections that wait in the system to be accepted; more are refused by it.
MOST_WAITING = 1024

# Time at the end for connected clients to send their request.
FIRST_REQUEST_SECONDS = 1.0

# Linux: an option of sockets, and the instruction that ends a packet filter.
_SO_ATTACH_FILTER = 26
_BPF_RETURN = 0x06

# Time after which the computing thread lets the event loop run. The loop has to wait for it after
# each call of the system, so Python's own choice, five milliseconds, would add up to a tenth of a
# second for a request among a few others.
SWITCH_SECONDS = 0.0002


def bind(settings: Settings) -> socket.socket:
    """Open the socket to listen on: the one that systemd passes on, or a new one.

    Raises:
        InputError: the address is not this machine's.
        PellucidError: another program listens there.
    """
    if os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS") == "1":
        passed = socket.socket(fileno=FIRST_PASSED)
        passed.setblocking(False)
        return passed
    host = settings.host
    port = settings.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError):
        raise InputError(
            f"The address to listen on must exist, but {host} does not. Check --host."
        ) from None
    opened = socket.socket(family, kind, protocol)
    # Else a restart would be refused while the system remembers old connections.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind(address)
    except PermissionError:
        opened.close()
        raise InputError(
            f"The port {port} needs the rights of root. Take one above 1023."
        ) from None
    except OSError as error:
        opened.close()
        reason = error.strerror or error
        raise PellucidError(
            f"The server cannot listen on {host}:{port}: {reason}. End the program that does, or "
            "take another with --port."
        ) from None
    opened.setblocking(False)
    return opened


class ServiceServer(Server):
    """uvicorn's server, which ends with exit code 0 once every request is answered.

    Args:
        service: the application.
    """

    def __init__(self, service: Service) -> None:
        limits = service.settings.limits
        super().__init__(
            Config(
                service.app,
                http=make_protocol(limits),
                ws="none",
                # `run_server` starts and stops the service itself, around the announcement.
                lifespan="off",
                log_config=None,
                # uvicorn's log would hold addresses and queries; the door writes one without
                # them.
                access_log=False,
                server_header=False,
                # The door reads them (`_place` in gate.py), only from proxies that are trusted.
                proxy_headers=False,
                backlog=ACCEPTED_A_PASS,
                timeout_keep_alive=max(1, round(limits.idle_seconds)),
                timeout_graceful_shutdown=max(1, round(limits.drain_seconds)),
            )
        )
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, a few in each pass of the event loop."""
        await super().startup(sockets)
        # asyncio takes one number for two things: how many it accepts, and how many may wait.
        for listening in sockets or ():
            listening.listen(MOST_WAITING)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Drain on SIGTERM, SIGHUP and Ctrl-C; a second Ctrl-C ends at once."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        known = {number: signal.getsignal(number) for number in numbers}
        if known[signal.SIGHUP] is signal.SIG_IGN:  # nohup asks for that
            del known[signal.SIGHUP]
        for number in known:
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number, handler in known.items():
                with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                    loop.remove_signal_handler(number)
                    signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what has already connected, then end.

        When a listening socket closes, the system resets connections that it has accepted and
        uvicorn has not, and uvicorn closes those that have not sent their request yet.
        """
        # From now on /readyz refuses, so that a balancer sends nothing new.
        self._service.drain()
        for listening in sockets or ():
            _refuse_new(listening)
        await asyncio.sleep(0.02)
        loop = asyncio.get_running_loop()
        for listening in sockets or ():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    break
                connection.setblocking(False)
                await loop.connect_accepted_socket(self._make_connection, connection)
        deadline = loop.time() + FIRST_REQUEST_SECONDS
        while loop.time() < deadline and any(
            map(_has_asked_nothing, self.server_state.connections)
        ):
            await asyncio.sleep(0.01)
        await super().shutdown(sockets)

    def _make_connection(self) -> asyncio.Protocol:
        make: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state={})


def _has_asked_nothing(connection: object) -> bool:
    """Tell whether no request of a connection has begun yet."""
    return getattr(connection, "cycle", None) is None


def _refuse_new(listening: socket.socket) -> None:
    """Let no more clients connect, where the system can; those that are connected wait to be read.

    A filter that lets no packet through keeps a handshake from ending: after the socket is closed
    the client is refused, instead of losing a connection that it believes to have.
    """
    if not sys.platform.startswith("linux"):
        return
    let_nothing_through = ctypes.create_string_buffer(struct.pack("HBBI", _BPF_RETURN, 0, 0, 0))
    program = struct.pack("HP", 1, ctypes.addressof(let_nothing_through))
    with contextlib.suppress(OSError):
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def run_server(
    service: Service, listening: socket.socket, *, announce: Callable[[str], None]
) -> None:
    """Answer requests until a signal says to end.

    Args:
        service: the application.
        listening: a bound socket.
        announce: is called with the address once requests are accepted.
    """
    _quiet_libraries()
    sys.setswitchinterval(SWITCH_SECONDS)
    share_memory()
    server = ServiceServer(service)
    service.start()
    listening.listen(MOST_WAITING)
    watch_for_pytorch()
    freeze_objects()
    announce(socket_address(listening))
    server.run(sockets=[listening])
    service.stop()


def socket_address(listening: socket.socket) -> str:
    """Write the address of a socket: a URL, or the path of a Unix socket."""
    if listening.family == socket.AF_UNIX:
        return f"unix:{os.fsdecode(listening.getsockname()).replace(chr(0), '@', 1)}"
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _quiet_libraries() -> None:
    """Keep other loggers, and warnings, from writing addresses, texts or tracebacks."""
    # Answers say in their notes where a change met nothing.
    warnings.simplefilter("ignore")
    logging.getLogger().addHandler(logging.NullHandler())  # else warnings go to standard error
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [logging.NullHandler()]
        logger.propagate = False
