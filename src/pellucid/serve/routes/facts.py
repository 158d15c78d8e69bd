"""The state of the server, its models, and its description."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from pellucid.serve.answers.bodies import ModelsAnswer, StatusAnswer
from pellucid.serve.answers.responses import reply
from pellucid.serve.operations import DOOR, Need, Operation
from pellucid.serve.parts import Parts


def fact_operations(parts: Parts, describe: Callable[[], bytes]) -> list[Operation]:
    """Make ``/livez``, ``/readyz``, ``/metrics``, ``/openapi.json``, ``/spec`` and ``/v1/models``.

    Args:
        parts: models, metrics and limits.
        describe: writes the OpenAPI description.
    """
    known = {
        "models": [model.describe() for model in parts.models],
        "limits": parts.settings.limits.model_dump(),
    }

    async def livez(_: Request) -> Response:
        """Answer if the process is alive."""
        return reply({"status": "ok"})

    async def readyz(_: Request) -> Response:
        """Answer if the server takes requests."""
        return reply({"status": "ok"})

    async def metrics(_: Request) -> Response:
        """Report counts and times for Prometheus."""
        headers = {"Content-Type": "text/plain; version=0.0.4"}
        return Response(parts.metrics.write(), headers=headers)

    async def openapi(_: Request) -> Response:
        """Describe all routes."""
        return Response(await parts.aside(describe), media_type="application/json")

    async def list_models(_: Request) -> Response:
        """List the models, and the limits of requests."""
        return reply(known)

    hidden = partial(Operation, "GET", need=Need.NOTHING)
    state = partial(hidden, refusals=(401, *DOOR), tag="state")
    return [
        state("/livez", livez, gives=StatusAnswer),
        state("/readyz", readyz, gives=StatusAnswer, refusals=(401, *DOOR, 503)),
        state("/metrics", metrics, need=Need.KEY),
        hidden("/openapi.json", openapi),
        hidden("/spec", openapi),  # LibreTranslate's name for it
        state("/v1/models", list_models, need=Need.KEY, gives=ModelsAnswer, tag="models"),
    ]
