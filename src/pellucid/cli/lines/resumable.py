"""An output file with a state next to it, from which an interrupted run resumes.

While ``FILE`` is being made, ``FILE.part`` holds the output so far and ``FILE.state`` says what it
is the output of. An interruption at any moment leaves the two consistent: the part is flushed to
disk first, and then the state is replaced as a whole. So the state never promises more than the
part holds, and what the part holds beyond that is cut off.
"""

from __future__ import annotations

import dataclasses
import fcntl
import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from pellucid.cli.ending import note, warn
from pellucid.cli.lines.streams import check_target, is_special, open_output
from pellucid.errors import InputError, OutputError, how_to_write
from pellucid.files import flush_folder, is_packed, open_own, write_text
from pellucid.terminal.text import count_of
from pellucid.text.reading.lines import open_binary

Packing = Callable[[str], bytes]
"""Makes the bytes of a file of its whole text."""

_EMPTY_SHA256 = hashlib.sha256().hexdigest()
_MAX_SHOWN = 24


@dataclass(frozen=True)
class PartState:
    """The state of a part.

    Attributes:
        run: everything except the input that the output depends on, by its name for users.
        num_lines: number of input lines whose output the part holds.
        num_failed: number of those lines that could not be translated.
        input_sha256: hash of those lines in each input file, by option.
        num_bytes: number of valid bytes in the part.
        output_sha256: hash of those bytes.
    """

    run: Mapping[str, Any]
    num_lines: int = 0
    num_failed: int = 0
    input_sha256: Mapping[str, str] = field(default_factory=dict)
    num_bytes: int = 0
    output_sha256: str = _EMPTY_SHA256


class DirectOutput:
    """Output to a stream, a device or a pipe, which cannot be resumed."""

    def __init__(self, stream: TextIO, packing: Packing | None = None) -> None:
        self.state = PartState({})
        self._stream = stream
        self._packing = packing
        self._held: list[str] = []

    def write(self, text: str) -> None:
        """Write some output; that of an archive waits for its end."""
        if self._packing is None:
            self._stream.write(text)
        else:
            self._held.append(text)

    def commit(self, num_lines: int, num_failed: int, input_sha256: Mapping[str, str]) -> None:
        """Flush the output of a window."""
        self._stream.flush()
        self.state = PartState({}, num_lines, num_failed, dict(input_sha256))

    def finish(self) -> None:
        """Write an archive."""
        if self._packing is not None:
            self._stream.buffer.write(self._packing("".join(self._held)))
            self._stream.buffer.flush()


