"""Write recipes.md from the configuration classes themselves."""

from __future__ import annotations

import inspect
from pathlib import Path

from pydantic_core import PydanticUndefined

from pellucid.config import NAMED_SIZES, Recipe, Strict

HEAD = """\
# Recipes

A recipe is one TOML file: everything one training run needs. An unknown key is an error that names
the nearest known one. `--set section.key=value` changes a key from the command line. The resolved
recipe, every default spelled out, is kept in the run and in the bundle.

*Written by `python docs/reference/make_recipes.py`.*
"""


def describe(section: type[Strict], name: str) -> list[str]:
    """One section: what its class says, and a table of its keys."""
    rows = ["", f"## [{name}]", "", inspect.getdoc(section) or "", "", "| key | default |"]
    rows.append("| --- | --- |")
    for key, field in section.model_fields.items():
        default = field.default
        if default is PydanticUndefined:
            default = "d_model / num_heads" if key in ("d_key", "d_value") else "must be given"
        shown = default if isinstance(default, str) and " " in default else repr(default)
        rows.append(f"| `{key}` | {shown} |")
    return rows


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
