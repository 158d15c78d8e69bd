"""The page at ``/docs``: the OpenAPI description for people, without a script or another server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from pellucid.terminal.text import count_of

_STYLE = """
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; }
tr { border-bottom: 1px solid #8884; }
code { font-size: .9rem; }
:root { color-scheme: light dark; }
"""

_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {}",
    "maxLength": "at most {}",
    "minItems": "at least {}",
    "maxItems": "at most {}",
}


def write_docs(document: Mapping[str, Any]) -> str:
    """Write a page with every route, its fields and its refusals.

    Args:
        document: the OpenAPI description.
    """
    info = document["info"]
    title = escape(f"{info['title']} {info['version']}")
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1><p>{escape(info['description'])} "
        'The same for programs: <a href="openapi.json">openapi.json</a>.</p>'
    ]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts += _write_operation(document, f"{method.upper()} {path}", operation)
    return "\n".join(parts)


def _write_operation(
    document: Mapping[str, Any], name: str, operation: Mapping[str, Any]
) -> Iterator[str]:
    identifier = escape(operation["operationId"])
    yield f'<h2 id="{identifier}"><code>{escape(name)}</code></h2>'
    key = " Needs a key." if operation["security"] else ""
    for paragraph in f"{operation['description']}{key}".split("\n\n"):
        yield f"<p>{escape(paragraph)}</p>"
    # All media types of a body have the same fields.
    bodies = operation.get("requestBody", {}).get("content", {})
    if bodies:
        yield _write_fields(document, next(iter(bodies.values()))["schema"])
    answers = [
        f"<tr><td><code>{escape(status)}</code><td>{escape(one['description'])}"
        for status, one in operation["responses"].items()
    ]
    yield f"<table>{''.join(answers)}</table>"


def _write_fields(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    schema = _resolve(document, schema)
    rows = ["<tr><th>field<th>is<th>default<th>meaning"]
    for name, field in schema["properties"].items():
        default = ""
        if name in schema.get("required", ()):
            default = "must be given"
        elif field.get("default") is not None:
            default = f"<code>{escape(str(field['default']))}</code>"
        meaning = escape(field.get("description", ""))
        kind = escape(_name_type(document, field))
        rows.append(f"<tr><td><code>{escape(name)}</code><td>{kind}<td>{default}<td>{meaning}")
    return f"<table>{''.join(rows)}</table>"


def _name_type(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Say in words which values a field may have."""
    schema = _resolve(document, schema)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        named = [_name_type(document, one) for one in choices if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(named))
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    kind = schema.get("type", "any")
    if kind == "array":
        kind = f"list of ({_name_type(document, schema['items'])})"
    if "properties" in schema:
        kind = f"object of {', '.join(schema['properties'])}"
    bounds = [
        words.format(_count(name, schema[name]))
        for name, words in _BOUNDS.items()
        if name in schema
    ]
    return ", ".join([kind, *bounds])


def _count(bound: str, number: float) -> str:
    """Write the number of a bound with what it counts, if it counts something."""
    if bound.endswith("Length"):
        return count_of(int(number), "character")
    if bound.endswith("Items"):
        return count_of(int(number), "entry", "entries")
    return str(number)


def _resolve(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to a schema that the document names."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Mapping[str, Any] = document["components"]["schemas"][name] if name else schema
    return found
