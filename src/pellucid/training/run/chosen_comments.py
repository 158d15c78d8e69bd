"""What was chosen for the text, as comments in the recipe of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pellucid.files import read_bytes

_MARK = "  # chosen: "
_KEY = re.compile(r"(\w+) = ")

# A resolved recipe has the sizes that a named one stands for.
_SHOWN_AT = {"model.size": "model.d_model"}


def with_reasons(recipe_toml: str, reasons: Mapping[str, str]) -> str:
    """Put a comment after each setting that was chosen.

    Args:
        recipe_toml: a resolved recipe.
        reasons: a sentence by ``section.name``.
    """
    comments = {_SHOWN_AT.get(key, key): sentence for key, sentence in reasons.items()}
    lines = []
    for key, line in _keys_of(recipe_toml):
        mark = f"{_MARK}{comments[key]}" if key in comments else ""
        lines.append(f"{line}{mark}")
    return "\n".join(lines)


def read_reasons(path: Path) -> dict[str, str]:
    """Read the comments of a run's recipe again, so that they stay when a limit is changed."""
    found = {}
    for key, line in _keys_of(read_bytes(path).decode("utf-8", "replace")):
        _, mark, sentence = line.partition(_MARK)
        if key and mark:
            found[key] = sentence
    return found


def _keys_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line with the setting, ``section.name``, that begins in it; empty without one."""
    section = ""
    for line in text.split("\n"):
        if line.startswith("["):
            section = line.strip("[]")
        begun = _KEY.match(line)
        yield f"{section}.{begun[1]}" if begun else "", line
