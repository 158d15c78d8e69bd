"""Answers and refusals: JSON, what is sent piece by piece, and one sentence about a fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pellucid.errors import InputError, PellucidError, make_printable, shorten, word_options

# The meaning of each status code of a refusal, and the code in its body for programs.
PROBLEMS: dict[int, tuple[str, str]] = {
    307: ("moved", "The page has another address."),
    400: ("bad_request", "The body is not JSON, or the head names two hosts."),
    401: ("unauthorized", "A key is missing or wrong."),
    403: ("forbidden", "The page's origin may not use this server."),
    404: ("not_found", "There is no such address or file."),
    405: ("method_not_allowed", "The address takes other methods."),
    408: ("too_slow", "The body did not come in time."),
    413: ("too_large", "The body, the answer or the work is too large."),
    415: ("media_type", "The body is not called JSON."),
    421: ("wrong_host", "The Host header does not name this server."),
    422: ("invalid", "A field is missing, unknown or out of bounds."),
    431: ("too_large", "The head is too large."),
    429: ("busy", "Too much waits; Retry-After says when to try again."),
    500: ("failed", "The server failed."),
    503: ("unavailable", "The server is ending, or its queue stands still."),
    504: ("timeout", "The answer was not ready in time."),
}

# Further codes of 422, which has many reasons.
FIELD_CODES: Mapping[str, str] = {
    "missing": "A field is missing.",
    "unknown_field": "A field does not exist.",
    "wrong_type": "A value is of another type.",
    "out_of_bounds": "A value is too large or too small.",
    "not_together": "Two fields contradict each other, or one needs another.",
    "unknown_model": "There is no model of this name, or for these languages.",
    "invalid": "A value is impossible for another reason.",
}

CODES = tuple(sorted({*FIELD_CODES, *(code for code, _ in PROBLEMS.values())}))

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
        code: one of `FIELD_CODES`; unless given, that of the status.
        field: the field of the request that is wrong.
        index: the number of the entry of that field, from 0.
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        headers: Mapping[str, str] | None = None,
        *,
        code: str = "",
        field: str = "",
        index: int | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers
        self.code = code or PROBLEMS[status][0]
        self.field = field
        self.index = index

    @property
    def content(self) -> dict[str, Any]:
        """The body of the answer; what is not known is left out."""
        found: dict[str, Any] = {"error": self.sentence, "code": self.code}
        if self.field:
            found["field"] = self.field
        if self.index is not None:
            found["index"] = self.index
        return found


@contextmanager
def about(field: str, index: int | None = None) -> Iterator[None]:
    """Name the field of a request that an error is about.

    Raises:
        Problem: in the place of an error of the input.
    """
    try:
        yield
    except InputError as error:
        problem = from_error(error)
        problem.field = field
        problem.index = index
        raise problem from None


def from_error(error: PellucidError) -> Problem:
    """Turn one of this package's errors into an answer: 422 if the input must change, or 500."""
    if error.exit_code == 2:
        # Sentences of the command line may name files. Those of the server are hidden; what a
        # client wrote is quoted, and stays.
        # What is worded is short: a client may send a text that takes long to search for options.
        short = shorten(make_printable(error.sentence.replace("\n", " ")))
        sentence = word_options(short, "http")
        return Problem(422, _PATH.sub(lambda found: found[1] or "a file of the server", sentence))
    return Problem(
        500, "The server could not do this. Try again, and tell its operator if that does not help."
    )
