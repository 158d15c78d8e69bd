"""Write recipes.md from the configuration classes: keys, defaults, bounds and meanings."""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pellucid.config import NAMED_SIZES, Recipe, Strict
from pellucid.config.sections import read_meanings
from pellucid.training.start.choices import CHOSEN_KEYS

HEAD = """\
# Recipes

A recipe is one TOML file: everything that one training run needs. An unknown key is an error that
names the nearest known one. `--set section.key=value` changes a key from the command line. A list
of one text may be written without brackets; `--set section.key=` leaves a key out. The resolved
recipe, every default spelled out, is kept in the run and in the bundle.

**Chosen, or by default.** Settings marked *(chosen)* are chosen for the text if a recipe leaves
them out ([Training](../guides/training.md)); the run's `recipe.toml` says which and why. A recipe
that sets the whole course itself (`learning_rate`, `schedule`, `warmup_steps`, `max_steps`) keeps
the defaults below, most of which are the paper's. A limit that should not hold is left out; no
number stands for none. The size is `tiny` unless another is chosen or given, and every other key of
`[model]` changes it.

*Written by `python docs/reference/make_recipes.py`.*

## The keys that people set

| key | default | meaning |
| --- | --- | --- |
"""

FIRST = (
    *("data.train", "data.split", "data.source_language", "data.target_language"),
    *("model.size", "tokenizer.vocabulary_size", "training.max_minutes", "training.dropout"),
    *("training.max_tokens_per_batch", "training.device", "training.seed", "training.best_by"),
    *("training.guided_head", "decoding.beam"),
)
"""The keys that people set, in the order in which they think of them."""

CHOSEN = "chosen for the text"
"""The default of a key that training chooses if it is left out."""

OF_SIZE = (
    "A ready-made size, which the other keys of `[model]` change: `tiny`, `small`, `base`, `big`."
)


def first_keys() -> Iterator[str]:
    """Write a row for each key that people set."""
    for key in FIRST:
        section_name, _, name = key.partition(".")
        section = Recipe.model_fields[section_name].annotation
        assert isinstance(section, type)
        if name == "size":
            yield f"| `{key}` | {CHOSEN} | {OF_SIZE} |"
            continue
        default = default_of(name, section.model_json_schema()["properties"][name])
        if key in CHOSEN_KEYS:
            default = CHOSEN
        meaning = _markdown(read_meanings(section)[name][1])
        yield f"| `{key}` | {default} | {meaning} |"


def describe(section: type[Strict], name: str) -> Iterator[str]:
    """Write the lines of one section: its docstring, and a table for each topic."""
    yield from ("", f"## [{name}]", "", *_markdown(inspect.getdoc(section) or "").splitlines())
    meanings = read_meanings(section)
    properties = section.model_json_schema()["properties"]
    keys = [pair for pair in properties.items() if pair[0] not in section.written_by_programs]
    for topic, group in itertools.groupby(keys, key=lambda pair: meanings[pair[0]][0]):
        yield from ("", f"### {topic}") if topic else ()
        yield from ("", "| key | default | may be | meaning |", "| --- | --- | --- | --- |")
        for key, schema in group:
            meaning = _markdown(meanings[key][1])
            default = default_of(key, schema)
            if f"{name}.{key}" in CHOSEN_KEYS:
                default += " (chosen)"
            yield f"| `{key}` | {default} | {allowed(schema)} | {meaning} |"


def default_of(key: str, schema: Mapping[str, Any]) -> str:
    """Write the default of a key as TOML has it."""
    if key in NAMED_SIZES["tiny"]:
        return "that of `size`"
    if key in ("d_key", "d_value"):
        return "`d_model` / `num_heads`"
    if "default" not in schema:
        return "must be given"
    default = schema["default"]
    return "left out" if default is None else f"`{json.dumps(default)}`"


def allowed(schema: Mapping[str, Any]) -> str:
    """Write the values that a key takes."""
    if "anyOf" in schema:
        return " or ".join(allowed(one) for one in schema["anyOf"] if one.get("type") != "null")
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        return ", ".join(f"`{json.dumps(value)}`" for value in values)
    if "prefixItems" in schema:
        return f"{len(schema['prefixItems'])} texts"
    if schema["type"] == "array" and "anyOf" in schema["items"]:
        return "files, or lists of two files"
    if schema["type"] == "array":
        one = allowed(schema["items"])
        if schema["items"].get("type") == "array":
            return f"list of {one.replace('list', 'lists', 1)}"
        return f"list of {one.replace('number', 'numbers').replace('text', 'texts')}"
    words = {
        "boolean": "`true`, `false`",
        "integer": "whole number",
        "number": "number",
        "string": "text",
    }
    if schema["type"] == "integer" and schema.get("exclusiveMinimum") == 0:
        schema = {"minimum": 1, **schema, "exclusiveMinimum": None}
    limits = (
        ("minimum", "from"),
        ("exclusiveMinimum", "above"),
        ("maximum", "to"),
        ("exclusiveMaximum", "to below"),
    )
    bounds = [
        f"{word} {_number(schema[limit])}"
        for limit, word in limits
        if schema.get(limit) is not None
    ]
    return " ".join((words[schema["type"]], *bounds))


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _markdown(text: str) -> str:
    return text.replace("``", "`")


def page() -> str:
    """Write the whole page."""
    rows = [HEAD.rstrip(), *first_keys()]
    for name, field in Recipe.model_fields.items():
        section = field.annotation
        assert isinstance(section, type)
        rows += describe(section, name)
        if name == "model":
            sizes = NAMED_SIZES["tiny"]
            rows += ["", "### Named sizes", "", f"| `size` | {' | '.join(sizes)} |"]
            rows.append("| --- " * (1 + len(sizes)) + "|")
            for size, values in NAMED_SIZES.items():
                rows.append(f"| `{size}` | {' | '.join(map(str, values.values()))} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "recipes.md").write_text(page(), encoding="utf-8")
