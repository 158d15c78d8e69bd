"""Answers: JSON, whole files, and what is sent piece by piece."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

PROBLEMS: dict[int, str] = {
    400: "The body is not JSON.",
    401: "A key is missing or wrong.",
    403: "The page's origin may not use this server.",
    408: "The body did not come in time.",
    413: "The body or the answer is too large.",
    421: "The Host header does not name this server.",
    422: "A field is missing, unknown or out of bounds.",
    429: "Too much waits; Retry-After says when to try again.",
    500: "The server failed.",
    503: "The server is ending.",
    504: "The answer was not ready in time.",
}
"""The refusals that every route may answer with, by status code."""

NOT_KEPT: Mapping[str, str] = {"Cache-Control": "no-store"}
"""The header of answers that no cache may keep."""


@dataclass(frozen=True)
class Reply:
    """An answer.

    Attributes:
        body: all of it; empty if there are pieces.
        status: the status code.
        media_type: the kind of content; empty for none.
        headers: further headers.
        pieces: sent one after another, each as soon as it is there.
    """

    body: bytes = b""
    status: int = 200
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: AsyncIterator[bytes] | None = None

    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        """Write the headers as they are sent."""
        pairs = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in self.headers.items()
        ]
        if self.media_type:
            pairs.append((b"content-type", self.media_type.encode("latin-1")))
        if self.pieces is None and self.status != 204:
            pairs.append((b"content-length", b"%d" % len(self.body)))
        return pairs


def reply(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Answer with JSON that nothing keeps.

    Args:
        content: plain values. Halves of characters, which UTF-8 cannot write, become ``?``.
        status: the status code.
        headers: further headers.
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    more = NOT_KEPT if headers is None else {**NOT_KEPT, **headers}
    return Reply(text.encode("utf-8", "replace"), status, headers=more)
