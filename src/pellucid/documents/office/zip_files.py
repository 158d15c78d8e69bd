"""Office files and books: zip archives, whose parts with text are read as one document.

The document is a text: each part after a line with its name. What is written is put back into the
archive, whose other parts stay as they are, in their order.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from zipfile import BadZipFile, ZipFile, ZipInfo

from pellucid.documents.units import How
from pellucid.errors import DataError

EDGE = "\x1e"
"""The sign before the name of a part; XML forbids it."""

_MOST_BYTES = 256 * 2**20
_MOST_RATIO = 200
_MANY_BYTES = 16 * 2**20
"""Unpacked bytes from which the ratio counts. Sheets of equal rows were packed to a 60th, and a
file of zeros, the most that zip can do, to a 1,030th."""

# Properties of the whole document: only the language is read.
_ABOUT = r"docProps/core\.xml"
_DRAWN = r"drawings/drawing|charts/chart|diagrams/(?:data|drawing)"
PARTS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "docx": rf"{_ABOUT}|word/(?:styles"
        rf"|(?:document|header|footer|footnotes|endnotes|{_DRAWN})\d*)\.xml",
        "pptx": rf"{_ABOUT}|ppt/(?:slides/slide|notesSlides/notesSlide|{_DRAWN})\d*\.xml",
        # Names of columns are read, since a header of a table must stay equal to them.
        "xlsx": rf"{_ABOUT}|xl/(?:sharedStrings|(?:worksheets/sheet|tables/table"
        rf"|pivotCache/pivotCacheDefinition|{_DRAWN})\d*)\.xml",
        **dict.fromkeys(("odt", "odp", "ods"), r"(?:content|styles|meta)\.xml"),
        "epub": r"[^\n\x1e]+\.(?:xhtml|html|htm|opf|ncx)",
    }.items()
}
"""The parts that are read, by the name of the format."""

_FIRST = {
    "docx": "word/document",
    "pptx": "ppt/presentation",
    "xlsx": "xl/workbook",
    "odt": "text",
    "odp": "presentation",
    "ods": "spreadsheet",
    "epub": "META-INF/container.xml",
}
"""What an archive of a format must have: the beginning of a part's name, or in ODF its type."""

_SAVE = "Open it in the program that made it, and save it again."
_FAULTS = (
    BadZipFile,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)


def unpack_document(content: bytes, form: str, how: How) -> str:
    """Read the parts of an archive that have text.

    Args:
        content: of the archive.
        form: the name of its format.
        how: the way to read it, whose path is for messages.

    Raises:
        DataError: it is damaged, encrypted, of another format, or too large once unpacked.
    """
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        what = f"A {form} file must be a zip archive, but {how.path} is protected by a password"
        raise DataError(f"{what}, or of Office 97. Save it as .{form} without a password.")
    with _opened(content, form, how) as archive:
        members = _members(archive, form, how, len(content))
        texts = []
        for one in members:
            data = archive.read(one)
            try:
                text = data.decode()
            except UnicodeDecodeError:
                what = f"Its parts must be UTF-8, but {one.filename} is not ({how.path})"
                raise DataError(f"{what}. {_SAVE}") from None
            if EDGE in text:
                what = f"XML must be well-formed, but {one.filename} has U+001E ({how.path})"
                raise DataError(f"{what}. {_SAVE}")
            texts.append(f"{EDGE}{one.filename}\n{text}")
    return "".join(texts)


def pack_document(content: bytes, document: str) -> bytes:
    """Write an archive with other texts, which stand as `unpack_document` gave them.

    Args:
        content: of the archive that was read.
        document: its parts, after their names.
    """
    texts = dict(one.split("\n", 1) for one in document.split(EDGE)[1:])
    written = io.BytesIO()
    with ZipFile(io.BytesIO(content)) as archive, ZipFile(written, "w") as new:
        new.comment = archive.comment
        for one in _in_order(archive):
            # A copy, because writing notes sizes and places in it.
            info = copy(one)
            text = texts.get(one.filename)
            new.writestr(info, archive.read(one) if text is None else text.encode())
    return written.getvalue()


@contextmanager
def _opened(content: bytes, form: str, how: How) -> Iterator[ZipFile]:
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            yield archive
    except DataError:
        raise
    except _FAULTS as error:
        what = f"A {form} file must be a whole zip archive, but {how.path} is not: {error}"
        raise DataError(f"{what}. Copy or save it again.") from None


def _in_order(archive: ZipFile) -> list[ZipInfo]:
    """List the members as they lie in the file: the type of a book must come first."""
    return sorted(archive.infolist(), key=lambda one: one.header_offset)


def _members(archive: ZipFile, form: str, how: How, size: int) -> list[ZipInfo]:
    """Check an archive before anything is unpacked, and list the members that are read."""
    members = _in_order(archive)
    names = {one.filename for one in members}
    unpacked = sum(one.file_size for one in members)
    what = ""
    if unpacked > min(_MOST_BYTES, max(_MANY_BYTES, _MOST_RATIO * size)):
        what = f"must be small enough to unpack, but would take {unpacked:,} bytes"
    elif any(one.flag_bits & 1 for one in members) or _is_encrypted(archive, names, form):
        what = "must not be encrypted, but is"
    elif len(names) < len(members):
        what = "must hold each part once, but holds one twice"
    elif damaged := archive.testzip():
        what = f"must be whole, but {damaged} is damaged"
    elif not _is_of(archive, names, form):
        what = "must hold what its name says, but holds something else"
    if what:
        raise DataError(f"A {form} file {what} ({how.path}). {_SAVE}")
    return [one for one in members if PARTS[form].fullmatch(one.filename)]


def _is_of(archive: ZipFile, names: set[str], form: str) -> bool:
    first = _FIRST[form]
    if form.startswith("od"):
        kind = archive.read("mimetype").decode("latin-1") if "mimetype" in names else ""
        return kind.startswith(f"application/vnd.oasis.opendocument.{first}")
    return any(one.startswith(first) for one in names)


def _is_encrypted(archive: ZipFile, names: set[str], form: str) -> bool:
    """Tell whether parts are encrypted inside an archive that is not."""
    if "META-INF/encryption.xml" in names:
        # Fonts of books are often veiled, which does not matter here.
        listed = archive.read("META-INF/encryption.xml")[:_MANY_BYTES].decode(errors="replace")
        return any(PARTS[form].fullmatch(one) and f'"{one}"' in listed for one in names)
    if "META-INF/manifest.xml" in names:
        return b"encryption-data" in archive.read("META-INF/manifest.xml")
    return False
