"""Files to translate: a reader for each format, and a place for results until they are fetched."""

from __future__ import annotations

import base64
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from pellucid.documents.formats import ADVICE, ENDINGS
from pellucid.documents.units import How
from pellucid.errors import DataError
from pellucid.files import endings
from pellucid.serve.answers.responses import Problem

KEPT_SECONDS = 1800.0
MOST_BYTES = 64 * 2**20

# Lines of a file that are one text: one request of thousands would hold up the event loop.
LINES_OF_A_PART = 50

Format = Literal["text", "html"]


# For the end of a file's name: how its texts are translated, and the media type of the result.
READERS: Mapping[str, tuple[str, str]] = {
    ".txt": ("text", "text/plain; charset=utf-8"),
    **{
        ending: (one.name, one.media_type if one.is_zip else f"{one.media_type}; charset=utf-8")
        for ending, one in ENDINGS.items()
    },
}


@dataclass(frozen=True)
class StoredFile:
    """A translated file.

    Attributes:
        name: the name to save it under.
        content: its bytes.
        media_type: what it is.
        until: time of the clock after which it is gone.
    """

    name: str
    content: bytes
    media_type: str
    until: float


class FileStore:
    """Translated files in memory, each behind a name that cannot be guessed.

    Args:
        most_bytes: the oldest files go if all together are larger.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._files: OrderedDict[str, StoredFile] = OrderedDict()
        self._most_bytes = most_bytes

    def add(self, name: str, content: bytes, media_type: str) -> str:
        """Keep a file for half an hour, and return the name to fetch it by.

        Args:
            name: the name to save it under.
            content: its bytes.
            media_type: what it is.
        """
        self._clean(len(content))
        # The name is the only key to the file, since clients fetch it without one.
        key = f"{secrets.token_urlsafe(24)}.{name}"
        self._files[key] = StoredFile(name, content, media_type, time.monotonic() + KEPT_SECONDS)
        return key

    def get(self, key: str) -> StoredFile:
        """Fetch a file.

        Raises:
            Problem: 404, it is not there, or no more.
        """
        self._clean(0)
        if key not in self._files:
            raise Problem(404, "There is no such file, or no more. Translate it again.")
        return self._files[key]

    def _clean(self, wanted: int) -> None:
        now = time.monotonic()
        size = wanted + sum(len(one.content) for one in self._files.values())
        # The oldest stand first, and end first.
        for key in list(self._files):
            if self._files[key].until > now and size <= self._most_bytes:
                break
            size -= len(self._files.pop(key).content)


@dataclass(frozen=True)
class Upload:
    """A file to translate.

    Attributes:
        form: ``text``, or the name of its format.
        text: its text; an archive is in Base64.
        media_type: for HTTP.
        stem: its name without the ending.
        ending: of its name.
        packed: the file if it is no UTF-8, or has other line ends.
    """

    form: str
    text: str
    media_type: str
    stem: str
    ending: str
    packed: bytes = b""

    def name_in(self, target: str) -> str:
        """Return the name of the translated file."""
        return f"{self.stem}_{target}{self.ending}"

    def content(self, text: str) -> bytes:
        """Return the bytes of a text that was translated."""
        kind = ENDINGS[self.ending]
        if kind.is_zip:
            return base64.b64decode(text)
        return kind.pack(self.packed, text) if self.packed else text.encode()


def read_upload(name: str, content: bytes) -> Upload:
    """Read a file by the end of its name.

    Args:
        name: its name.
        content: its bytes.

    Raises:
        Problem: 400, the format is not known, or the file is not UTF-8.
    """
    # Browsers on Windows may send a whole path.
    path = PurePath(name.replace("\\", "/"))
    kind, packing = endings(path)
    if packing or kind not in READERS:
        advice = f": it is {ADVICE[kind]}" if kind in ADVICE else ""
        raise Problem(400, f"Invalid request: file format not supported{advice}")
    form, media_type = READERS[kind]
    packed = b""
    known = ENDINGS.get(kind)
    if known and known.is_zip:
        text = base64.b64encode(content).decode()
    elif known and known.is_packed(content):
        packed = content
        try:
            text = known.unpack(content, How("the file"))
        except DataError as error:
            raise Problem(400, f"Invalid request: {error}") from None
    else:
        try:
            # A byte order mark is copied by formats; of lines it is no part.
            text = content.decode("utf-8-sig" if form == "text" else "utf-8")
        except UnicodeDecodeError:
            raise Problem(400, "Invalid request: the file must be UTF-8") from None
    stem = re.sub(r"[^\w.-]+", "_", path.stem)[:80].strip(".") or "file"
    return Upload(form, text, media_type, stem, kind, packed)
