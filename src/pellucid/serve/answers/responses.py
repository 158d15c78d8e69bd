"""Answers and refusals: JSON, what is sent piece by piece, and one sentence about a fault."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pellucid.errors import PellucidError, make_printable, shorten

# The meaning of each status code of a refusal.
PROBLEMS: dict[int, str] = {
    400: "The body is not JSON, or the head names two hosts.",
    401: "A key is missing or wrong.",
    403: "The page's origin may not use this server.",
    404: "There is no such file.",
    408: "The body did not come in time.",
    413: "The body or the answer is too large.",
    421: "The Host header does not name this server.",
    422: "A field is missing, unknown or out of bounds.",
    431: "The head is too large.",
    429: "Too much waits; Retry-After says when to try again.",
    500: "The server failed.",
    503: "The server is ending, or its queue stands still.",
    504: "The answer was not ready in time.",
}

# The header of answers that no cache may keep.
NOT_KEPT: Mapping[str, str] = {"Cache-Control": "no-store"}

_PATH = re.compile(
    r"(?<!\w)('[^']*'|\"[^\"]*\")|"  # What a client sent is quoted.
    r"(?<![\w/.~])(?:[A-Za-z]:)?[/\\](?:[^\s,;:()'\"/\\]+[/\\])+[^\s,;:()'\"]*"
)


def reply(
    content: Any,
    *,
    most_bytes: int | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer with JSON that nothing keeps.

    Args:
        content: plain values. Halves of characters, which UTF-8 cannot write, become ``?``.
        most_bytes: the largest answer that the server allows.
        status: the status code.
        headers: further headers.

    Raises:
        Problem: 413, the answer is too large.
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    body = text.encode("utf-8", "replace")
    if most_bytes is not None and len(body) > most_bytes:
        raise Problem(
            413,
            f"The answer must have at most {most_bytes:,} bytes, but would have {len(body):,}. "
            "Ask for less.",
        )
    # Texts of clients must stay in no cache on the way.
    return Response(body, status, {**NOT_KEPT, **(headers or {})}, "application/json")


class Pieces(StreamingResponse):
    """An answer that is sent piece by piece, each as soon as it is there."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all pieces; the door ends this if the client leaves."""
        # Else the iterator, and the search behind it, would end only when it is collected.
        async with aclosing(self.body_iterator):  # type: ignore[type-var]
            await self.stream_response(send)


class Problem(Exception):  # noqa: N818 - an answer rather than an error
    """An answer that says why a result is missing.

    Args:
        status: the status code of HTTP.
        sentence: about the fault, and what to do now.
        headers: further headers of the answer.
    """

    def __init__(
        self, status: int, sentence: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers


def from_error(error: PellucidError) -> Problem:
    """Turn one of this package's errors into an answer: 422 if the input must change, or 500."""
    if error.exit_code == 2:
        # Sentences of the command line may name files. Those of the server are hidden; what a
        # client wrote is quoted, and stays.
        sentence = shorten(make_printable(str(error).replace("\n", " ")))
        return Problem(422, _PATH.sub(lambda found: found[1] or "a file of the server", sentence))
    return Problem(
        500, "The server could not do this. Try again, and tell its operator if that does not help."
    )
