"""Translation token by token, a look inside, and what-if."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from pellucid.errors import PellucidError
from pellucid.serve.answers import ChangeAnswer
from pellucid.serve.asking import all_constraints, decoding_of
from pellucid.serve.looking import change as compute_change
from pellucid.serve.looking import look as compute_look
from pellucid.serve.looking import write_trace
from pellucid.serve.parts import Parts
from pellucid.serve.problems import Problem, from_error
from pellucid.serve.responses import NOT_KEPT, Reply, reply
from pellucid.serve.routes.texts import refusals
from pellucid.serve.schemas import Schemas
from pellucid.serve.table import Table
from pellucid.serve.tasks import estimate_tokens, refuse_if_too_large

_TRACE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A file of safetensors. Its header holds the tokens and records of the "
        "trace as JSON text under __metadata__.trace; its tensors are float32, by names such as "
        "decoder.1.cross.weights, layer by layer.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_ONE_EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["message", "end", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["data"],
}
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": 'Server-sent events: {"text": "…"} for each piece as soon as it is '
        'decided, then an event "end" with the whole text, or an event "error".',
        "content": {"text/event-stream": {"schema": _ONE_EVENT}},
    }
}


def add_inside_routes(routes: Table, parts: Parts, schemas: Schemas) -> None:
    """Add ``/v1/stream``, ``/v1/look`` and ``/v1/change``.

    Args:
        routes: the table to add them to.
        parts: of the server.
        schemas: the classes of requests.
    """
    limits = parts.settings.limits
    scheduler = parts.scheduler

    @routes.post(
        "/v1/stream", body=schemas.stream, responses={**refusals(), **_EVENTS}, tags=["texts"]
    )
    async def stream(body: Any) -> Reply:
        """Translate one text, and send its translation piece by piece."""
        model = parts.models.choose(body.model, body.source, body.target)
        options = decoding_of(body, model)
        (constraints,) = all_constraints(body, model, [body.text])

        def make() -> Iterator[str]:
            return model.translator.stream(
                body.text,
                constraints=constraints,
                clean=body.clean,
                split=body.split,
                split_long=body.split_long,
                to=body.to,
                **dict(options),
            )

        pieces = scheduler.stream(make)
        # What is wrong with a request shows at the first piece, before the answer begins.
        first = await anext(pieces, None)
        parts.metrics.texts.labels(model.name, "stream").inc()
        return Reply(
            pieces=_events(first, pieces),
            media_type="text/event-stream",
            headers={**NOT_KEPT, "X-Accel-Buffering": "no"},
        )

    @routes.post("/v1/look", body=schemas.look, responses={**refusals(), **_TRACE}, tags=["inside"])
    async def look(body: Any) -> Reply:
        """Look inside the translation of one line: the arrays of the layers that are asked for."""
        model = parts.models.choose(body.model, body.source, body.target)
        work = partial(compute_look, model, body, most_bytes=limits.look_bytes)
        records, arrays = await scheduler.call(work, cost=10 * estimate_tokens(body.text))
        parts.metrics.texts.labels(model.name, "look").inc()
        return Reply(
            pieces=_one_by_one(write_trace(records, arrays)),
            media_type="application/octet-stream",
            headers=NOT_KEPT,
        )

    @routes.post(
        "/v1/change",
        body=schemas.change,
        response_model=ChangeAnswer,
        responses=refusals(),
        tags=["inside"],
    )
    async def change(body: Any) -> Reply:
        """Translate one line again under changes of the model: cut heads, edges or words."""
        model = parts.models.choose(body.model, body.source, body.target)
        work = partial(compute_change, model, body)
        found = await scheduler.call(work, cost=50 * estimate_tokens(body.text))
        parts.metrics.texts.labels(model.name, "change").inc()
        answer = reply(found)
        refuse_if_too_large(len(answer.body), limits.response_bytes)
        return answer


async def _one_by_one(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def _events(first: str | None, pieces: AsyncIterator[str]) -> AsyncIterator[bytes]:
    """Write pieces as server-sent events, then the whole text."""
    found: list[str] = []
    try:
        if first is not None:
            found.append(first)
            yield _event({"text": first})
            async for piece in pieces:
                found.append(piece)
                if piece:
                    yield _event({"text": piece})
    except Problem as problem:
        yield _event({"error": problem.sentence}, "error")
    except PellucidError as error:
        yield _event({"error": from_error(error).sentence}, "error")
    else:
        yield _event({"text": "".join(found)}, "end")


def _event(content: dict[str, str], name: str = "") -> bytes:
    data = json.dumps(content, ensure_ascii=False)
    kind = f"event: {name}\n" if name else ""
    return f"{kind}data: {data}\n\n".encode("utf-8", "replace")
