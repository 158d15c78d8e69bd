"""The parts of a server that its routes share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pellucid.serve.models import Models, ServedChain, ServedModel
from pellucid.serve.queue.prometheus import Metrics
from pellucid.serve.queue.scheduler import Scheduler
from pellucid.serve.settings import Settings
from pellucid.serve.worker.document_worker import DocumentWorker
from pellucid.translate.constraints import used_terms

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

    def choose(self, body: Any, *, may_chain: bool = False) -> ServedModel:
        """Find the model that a request names, or a chain of several if it can have one."""
        languages = (body.source_language, body.target_language)
        return self.models.choose(body.model, *languages, may_chain=may_chain)

    def count(self, model: ServedModel, task: str, num_texts: int = 1) -> None:
        """Count texts that a model has computed."""
        self.metrics.texts.labels(model.name, task).inc(num_texts)

    async def translate(self, task: Translate, texts: Sequence[Text]) -> list[Translation]:
        """Translate texts together with those of other requests, and count them."""
        if isinstance(task.model, ServedChain):
            return await self._follow(task, texts)
        found: list[Translation] = await self.scheduler.compute(task, texts)
        self.count(task.model, "translate", len(found))
        return found

    async def _follow(self, task: Translate, texts: Sequence[Text]) -> list[Translation]:
        """Translate texts by several models, each step together with what others ask of it."""
        from pellucid.serve.queue.chain_tasks import ChainTask

        chain = ChainTask(task, texts)
        following = chain.begin()
        found: list[Translation] | None = None
        try:
            while True:
                step = next(following) if found is None else following.send(found)
                found = await self.translate(*chain.of(step))
        except StopIteration as end:
            rows = zip(end.value, texts, strict=True)
            return [
                replace(one, terms=used_terms(text.constraints, text.text, one.text))
                for one, text in rows
            ]

    async def aside(self, work: Callable[[], Result], *, cost: int = 1) -> Result:
        """Do some work in turns with what is computed; its cost as for `Scheduler.call`."""
        result: Result = await self.scheduler.call(work, cost=cost)
        return result
