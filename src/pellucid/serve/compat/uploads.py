"""Files to translate: a reader for each format, and a place for results until they are fetched."""

from __future__ import annotations

import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from pellucid.documents.formats import ENDINGS
from pellucid.files import endings
from pellucid.serve.answers.responses import Problem

KEPT_SECONDS = 1800.0
MOST_BYTES = 64 * 2**20

# Lines of a file that are one text: one request of thousands would hold up the event loop.
LINES_OF_A_PART = 50

Format = Literal["text", "html"]
TranslateAll = Callable[[Sequence[str], str], Awaitable[list[str]]]


# For the end of a file's name: how its texts are translated, and the media type of the result.
READERS: Mapping[str, tuple[str, str]] = {
    ".txt": ("text", "text/plain; charset=utf-8"),
    **{ending: (one.name, f"{one.media_type}; charset=utf-8") for ending, one in ENDINGS.items()},
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


async def translate_file(
    name: str, content: bytes, target: str, translate: TranslateAll, most_characters: int
) -> tuple[str, bytes, str]:
    """Translate a file.

    Args:
        name: its name, whose end says what it is.
        content: its bytes.
        target: code of the language, for the name of the result.
        translate: translates texts.
        most_characters: the most of one text.

    Returns:
        The name, the content and the type of the result.

    Raises:
        Problem: 400, the format is not known, the file is not UTF-8 or it is too long.
    """
    # Browsers on Windows may send a whole path.
    path = PurePath(name.replace("\\", "/"))
    kind, packing = endings(path)
    if packing or kind not in READERS:
        raise Problem(400, "Invalid request: file format not supported")
    form, media_type = READERS[kind]
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Problem(400, "Invalid request: the file must be UTF-8") from None
    stem = re.sub(r"[^\w.-]+", "_", path.stem)[:80].strip(".") or "file"
    if form != "text":
        if len(text) > most_characters:
            size = f"request ({len(text)}) exceeds text limit ({most_characters})"
            raise Problem(400, f"Invalid request: {size}")
        (translated,) = await translate([text], form)
    else:
        # In parts: a file may be longer than a text, and its lines are what is translated.
        lines = text.split("\n")
        if max(map(len, lines)) > most_characters:
            raise Problem(400, f"Invalid request: a line exceeds text limit ({most_characters})")
        starts = range(0, len(lines), LINES_OF_A_PART)
        parts = ["\n".join(lines[start : start + LINES_OF_A_PART]) for start in starts]
        translated = "\n".join(await translate(parts, "text"))
    return f"{stem}_{target}{kind}", translated.encode(), media_type
