"""``pellucid recipe``: what training would do, without doing it."""

from __future__ import annotations

import sys
from json import dumps as to_json
from pathlib import Path
from typing import Annotated, Any

import typer

from pellucid.cli.ending import note
from pellucid.cli.option_rules import Apart, check_rules
from pellucid.cli.options import Changes, described
from pellucid.errors import ConfigurationError, suggestion
from pellucid.terminal.text import wrap

RULES = (
    Apart("key", "RECIPE json_schema set", "it describes a key of every recipe"),
    Apart("json_schema", "RECIPE set", "it describes every recipe"),
)


@described(
    source_language=("CODE", "The language of the source, for text without a recipe: en."),
    target_language=("CODE", "The language of the target."),
    key=(
        "SECTION.KEY",
        "Describe a key, or all keys of a section: training.patience, training; also those of "
        "serve: limits.beam, limits.",
    ),
    json_schema=("", "Write the JSON schema of a recipe, with which editors check and complete."),
)
def recipe(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RECIPE|TABLE",
            help="As for pellucid train: a recipe, the name of a shipped one, or text.",
        ),
    ] = None,
    source_language: str | None = None,
    target_language: str | None = None,
    key: str | None = None,
    json_schema: bool = False,
    changes: Changes = None,
) -> None:
    """Show what training would choose and why, or what a key means. Nothing is trained.

    Without arguments, the recipes that come with pellucid are listed. With a recipe or text, the
    whole recipe is written as training would use it, with every default spelled out: reasons are
    comments, so that it is a recipe again. --set start.model=MODEL chooses for a training that
    starts from a model.
    """
    given = {"RECIPE": texts, "key": key, "json_schema": json_schema, "set": changes}
    check_rules(RULES, given)
    if key is not None:
        lines = _describe_key(key)
    elif json_schema:
        from pellucid.config import Recipe

        lines = [to_json(Recipe.model_json_schema(), indent=2)]
    elif texts:
        lines = _resolve(texts, (source_language, target_language), changes or ())
    else:
        from pellucid.training.start.found_recipe import find_recipe, shipped_recipes

        lines = []
        for name in shipped_recipes():
            text = find_recipe(name)[0].read_text(encoding="utf-8")
            comment = text.partition("\n\n")[0].replace("\n# ", " ").removeprefix("# ")
            lines += [name, *wrap(comment, first="    ")]
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _sections() -> dict[str, Any]:
    """Return the sections of a recipe and of a server's file, by name."""
    from pellucid.config import Recipe
    from pellucid.serve.server_config import ServerConfig

    fields = {**Recipe.model_fields, **ServerConfig.model_fields}
    return {name: field.annotation for name, field in fields.items()}


def _keys_of(kind: Any) -> list[str]:
    from pellucid.config.sections import read_meanings

    return [one for one in read_meanings(kind) if one not in kind.written_by_programs]


def known_keys() -> list[str]:
    """List what ``--key`` describes: sections, and keys as in ``training.patience``."""
    sections = _sections()
    keys = [f"{name}.{key}" for name, kind in sections.items() for key in _keys_of(kind)]
    return [*sections, *keys]


def _describe_key(key: str) -> list[str]:
    """Describe a key, or each key of a section: meaning, type, bounds and default."""
    from pellucid.config import NAMED_SIZES
    from pellucid.config.sections import read_meanings

    section, _, name = key.partition(".")
    sections = _sections()
    if section not in sections:
        raise ConfigurationError(
            f"The section {section!r} is unknown (--key). {suggestion(section, sections)}"
        )
    kind = sections[section]
    schema = kind.model_json_schema()["properties"]
    known = _keys_of(kind)
    if key == "model.size":
        return [
            "model.size",
            "    A ready-made size, which the other keys of the section change.",
            f"    type: {' or '.join(map(to_json, NAMED_SIZES))}",
        ]
    if name and name not in known:
        hint = suggestion(name, known)
        raise ConfigurationError(f"The key {key!r} is unknown (--key). {hint}")
    lines = []
    for one in [name] if name else known:
        meaning = read_meanings(kind)[one][1].replace("``", "")
        lines += [f"{section}.{one}", *wrap(meaning, first="    ")]
        lines += [f"    {rule}" for rule in _rules(schema[one])]
    return lines


_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}


def _rules(schema: dict[str, Any]) -> list[str]:
    """Word the type, the bounds and the default of a key from its JSON schema."""
    kinds: list[str] = []
    bounds: list[str] = []
    for part in schema.get("anyOf", [schema]):
        values = part.get("enum", [part["const"]] if "const" in part else [])
        kinds += map(to_json, values) if values else [part["type"]] if "type" in part else []
        bounds += [f"{words} {part[bound]:g}" for bound, words in _BOUNDS.items() if bound in part]
    kinds = [kind for kind in kinds if kind != "null"]
    rules = [f"type: {', '.join([' or '.join(kinds), *bounds])}"] if kinds else []
    if "default" in schema:
        default = schema["default"]
        rules.append(f"default: {'left out' if default is None else to_json(default)}")
    return rules


def _resolve(
    texts: list[str],
    languages: tuple[str | None, str | None],
    changes: Any,
) -> list[str]:
    """Write the recipe as training would use it in a new run."""
    from pellucid.config import Recipe, to_toml, validate
    from pellucid.training.start.filling import fill_in
    from pellucid.training.start.found_recipe import find_start, start_of

    found = find_start(texts, languages, None, changes, is_checked=True)
    values = found.values
    start = start_of(values)
    # A folder that does not exist: a run there may have chosen already.
    run = found.run.with_name(f"{found.run.name}.new")
    if start is not None:
        from pellucid.training.start.from_model import with_start

        values = with_start(values, start, run)
    filled = fill_in(values, run, found.folder, note)
    whole = validate(Recipe, filled.values, str(found.path))
    if not filled.chosen:
        note(_why_nothing(whole, found.folder))
    reasons = [line for one in filled.choices for line in wrap(one, first="# ", later="#   ")]
    return [*reasons, *to_toml(whole).splitlines()]


def _why_nothing(whole: Any, folder: Path) -> str:
    """Say why nothing was chosen: the text cannot be read, or the recipe leaves nothing open."""
    from pellucid.errors import PellucidError
    from pellucid.text.reading.sentence_pairs import check_text_files, find_aside

    try:
        check_text_files(whole.data, folder)
    except PellucidError as error:
        return f"What depends on the text is not chosen, since it cannot be read: {error}"
    # Text that training would refuse is refused here too.
    find_aside(whole.data, folder)
    return "The recipe leaves nothing open, so that nothing is chosen for the text."
