"""Files: gzip, hashes, and writes that survive a crash."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NamedTuple

from pellucid.errors import DataError, OutputError, PellucidError, not_readable, not_writable

_DESCRIPTOR = re.compile(r"/dev/(stdin|stdout|stderr)|/(?:dev|proc/self)/fd/(\d+)")
_MOST_LINKS = 40
"""Symbolic links to follow, as many as Linux does."""


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Turn the system's errors within the block into ours."""
    try:
        yield
    except OSError as error:
        raise not_readable(error, path) from error


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Turn the system's errors within the block into one about an output that cannot be written.

    Raises:
        OutputError: the disk is full or read-only.
        OutputPlaceError: the folder is missing, or the name is impossible.
        BrokenPipeError: the reader of the pipe went away.
    """
    try:
        yield
    except (PellucidError, BrokenPipeError):
        # Ours are worded already, and a reader such as `head` may stop when it has enough.
        raise
    except OSError as error:
        raise not_writable(error, path) from error


def expand_home(value: Any) -> Any:
    """Let ``~/`` stand for the user's home folder at the beginning of one name or of several."""
    if isinstance(value, list | tuple):
        return type(value)(map(expand_home, value))
    # Only `~/`: in a name such as ~old, `expanduser` would look for a user.
    is_at_home = isinstance(value, str | Path) and str(value).startswith("~/")
    return type(value)(os.path.expanduser(value)) if is_at_home else value  # noqa: PTH111


def read_bytes(path: Path) -> bytes:
    """Read a whole file.

    Raises:
        InputFileNotFoundError: the file does not exist.
        DataError: it cannot be read.
    """
    with reading(path):
        # A pipe of the shell, <(…), is a descriptor of ours and has a writer.
        if path.is_fifo() and _descriptor(path) is None:
            raise DataError(
                f"{path} must be a file, but is a pipe, which may be waited for without an end. "
                "Write its content into a file first."
            )
        return path.read_bytes()


