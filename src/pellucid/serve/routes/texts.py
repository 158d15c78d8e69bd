"""Translation and scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fastapi import FastAPI
from starlette.responses import Response

from pellucid.serve.answers import ProblemAnswer, ScoresAnswer, TranslateAnswer
from pellucid.serve.asking import refuse_with_html, score_record, translate_task, translation_record
from pellucid.serve.markup.translating import translate_markup
from pellucid.serve.parts import Parts
from pellucid.serve.responses import PROBLEMS, reply
from pellucid.serve.schemas import Schemas
from pellucid.serve.tasks import Score, Translate, refuse_if_too_large

__all__ = ["add_text_routes", "refusals", "takes"]


def refusals() -> dict[int | str, dict[str, Any]]:
    """Describe the answers of a route that computes, other than its result."""
    return {
        status: {"model": ProblemAnswer, "description": text} for status, text in PROBLEMS.items()
    }


def takes(body: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say of which class the body of a route is; the class is made when the server starts."""

    def decorate(route: Callable[..., Any]) -> Callable[..., Any]:
        route.__annotations__["body"] = body
        return route

    return decorate


def add_text_routes(routes: FastAPI, parts: Parts, schemas: Schemas) -> None:
    """Add ``/v1/translate`` and ``/v1/score``.

    Args:
        routes: the application.
        parts: models and scheduler.
        schemas: the classes of requests.
    """
    limit = parts.settings.limits.response_bytes

    @routes.post(
        "/v1/translate", response_model=TranslateAnswer, responses=refusals(), tags=["texts"]
    )
    @takes(schemas.translate)
    async def translate(body: Any) -> Response:
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
            translation_record(one, has_tokens=body.tokens, has_links=body.align) for one in found
        ]
        answer = reply({"model": model.name, "translations": answers})
        refuse_if_too_large(len(answer.body), limit)
        return answer

    async def _translate_html(body: Any, task: Translate) -> Response:
        refuse_with_html(body)
        task = replace(task, align=task.align or ("auto", None, None))
        found = await translate_markup(parts, task, body.texts)
        answers: list[dict[str, Any]] = [
            {"text": text, "error": None, "hypotheses": []} for text in found
        ]
        answer = reply({"model": task.model.name, "translations": answers})
        refuse_if_too_large(len(answer.body), limit)
        return answer

    @routes.post("/v1/score", response_model=ScoresAnswer, responses=refusals(), tags=["texts"])
    @takes(schemas.score)
    async def score(body: Any) -> Response:
        """Compute the log-probability of given translations."""
        model = parts.models.choose(body.model, body.source, body.target)
        pairs = [(pair.source, pair.target) for pair in body.pairs]
        found = await parts.scheduler.compute(Score(model, body.to), pairs)
        parts.metrics.texts.labels(model.name, "score").inc(len(found))
        answers = [score_record(one, has_tokens=body.tokens) for one in found]
        answer = reply({"model": model.name, "scores": answers})
        refuse_if_too_large(len(answer.body), limit)
        return answer
