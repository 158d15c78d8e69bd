"""A disk that fails once: at the k-th of all writes, flushes and renames."""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CHANGES = ("fsync", "rename", "replace", "mkdir")


class FailingDisk:
    """A count of the requests to the disk, one of which fails.

    Args:
        patch: replaces the functions that are counted.
        failing: the number, from 0, of the request that fails; None lets all succeed.
        forever: True if all later requests fail too.
    """

    def __init__(
        self, patch: pytest.MonkeyPatch, *, failing: int | None = None, forever: bool = False
    ) -> None:
        self.seen: list[str] = []
        self._failing = failing
        self._forever = forever
        for name in CHANGES:
            patch.setattr(os, name, self._watched(name, getattr(os, name)))
        plain = io.open

        def open_watched(file: Any, mode: str = "r", *arguments: Any, **settings: Any) -> Any:
            stream = plain(file, mode, *arguments, **settings)
            return stream if mode == "rb" else _WatchedStream(stream, self)

        patch.setattr(io, "open", open_watched)
        patch.setattr(builtins, "open", open_watched)

    def ask(self, what: str) -> None:
        """Count one request to the disk.

        Raises:
            OSError: it is the one that fails.
        """
        number = len(self.seen)
        self.seen.append(what)
        if self._failing is None:
            return
        if number == self._failing or (self._forever and number > self._failing):
            raise OSError(errno.ENOSPC, "No space left on device")

    def _watched(self, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **settings: Any) -> Any:
            places = [Path(a).name for a in arguments if not isinstance(a, int)]
            self.ask(" ".join([name, *places]))
            return plain(*arguments, **settings)

        return call


class _WatchedStream:
    """A file that is half written if its write fails."""

    def __init__(self, stream: Any, disk: FailingDisk) -> None:
        self._stream = stream
        self._disk = disk

    def write(self, data: bytes) -> int:
        try:
            self._disk.ask(f"write {Path(self._stream.name).name}")
        except OSError:
            self._stream.write(data[: len(data) // 2])
            raise
        return int(self._stream.write(data))

    def __enter__(self) -> _WatchedStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
