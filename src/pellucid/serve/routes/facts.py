"""The state of the server, its models, and its description."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from pellucid.serve.answers.bodies import ModelsAnswer, StatusAnswer
from pellucid.serve.answers.responses import reply
from pellucid.serve.operations import BASE, DOOR, Need, Operation
from pellucid.serve.parts import Parts
from pellucid.serve.routes.docs_page import write_docs

# Nothing is loaded: the page is text with its own style.
_PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


def fact_operations(parts: Parts, describe: Callable[[], dict[str, Any]]) -> list[Operation]:
    """Make ``/livez``, ``/readyz``, ``/metrics``, ``/openapi.json``, ``/docs`` and ``/v1/models``.

    ``/spec`` is LibreTranslate's name for ``/openapi.json``.

    Args:
        parts: models, metrics and limits.
        describe: makes the OpenAPI description.
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

    async def openapi(request: Request) -> Response:
        """Describe all routes."""
        # As the client sees the server, which may stand behind a proxy.
        servers = [{"url": request.scope[BASE]}]
        document = await parts.aside(describe)
        return reply({**document, "servers": servers})

    async def docs(_: Request) -> Response:
        """Show all routes as a page."""
        page = await parts.aside(lambda: write_docs(describe()))
        headers = {"Content-Security-Policy": _PAGE_POLICY, "X-Frame-Options": "DENY"}
        return Response(page, headers=headers, media_type="text/html; charset=utf-8")

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
        hidden("/spec", openapi),
        hidden("/docs", docs),
        state("/v1/models", list_models, need=Need.KEY, gives=ModelsAnswer, tag="models"),
    ]
