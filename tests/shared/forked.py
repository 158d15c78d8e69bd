"""Python programs in processes that are forked from one that has PyTorch loaded.

To start Python and load PyTorch takes one to two seconds, a fork takes a few hundredths. What tests
do with such a process, signals, pipes, terminals and exit codes, is as with any other. Tests of the
start itself (what is imported, options of Python, the locale) need a real `subprocess.Popen`.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver, reduction, resource_tracker
from typing import Any, TextIO
from unittest import mock

_START = subprocess.Popen

FIRST_FREE = 100
"""Received files wait at this number and above until they get their own numbers."""


class Forked(subprocess.Popen):  # type: ignore[type-arg]
    """A `subprocess.Popen` for Python programs that forks instead of starting Python.

    Args:
        command: as for `subprocess.Popen`. Options of Python itself have no effect.
        closed: standard streams, by number, that are closed from the start.
        options: those of `subprocess.Popen`. A new session at a terminal is controlled by it.
    """

    def __init__(self, command: Sequence[str], *, closed: Sequence[int] = (), **options: Any):
        self._closed = tuple(closed)
        super().__init__(command, **options)

    def _execute_child(  # type: ignore[no-untyped-def]
        self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo,
        creationflags, shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite,
        restore_signals, gid, gids, uid, umask, start_new_session, process_group,
    ):  # fmt: skip
        assert args[0] == sys.executable, "only Python can be forked"
        own = (p2cread, c2pwrite, errwrite)
        numbers = {place: place if end == -1 else end for place, end in enumerate(own)}
        files = {number: _File(end) for number, end in numbers.items()}
        files |= {number: _File(number) for number in pass_fds}
        settings = {
            "command": [os.fspath(word) for word in args],
            "environment": dict(os.environ if env is None else env),
            "folder": os.fspath(cwd or "."),
            "files": files,
            "closed": self._closed,
            "has_session": start_new_session,
            "group": process_group,
        }
        context = multiprocessing.get_context("forkserver")
        self._process = context.Process(target=_run, kwargs=settings)
        _start_server()
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None:
            self.returncode = self._process.exitcode
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        self._process.join(timeout)
        code = self._internal_poll()
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return code


def _start_server() -> None:
    """Start the process that is forked, unless it is running."""
    server = forkserver._forkserver
    server.set_forkserver_preload(["preloaded", "forked"])
    # Python 3.11 does not pass on the places where modules are found.
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)):
        server.ensure_running()


def start_python(args: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Fork a program of Python, and start any other as usual."""
    is_python = args[0] == sys.executable
    return Forked(args, **options) if is_python else _START(args, **options)


class _File:
    """An open file that is handed over with the arguments of a process."""

    def __init__(self, number: int) -> None:
        self._number: Any = number

    def __getstate__(self) -> Any:
        return reduction.DupFd(self._number)

    def __setstate__(self, received: Any) -> None:
        self._number = received

    def take(self) -> int:
        """Move it out of the way of the numbers that files need, and return its number."""
        return _move_away(self._number.detach())


def _move_away(number: int) -> int:
    moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE)
    os.close(number)
    return moved


def _run(
    command: list[str],
    environment: Mapping[str, str],
    folder: str,
    files: Mapping[int, _File],
    closed: Sequence[int],
    has_session: bool,
    group: int | None,
) -> None:
    """Make this process what `subprocess.Popen` would have started, and run its program."""
    assert "preloaded" in sys.modules, "the process that is forked could not load everything"
    for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGPIPE"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python does
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _place(files)
    if has_session:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    elif group is not None and group >= 0:
        os.setpgid(0, group)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    _open_streams(closed)
    subprocess.Popen = start_python  # type: ignore[assignment,misc]
    words = command[1:]
    while words[0].startswith("-") and words[0] not in ("-c", "-m"):
        del words[0]
    kind, rest = words[0], words[1:]
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [kind, *rest]
        runpy.run_path(kind, run_name="__main__")


def _place(files: Mapping[int, _File]) -> None:
    """Give files their numbers, after moving those that multiprocessing holds."""
    server, tracker = forkserver._forkserver, resource_tracker._resource_tracker
    server.ensure_running = lambda: None  # It runs: this process was forked from it.
    server._forkserver_alive_fd = _move_away(server._forkserver_alive_fd)
    tracker._fd = _move_away(tracker._fd)
    for number, taken in {number: file.take() for number, file in files.items()}.items():
        os.dup2(taken, number)
        os.close(taken)


def _open_streams(closed: Sequence[int]) -> None:
    """Open Python's standard streams as it does itself."""
    encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
    opened: list[TextIO | None] = [
        os.fdopen(0, encoding=encoding, closefd=False),
        os.fdopen(1, "w", encoding=encoding, closefd=False),
        os.fdopen(2, "w", 1, encoding, "backslashreplace", closefd=False),
    ]
    for number in closed:
        os.close(number)
        opened[number] = None
    sys.stdin, sys.stdout, sys.stderr = opened
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = opened
