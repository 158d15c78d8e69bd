"""Translation and scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pellucid.serve.answers import ProblemAnswer, ScoresAnswer, TranslateAnswer
from pellucid.serve.asking import refuse_with_html, translate_task
from pellucid.serve.markup.translating import translate_markup
from pellucid.serve.parts import Parts
from pellucid.serve.responses import PROBLEMS, Reply, reply
from pellucid.serve.schemas import Schemas
from pellucid.serve.table import Table
from pellucid.serve.tasks import Score, Translate, refuse_if_too_large
from pellucid.translate.records import score_record, translation_record


def refusals() -> dict[int | str, dict[str, Any]]:
    """Describe the answers of a route that computes, other than its result."""
    return {
        status: {"model": ProblemAnswer, "description": text} for status, text in PROBLEMS.items()
    }


def add_text_routes(routes: Table, parts: Parts, schemas: Schemas) -> None:
    """Add ``/v1/translate`` and ``/v1/score``.

    Args:
        routes: the table to add them to.
        parts: models and scheduler.
        schemas: the classes of requests.
    """
    limit = parts.settings.limits.response_bytes

    @routes.post(
        "/v1/translate",
        body=schemas.translate,
        response_model=TranslateAnswer,
        responses=refusals(),
        tags=["texts"],
    )
    async def translate(body: Any) -> Reply:
        """Translate texts, with every option of pellucid translate.

        Texts of all clients are computed together. A text that cannot be translated has an error;
        the others are translated.
        """
        model = parts.models.choose(body.model, body.source, body.target)
        task, texts = translate_task(body, model)
        if body.format == "html":
            return await _translate_html(body, task)
        found = await parts.scheduler.compute(task, texts)
        parts.metrics.texts.labels(model.name, "translate").inc(len(found))
        answers = [
            {
                "text": one.text,
                **translation_record(one, has_tokens=body.tokens, has_links=body.align),
            }
            for one in found
        ]
        answer = reply({"model": model.name, "translations": answers})
        refuse_if_too_large(len(answer.body), limit)
        return answer

    async def _translate_html(body: Any, task: Translate) -> Reply:
        refuse_with_html(body)
        task = replace(task, align=task.align or ("auto", None, None))
        found = await translate_markup(parts, task, body.texts)
        answers: list[dict[str, Any]] = [
            {"text": text, "error": None, "hypotheses": []} for text in found
        ]
        answer = reply({"model": task.model.name, "translations": answers})
        refuse_if_too_large(len(answer.body), limit)
        return answer

    @routes.post(
        "/v1/score",
        body=schemas.score,
        response_model=ScoresAnswer,
        responses=refusals(),
        tags=["texts"],
    )
    async def score(body: Any) -> Reply:
        """Compute the log-probability of given translations."""
        model = parts.models.choose(body.model, body.source, body.target)
        pairs = [(pair.source, pair.target) for pair in body.pairs]
        found = await parts.scheduler.compute(Score(model, body.to), pairs)
        parts.metrics.texts.labels(model.name, "score").inc(len(found))
        answers = [score_record(one, has_tokens=body.tokens and one.error is None) for one in found]
        answer = reply({"model": model.name, "scores": answers})
        refuse_if_too_large(len(answer.body), limit)
        return answer
