"""Glossaries that requests give: as a list of terms, or as a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pellucid.errors import DataError
from pellucid.serve.answers.faults import refuse_body
from pellucid.serve.answers.responses import Problem
from pellucid.text.word_forms import Match
from pellucid.translate.constraints import fit_glossary

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary
    from pellucid.serve.models import ServedModel

_Phrase = Annotated[str, Field(min_length=1, max_length=200)]


class Term(BaseModel):
    """A term of a glossary, and its translation: a form, or several with | between them."""

    model_config = ConfigDict(strict=True, extra="forbid")

    source: _Phrase
    target: _Phrase
    case_sensitive: bool = Field(False, description="Capitals count on both sides.")


_TERMS = TypeAdapter(list[Term])


def join_terms(given: Sequence[Term], match: Match = "auto") -> Glossary | None:
    """Make a glossary of terms; None of no terms.

    Raises:
        Problem: 422, a term is blank, or has two translations.
    """
    if not given:
        return None
    from pellucid.decode.constraints.glossary import Glossary, forms_of

    terms: dict[str, str] = {}
    for term in given:
        forms = forms_of(term.target)
        if not (term.source.strip() and forms and all(forms)):
            raise Problem(
                422,
                "A term of the glossary must hold text on both sides, and in each form.",
                field="glossary",
            )
        if terms.setdefault(term.source, term.target) != term.target:
            raise Problem(
                422,
                "A source term of the glossary must have one target term, but one has two.",
                field="glossary",
            )
    capitals = [term.source for term in given if term.case_sensitive]
    return Glossary(terms, match=match, case_sensitive=capitals)


def read_match(value: object) -> Match:
    """Read how terms are found.

    Raises:
        Problem: 400, the way is unknown.
    """
    if value not in (None, "", *get_args(Match)):
        known = ", ".join(get_args(Match))
        raise Problem(400, f"Invalid request: glossary_match must be one of {known}")
    return cast("Match", value or "auto")


def read_terms(value: object, most: int, match: Match) -> Glossary | None:
    """Read the glossary of a form or of JSON: a list of terms, or the JSON of one.

    Args:
        value: what was given.
        most: the terms that it may have.
        match: how they are found.

    Raises:
        Problem: 400, it is something else; 422, as for `join_terms`.
    """
    if not value:
        return None
    try:
        given = _TERMS.validate_python(json.loads(value) if isinstance(value, str) else value)
    except ValidationError as error:
        faults: Any = [{**one, "loc": ("glossary", *one["loc"])} for one in error.errors()]
        raise Problem(400, f"Invalid request: {refuse_body(faults, ()).sentence}") from None
    except (ValueError, RecursionError):
        rule = 'a file, or a list of terms such as [{"source": "cat", "target": "chat"}]'
        raise Problem(400, f"Invalid request: glossary must be {rule}") from None
    if len(given) > most:
        rule = f"at most {most} terms, or a file of them"
        raise Problem(400, f"Invalid request: glossary must have {rule}")
    return join_terms(given, match)


def read_term_file(name: str, content: bytes, match: Match) -> Glossary:
    """Read a file of a glossary, by the end of its name as the command does.

    Raises:
        Problem: 400, it is no UTF-8, or has a fault.
    """
    from pellucid.decode.constraints.glossary_files import read_glossary

    try:
        lines = content.decode("utf-8-sig").split("\n")
        return read_glossary({name: [one.removesuffix("\r") for one in lines]}, match)
    except UnicodeDecodeError:
        raise Problem(400, "Invalid request: the glossary must be UTF-8") from None
    except DataError as error:
        raise Problem(400, f"Invalid request: {error}") from None


def fit_to_model(glossary: Glossary, model: ServedModel, to: str | None) -> Glossary:
    """Fit a glossary to a model, and to the languages of a request.

    Raises:
        Problem: 400, it has no terms of these languages.
    """
    translator = model.translator
    try:
        return fit_glossary(glossary, translator.tokenizer, translator.languages, to)
    except DataError as error:
        raise Problem(400, f"Invalid request: {error}") from None
