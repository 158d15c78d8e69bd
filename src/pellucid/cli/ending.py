"""The end of a command: one sentence on standard error and an exit code, never a traceback."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import locale
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from pellucid.errors import (
    OutputError,
    PellucidError,
    fault_of_machine,
    make_printable,
    missing_extra,
    shorten,
)
from pellucid.terminal.text import TerminalOutput, replace_letters

EXIT_CODES = {
    0: "done; also if the reader of a pipe has closed it",
    1: "the machine failed, training diverged, or a check found something",
    2: "a mistaken command, or input that was refused",
    3: "done, but some lines failed",
    75: "not finished in the time that was given: the same command continues",
    129: "a training whose terminal was closed, which saves first (SIGHUP)",
    130: "stopped by Ctrl-C",
    143: "stopped by SIGTERM",
}
CHECK_FAILED = 1
LINES_FAILED = 3
NOT_FINISHED = 75
"""EX_TEMPFAIL of the system's ``sysexits.h``, by which schedulers try again."""

ERROR = "error: "
"""The beginning of a line that ``--quiet`` keeps."""

_subjects: list[tuple[str, str]] = []


class _Closed(io.TextIOBase):
    """Standard output, if it is closed."""

    def write(self, _text: str) -> int:
        raise OutputError(
            "Standard output must be open, but is closed. Send it to a file or to /dev/null."
        )


def prepare_output() -> None:
    r"""Make standard output UTF-8 with ``\n`` line ends, whatever the locale says.

    A terminal gets its own encoding, and readable letters in the place of those that it lacks. What
    a model or a file holds must not steer it: control characters are shown.

    If standard output is closed, writing to it is an error. If standard error is closed, what is
    written to it is lost.
    """
    _occupy_standard_descriptors()
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("letters", replace_letters)
        sys.stdout.reconfigure(encoding="utf-8", errors="letters", newline="\n")
        if sys.stdout.isatty():
            with contextlib.suppress(LookupError):
                asked = os.environ.get("PYTHONIOENCODING", "").partition(":")[0]
                sys.stdout.reconfigure(encoding=asked or locale.getencoding(), errors="letters")
            sys.stdout = TerminalOutput(sys.stdout)


def _occupy_standard_descriptors() -> None:
    """Open descriptors 0 to 2, so that a file opened later is not taken for a standard stream."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


@contextlib.contextmanager
def drawing_folder() -> Iterator[None]:
    """Give Matplotlib a temporary folder for its lists of fonts if the user has none to write in.

    Otherwise it would make one itself, say so, and leave it behind.
    """
    home = Path(os.path.expanduser(os.environ.get("XDG_CONFIG_HOME") or "~/.config"))  # noqa: PTH111
    nearest = next(one for one in (home, *home.parents, Path()) if os.path.lexists(one))
    with contextlib.ExitStack() as stack:
        if "MPLCONFIGDIR" not in os.environ and not os.access(nearest, os.W_OK):
            from tempfile import TemporaryDirectory

            with contextlib.suppress(OSError):  # No folder can be written.
                folder = stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
                os.environ["MPLCONFIGDIR"] = folder
                stack.callback(os.environ.pop, "MPLCONFIGDIR")
        yield


def show_made(line: str) -> None:
    """Name on standard output something that was made. If that is closed, do nothing."""
    with contextlib.suppress(OutputError):
        sys.stdout.write(f"{make_printable(line)}\n")


@contextlib.contextmanager
def speaking_of(name: str, path: str) -> Iterator[None]:
    """Name in each sentence the file that it is about, one of many.

    Args:
        name: begins the sentence.
        path: where a sentence has it, the name takes its place instead.
    """
    # Not a context of threads: those that translate speak of the same file.
    _subjects.append((name, path))
    try:
        yield
    finally:
        _subjects.pop()


def say_error(sentence: str) -> None:
    """Write to standard error what failed: the command, or a line of its input."""
    _say(ERROR, sentence)


def warn(sentence: str) -> None:
    """Write to standard error what may be wrong, although the command continues."""
    _say("warning: ", sentence)


def note(sentence: str) -> None:
    """Write to standard error what a reader may want to know, and nothing has to be done about."""
    _say("note: ", sentence)


def _say(kind: str, sentence: str) -> None:
    """Write a sentence to standard error, on one line; long values are shortened."""
    for name, path in _subjects:
        sentence = sentence.replace(path, name) if path in sentence else f"{name}: {sentence}"
    line = shorten(make_printable(sentence.replace("\n", " ")))
    # If standard error is closed, there is nowhere to report it.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{kind}{line}\n")
        sys.stderr.flush()


class OnlyErrors(io.TextIOBase):
    """Standard error with ``--quiet``: notes, warnings and progress are dropped.

    Args:
        stream: where errors go.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text that begins as `say_error` begins it."""
        if text.startswith(ERROR):
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush what errors go to."""
        self.stream.flush()


def warn_without_engine() -> None:
    """Say once a command that translating is slow, if the engine is missing or cannot be loaded."""
    from pellucid.native.loading import find_library

    if isinstance(reason := find_library(), str):
        warn(
            f"The engine in C is missing, since {reason}, so PyTorch translates, several times "
            "slower. Install a wheel, or with a C compiler again: pip install --force-reinstall "
            "--no-deps."
        )


def report(error: BaseException) -> int:
    """Say why a command ended, and return its exit code.

    With ``PELLUCID_DEBUG=1`` the traceback is shown as well.
    """
    if os.environ.get("PELLUCID_DEBUG") == "1" and not isinstance(error, SystemExit):
        import traceback

        traceback.print_exception(error)
    code, sentence = _judge(error)
    if sentence:
        say_error(sentence)
    return code


def end_output(code: int) -> int:
    """Flush standard output and return the exit code that results.

    If the reader has closed the pipe, a command ends quietly with 0. A full disk is an error.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        # Otherwise Python would flush again at exit, fail again and complain.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        return code or report(error)
    return code


def _judge(error: BaseException) -> tuple[int, str]:
    """Return the exit code and the sentence, which is empty for a quiet end."""
    if isinstance(error, SystemExit):
        # Typer turns a closed pipe into exit code 1.
        if isinstance(error.__context__, BrokenPipeError):
            return 0, ""
        if error.code is None or isinstance(error.code, int):
            return error.code or 0, ""
        return 1, str(error.code)
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal.SIGINT, "Stopped by Ctrl-C."
    if isinstance(error, PellucidError):
        return error.exit_code, str(error)
    if isinstance(error, BrokenPipeError):
        return 0, ""
    if (fault := fault_of_machine(error)) is not None:
        return 1, fault
    if (missing := missing_extra(error)) is not None:
        return 2, missing
    if isinstance(error, OSError):
        place = f" ({error.filename})" if error.filename else ""
        if error.errno == errno.ENAMETOOLONG:
            return 2, f"A name must be short enough for the system, but is not{place}. Shorten it."
        return 1, f"The system reported an error: {error.strerror or error}{place}."
    message = str(error) or "no message"
    return 1, (
        f"This is a bug in pellucid: {type(error).__name__}: {message}. "
        "Please report it, with what PELLUCID_DEBUG=1 shows."
    )
