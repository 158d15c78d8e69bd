"""Translation token by token, a look inside, and what-if."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from starlette.responses import Response

from pellucid.errors import PellucidError
from pellucid.serve.answers.bodies import ChangeAnswer, Schemas
from pellucid.serve.answers.looking import answer_look as compute_look
from pellucid.serve.answers.looking import change as compute_change
from pellucid.serve.answers.looking import estimate_change, estimate_look
from pellucid.serve.answers.responses import NOT_KEPT, Pieces, Problem, from_error, reply
from pellucid.serve.operations import Operation
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import Text, Translate
from pellucid.serve.routes.texts import all_constraints, computing, decoding_of

_TRACE = {
    "description": "A file of safetensors. Its header holds the tokens and records of the trace as "
    "JSON text under __metadata__.trace; its tensors are float32, by names such as "
    "decoder.1.cross.weights, layer by layer.",
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}
_ONE_EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["message", "end", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["data"],
}
_EVENTS = {
    "description": 'Server-sent events: {"text": "…"} for each piece as soon as it is decided, '
    'then an event "end" with the whole text, or an event "error".',
    "content": {"text/event-stream": {"schema": _ONE_EVENT}},
}


def inside_operations(parts: Parts, schemas: Schemas) -> list[Operation]:
    """Make ``/v1/stream``, ``/v1/look`` and ``/v1/change``.

    Args:
        parts: of the server.
        schemas: the classes of requests.
    """
    limits = parts.settings.limits
    scheduler = parts.scheduler

    async def stream(body: Any) -> Response:
        """Translate one text, and send its translation piece by piece."""
        model = parts.choose(body)
        options = decoding_of(body, model)
        cost = Translate(model, options).cost(Text(body.text))

        def make() -> Iterator[str]:
            (constraints,) = all_constraints(body, model, [body.text])
            return model.translator.stream(
                body.text,
                constraints=constraints,
                clean=body.clean,
                split=body.split,
                split_long=body.split_long,
                to=body.to,
                **dict(options),
            )

        pieces = scheduler.stream(make, cost=cost)
        # What is wrong with a request shows at the first piece, before the answer begins.
        first = await anext(pieces, None)
        parts.count(model, "stream")
        headers = {
            **NOT_KEPT,
            "Content-Type": "text/event-stream",
            "X-Accel-Buffering": "no",
        }
        return Pieces(_events(first, pieces), headers=headers)

    async def look(body: Any) -> Response:
        """Look inside the translation of one line: the arrays of the layers that are asked for."""
        from pellucid.inside.record.tensor_files import tensor_chunks

        model = parts.choose(body)
        work = partial(compute_look, model, body, most_bytes=limits.look_bytes)
        records, arrays = await scheduler.call(work, cost=estimate_look(model, body))
        parts.count(model, "look")
        written = _one_by_one(tensor_chunks(records, arrays))
        return Pieces(written, headers=NOT_KEPT, media_type="application/octet-stream")

    async def change(body: Any) -> Response:
        """Translate one line again under changes of the model: cut heads, edges or words."""
        model = parts.choose(body)
        work = partial(compute_change, model, body)
        found = await scheduler.call(work, cost=estimate_change(body))
        parts.count(model, "change")
        return reply(found, most_bytes=limits.response_bytes)

    return [
        computing("/v1/stream", stream, body=schemas.stream, gives=_EVENTS),
        computing("/v1/look", look, body=schemas.look, gives=_TRACE, tag="inside"),
        computing("/v1/change", change, body=schemas.change, gives=ChangeAnswer, tag="inside"),
    ]


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
