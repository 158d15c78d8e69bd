"""The parts of a server that its routes share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pellucid.serve.models import Models, ServedModel
from pellucid.serve.queue.prometheus import Metrics
from pellucid.serve.queue.scheduler import Scheduler
from pellucid.serve.settings import Settings
from pellucid.serve.worker.document_worker import DocumentWorker

if TYPE_CHECKING:
    from pellucid.serve.queue.tasks import Text, Translate
    from pellucid.translate.results import Translation

Result = TypeVar("Result")


@dataclass(frozen=True)
class Parts:
    """The parts of a server.

    Attributes:
        models: the models.
        settings: limits, keys, hosts.
        scheduler: computes.
        documents: reads and writes documents.
        metrics: counts.
    """

    models: Models
    settings: Settings
    scheduler: Scheduler
    documents: DocumentWorker
    metrics: Metrics

    def choose(self, body: Any) -> ServedModel:
        """Find the model that the body of a request names."""
        return self.models.choose(body.model, body.source_language, body.target_language)

    def count(self, model: ServedModel, task: str, num_texts: int = 1) -> None:
        """Count texts that a model has computed."""
        self.metrics.texts.labels(model.name, task).inc(num_texts)

    async def translate(self, task: Translate, texts: Sequence[Text]) -> list[Translation]:
        """Translate texts together with those of other requests, and count them."""
        found: list[Translation] = await self.scheduler.compute(task, texts)
        self.count(task.model, "translate", len(found))
        return found

    async def aside(self, work: Callable[[], Result]) -> Result:
        """Do some work that needs no model, in turns with what is computed."""
        result: Result = await self.scheduler.call(work)
        return result
