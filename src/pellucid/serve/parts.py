"""The parts of a server that its routes share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pellucid.serve.models import Models
from pellucid.serve.queue.prometheus import Metrics
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

    async def aside(self, work: Callable[[], Result]) -> Result:
        """Do some work that needs no model, in turns with what is computed."""
        result: Result = await self.scheduler.call(work)
        return result
