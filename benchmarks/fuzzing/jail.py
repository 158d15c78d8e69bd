"""A jail for one command: a fork with limits of memory and time, watched for writing elsewhere."""

from __future__ import annotations

import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Jail", "Outcome", "start"]

CODES = (0, 1, 2, 3)
"""The documented exit codes of commands that are not interrupted."""

LARGEST_FILE = 200 << 20
OUTSIDE = "written outside its folder: "
_SENTENCE = re.compile(r"(error|warning|note): .+([.?!]|See: pellucid( \S+)* --help)")
_BUG = re.compile(r"Traceback|This is a bug|Please report|never should|\w(Error|Exception): |Errno")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]")
_WRITING = {
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.rename": (0, 1),
    "os.link": (1,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.utime": (0,),
}
"""Events of `sys.addaudithook` that change files, with the places of their names."""

_DEVICES = ("/dev/null", "/dev/full", "/dev/tty")


@dataclass(frozen=True)
class Jail:
    """The limits of a case.

    Attributes:
        extra_memory: bytes of addresses on top of what this process has.
        cpu_seconds: processor time.
        wall_seconds: time on the clock, which depends on what else the machine does.
    """

    extra_memory: int = 1 << 30
    cpu_seconds: int = 20
    wall_seconds: float = 120.0


@dataclass
class Outcome:
    """The end of a case.

    Attributes:
        code: the exit code; the negative number of the signal that ended it.
        seconds: of processor time.
        megabytes: the most memory that it held.
        output: the end of standard output.
        errors: all of standard error.
        faults: what must not happen and did.
    """

    code: int
    seconds: float
    megabytes: float
    output: str
    errors: str
    faults: list[str] = field(default_factory=list)

    def judge(self, *, is_check: bool = False) -> None:
        """Find what must not happen: see `benchmarks/fuzz.py`.

        Args:
            is_check: the command's result is a list of faults, so it needs no sentence.
        """
        if self.code < 0:
            name = signal.Signals(-self.code).name
            self.faults.append(f"ended by {name}")
            return
        if self.code not in CODES:
            self.faults.append(f"exit code {self.code}")
        if _BUG.search(self.errors):
            self.faults.append("a traceback or a bug")
        last = self.errors.rstrip("\n").rpartition("\n")[2]
        has_result = is_check and self.output.endswith("\n")
        if self.code and not (_SENTENCE.fullmatch(last) or has_result):
            self.faults.append("no sentence at the end")
        if any(_CONTROL.search(line.rpartition("\r")[2]) for line in self.errors.split("\n")):
            self.faults.append("control characters in a message")


class Running:
    """A case that has been started."""

    def __init__(self, pid: int, folder: Path, jail: Jail, *, is_check: bool) -> None:
        self.pid, self.folder, self._jail = pid, folder, jail
        self._is_check = is_check
        self.descriptor = os.pidfd_open(pid)
        self._deadline = time.monotonic() + jail.wall_seconds

    @property
    def seconds_left(self) -> float:
        """The time until it is ended."""
        return max(0.0, self._deadline - time.monotonic())

    def end(self) -> Outcome:
        """Wait for its end, or end it if its time is over, and judge it."""
        is_over = select.select([self.descriptor], [], [], self.seconds_left)[0]
        if not is_over:
            os.killpg(self.pid, signal.SIGKILL)
        _, status, used = os.wait4(self.pid, 0)
        os.close(self.descriptor)
        outcome = Outcome(
            code=os.waitstatus_to_exitcode(status),
            seconds=used.ru_utime + used.ru_stime,
            megabytes=used.ru_maxrss / 1024,
            output=_read(self.folder / "output", 4000),
            errors=_read(self.folder / "errors", 100_000),
        )
        outcome.judge(is_check=self._is_check)
        if not is_over:
            outcome.faults.append(f"no end within {self._jail.wall_seconds:g} s")
        outcome.faults += _read(self.folder / "outside", 2000).splitlines()[:3]
        return outcome


def start(
    arguments: Sequence[str], folder: Path, stdin: bytes, jail: Jail, *, has_report: bool = False
) -> Running:
    """Start a command in a fork of this process.

    Args:
        arguments: the command line after the word ``pellucid``.
        folder: an own folder of the case. It runs in ``folder/here``, which exists, and may write
            there only; its streams are kept next to it.
        stdin: standard input.
        jail: the limits.
        has_report: let a training write its report, which takes longer than the training.
    """
    (folder / "input").write_bytes(stdin)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            _enter(folder, jail)
            from pellucid.cli import main

            loop = sys.modules.get("pellucid.training.loop")
            if loop is not None and not has_report:
                loop.__dict__["write_report"] = lambda run: None
            code = main.run(arguments)
            sys.stderr.flush()
        finally:
            os._exit(code)
    return Running(pid, folder, jail, is_check="check" in arguments[:1])


def _enter(folder: Path, jail: Jail) -> None:
    """Make this process the one of the case: its streams, its folder, its limits."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    streams = (("input", os.O_RDONLY), ("output", _NEW), ("errors", _NEW))
    for number, (name, flags) in enumerate(streams):
        descriptor = os.open(folder / name, flags, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
    here = folder / "here"
    os.chdir(here)
    os.environ["TMPDIR"] = os.environ["HOME"] = str(here)
    memory = _addresses() + jail.extra_memory
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (jail.cpu_seconds, jail.cpu_seconds + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _watch(here, os.open(folder / "outside", _NEW, 0o600))


_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def _addresses() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _watch(here: Path, note: int) -> None:
    """Note and refuse every change of a file elsewhere that this process asks for.

    PyTorch makes a folder for temporary files when it is loaded.
    """
    allowed = (f"{os.path.realpath(here)}/", f"{tempfile.gettempdir()}/torchinductor")

    def check(name: Any, event: str) -> None:
        if isinstance(name, int) or name is None:
            return
        text = os.fsdecode(name)
        parent, last = os.path.split(os.path.join(os.getcwd(), text))  # noqa: PTH109, PTH118
        # The last part may be a link, which only opening follows.
        place = os.path.realpath(text) if event == "open" else f"{os.path.realpath(parent)}/{last}"
        if not f"{place}/".startswith(allowed) and place not in _DEVICES:
            os.write(note, f"{OUTSIDE}{event} {text!r}\n".encode())
            raise PermissionError(13, "outside the jail", text)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            name, _, flags = arguments
            if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                check(name, event)
        elif event in _WRITING:
            for place in _WRITING[event]:
                check(arguments[place], event)

    sys.addaudithook(hook)


def _read(path: Path, most: int) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - most))
            return stream.read(most).decode("utf-8", "backslashreplace")
    except FileNotFoundError:
        return ""
