"""A translation piece by piece, as server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.responses import Response

from pellucid.errors import PellucidError
from pellucid.serve.answers.responses import NOT_KEPT, Pieces, Problem, from_error
from pellucid.serve.models import ServedModel
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import Text, Translate
from pellucid.serve.routes.asked_texts import (
    all_constraints,
    code_of,
    decoding_of,
    refuse_given,
)
from pellucid.translate.records import translation_record
from pellucid.translate.results import Translation

# The form of the answer, for the description of the routes.
EVENTS = {
    "type": "object",
    "description": 'Server-sent events: {"text": "…"} for each piece as soon as it is decided, '
    'then an event "end" with the translation as an answer without stream has it, or an event '
    '"error".',
    "properties": {
        "event": {"type": "string", "enum": ["message", "end", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["data"],
}

# What pieces cannot have: text that is out can neither be judged nor replaced.
NOT_STREAMED = (
    *("n_best", "alternatives", "prefixes", "require_each", "unknown", "retry"),
    *("align", "align_head", "words_by", "format"),
)


async def stream_translation(parts: Parts, body: Any, model: ServedModel) -> Response:
    """Translate one text, and send its translation piece by piece.

    Raises:
        Problem: 422, there are several texts, or a field that only whole translations have.
    """
    if len(body.texts) > 1:
        raise Problem(
            422,
            f"texts must be one text to stream, but has {len(body.texts)}. Send one at a time.",
            field="texts",
        )
    refuse_given(body, NOT_STREAMED, "stream")
    (text,) = body.texts
    options = decoding_of(body, model)
    cost = Translate(model, options, changes=tuple(body.changes)).cost(Text(text))

    def make() -> Iterator[str | Translation | None]:
        (constraints,) = all_constraints(body, model, [text])
        stream = model.changed(body.changes).stream(
            text,
            constraints=constraints,
            clean=body.clean,
            split=body.split,
            to=code_of(body, model),
            **dict(options),
        )
        yield from stream
        yield stream.translation

    pieces = parts.scheduler.stream(lambda: model.stream_in_memory(make), cost=cost)
    # What is wrong with a request shows at the first piece, before the answer begins.
    first = await anext(pieces)
    parts.count(model, "stream")
    headers = {
        **NOT_KEPT,
        "Content-Type": "text/event-stream",
        "X-Accel-Buffering": "no",
    }
    return Pieces(_events(first, pieces, has_tokens=body.tokens), headers=headers)


async def _events(
    first: str | Translation, pieces: AsyncIterator[str | Translation], *, has_tokens: bool
) -> AsyncIterator[bytes]:
    """Write pieces as server-sent events, then the whole translation."""
    piece = first
    try:
        while isinstance(piece, str):
            yield _event({"text": piece})
            piece = await anext(pieces)
    except Problem as problem:
        yield _event(problem.content, "error")
    except PellucidError as error:
        yield _event(from_error(error).content, "error")
    else:
        whole = translation_record(piece, has_tokens=has_tokens, has_links=False)
        yield _event(whole, "end")


def _event(content: dict[str, Any], name: str = "") -> bytes:
    data = json.dumps(content, ensure_ascii=False)
    kind = f"event: {name}\n" if name else ""
    return f"{kind}data: {data}\n\n".encode("utf-8", "replace")