def hash_bytes(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal, at bounded memory."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class Endings(NamedTuple):
    """The endings of a file's name, in lower case.

    Attributes:
        kind: what the file holds, such as ``.tsv``; empty if the name does not say.
        packing: how it is packed, such as ``.gz``; empty for a plain file.
    """

    kind: str
    packing: str


def endings(name: PurePath | str) -> Endings:
    """Read the endings of a file's name or path: ``A.TSV.GZ`` ends in ``.tsv`` and ``.gz``.

    Nothing else compares endings, so that a name means the same everywhere, whatever its case.
    """
    lower = PurePath(str(name).lower())
    packing = lower.suffix if lower.suffix in (".gz", ".xz", ".bz2", ".zst") else ""
    return Endings(PurePath(lower.name.removesuffix(packing)).suffix, packing)


def is_packed(path: Path) -> bool:
    """Tell whether the name ends in ``.gz``."""
    return endings(path).packing == ".gz"


def is_device(path: Path) -> bool:
    """Tell whether a path is a device or a pipe, which must never be replaced by a file.

    A name of one of this process's descriptors, such as ``/dev/stdout``, counts as one even if it
    leads to a file.
    """
    if _descriptor(path) is not None:
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def refuse_pipe(path: Path, what: str) -> None:
    """Refuse a pipe or a device where a file is read more than once, before anything waits for it.

    Args:
        path: the file.
        what: what it is, for the message, such as ``data.train``.

    Raises:
        DataError: it is one.
    """
    if is_device(path):
        raise DataError(
            f"{what} must be a file, because it is read more than once, but {path} is a pipe or a "
            "device. Write its content into a file first."
        )


def _descriptor(path: Path) -> int | None:
    """Return the descriptor of this process that a name or its links stand for, if any."""
    for _ in range(_MOST_LINKS):
        # Not `resolve`, which would follow /dev/stdout to the file behind it.
        path = Path(os.path.normpath(path.absolute()))
        if found := _DESCRIPTOR.fullmatch(str(path)):
            standard, number = found.groups()
            return int(number) if number else ("stdin", "stdout", "stderr").index(standard)
        try:
            path = path.parent / path.readlink()
        except OSError:
            return None
    return None


def open_to_write(path: Path) -> BinaryIO:
    """Open a file for writing, from its start.

    A name of one of this process's descriptors, such as ``/dev/stdout``, is an exception: writing
    continues at its position, and a file behind it keeps its content.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = _descriptor(path)
    # A copy of the descriptor, so that closing the stream leaves ours open.
    return path.open("wb") if descriptor is None else os.fdopen(os.dup(descriptor), "wb")


def create_file(path: Path) -> BinaryIO:
    """Create a file that we name ourselves, such as ``NAME.part``, and open it for writing.

    Whatever had the name is deleted, so that a link is never followed.

    Raises:
        OSError: it cannot be created.
    """
    path.unlink(missing_ok=True)
    # `x` fails if a link was put there since.
    return path.open("xb")


def write_whole(stream: BinaryIO, data: bytes) -> None:
    """Write a whole file, flush it to disk, and close it."""
    with stream:
        stream.write(data)
        stream.flush()
        # Otherwise a new name could reach the disk before the content.
        os.fsync(stream.fileno())


def open_own(path: Path | str, flags: int) -> int:
    """Open a file that we name ourselves, or create it, and return its descriptor.

    The arguments are those of an ``opener`` of Python's ``open``.

    Args:
        path: the file.
        flags: those of `os.open`, such as ``os.O_WRONLY | os.O_APPEND``.

    Raises:
        OutputError: the name is that of a link, a pipe or a device, or of a file that has other
            names too. Nothing was written.
        OSError: the file cannot be opened.
    """
    descriptor = -1
    try:
        # Without O_NONBLOCK, a pipe without a reader would be waited for.
        descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        found = os.fstat(descriptor)
        # With a second name it may be another program's file.
        is_own = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
    except OSError as error:
        # ELOOP is a link, because of O_NOFOLLOW; ENXIO a pipe without a reader.
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        is_own = False
    if is_own:
        return descriptor
    if descriptor >= 0:
        os.close(descriptor)
    raise OutputError(
        f"{path} must be a file of its own, but is a link, a pipe or a device. Delete it."
    )


def write_bytes(path: Path, data: bytes, *, follows_link: bool = False) -> None:
    """Write a file so that a crash leaves either the old or the new content, never a part.

    The bytes go to ``NAME.part`` in the same folder, are flushed to disk, and renamed. A device or
    a pipe is written directly. If the name ends in ``.gz``, the bytes are packed, equal bytes to
    equal bytes.

    Args:
        path: the file.
        data: its content.
        follows_link: True if the user named the file: a link then stays one, and what it points to
            is written. Otherwise a link is replaced.

    Raises:
        OutputError: the folder cannot take the file (full, read-only, missing), or the path has no
            name, as ``.``.
        BrokenPipeError: the reader of the pipe went away.
    """
    if not path.name:
        raise OutputError(f"The output must be a file, but {path} is a folder. Name a file in it.")
    if is_packed(path):
        # Without a time in its header, equal bytes are packed to equal bytes.
        data = gzip.compress(data, compresslevel=6, mtime=0)
    target = Path(os.path.realpath(path)) if follows_link else path
    # In the folder of the target, because a file is renamed only within one disk.
    part = target.with_name(target.name + ".part")
    try:
        with writing(path):
            if is_device(path) and (follows_link or not path.is_symlink()):
                with open_to_write(path) as stream:
                    stream.write(data)
                return
            write_whole(create_file(part), data)
            part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink()


def write_text(path: Path, text: str, *, follows_link: bool = False) -> None:
    r"""Write UTF-8 text as `write_bytes` does; ``\n`` stays ``\n`` on every platform."""
    write_bytes(path, text.encode("utf-8"), follows_link=follows_link)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a folder so that it appears whole under its name, or not at all.

    Yields a new folder next to it. At the end that folder is flushed and renamed; an older folder
    of this name is deleted only afterwards. A failure leaves the older one. `tidy_folder` repairs
    what a crash leaves.

    Raises:
        OutputError: the disk cannot take it.
    """
    if path.exists() and not path.is_dir():
        raise OutputError(f"The output must be a folder, but {path} is a file. Name another.")
    part = _hidden(path, "part")
    older = _hidden(path, "older")
    try:
        with writing(path):
            tidy_folder(path)
            _make_folder(path.parent)
            part.mkdir()
            yield part
            flush_folder(part)
            if path.exists():
                # A folder with content cannot be replaced in one step: it moves aside.
                path.rename(older)
            part.rename(path)
            flush_folder(path.parent)
    finally:
        with suppress(OSError):
            # After a failure this puts the older folder back.
            tidy_folder(path)


def tidy_folder(path: Path) -> None:
    """Clean up what a crash within `new_folder` or `delete_folder` left next to a folder's name.

    An older folder is put back if the new one did not take its place. Folders that are half made
    or half deleted are deleted.

    Raises:
        OSError: the folder cannot be put back.
    """
    older = _hidden(path, "older")
    # The crash came between the two renames.
    if older.is_dir() and not older.is_symlink() and not path.exists():
        older.rename(path)
    for kind in ("part", "older", "gone"):
        _delete(_hidden(path, kind))


def delete_folder(path: Path) -> None:
    """Delete a folder so that a crash leaves either all of it under its name, or nothing.

    Raises:
        OSError: it cannot be moved away; it is whole.
    """
    gone = _hidden(path, "gone")
    _delete(gone)
    path.rename(gone)
    flush_folder(path.parent)
    _delete(gone)


def _delete(path: Path) -> None:
    """Delete a folder with its content, or a link or file in its place, as far as possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _hidden(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{kind}")


def _make_folder(path: Path) -> None:
    """Make a folder and its parents, and flush each one's entry to disk."""
    if path.is_dir():
        return
    _make_folder(path.parent)
    # Another process may have made it in the meantime.
    path.mkdir(exist_ok=True)
    flush_folder(path.parent)


def flush_folder(path: Path) -> None:
    """Flush a folder's list of names to disk, so that a crash does not lose a new name."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
