"""The parts of a server that its routes share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from pellucid.serve.models import Models
from pellucid.serve.queue.metrics import Metrics
from pellucid.serve.queue.scheduler import Scheduler
from pellucid.serve.settings import Settings

Result = TypeVar("Result")


@dataclass(frozen=True)
class Parts:
    """The parts of a server.

    Attributes:
        models: the models.
        settings: limits, keys, hosts.
        scheduler: computes.
        metrics: counts.
    """

    models: Models
    settings: Settings
    scheduler: Scheduler
    metrics: Metrics
    # One thread: each one more that runs Python takes its share of the event loop's time.
    _aside: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "pellucid-aside"), repr=False
    )

    async def aside(self, work: Callable[[], Result]) -> Result:
        """Do some work that needs no model, next to what is computed."""
        return await asyncio.get_running_loop().run_in_executor(self._aside, work)
