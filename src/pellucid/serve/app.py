"""The application: models, scheduler, routes and their door."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from pellucid.serve.compat.routes import add_compat_routes
from pellucid.serve.gate import Gate
from pellucid.serve.metrics import Metrics
from pellucid.serve.models import Models
from pellucid.serve.page import Lessons
from pellucid.serve.parts import Parts
from pellucid.serve.routes.inside import add_inside_routes
from pellucid.serve.routes.models import add_model_routes
from pellucid.serve.routes.page import add_page_route
from pellucid.serve.routes.texts import add_text_routes
from pellucid.serve.scheduler import Scheduler
from pellucid.serve.schemas import make_schemas
from pellucid.serve.settings import Settings
from pellucid.serve.table import Table


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
        self.table = self._make_table()
        self.app = Gate(self.table, settings, self.scheduler, self.metrics)

    def start(self) -> None:
        """Start to compute, first what every request needs."""
        self.scheduler.start(self._warm_up)

    def _warm_up(self) -> None:
        """Do once what would hold up the first requests, and import what the event loop would."""
        for module in ("starlette.formparsers", "starlette.requests", "pellucid.text.codes"):
            import_module(module)
        for model in self.models:
            model.translator.examine("A word.")
            model.translator.describe_engine()

    def drain(self) -> None:
        """Say that the server is ending, so that nothing new is sent to it."""
        self.app.is_draining = True

    def stop(self) -> None:
        """Finish what waits, and stop computing."""
        self.drain()
        self.scheduler.stop(self.settings.limits.drain_seconds)

    def _make_table(self) -> Table:
        from pellucid import __version__

        table = Table(
            "Pellucid",
            __version__,
            "Translation, scores, and a look inside. Every text of a request gets the same answer "
            "by itself or together with others.",
        )
        schemas = make_schemas(self.settings.limits)
        add_model_routes(table, self.parts, self.describe)
        add_page_route(table, self.parts, self._lessons)
        add_text_routes(table, self.parts, schemas)
        add_inside_routes(table, self.parts, schemas)
        add_compat_routes(table, self.parts, self.describe)
        return table

    def describe(self) -> bytes:
        """Write the OpenAPI description of all routes."""
        if self._description:
            return self._description
        document = self.table.describe()
        if self.settings.keys is not None:
            document["components"]["securitySchemes"] = {
                "key": {"type": "http", "scheme": "bearer"}
            }
            document["security"] = [{"key": []}]
        self._description = json.dumps(document).encode()
        return self._description
