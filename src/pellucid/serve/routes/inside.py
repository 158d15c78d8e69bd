"""A look inside, and what-if."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from starlette.responses import Response

from pellucid.serve.answers.bodies import ChangeAnswer
from pellucid.serve.answers.looking import answer_look as compute_look
from pellucid.serve.answers.looking import change as compute_change
from pellucid.serve.answers.looking import estimate_change, estimate_look, write_trace
from pellucid.serve.answers.request_bodies import Schemas
from pellucid.serve.answers.responses import NOT_KEPT, Pieces, reply
from pellucid.serve.operations import Operation
from pellucid.serve.parts import Parts
from pellucid.serve.routes.texts import computing

_TRACE = {
    "description": "A file of safetensors. Its header holds the tokens and records of the trace as "
    "JSON text under __metadata__.trace; its tensors are float32, by names such as "
    "decoder.1.cross.weights, layer by layer.",
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}


def inside_operations(parts: Parts, schemas: Schemas) -> list[Operation]:
    """Make ``/v1/look`` and ``/v1/change``.

    Args:
        parts: of the server.
        schemas: the classes of requests.
    """
    limits = parts.settings.limits
    scheduler = parts.scheduler

    async def look(body: Any) -> Response:
        """Look inside the translation of one line: the arrays of the layers that are asked for."""
        model = parts.choose(body)
        work = partial(compute_look, model, body, most_bytes=limits.look_bytes)
        records, arrays = await scheduler.call(work, cost=estimate_look(model, body))
        parts.count(model, "look")
        written = _one_by_one(write_trace(records, arrays))
        return Pieces(written, headers=NOT_KEPT, media_type="application/octet-stream")

    async def change(body: Any) -> Response:
        """Translate one line again under changes of the model: cut heads, edges or words."""
        model = parts.choose(body)
        work = partial(compute_change, model, body)
        found = await scheduler.call(work, cost=estimate_change(body))
        parts.count(model, "change")
        return reply(found, most_bytes=limits.response_bytes)

    return [
        computing("/v1/look", look, body=schemas.look, gives=_TRACE, tag="inside"),
        computing("/v1/change", change, body=schemas.change, gives=ChangeAnswer, tag="inside"),
    ]


async def _one_by_one(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
