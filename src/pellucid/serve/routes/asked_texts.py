"""From the body of a request to work on its texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pellucid.config import TreatmentConfig
from pellucid.decode.constraints.request import Constraints
from pellucid.errors import not_together
from pellucid.serve.answers.given_glossaries import fit_to_model, join_terms
from pellucid.serve.answers.request_bodies import DECODING, given_fields
from pellucid.serve.answers.responses import Problem, about
from pellucid.serve.models import Options, ServedModel
from pellucid.serve.queue.tasks import Text, Translate
from pellucid.translate.call_options import cross_head
from pellucid.translate.constraints import constraints_of

if TYPE_CHECKING:
    from pellucid.decode.constraints.request import LineConstraints

# The fields that say what a translation may and must contain, other than how it begins.
PHRASES = ("forbid", "require", "require_each", "glossary")

TREATMENT = tuple(TreatmentConfig.model_fields)

# What belongs to single texts, since the texts of a document are cut into sentences.
NOT_IN_HTML = (
    *("prefix", "prefixes", "forbid", "require", "require_each", "tokens"),
    *("n_best", "alternatives", "changes"),
)

APART = "not_together"


def code_of(body: Any, model: ServedModel) -> str | None:
    """Return the language that every text must name, if the model has several."""
    return model.code_of(body.source_language, body.target_language)


def decoding_of(body: Any, model: ServedModel) -> Options:
    """Take the decoding options that a request gives.

    Raises:
        InputError: the options are impossible.
    """
    is_plain = not any(getattr(body, name, None) for name in (*PHRASES, "retry"))
    return model.decide(given_fields(body, DECODING), is_plain=is_plain)


def translate_task(body: Any, model: ServedModel) -> tuple[Translate, list[Text]]:
    """Turn a request for translations into work.

    Raises:
        InputError: its options are impossible.
        Problem: two of its parts contradict each other.
    """
    options = decoding_of(body, model)
    treatment = [(name, getattr(body, name)) for name in TREATMENT]
    if (code := code_of(body, model)) is not None:
        treatment.append(("to", code))
    for name in ("align_head", "words_by"):
        if name in body.model_fields_set and not body.align:
            raise Problem(
                422, f"{name} needs align. Add it, or leave {name} out.", code=APART, field=name
            )
    if body.align and body.changes:
        # Links are read from the model as it is, which did not write these translations.
        raise _apart("align", "changes")
    with about("align_head"):
        align = (body.words_by, *cross_head(body.align_head)) if body.align else None
    for name in ("prefixes", "require_each"):
        each = getattr(body, name)
        if each is not None and len(each) != len(body.texts):
            raise Problem(
                422,
                f"{name} must have one entry for each text, but has {len(each)} for "
                f"{len(body.texts)} texts.",
                field=name,
            )
    if body.prefix and body.prefixes is not None:
        raise _apart("prefix", "prefixes")
    task = Translate(model, options, tuple(treatment), align, tuple(body.changes))
    return task, list(map(Text, body.texts, all_constraints(body, model, body.texts)))


def refuse_given(body: Any, names: Sequence[str], reason: str) -> None:
    """Refuse fields that a request gives another value than their default.

    Args:
        body: the request.
        names: the fields.
        reason: the field and the value that they cannot be combined with.

    Raises:
        Problem: 422, one is given.
    """
    kind = type(body)
    for name in names:
        if getattr(body, name) != kind.model_fields[name].get_default():
            raise _apart(name, reason)


def _apart(field: str, other: str) -> Problem:
    return Problem(422, str(not_together(field, other)), code=APART, field=field)


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
    glossary = join_terms(body.glossary, body.glossary_match)
    if glossary is not None:
        glossary = fit_to_model(glossary, model, code_of(body, model))
    rows = getattr(body, "require_each", None) or [()] * len(texts)
    phrases = (*body.forbid, *body.require, *(phrase for row in rows for phrase in row))
    if not all(map(str.strip, phrases)):
        raise Problem(
            422, "A phrase must hold text, but one is blank. Leave it out.", field="require"
        )
    forbidden = tuple(body.forbid)
    return [
        constraints_of(text, prefix, forbidden, body.require, row, glossary)
        for text, prefix, row in zip(texts, prefixes, rows, strict=True)
    ]
