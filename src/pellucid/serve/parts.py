"""The parts of a server that its routes share."""

from __future__ import annotations

from dataclasses import dataclass

from pellucid.serve.metrics import Metrics
from pellucid.serve.models import Models
from pellucid.serve.scheduler import Scheduler
from pellucid.serve.settings import Settings

__all__ = ["Parts"]


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
