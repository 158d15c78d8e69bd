"""Translation and scores: from the body of a request to work on its texts, and to an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from pellucid.config import TreatmentConfig
from pellucid.decode.constraints.request import Constraints
from pellucid.serve.answers.bodies import (
    DECODING,
    Schemas,
    ScoresAnswer,
    TranslateAnswer,
    given_fields,
)
from pellucid.serve.answers.responses import Problem, reply
from pellucid.serve.documents import translate_documents
from pellucid.serve.models import Options, ServedModel
from pellucid.serve.operations import DOOR, WORK, Need, Operation
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import ScoreTask, Text, Translate
from pellucid.translate.constraints import constraints_of, fit_glossary
from pellucid.translate.records import score_record, translation_record

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary
    from pellucid.decode.constraints.request import LineConstraints

# The fields that say what a translation may and must contain, other than how it begins.
PHRASES = ("forbid", "require", "require_each", "glossary")

TREATMENT = tuple(TreatmentConfig.model_fields)


# Makes a route under `/v1` that computes; arguments as for `Operation`.
computing = partial(
    Operation,
    "POST",
    need=Need.KEY,
    is_work=True,
    refusals=(401, *DOOR, 422, *WORK),
    tag="texts",
)


def text_operations(parts: Parts, schemas: Schemas) -> list[Operation]:
    """Make ``/v1/translate`` and ``/v1/score``.

    Args:
        parts: models and scheduler.
        schemas: the classes of requests.
    """
    limit = parts.settings.limits.response_bytes

    async def translate(body: Any) -> Response:
        """Translate texts, with every option of pellucid translate.

        Texts of all clients are computed together. A text that cannot be translated has an error;
        the others are translated.
        """
        model = parts.choose(body)
        make = partial(translate_task, body, model)
        has_phrases = any(getattr(body, name) for name in PHRASES)
        # Finding terms of a glossary takes long enough to hold up the event loop.
        task, texts = await parts.aside(make) if has_phrases else make()
        if body.format == "html":
            return await _translate_html(body, task)
        found = await parts.translate(task, texts)
        answers = [
            {
                "text": one.text,
                **translation_record(one, has_tokens=body.tokens, has_links=body.align),
            }
            for one in found
        ]
        return reply({"model": model.name, "translations": answers}, most_bytes=limit)

    async def _translate_html(body: Any, task: Translate) -> Response:
        refuse_with_html(body)
        task = replace(task, align=task.align or ("auto", None, None))
        found = await translate_documents(parts, task, body.texts)
        answers: list[dict[str, Any]] = [
            {"text": text, "error": None, "hypotheses": []} for text in found
        ]
        return reply({"model": task.model.name, "translations": answers}, most_bytes=limit)

    async def score(body: Any) -> Response:
        """Compute the log-probability of given translations."""
        model = parts.choose(body)
        pairs = [(pair.source, pair.target) for pair in body.pairs]
        found = await parts.scheduler.compute(ScoreTask(model, body.to), pairs)
        parts.count(model, "score", len(found))
        answers = [score_record(one, has_tokens=body.tokens and one.error is None) for one in found]
        return reply({"model": model.name, "scores": answers}, most_bytes=limit)

    return [
        computing("/v1/translate", translate, body=schemas.translate, gives=TranslateAnswer),
        computing("/v1/score", score, body=schemas.score, gives=ScoresAnswer),
    ]


def decoding_of(body: Any, model: ServedModel) -> Options:
    """Take the decoding options that a request gives, and refuse a language that is not there.

    Raises:
        InputError: the options are impossible, or the model has no such language.
    """
    is_plain = not any(getattr(body, name, None) for name in (*PHRASES, "retry"))
    options = model.decide(given_fields(body, DECODING), is_plain=is_plain)
    if body.to is not None:
        from pellucid.text.language_tokens import find_code

        find_code(model.translator.tokenizer, body.to)
    return options


def translate_task(body: Any, model: ServedModel) -> tuple[Translate, list[Text]]:
    """Turn a request for translations into work.

    Raises:
        InputError: its options are impossible.
        Problem: two of its parts contradict each other.
    """
    options = decoding_of(body, model)
    treatment = [(name, getattr(body, name)) for name in TREATMENT]
    if body.to is not None:
        treatment.append(("to", body.to))
    if (body.align_layer, body.align_head) != (None, None) and not body.align:
        raise Problem(422, "align_layer and align_head need align. Add it, or leave them out.")
    align = (body.words_by, body.align_layer, body.align_head) if body.align else None
    for name in ("prefixes", "require_each"):
        each = getattr(body, name)
        if each is not None and len(each) != len(body.texts):
            raise Problem(
                422,
                f"{name} must have one entry for each text, but has {len(each)} for "
                f"{len(body.texts)} texts.",
            )
    if body.prefix and body.prefixes is not None:
        raise Problem(422, "prefix cannot be combined with prefixes. Leave one out.")
    task = Translate(model, options, tuple(treatment), align)
    return task, list(map(Text, body.texts, all_constraints(body, model, body.texts)))


def refuse_with_html(body: Any) -> None:
    """Refuse what a request for HTML cannot have: its texts are cut into sentences.

    Raises:
        Problem: 422, a field belongs to single texts.
    """
    given = ("prefix", "prefixes", "forbid", "require", "require_each", "glossary", "tokens")
    named = [name for name in given if getattr(body, name)]
    if (body.n_best or 1) > 1:
        named.append("n_best")
    if named:
        raise Problem(422, f"{named[0]} cannot be combined with format html. Leave it out.")


def all_constraints(body: Any, model: ServedModel, texts: Sequence[str]) -> list[LineConstraints]:
    """Build the constraints of each text.

    Args:
        body: a request.
        model: the model.
        texts: its texts.
    """
    prefixes = getattr(body, "prefixes", None) or [body.prefix] * len(texts)
    if not any(getattr(body, name, None) for name in PHRASES):
        return list(map(Constraints, prefixes))
    glossary = _glossary(body, model)
    rows = getattr(body, "require_each", None) or [()] * len(texts)
    phrases = (*body.forbid, *body.require, *(phrase for row in rows for phrase in row))
    if not all(map(str.strip, phrases)):
        raise Problem(422, "A phrase must hold text, but one is blank. Leave it out.")
    forbidden = tuple(body.forbid)
    return [
        constraints_of(text, prefix, forbidden, body.require, row, glossary)
        for text, prefix, row in zip(texts, prefixes, rows, strict=True)
    ]


def _glossary(body: Any, model: ServedModel) -> Glossary | None:
    if not body.glossary:
        return None
    from pellucid.decode.constraints.glossary import Glossary

    terms: dict[str, str] = {}
    for term in body.glossary:
        if not term.source.strip() or not term.target.strip():
            raise Problem(422, "A term of the glossary must hold text on both sides.")
        if terms.setdefault(term.source, term.target) != term.target:
            raise Problem(
                422, "A source term of the glossary must have one target term, but one has two."
            )
    return fit_glossary(Glossary(terms, match=body.glossary_match), model.translator)
