"""How a command ends: one sentence on standard error and an exit code, never a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import traceback

from pellucid.errors import OutputError, PellucidError

__all__ = ["end_output", "note", "prepare_output", "report", "warn"]


class _Closed(io.TextIOBase):
    """Stands for a standard output that is closed."""

    def write(self, _text: str) -> int:
        raise OutputError(
            "Standard output must be open, but is closed. Send it to a file, or to /dev/null."
        )


def prepare_output() -> None:
    r"""Make standard output UTF-8 with ``\n`` line ends, whatever the locale says.

    Where it is closed, writing to it is an error; where standard error is, nobody wants to hear.
    """
    _occupy_standard_descriptors()
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def _occupy_standard_descriptors() -> None:
    """Keep a file that is opened later from becoming what a library takes for a standard stream."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def note(line: str) -> None:
    """Say on standard output what was made, unless that is closed: it is made all the same."""
    with contextlib.suppress(OutputError):
        sys.stdout.write(f"{line}\n")


def warn(sentence: str) -> None:
    """Say one sentence on standard error, on one line."""
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in sentence.replace("\n", " "))
    # Somebody who closed standard error does not want to hear of it.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"pellucid: {line}\n")
        sys.stderr.flush()


def report(error: BaseException) -> int:
    """Say why a command ended and find its exit code.

    With ``PELLUCID_DEBUG=1`` the traceback is shown as well.
    """
    if os.environ.get("PELLUCID_DEBUG") == "1" and not isinstance(error, SystemExit):
        traceback.print_exception(error)
    code, sentence = _judge(error)
    if sentence:
        warn(sentence)
    return code


def end_output(code: int) -> int:
    """Flush standard output and find the exit code that results.

    A reader that went away ends a command quietly with 0; a full disk is an error.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        # Without this Python would try once more while exiting and complain.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        return code or report(error)
    return code


def _judge(error: BaseException) -> tuple[int, str]:
    if isinstance(error, SystemExit):
        return _judge_exit(error)
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal.SIGINT, "Stopped by Ctrl-C."
    if isinstance(error, PellucidError):
        return error.exit_code, str(error)
    if isinstance(error, BrokenPipeError):
        return 0, ""
    if isinstance(error, OSError):
        place = f" ({error.filename})" if error.filename else ""
        return 1, f"The system refused to go on: {error.strerror or error}{place}."
    if isinstance(error, MemoryError):
        return 1, "There must be enough memory, but it ran out. Give the command less at once."
    if isinstance(usage := _usage_sentence(error), str):
        return 2, usage
    said = str(error) or "no message"
    return 1, (
        f"Something failed that never should: {type(error).__name__}: {said}. "
        "Please report it, with what PELLUCID_DEBUG=1 shows."
    )


def _judge_exit(error: SystemExit) -> tuple[int, str]:
    # Typer meets a closed pipe with exit code 1.
    if isinstance(error.__context__, BrokenPipeError):
        return 0, ""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0, ""
    return 1, str(error.code)


def _usage_sentence(error: BaseException) -> str | None:
    """What a person typed wrongly, if that is what the error is about."""
    import typer

    if not isinstance(error, typer.TyperException):
        return None
    command = getattr(getattr(error, "ctx", None), "command_path", "pellucid")
    message = error.format_message().rstrip()
    end = "" if message.endswith((".", "?", "!")) else "."
    return f"{message}{end} See: {command} --help"
