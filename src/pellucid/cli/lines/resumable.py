"""An output file that grows beside a state, so that an interrupted run goes on where it was.

While ``FILE`` is being made there are ``FILE.part``, the output so far, and ``FILE.state``, which
says what it is the output of. The two change in an order that no interruption can spoil: first
the part is flushed to disk, then the state is replaced as a whole, so the state never promises
what the part does not hold. What the part holds beyond that is cut off.
"""

from __future__ import annotations

import dataclasses
import fcntl
import gzip
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from pellucid.cli.ending import warn
from pellucid.cli.lines.streams import check_target, is_special, open_output
from pellucid.errors import InputError, OutputError
from pellucid.files import flush_folder, write_text

__all__ = ["DirectOutput", "ResumableOutput", "State", "open_lasting"]

_EMPTY_SHA256 = hashlib.sha256().hexdigest()
_MAX_SHOWN = 24


@dataclass(frozen=True)
class State:
    """What a part is the output of.

    Attributes:
        run: everything that the output depends on beside the input, by what a person calls it.
        num_lines: lines of input whose output the part holds.
        num_failed: how many of them could not be translated.
        input_sha256: hash of those lines, for each file of input, by what a person calls it.
        num_bytes: how much of the part is valid.
        output_sha256: hash of those bytes.
    """

    run: Mapping[str, Any]
    num_lines: int = 0
    num_failed: int = 0
    input_sha256: Mapping[str, str] = field(default_factory=dict)
    num_bytes: int = 0
    output_sha256: str = _EMPTY_SHA256


class DirectOutput:
    """Output to a stream, a device or a pipe, of which nothing can be taken back."""

    def __init__(self, stream: TextIO) -> None:
        self.state = State({})
        self._stream = stream

    def write(self, text: str) -> None:
        """Write some output."""
        self._stream.write(text)

    def keep(self, num_lines: int, num_failed: int, input_sha256: Mapping[str, str]) -> None:
        """Hand on what was written, the output of a window."""
        self._stream.flush()
        self.state = State({}, num_lines, num_failed, dict(input_sha256))


