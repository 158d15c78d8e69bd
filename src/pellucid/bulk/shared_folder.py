"""A folder on a disk or an object store, in which many machines write at once.

A name appears with its whole content or not at all. Two that write the same name write the same
bytes, so it does not matter which one is last. In folders without hard links a new name appears
before its content; in those that cannot rename either, which are object stores, when it is closed.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from pellucid.errors import (
    InputError,
    InputFileNotFoundError,
    PellucidError,
    need_library,
    not_readable,
    not_writable,
)
from pellucid.files import create_file, write_whole

# What file systems answer that cannot link or rename: SMB, exFAT, and folders of object stores.
_CANNOT = {
    errno.EPERM,
    errno.EACCES,
    errno.EINVAL,
    errno.EMLINK,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
}


class Store:
    """A folder with files in one level of folders: ``NAME`` or ``FOLDER/NAME``.

    Args:
        place: a folder, or an address such as ``s3://bucket/folder``; need not exist.

    Raises:
        InputError: the kind of address is unknown, or needs a package that is not installed.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._files, self._root = find_files(place)
        from fsspec.implementations.local import LocalFileSystem

        # An address may be that of a folder too: file:///mnt/job.
        self._is_remote = not isinstance(self._files, LocalFileSystem)

    def read(self, name: str) -> bytes:
        """Read a file.

        Raises:
            InputFileNotFoundError: it does not exist.
        """
        with reaching(self.place, is_read=True):
            return bytes(self._files.cat_file(f"{self._root}/{name}"))

    def write(self, name: str, data: bytes) -> None:
        """Write a file so that it appears whole, in the place of an older one."""
        with reaching(self.place):
            if self._is_remote:
                self._files.pipe_file(f"{self._root}/{name}", data)
            else:
                self._place(name, data, is_new=False)

    def create(self, name: str, data: bytes) -> bool:
        """Write a new file; return False if there is one of this name."""
        path = f"{self._root}/{name}"
        with reaching(self.place), suppress(FileExistsError):
            if not self._is_remote:
                self._place(name, data, is_new=True)
                return True
            # Some stores cannot refuse: two may then claim a piece, and write the same bytes.
            if not self._files.exists(path):
                self._files.pipe_file(path, data, mode="create")
                return True
        return False

    def names(self, folder: str) -> set[str]:
        """List the files of a folder, which need not exist."""
        with reaching(self.place), suppress(FileNotFoundError):
            found = self._files.find(f"{self._root}/{folder}")
            names = {name.rpartition("/")[2] for name in found}
            return {name for name in names if not name.startswith(".")}
        return set()

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        with reaching(self.place), suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{name}")

    def tidy(self, folder: str, seconds: float) -> None:
        """Delete what killed commands have left half written, if nothing was added for so long.

        Only the clock of the file server counts, which dates the files: a file that is written now
        tells its time.
        """
        hidden = [] if self._is_remote else list(Path(self._root, folder).glob(".*"))
        if not hidden:
            return
        with suppress(OSError):
            present = Path(self._root, folder, f".now.{secrets.token_hex(8)}")
            write_whole(create_file(present), b"now")
            now = present.stat().st_mtime
            present.unlink()
            for part in hidden:
                with suppress(FileNotFoundError):
                    if now - part.stat().st_mtime > seconds:
                        part.unlink()

    def _place(self, name: str, data: bytes, *, is_new: bool) -> None:
        """Write a file under another name, and then give it its name.

        Raises:
            FileExistsError: it must be new, and is not.
        """
        path = Path(self._root) / name
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Linking fails if the name exists, and replacing does not: the first one wins.
        move = os.link if is_new else os.replace
        try:
            # Before the name: after a crash it must not name an empty file.
            write_whole(create_file(part), data)
            try:
                move(part, path)
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
                stream = path.open("xb") if is_new else create_file(path)
                try:
                    write_whole(stream, data)
                except OSError:
                    path.unlink()
                    raise
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def is_remote(place: str) -> bool:
    """Tell whether a name is an address, such as ``s3://bucket/folder``."""
    return "://" in place


def find_files(place: str) -> tuple[Any, str]:
    """Find the file system of a name or an address, and the name there.

    Raises:
        InputError: the kind of address is unknown, or needs a package that is not installed.
    """
    url_to_fs = need_library("fsspec.core").url_to_fs
    # Other machines write there all the time.
    settings = {"use_listings_cache": False} if is_remote(place) else {}
    try:
        files, name = url_to_fs(place, **settings)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"{place} must be a file or an address that can be reached, but is not: "
            f"{str(error).rstrip('.')}. Install what is missing, or correct the address."
        ) from error
    return files, str(name).rstrip("/")


@contextmanager
def reaching(place: str, *, is_read: bool = False) -> Iterator[None]:
    """Turn the errors of a disk or an object store into sentences; each library raises its own.

    Args:
        place: the folder or the file, for the message.
        is_read: True if a file is read, not written.

    Raises:
        InputFileNotFoundError: a file does not exist.
        DataError: a file cannot be read.
        OutputError: the disk is full.
        PellucidError: a store cannot be reached, or refuses.
    """
    try:
        yield
    except (PellucidError, FileExistsError, EOFError):
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputFileNotFoundError(
            f"{place} does not exist. Check the name and the folder."
        ) from error
    except Exception as error:
        if isinstance(error, OSError) and not is_remote(place):
            raise (not_readable if is_read else not_writable)(error, place) from error
        raise PellucidError(
            f"{place} cannot be read or written: {error or type(error).__name__}. Check the "
            "address, the network and the credentials, and give the command again."
        ) from error


def open_file(path: str) -> tuple[BinaryIO, int]:
    """Open a file or an address to read; return its size in bytes too.

    Raises:
        InputFileNotFoundError: it does not exist.
        PellucidError: it cannot be read.
    """
    files, name = find_files(path)
    with reaching(path, is_read=True):
        return files.open(name, "rb"), int(files.size(name))
