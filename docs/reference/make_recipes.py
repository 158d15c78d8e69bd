"""Write recipes.md from the configuration classes themselves."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pellucid.config import NAMED_SIZES, Recipe, Strict

HEAD = """\
# Recipes

A recipe is one TOML file: everything one training run needs. An unknown key is an error that names
the nearest known one. `--set section.key=value` changes a key from the command line. The resolved
recipe, every default spelled out, is kept in the run and in the bundle.

What a recipe leaves out may be chosen for its text, as [Training](../guides/training.md) says; the
tables have what holds otherwise. A size is always meant: `size = "tiny"` unless it is chosen or
given, and the keys beside it change it.

*Written by `python docs/reference/make_recipes.py`.*
"""


def describe(section: type[Strict], name: str) -> list[str]:
    """One section: what its class says, and a table of its keys."""
    rows = ["", f"## [{name}]", "", inspect.getdoc(section) or ""]
    rows += ["", "| key | default | may be |", "| --- | --- | --- |"]
    for key, schema in section.model_json_schema()["properties"].items():
        rows.append(f"| `{key}` | {default_of(key, schema)} | {allowed(schema)} |")
    return rows


def default_of(key: str, schema: Mapping[str, Any]) -> str:
    """What holds where nothing is said, as TOML has it."""
    if key in NAMED_SIZES["tiny"]:
        return "that of `size`"
    if key in ("d_key", "d_value"):
        return "`d_model` / `num_heads`"
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else "must be given"


def allowed(schema: Mapping[str, Any]) -> str:
    """What values a key takes."""
    if "anyOf" in schema:
        return " or ".join(allowed(one) for one in schema["anyOf"] if one.get("type") != "null")
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        return ", ".join(f"`{json.dumps(value)}`" for value in values)
    if schema["type"] == "array":
        one = allowed(schema["items"])
        return f"list of {one.replace('number', 'numbers').replace('text', 'texts')}"
    words = {
        "boolean": "`true`, `false`",
        "integer": "whole number",
        "number": "number",
        "string": "text",
    }
    limits = (
        ("minimum", "from"),
        ("exclusiveMinimum", "above"),
        ("maximum", "to"),
        ("exclusiveMaximum", "below"),
    )
    bounds = [f"{word} {_number(schema[limit])}" for limit, word in limits if limit in schema]
    return " ".join((words[schema["type"]], *bounds))


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def page() -> str:
    """The whole page."""
    rows = [HEAD.rstrip()]
    for name, field in Recipe.model_fields.items():
        section = field.annotation
        assert isinstance(section, type)
        rows += describe(section, name)
        if name == "model":
            rows += ["", "`size` is one of:", "", "| size | " + " | ".join(NAMED_SIZES["tiny"])]
            rows[-1] += " |"
            rows.append("| --- " * (1 + len(NAMED_SIZES["tiny"])) + "|")
            for size, values in NAMED_SIZES.items():
                rows.append(f"| `{size}` | " + " | ".join(map(str, values.values())) + " |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "recipes.md").write_text(page(), encoding="utf-8")
