"""The application: models, scheduler, routes and their door."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pellucid.errors import PellucidError, shorten
from pellucid.serve.compat.routes import add_compat_routes
from pellucid.serve.gate import Gate
from pellucid.serve.metrics import Metrics
from pellucid.serve.models import Models
from pellucid.serve.page import Lessons
from pellucid.serve.parts import Parts
from pellucid.serve.problems import Problem, from_error
from pellucid.serve.responses import reply
from pellucid.serve.routes.inside import add_inside_routes
from pellucid.serve.routes.models import add_model_routes
from pellucid.serve.routes.page import add_page_route
from pellucid.serve.routes.texts import add_text_routes
from pellucid.serve.scheduler import Scheduler
from pellucid.serve.schemas import make_schemas
from pellucid.serve.settings import Settings

__all__ = ["Service"]


def _no_lessons(_bundle: object) -> tuple[list[dict[str, Any]], str]:
    return [], ""


class Service:
    """Everything of a server but its sockets.

    Args:
        models: the models.
        settings: limits, keys, hosts.
        lessons: makes the lessons of the page for a model that runs in it.
    """

    def __init__(
        self, models: Models, settings: Settings, *, lessons: Lessons = _no_lessons
    ) -> None:
        self.models = models
        self.settings = settings
        self.metrics = Metrics()
        self.scheduler = Scheduler(settings.limits, self.metrics)
        self.parts = Parts(models, settings, self.scheduler, self.metrics)
        self._description = b""
        self._lessons = lessons
        self.routes = self._make_routes()
        self.app = Gate(self.routes, settings, self.scheduler, self.metrics)

    def start(self) -> None:
        """Start to compute."""
        self.scheduler.start()

    def drain(self) -> None:
        """Say that the server is ending, so that nothing new is sent to it."""
        self.app.is_draining = True

    def stop(self) -> None:
        """Finish what waits, and stop computing."""
        self.drain()
        self.scheduler.stop(self.settings.limits.drain_seconds)

    def _make_routes(self) -> FastAPI:
        from pellucid import __version__

        routes = FastAPI(
            title="Pellucid",
            version=__version__,
            description="Translation, scores, and a look inside. Every text of a request gets the "
            "same answer by itself or together with others.",
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            redirect_slashes=False,
            exception_handlers=_handlers(),
        )
        schemas = make_schemas(self.settings.limits)
        add_model_routes(routes, self.parts, self.describe)
        add_page_route(routes, self.parts, self._lessons)
        add_text_routes(routes, self.parts, schemas)
        add_inside_routes(routes, self.parts, schemas)
        add_compat_routes(routes, self.parts, self.describe)
        return routes

    def describe(self) -> bytes:
        """Write the OpenAPI description of all routes."""
        if self._description:
            return self._description
        document = self.routes.openapi()
        if self.settings.keys is not None:
            document["components"]["securitySchemes"] = {
                "key": {"type": "http", "scheme": "bearer"}
            }
            document["security"] = [{"key": []}]
        self._description = json.dumps(document).encode()
        return self._description


_UNREADABLE = "There was an error parsing the body."
"""What FastAPI says of a body that is not UTF-8."""


def _handlers() -> dict[int | type[Exception], Callable[[Request, Any], Any]]:
    async def on_problem(_request: Request, problem: Problem) -> Response:
        return reply({"error": problem.sentence}, problem.status, problem.headers)

    async def on_error(_request: Request, error: PellucidError) -> Response:
        problem = from_error(error)
        return reply({"error": problem.sentence}, problem.status)

    async def on_http(_request: Request, error: HTTPException) -> Response:
        sentence = f"{str(error.detail).removesuffix('.')}."
        if sentence == _UNREADABLE:
            sentence = "The body must be JSON in UTF-8, but cannot be decoded. Check its encoding."
        return reply({"error": sentence}, error.status_code, error.headers)

    async def on_invalid(_request: Request, error: RequestValidationError) -> Response:
        return reply({"error": _sentence(error.errors())}, 422)

    async def on_failure(_request: Request, _error: Exception) -> Response:
        return reply({"error": "The server failed on this request. This is a bug."}, 500)

    return {
        Problem: on_problem,
        PellucidError: on_error,
        HTTPException: on_http,
        RequestValidationError: on_invalid,
        Exception: on_failure,
    }


def _sentence(faults: Sequence[Any]) -> str:
    """Say what is wrong with a body in one sentence, without repeating the text."""
    first = faults[0]
    place = ".".join(map(str, first["loc"][1:])) or "The body"
    kind = first["type"]
    if kind == "json_invalid":
        return "The body must be JSON, but is not. Check its syntax."
    if kind == "missing":
        return f"{shorten(place)} is missing. Add it."
    if kind == "extra_forbidden":
        return f"{shorten(place)[:200]} is unknown. See /openapi.json for the fields."
    rule = re.sub(r"^(Value error, |\w+ should )", "", str(first["msg"]))
    rule = re.sub(r" after validation, not \d+$", "", rule)
    return shorten(f"{place[:200]} should {rule[:1].lower()}{rule[1:]}. Change it.")
