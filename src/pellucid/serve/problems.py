"""Refusals and failures as answers: a status code and one sentence, never a path or a traceback."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus

from pellucid.errors import PellucidError, make_printable, shorten

_PATH = re.compile(r"(?<![\w/])(?:[A-Za-z]:)?[/\\](?:[^\s,;:()'\"/\\]+[/\\])+[^\s,;:()'\"]*")


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
        self.headers = dict(headers or {})


def busy(seconds: float) -> Problem:
    """Refuse a request because too much waits already.

    Args:
        seconds: time after which there should be room again.
    """
    wait = max(1, min(60, round(seconds)))
    return Problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"The server has as many requests as it can hold. Try again in {wait} s.",
        {"Retry-After": str(wait)},
    )


def sentence_of(error: PellucidError) -> str:
    """Take the sentence of one of this package's errors, without the names of files."""
    text = shorten(make_printable(str(error).replace("\n", " ")))
    return _PATH.sub("a file of the server", text)


def from_error(error: PellucidError) -> Problem:
    """Turn one of this package's errors into an answer: 422 if the input must change, or 500."""
    if error.exit_code == 2:
        return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, sentence_of(error))
    return Problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "The server could not do this. Try again, and tell its operator if that does not help.",
    )
