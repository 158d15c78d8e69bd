"""A server in this process, on a free port, for tests that speak HTTP to it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import httpx

from pellucid.serve.connection.server import ServiceServer, bind
from pellucid.serve.models import Models
from pellucid.serve.operations import Need
from pellucid.serve.service import Service
from pellucid.serve.settings import Settings

_OPEN, _KEY, _BODY = Need.NOTHING, Need.KEY, Need.KEY_IN_BODY

ROUTES: Mapping[tuple[str, str], Need] = {
    ("GET", "/"): _OPEN,
    ("GET", "/livez"): _OPEN,
    ("GET", "/readyz"): _OPEN,
    ("GET", "/metrics"): _KEY,
    ("GET", "/openapi.json"): _OPEN,
    ("GET", "/docs"): _OPEN,
    ("GET", "/v1/models"): _KEY,
    ("POST", "/v1/translate"): _KEY,
    ("POST", "/v1/score"): _KEY,
    ("POST", "/v1/align"): _KEY,
    ("POST", "/v1/look"): _KEY,
    ("POST", "/v1/change"): _KEY,
    ("GET", "/languages"): _OPEN,
    ("GET", "/frontend/settings"): _OPEN,
    ("GET", "/health"): _OPEN,
    ("GET", "/spec"): _OPEN,
    ("POST", "/translate"): _BODY,
    ("POST", "/detect"): _BODY,
    ("POST", "/suggest"): _BODY,
    ("POST", "/translate_file"): _BODY,
    ("GET", "/download_file/{name}"): _OPEN,
}
"""Every route of a server, and the key that it needs."""


class Live:
    """A running server.

    Args:
        models: its models.
        settings: its settings; the port is chosen.
    """

    def __init__(self, models: Models, settings: Settings | None = None) -> None:
        self.service = Service(models, replace(settings or Settings(), port=0))
        self._socket = bind(self.service.settings)
        self._socket.listen(1024)
        self.host, self.port = self._socket.getsockname()[:2]
        self.url = f"http://{self.host}:{self.port}"
        self.server = ServiceServer(self.service)
        self._thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self.client = httpx.Client(base_url=self.url, timeout=60)

    def __enter__(self) -> Self:
        self.service.start()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.client.close()
        self.server.should_exit = True
        self._thread.join(30)
        self.service.stop()

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        """Send JSON."""
        return self.client.post(path, json=body, **options)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Fetch an address."""
        return self.client.get(path, headers=headers)

    def figure(self, name: str) -> float:
        """Read a figure of the metrics, such as ``pellucid_queue_requests``."""
        value = self.service.metrics.registry.get_sample_value(name)
        assert value is not None, name
        return value