class ResumableOutput:
    """Output that a later run of the same command can resume.

    Use it as a context. If that ends without an error, the part becomes the file. If it ends with
    one, part and state stay for the next run, unless they hold nothing yet.

    Args:
        path: the file to make; a name that ends in ``.gz`` is packed, one gzip member a window.
        run: everything except the input that the output depends on.
        may_overwrite: True if an existing file may be replaced, and a part that does not belong
            to this run deleted.
        may_resume: False if the input cannot be given again.
        packing: makes the file of the whole output; None if the output is the file.

    Raises:
        InputError: the file exists already, or there is a part that this run cannot resume.
        OutputError: the file cannot be written.
    """

    def __init__(
        self,
        path: str,
        *,
        run: Mapping[str, Any],
        may_overwrite: bool,
        may_resume: bool,
        packing: Packing | None = None,
    ) -> None:
        self._path = path
        self._packing = packing
        self._target = Path(os.path.realpath(path))
        self._part_path = self._target.with_name(f"{self._target.name}.part")
        self._state_path = self._target.with_name(f"{self._target.name}.state")
        # As it will be read from disk: JSON turns tuples into lists.
        self._run: Mapping[str, Any] = json.loads(json.dumps(run))
        self._may_overwrite = may_overwrite
        self._may_resume = may_resume
        self._window: list[str] = []
        self._digest = hashlib.sha256()
        self._descriptor = -1
        self.state = PartState(self._run)
        check_target(path, may_overwrite=may_overwrite)

    def __enter__(self) -> ResumableOutput:
        is_new = not self._part_path.exists()
        with self._explaining_errors():
            self._descriptor = open_own(self._part_path, os.O_RDWR)
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
            with self._explaining_errors():
                self._finish()
            return
        os.close(self._descriptor)
        if not self.state.num_lines:
            for path in (self._state_path, self._part_path):
                with suppress(OSError):  # must not hide the error that led here
                    path.unlink()
        elif not isinstance(error, Exception):
            note(
                f"{self._part_path} holds the output of {count_of(self.state.num_lines, 'line')}. "
                "Give the same command again to resume."
            )

    def write(self, text: str) -> None:
        """Add to the window's output, which stays in memory until `commit`."""
        self._window.append(text)

    def commit(self, num_lines: int, num_failed: int, input_sha256: Mapping[str, str]) -> None:
        """Write a window's output to disk, and then the state that includes it.

        Args:
            num_lines: number of input lines with output so far, those of earlier runs included.
            num_failed: number of those lines that could not be translated.
            input_sha256: hash of those lines in each input file, by option.
        """
        data = "".join(self._window).encode()
        self._window.clear()
        with self._explaining_errors():
            self._append(gzip.compress(data, mtime=0) if self._is_packed else data)
            os.fsync(self._descriptor)
            state = PartState(
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
        """Check that the input begins with the lines whose output the part holds.

        Args:
            num_lines: number of lines read; fewer than in `state` if the input ended before.
            input_sha256: hash of those lines in each input file, by option.
            can_restart: True if the input can be read from its start again.

        Returns:
            True if it does. False if it does not and the part was therefore deleted: the input
            must be read again from its start.

        Raises:
            InputError: it does not, and the part may not be deleted.
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
            f"the first {state.num_lines} lines of {' and '.join(names)} have changed",
            may_overwrite=self._may_overwrite and can_restart,
        )
        return False

    @property
    def _is_packed(self) -> bool:
        return is_packed(self._target)

    def _lock(self) -> None:
        """Lock the part against other commands until this process ends."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.path.samestat(os.fstat(self._descriptor), self._part_path.stat())
        except (BlockingIOError, FileNotFoundError):
            is_ours = False
        except OSError:
            is_ours = True  # some network folders do not support locks
        if not is_ours:
            os.close(self._descriptor)
            raise InputError(
                f"{self._part_path.name} must be written by one command at a time, but another "
                "one is writing it. Wait until it ends, or choose another output."
            )

    def _begin(self) -> None:
        """Resume from an existing part, or start a new one."""
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
                f"{state.num_failed:,} of {count_of(state.num_lines, 'line')} that an earlier run "
                "finished could not be translated."
            )

    def _read_state(self, size: int) -> tuple[str, PartState | None]:
        """Read the state of a part; return what is wrong, or the state if this run can resume."""
        if not self._may_resume:
            return "typed lines cannot be compared with those of an earlier run", None
        # Imported late: it brings pydantic, which --help does without.
        from pellucid.config.parsing import read_json_text

        try:
            values = read_json_text(self._state_path.read_bytes())
            state = PartState(**values)
            if [type(value) for value in values.values()] != [dict, int, int, dict, int, str]:
                raise TypeError
            if min(state.num_lines, state.num_failed, state.num_bytes) < 0:
                raise ValueError
        except FileNotFoundError:
            return f"{self._state_path.name} does not exist", None
        except (ValueError, TypeError):
            return f"{self._state_path.name} is damaged", None
        if state.run != self._run:
            return describe_difference(state.run, self._run), None
        if size < state.num_bytes or self._hash_part(state.num_bytes) != state.output_sha256:
            return "it was changed or deleted since", None
        return "", state

    def _hash_part(self, num_bytes: int) -> str:
        """Hash the valid bytes of the part; later output is added to this hash."""
        self._digest = hashlib.sha256()
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        while num_bytes and (data := os.read(self._descriptor, min(num_bytes, 1 << 20))):
            self._digest.update(data)
            num_bytes -= len(data)
        return self._digest.hexdigest()

    def _reject(self, problem: str, *, may_overwrite: bool) -> None:
        """Delete the content of a part that cannot be resumed, or raise if that is not allowed."""
        if may_overwrite:
            self._start_over()
            return
        # Do not suggest --overwrite if it was given and did not help.
        hint = "" if self._may_overwrite else "add --overwrite, or "
        raise InputError(
            f"The interrupted run that left {self._part_path} must be of the same command and "
            f"input, but {problem}. Repeat that command, or start over: {hint}delete "
            f"{self._part_path.name} and {self._state_path.name}."
        )

    def _start_over(self) -> None:
        # The state first: after a crash in between it must not promise more than the part holds.
        self._store(PartState(self._run))
        flush_folder(self._target.parent)
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._digest = hashlib.sha256()

    def _store(self, state: PartState) -> None:
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
        if self._packing is None:
            self._part_path.replace(self._target)
        else:
            with open_binary(self._part_path) as part:
                content = self._packing(part.read().decode())
            # Whole or not at all: the part stays until it is there.
            with open_output(str(self._target), may_overwrite=True) as output:
                output.buffer.write(content)
            self._part_path.unlink()
        flush_folder(self._target.parent)
        self._state_path.unlink()
        os.close(self._descriptor)

    @contextmanager
    def _explaining_errors(self) -> Iterator[None]:
        """Turn an error of the system into a sentence."""
        try:
            yield
        except InputError:
            raise
        except OSError as error:
            cause = error.__cause__ if isinstance(error, OutputError) else error
            if cause is None:  # It is a sentence already.
                raise
            hint = f"{how_to_write(cause)} or choose another place."
            if self.state.num_lines:
                hint = (
                    f"{how_to_write(cause)} and give the same command again: it resumes after line "
                    f"{self.state.num_lines}."
                )
            raise OutputError(
                f"The output must be writable, but {self._path} is not: "
                f"{getattr(cause, 'strerror', None) or cause}. {hint}"
            ) from error


@contextmanager
def open_resumable(
    path: str,
    *,
    run: Mapping[str, Any],
    may_overwrite: bool,
    may_resume: bool,
    packing: Packing | None = None,
) -> Iterator[DirectOutput | ResumableOutput]:
    """Open an output: resumable for a file, direct for anything else.

    Args:
        path: ``-`` is standard output.
        run: everything except the input that the output depends on.
        may_overwrite: see `ResumableOutput`.
        may_resume: see `ResumableOutput`.
        packing: see `ResumableOutput`.
    """
    if is_special(path):
        with open_output(path, may_overwrite=may_overwrite) as stream:
            direct = DirectOutput(stream, packing)
            yield direct
            direct.finish()
    else:
        with ResumableOutput(
            path,
            run=run,
            may_overwrite=may_overwrite,
            may_resume=may_resume,
            packing=packing,
        ) as output:
            yield output


def describe_difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Name the settings that differ, with their values if those are short."""
    parts = []
    for name in {**then, **now}:
        old = then.get(name)
        new = now.get(name)
        if old != new:
            shown = f"{json.dumps(old)} then, {json.dumps(new)} now"
            is_short = len(shown) <= 2 * _MAX_SHOWN
            parts.append(f"{name} ({shown})" if is_short else name)
    return f"it was made with other settings: {', '.join(parts)}"
