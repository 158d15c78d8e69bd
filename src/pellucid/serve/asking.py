"""From the body of a request to work on its texts, and from results to an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pellucid.serve.models import Options, ServedModel
from pellucid.serve.problems import Problem
from pellucid.serve.schemas import DECODING
from pellucid.serve.tasks import Text, Translate

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary
    from pellucid.decode.constraints.request import Constraints
    from pellucid.translate.preparing import LineConstraints
    from pellucid.translate.results import Scored, TranslatedHypothesis, Translation

PHRASES = ("forbid", "require", "require_each", "glossary")
"""The fields that say what a translation may and must contain, other than how it begins."""

TREATMENT = ("clean", "split", "split_long", "unknown", "retry")
_TOKENS = ("tokens", "ids", "token_log_probabilities")


def decoding_of(body: Any, model: ServedModel) -> Options:
    """Take the decoding options that a request gives, and refuse a language that is not there.

    Raises:
        InputError: the options are impossible, or the model has no such language.
    """
    given = {name: getattr(body, name, None) for name in DECODING}
    given = {name: value for name, value in given.items() if value is not None}
    is_plain = not any(getattr(body, name, None) for name in (*PHRASES, "retry"))
    options = model.decide(given, is_plain=is_plain)
    if body.to is not None:
        from pellucid.text.codes import find_code

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
    return task, list(map(Text, body.texts, constraints_of(body, model, body.texts)))


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


def constraints_of(body: Any, model: ServedModel, texts: Sequence[str]) -> list[LineConstraints]:
    """Build the constraints of each text.

    Args:
        body: a request.
        model: the model.
        texts: its texts.
    """
    prefixes = getattr(body, "prefixes", None) or [body.prefix] * len(texts)
    if not any(getattr(body, name, None) for name in PHRASES):
        return list(map(_begin_with, prefixes))
    glossary = _glossary(body, model)
    rows = getattr(body, "require_each", None) or [()] * len(texts)
    shared = tuple(body.forbid), tuple(body.require)
    return [
        _for_text(text, prefix, shared, row, glossary)
        for text, prefix, row in zip(texts, prefixes, rows, strict=True)
    ]


def _begin_with(prefix: str) -> Constraints:
    from pellucid.decode.constraints.request import Constraints

    return Constraints(prefix)


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
    tokenizer = model.translator.tokenizer

    def can_write(term: str) -> bool:
        return tokenizer.config.unk_id not in tokenizer.encode_target(term)

    return Glossary(terms, match=body.glossary_match, language=model.source, can_write=can_write)


def _for_text(
    text: str,
    prefix: str,
    shared: tuple[tuple[str, ...], tuple[str, ...]],
    row: Sequence[str],
    glossary: Glossary | None,
) -> LineConstraints:
    """Build the constraints of one text; the terms of a glossary belong to single lines."""
    from pellucid.decode.constraints.request import Constraints

    forbidden, required = shared
    for phrase in (*forbidden, *required, *row):
        if not phrase.strip():
            raise Problem(422, "A phrase must hold text, but one is blank. Leave it out.")

    def require(line: str) -> tuple[str, ...]:
        terms = glossary.terms_for(line) if glossary is not None else ()
        wanted = Counter(required) | Counter(row) | Counter[str](terms)
        return tuple(wanted.elements())

    lines = text.split("\n")
    if len(lines) == 1 or required or row:
        return Constraints(prefix, forbidden, require(text))
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    each: list[Constraints] = [
        Constraints(prefix if number == first else "", forbidden, require(line))
        for number, line in enumerate(lines)
    ]
    return each


def translation_record(
    translation: Translation, *, has_tokens: bool, has_links: bool
) -> dict[str, Any]:
    """Write a translation as an answer does.

    Args:
        translation: the translation.
        has_tokens: True to add tokens and their log-probabilities.
        has_links: True to add words and their links.
    """
    fields = ["text", "log_probability", "score"]
    fields += _TOKENS if has_tokens else ()
    fields += ["words", "alignment"] if has_links else ()
    notes = translation.notes.to_json()
    return {
        "text": translation.text,
        "error": translation.error,
        "hypotheses": [_record(one, fields) for one in translation.hypotheses],
        **({"source_words": translation.source_words} if has_links else {}),
        **({"notes": notes} if notes else {}),
    }


def score_record(scored: Scored, *, has_tokens: bool) -> dict[str, Any]:
    """Write the score of a pair as an answer does."""
    is_scored = scored.error is None
    record: dict[str, Any] = {
        "log_probability": scored.log_probability if is_scored else None,
        "error": scored.error,
    }
    if has_tokens and is_scored:
        record |= {name: getattr(scored, name) for name in _TOKENS}
    return record


def _record(hypothesis: TranslatedHypothesis, fields: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(hypothesis, name) for name in fields}