class ResumableOutput:
    """Output that a later run of the same command can go on with.

    A context: left without an error, the part becomes the file; left with one, part and state
    stay for the next run, unless they hold nothing yet.

    Args:
        path: the file to make; a name that ends in ``.gz`` is packed, one gzip member a window.
        run: everything that the output depends on beside the input.
        may_overwrite: whether a file that is there may be replaced, and a part that does not
            belong to this run be thrown away.
        may_resume: False where the input cannot be given again.

    Raises:
        InputError: the file is there, or a part that this run cannot go on with.
        OutputError: the place cannot take the file.
    """

    def __init__(
        self, path: str, *, run: Mapping[str, Any], may_overwrite: bool, may_resume: bool
    ) -> None:
        self._shown = path
        self._target = Path(os.path.realpath(path))
        self._part_path = self._beside(".part")
        self._state_path = self._beside(".state")
        # As the state on disk will read: JSON has no tuples.
        self._run: Mapping[str, Any] = json.loads(json.dumps(run))
        self._may_overwrite = may_overwrite
        self._may_resume = may_resume
        self._window: list[str] = []
        self._digest = hashlib.sha256()
        self._descriptor = -1
        self.state = State(self._run)
        check_target(path, may_overwrite=may_overwrite)

    def __enter__(self) -> ResumableOutput:
        is_new = not self._part_path.exists()
        with self._told():
            self._descriptor = os.open(self._part_path, os.O_RDWR | os.O_CREAT, 0o666)
            self._lock()
            try:
                self._begin()
            except BaseException:
                if is_new:
                    self._part_path.unlink()
                os.close(self._descriptor)
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            with self._told():
                self._finish()
            return
        os.close(self._descriptor)
        if not self.state.num_lines:
            for path in (self._state_path, self._part_path):
                with suppress(OSError):  # the error that counts is the one that led here
                    path.unlink()
        elif not isinstance(error, Exception):
            warn(
                f"{self._part_path} holds the output of {self.state.num_lines} lines: the same "
                "command goes on from there."
            )

    def write(self, text: str) -> None:
        """Add to the window's output, which is kept in memory until the window is whole."""
        self._window.append(text)

    def keep(self, num_lines: int, num_failed: int, input_sha256: Mapping[str, str]) -> None:
        """Write a window's output so that it lasts, whatever happens then.

        Args:
            num_lines: how many lines of input have their output now, from the very first.
            num_failed: how many of them could not be translated.
            input_sha256: hash of those lines, for each file of input.
        """
        data = "".join(self._window).encode()
        self._window.clear()
        with self._told():
            self._append(gzip.compress(data, mtime=0) if self._is_packed else data)
            os.fsync(self._descriptor)
            state = State(
                self._run,
                num_lines,
                num_failed,
                dict(input_sha256),
                os.lseek(self._descriptor, 0, os.SEEK_CUR),
                self._digest.hexdigest(),
            )
            self._store(state)

    def check_input(
        self, num_lines: int, input_sha256: Mapping[str, str], *, can_restart: bool
    ) -> bool:
        """Find out whether the input starts with the lines that the part is the output of.

        Args:
            num_lines: how many lines were read; fewer than `state` says only at the end.
            input_sha256: their hash, for each file of input.
            can_restart: whether the input can be read from its start once more.

        Returns:
            Whether it does. If not and the part may be thrown away, that has been done, and the
            input must be read from its start.

        Raises:
            InputError: it does not, and the part may not be thrown away.
        """
        state = self.state
        if not state.num_lines:
            return True
        names = [
            name
            for name in {**state.input_sha256, **input_sha256}
            if state.input_sha256.get(name) != input_sha256.get(name)
        ]
        if num_lines == state.num_lines and not names:
            return True
        self._reject(
            f"the first {state.num_lines} lines of {' and '.join(names)} are others now",
            may_overwrite=self._may_overwrite and can_restart,
        )
        return False

    @property
    def _is_packed(self) -> bool:
        return self._target.suffix == ".gz"

    def _beside(self, ending: str) -> Path:
        return self._target.with_name(self._target.name + ending)

    def _lock(self) -> None:
        """Keep other commands away from the part until this process ends."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.path.samestat(os.fstat(self._descriptor), self._part_path.stat())
        except (BlockingIOError, FileNotFoundError):
            is_ours = False
        except OSError:
            is_ours = True  # some network folders know no locks
        if not is_ours:
            os.close(self._descriptor)
            raise InputError(
                f"{self._part_path.name} must be written by one command at a time, but another "
                "one is at it. Wait for its end, or choose another output."
            )

    def _begin(self) -> None:
        """Go on with the part that is there, or start a new one."""
        size = os.fstat(self._descriptor).st_size
        if size == 0 and not self._state_path.exists():
            self._start_over()
            return
        problem, state = self._read_state(size)
        if state is None:
            self._reject(problem, may_overwrite=self._may_overwrite)
            return
        os.ftruncate(self._descriptor, state.num_bytes)
        os.lseek(self._descriptor, state.num_bytes, os.SEEK_SET)
        self.state = state
        if state.num_failed:
            warn(
                f"{state.num_failed} of the {state.num_lines} lines that were finished before "
                "could not be translated, as was said then."
            )

    def _read_state(self, size: int) -> tuple[str, State | None]:
        """The state of a part that this run can go on with, or what is wrong."""
        if not self._may_resume:
            return "typed lines cannot be compared with those of an earlier run", None
        try:
            values = json.loads(self._state_path.read_bytes())
            state = State(**values)
            if [type(value) for value in values.values()] != [dict, int, int, dict, int, str]:
                raise TypeError
            if min(state.num_lines, state.num_failed, state.num_bytes) < 0:
                raise ValueError
        except FileNotFoundError:
            return f"there is no {self._state_path.name} beside it", None
        except (ValueError, TypeError):
            return f"{self._state_path.name} is damaged", None
        if state.run != self._run:
            return _difference(state.run, self._run), None
        if size < state.num_bytes or self._hash_part(state.num_bytes) != state.output_sha256:
            return "it was changed or deleted since", None
        return "", state

    def _hash_part(self, num_bytes: int) -> str:
        """Hash the valid bytes of the part, and go on from there."""
        self._digest = hashlib.sha256()
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        while num_bytes and (data := os.read(self._descriptor, min(num_bytes, 1 << 20))):
            self._digest.update(data)
            num_bytes -= len(data)
        return self._digest.hexdigest()

    def _reject(self, problem: str, *, may_overwrite: bool) -> None:
        """Throw away a part that does not belong here, if that is allowed."""
        if may_overwrite:
            self._start_over()
            return
        # Whoever gave --overwrite already, and in vain, is not told to.
        hint = "" if self._may_overwrite else "add --overwrite, or "
        raise InputError(
            f"The interrupted run that left {self._part_path} must be of this very command and "
            f"input, but {problem}. Repeat it as it was, or start anew: {hint}delete "
            f"{self._part_path.name} and {self._state_path.name}."
        )

    def _start_over(self) -> None:
        # The state first: a crash in between must not leave one that promises too much.
        self._store(State(self._run))
        flush_folder(self._target.parent)
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._digest = hashlib.sha256()

    def _store(self, state: State) -> None:
        values = dataclasses.asdict(state)
        write_text(self._state_path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")
        self.state = state

    def _append(self, data: bytes) -> None:
        self._digest.update(data)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def _finish(self) -> None:
        if self._is_packed and not self.state.num_bytes:
            self._append(gzip.compress(b"", mtime=0))
        os.fsync(self._descriptor)
        self._part_path.replace(self._target)
        flush_folder(self._target.parent)
        self._state_path.unlink()
        os.close(self._descriptor)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn the system's refusal into a sentence."""
        try:
            yield
        except InputError:
            raise
        except OSError as error:
            cause = error.__cause__ if isinstance(error, OutputError) else error
            hint = "Free some space or choose another place."
            if self.state.num_lines:
                hint = (
                    "Free some space and give the same command again: it goes on after line "
                    f"{self.state.num_lines}."
                )
            raise OutputError(
                f"The output must be writable, but {self._shown} is not: "
                f"{getattr(cause, 'strerror', None) or cause}. {hint}"
            ) from error


@contextmanager
def open_lasting(
    path: str, *, run: Mapping[str, Any], may_overwrite: bool, may_resume: bool
) -> Iterator[DirectOutput | ResumableOutput]:
    """Open where results go: resumable for a file, direct for anything else.

    Args:
        path: ``-`` is standard output.
        run: everything that the output depends on beside the input.
        may_overwrite: as in `ResumableOutput`.
        may_resume: as in `ResumableOutput`.
    """
    if is_special(path):
        with open_output(path, may_overwrite=may_overwrite) as stream:
            yield DirectOutput(stream)
    else:
        with ResumableOutput(
            path, run=run, may_overwrite=may_overwrite, may_resume=may_resume
        ) as output:
            yield output


def _difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Which settings differ, with their values where those are short."""
    parts = []
    for name in {**then, **now}:
        old, new = then.get(name), now.get(name)
        if old != new:
            shown = f"{json.dumps(old)} then, {json.dumps(new)} now"
            is_short = len(shown) <= 2 * _MAX_SHOWN
            parts.append(f"{name} ({shown})" if is_short else name)
    return f"it was made with other settings: {', '.join(parts)}"
