"""A look inside, and what-if."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from starlette.responses import Response

from pellucid.serve.answers.bodies import ChangeAnswer
from pellucid.serve.answers.looking import answer_look as compute_look
from pellucid.serve.answers.looking import change as compute_change
from pellucid.serve.answers.looking import estimate_change, estimate_look
from pellucid.serve.answers.request_bodies import Schemas
from pellucid.serve.answers.responses import NOT_KEPT, Pieces, reply
from pellucid.serve.operations import Operation
from pellucid.serve.parts import Parts
from pellucid.serve.routes.asked_texts import refuse_given
from pellucid.serve.routes.texts import computing

_TRACE = {
    "description": "A trace, as a file of safetensors. Its header holds tokens and records as JSON "
    "text under __metadata__.trace; its tensors are float32, by names such as "
    "decoder.1.cross.weights, layer by layer. Or the same as JSON, if Accept asks for it.",
    "content": {
        "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        "application/json": {"schema": {"type": "object"}},
    },
}

# Bytes of text that a byte of an array becomes in JSON: up to 21 characters for four.
BYTES_IN_JSON = 6


def inside_operations(parts: Parts, schemas: Schemas) -> list[Operation]:
    """Make ``/v1/look`` and ``/v1/change``.

    Args:
        parts: of the server.
        schemas: the classes of requests.
    """
    limits = parts.settings.limits
    scheduler = parts.scheduler

    async def look(body: Any, accept: str) -> Response:
        """Look inside the translation of one line: the arrays of the heads that are asked for.

        The answer is a trace in a file, of safetensors or, with Accept: application/json, of JSON.
        """
        model = parts.choose(body)
        is_json = "application/json" in accept
        most_bytes = limits.look_bytes
        if is_json:
            refuse_given(body, ["n_best"], "Accept: application/json")  # It holds one trace.
            most_bytes = min(most_bytes, limits.response_bytes // BYTES_IN_JSON)
        looking = partial(compute_look, model, body, most_bytes=most_bytes, is_json=is_json)
        work = partial(model.in_memory, looking)
        chunks = await scheduler.call(work, cost=estimate_look(model, body))
        parts.count(model, "look")
        media_type = "application/json" if is_json else "application/octet-stream"
        return Pieces(_one_by_one(chunks), headers=NOT_KEPT, media_type=media_type)

    async def change(body: Any) -> Response:
        """Translate one line again under changes of the model: cut heads, edges or words."""
        model = parts.choose(body)
        work = partial(model.in_memory, partial(compute_change, model, body))
        found = await scheduler.call(work, cost=estimate_change(model, body))
        parts.count(model, "change")
        return reply(found, most_bytes=limits.response_bytes)

    return [
        computing("/v1/look", look, body=schemas.look, gives=_TRACE, tag="inside", has_accept=True),
        computing("/v1/change", change, body=schemas.change, gives=ChangeAnswer, tag="inside"),
    ]


async def _one_by_one(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
