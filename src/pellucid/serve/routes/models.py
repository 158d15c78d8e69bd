"""The state of the server and its models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pellucid.serve.answers import ModelsAnswer, ProblemAnswer, StatusAnswer
from pellucid.serve.parts import Parts
from pellucid.serve.responses import PROBLEMS, Reply, reply
from pellucid.serve.table import Table

READING: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemAnswer, "description": PROBLEMS[status]}
    for status in (401, 403, 408, 413, 421)
}


def add_model_routes(routes: Table, parts: Parts, describe: Callable[[], bytes]) -> None:
    """Add ``/livez``, ``/readyz``, ``/metrics``, ``/openapi.json`` and ``/v1/models``.

    Args:
        routes: the table to add them to.
        parts: models, metrics and limits.
        describe: writes the OpenAPI description.
    """
    models = [model.describe() for model in parts.models]
    limits = parts.settings.limits.model_dump()

    @routes.get("/livez", response_model=StatusAnswer, responses=READING, tags=["state"])
    async def livez() -> Reply:
        """Answer if the process is alive."""
        return reply({"status": "ok"})

    ending: dict[int | str, dict[str, Any]] = {
        **READING,
        503: {"model": ProblemAnswer, "description": PROBLEMS[503]},
    }

    @routes.get("/readyz", response_model=StatusAnswer, responses=ending, tags=["state"])
    async def readyz() -> Reply:
        """Answer if the server takes requests."""
        return reply({"status": "ok"})

    @routes.get("/metrics", responses=READING, tags=["state"])
    async def metrics() -> Reply:
        """Report counts and times for Prometheus."""
        return Reply(parts.metrics.write(), media_type="text/plain; version=0.0.4")

    @routes.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Reply:
        """Describe all routes."""
        return Reply(await parts.aside(describe))

    @routes.get("/v1/models", response_model=ModelsAnswer, responses=READING, tags=["models"])
    async def list_models() -> Reply:
        """List the models, and the limits of requests."""
        return reply({"models": models, "limits": limits})
