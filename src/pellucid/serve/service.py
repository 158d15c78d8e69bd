"""The application: models, scheduler, routes and their door."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from pellucid.serve.answers.request_bodies import make_schemas
from pellucid.serve.compat.routes import compat_operations
from pellucid.serve.connection.gate import Gate
from pellucid.serve.models import Models
from pellucid.serve.operations import describe
from pellucid.serve.parts import Parts
from pellucid.serve.queue.prometheus import Metrics
from pellucid.serve.queue.scheduler import Scheduler
from pellucid.serve.routes.facts import fact_operations
from pellucid.serve.routes.inside import inside_operations
from pellucid.serve.routes.page_route import Lessons, page_operations
from pellucid.serve.routes.texts import text_operations
from pellucid.serve.settings import Settings
from pellucid.serve.worker.document_worker import DocumentWorker


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
        self.documents = DocumentWorker(settings.limits)
        parts = Parts(models, settings, self.scheduler, self.documents, self.metrics)
        schemas = make_schemas(settings.limits)
        self._description: dict[str, Any] = {}
        self.operations = [
            *text_operations(parts, schemas),  # first, as they are asked for most
            *inside_operations(parts, schemas),
            *fact_operations(parts, self.describe),
            *page_operations(parts, lessons),
            *compat_operations(parts),
        ]
        self._gate = Gate(self.operations, settings, self.scheduler, self.metrics)
        self._has_started = False

    @property
    def app(self) -> ASGIApp:
        """The service as an ASGI application, which any server may run or mount under a path."""
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or start and end with the server."""
        if scope["type"] == "lifespan":
            await receive()
            self.start()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await asyncio.to_thread(self.stop)
            await send({"type": "lifespan.shutdown.complete"})
        elif scope["type"] == "websocket":
            await receive()
            # There are none here; without an answer the client would wait.
            await send({"type": "websocket.close", "code": 1008})
        else:
            self.start()  # An application that is mounted hears of no lifespan.
            await self._gate(scope, receive, send)

    def start(self) -> None:
        """Start to compute unless that has been done, first what every request needs."""
        if not self._has_started:
            self._has_started = True
            self.scheduler.start(self._warm_up)

    def _warm_up(self) -> None:
        """Do once what would hold up the first requests, and import what the event loop would."""
        from pellucid.translate.text_translator import examine

        for module in (
            "starlette.formparsers",
            "starlette.requests",
            "pellucid.text.language_tokens",
        ):
            import_module(module)
        for model in self.models:
            translator = model.translator
            examine(translator, "A word.")
            translator.decoder.describe(translator.options())

    def drain(self) -> None:
        """Say that the server is ending, so that nothing new is sent to it."""
        self._gate.is_draining = True

    def stop(self) -> None:
        """Finish what waits, and stop computing."""
        self.drain()
        self.scheduler.stop(self.settings.limits.drain_seconds)
        self.documents.stop()

    def describe(self) -> dict[str, Any]:
        """Make the OpenAPI description of all routes, once."""
        if not self._description:
            from pellucid import __version__

            info = {
                "title": "Pellucid",
                "description": "Translation, scores, and a look inside. Every text of a request "
                "gets the same answer by itself or together with others.",
                "version": __version__,
            }
            self._description = describe(
                self.operations,
                info,
                has_keys=self.settings.keys is not None,
                keys_in_query=self.settings.keys_in_query,
            )
        return self._description
