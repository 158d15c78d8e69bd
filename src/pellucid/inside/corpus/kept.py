"""Results that are kept on the way, so that the same command continues."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pellucid.files import writing


class Kept:
    """Values by key: in memory, and one a line in a file, whose first line says what they are of.

    A file about something else is begun again. A line that an interruption cut short is left out.

    Args:
        path: the file; None keeps nothing.
        identity: everything that the values depend on.
    """

    def __init__(self, path: Path | None, identity: str) -> None:
        self._path = path
        self._found: dict[str, Any] = {}
        first = json.dumps({"study": identity})
        if path is None:
            return
        old = path.read_text("utf-8").split("\n") if path.is_file() else []
        if old[:1] == [first]:
            self._found = {key: value for line in old[1:-1] for key, value in json.loads(line)}
        lines = [first, *(json.dumps([[key, value]]) for key, value in self._found.items())]
        with writing(path):
            path.write_text("\n".join([*lines, ""]), "utf-8")

    def __len__(self) -> int:
        """Count the values."""
        return len(self._found)

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return a value, which is computed if it is not there."""
        if key not in self._found:
            self._found[key] = compute()
            if self._path is not None:
                with writing(self._path), self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([[key, self._found[key]]]) + "\n")
        return self._found[key]
