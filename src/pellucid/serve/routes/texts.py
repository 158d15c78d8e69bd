"""Translations, scores and word links of texts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from pellucid.decode.constraints.request import glossary_in
from pellucid.serve.answers.bodies import AlignAnswer, ScoresAnswer, TranslateAnswer
from pellucid.serve.answers.request_bodies import Schemas
from pellucid.serve.answers.responses import about, reply
from pellucid.serve.documents import as_answer, translate_documents
from pellucid.serve.models import ServedModel
from pellucid.serve.operations import DOOR, WORK, Need, Operation
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import AlignTask, ScoreTask, Translate
from pellucid.serve.routes.asked_texts import (
    NOT_IN_HTML,
    PHRASES,
    code_of,
    refuse_given,
    translate_task,
)
from pellucid.serve.routes.streaming import EVENTS, stream_translation
from pellucid.translate.call_options import cross_head
from pellucid.translate.records import score_record, translation_record

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary

# Makes a route under `/v1` that computes; arguments as for `Operation`.
computing = partial(
    Operation,
    "POST",
    need=Need.KEY,
    is_work=True,
    refusals=(401, *DOOR, 415, 422, *WORK),
    tag="texts",
)


# Texts whose answers are written at once, in a millisecond or two.
FEW_TEXTS = 8


def text_operations(parts: Parts, schemas: Schemas) -> list[Operation]:
    """Make ``/v1/translate``, ``/v1/score`` and ``/v1/align``.

    Args:
        parts: models and scheduler.
        schemas: the classes of requests.
    """
    texts = _Texts(parts)
    return [
        computing(
            "/v1/translate",
            texts.translate,
            body=schemas.translate,
            gives=TranslateAnswer,
            also={"text/event-stream": EVENTS},
        ),
        computing("/v1/score", texts.score, body=schemas.score, gives=ScoresAnswer),
        computing("/v1/align", texts.align, body=schemas.align, gives=AlignAnswer),
    ]


class _Texts:
    """Answers to requests about texts; each docstring describes a route to its users."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def translate(self, body: Any) -> Response:
        """Translate texts, with every option of pellucid translate.

        Texts of all clients are computed together. A text that cannot be translated has an error;
        the others are translated. Where no model has both languages, the shortest chain of models
        answers, and "through" says what each model wrote.
        """
        parts = self._parts
        model = parts.choose(body, may_chain=True)
        if body.stream:
            return await stream_translation(parts, body, model)
        make = partial(translate_task, body, model)
        has_phrases = any(getattr(body, name) for name in PHRASES)
        # Finding terms of a glossary takes long enough to hold up the event loop.
        task, texts = await parts.aside(make) if has_phrases else make()
        if body.format == "html":
            return await self._translate_html(body, task, glossary_in(texts[0].constraints))
        found = await parts.translate(task, texts)

        def write() -> Response:
            answers = [
                translation_record(one, has_tokens=body.tokens, has_links=body.align)
                for one in found
            ]
            return self._reply(model, "translations", answers)

        # Hundreds of texts with all their tokens would hold up the event loop.
        return write() if len(found) <= FEW_TEXTS else await asyncio.to_thread(write)

    async def _translate_html(
        self, body: Any, task: Translate, glossary: Glossary | None
    ) -> Response:
        refuse_given(body, NOT_IN_HTML, "format html")
        task = replace(task, align=task.align or ("auto", None, None))
        found = await translate_documents(self._parts, task, body.texts, glossary=glossary)
        answers = [
            {
                "source": source,
                "translation": one.text,
                "error": None,
                "hypotheses": [],
                **as_answer(one.unsure),
                **({"terms": [term.to_dict() for term in one.terms]} if one.terms else {}),
            }
            for source, one in zip(body.texts, found, strict=True)
        ]
        return self._reply(task.model, "translations", answers)

    async def score(self, body: Any) -> Response:
        """Compute the log-probability of given translations."""
        model = self._parts.choose(body)
        task = ScoreTask(model, code_of(body, model), tuple(body.changes))
        found = await self._parts.scheduler.compute(task, _pairs(body))
        self._parts.count(model, "score", len(found))
        answers = [score_record(one, has_tokens=body.tokens and one.error is None) for one in found]
        return self._reply(model, "scores", answers)

    async def align(self, body: Any) -> Response:
        """Link the words of given translations and their sources."""
        model = self._parts.choose(body)
        with about("head"):
            head = cross_head(body.head)
        task = AlignTask(model, body.words_by, *head, to=code_of(body, model))
        found = await self._parts.scheduler.compute(task, _pairs(body))
        self._parts.count(model, "align", len(found))
        answers = [
            {
                "source_words": one.source_words,
                "target_words": one.target_words,
                "alignment": sorted(one.links[0]),
                "error": one.error,
            }
            for one in found
        ]
        return self._reply(model, "alignments", answers)

    def _reply(self, model: ServedModel, name: str, answers: list[dict[str, Any]]) -> Response:
        """Answer with one record for each text."""
        limit = self._parts.settings.limits.response_bytes
        return reply({"model": model.name, name: answers}, most_bytes=limit)


def _pairs(body: Any) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in body.pairs]
