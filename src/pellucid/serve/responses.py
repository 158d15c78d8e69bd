"""Answers in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

__all__ = ["PROBLEMS", "reply"]

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


def reply(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with JSON that nothing keeps.

    Args:
        content: plain values. Halves of characters, which UTF-8 cannot write, become ``?``.
        status: the status code.
        headers: further headers.
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(
        text.encode("utf-8", "replace"),
        status,
        {"Cache-Control": "no-store", **(headers or {})},
        "application/json",
    )
