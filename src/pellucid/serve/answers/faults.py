"""Faults of a request's body as refusals, with a code, the field and the number of its entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pellucid.errors import InputError, make_printable, shorten
from pellucid.serve.answers.responses import Problem, from_error
from pellucid.wording.other_names import hint_of
from pellucid.wording.value_rules import OUT_OF_BOUNDS, word_fault

# Names that fields had, and the names that they have now.
RENAMED: Mapping[str, str] = {
    "source": "source_language",
    "target": "target_language",
    "to": "target_language",
    "target_text": "translation",
    "align_layer": "align_head, such as decoder.1.cross",
    "parts": "heads, such as decoder",
    "layers": "heads, such as decoder.1",
    "kinds": "heads, such as *.*.cross",
}


def refuse_body(faults: Sequence[Mapping[str, Any]], known: Sequence[str]) -> Problem:
    """Turn pydantic's faults of a body into a refusal that is about the first one.

    Args:
        faults: what is wrong.
        known: the fields of the body.
    """
    first = faults[0]
    kind = first["type"]
    names = [make_printable(one)[:80] for one in first["loc"] if isinstance(one, str)]
    numbers = [one for one in first["loc"] if isinstance(one, int)]
    field = ".".join(names)
    index = numbers[0] if numbers else None
    place = field if index is None else f"{names[0]}[{index}]{''.join(f'.{n}' for n in names[1:])}"
    if kind == "json_invalid":
        return Problem(
            422, "The body must be JSON in UTF-8, but is not. Check its syntax and its encoding."
        )
    code = "out_of_bounds" if kind in OUT_OF_BOUNDS else "wrong_type"
    if kind == "missing":
        code = "missing"
        sentence = f"{place} is missing. Add it."
    elif kind == "extra_forbidden":
        code = "unknown_field"
        sentence = f"{place} is unknown. {_advise(names[-1], known, is_nested=len(names) > 1)}"
    else:
        if kind == "literal_error":
            code = "invalid"
        sentence = f"{place or 'The body'} {word_fault(first)}. Change it."
    return Problem(422, shorten(sentence), code=code, field=field, index=index)


def _advise(name: str, known: Sequence[str], *, is_nested: bool) -> str:
    if is_nested:
        return "Leave it out."
    new = RENAMED.get(name, "")
    if new.partition(",")[0] in known:
        return f"Its name is {new}."
    near = hint_of(name, known)
    # All names together would be a long sentence.
    return near if near.startswith("Did") else "See /docs for the fields."


def refuse_input(error: InputError, known: Sequence[str]) -> Problem:
    """Turn an error about a request into a refusal that names its field, if the error does.

    Args:
        error: of a configuration or a text; sentences about an option begin with its name.
        known: the fields of the body.
    """
    problem = from_error(error)
    field = problem.sentence.partition(" ")[0]
    if field in known:
        problem.field = field
        problem.code = "not_together" if "cannot be combined" in problem.sentence else "invalid"
    return problem
