"""The steps of a study, whose results are kept on the way, so that the same command continues."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pellucid.files import writing

OnStep = Callable[[str, int, int], None]
"""Called with what comes next, the number of steps done, and of all steps."""


class Steps:
    """Results by key: in memory, and one a line in a file, whose first line says what they are of.

    A file about something else is begun again. A line that an interruption cut short is left out.

    Args:
        path: the file; None keeps nothing.
        identity: everything that the results depend on.
        total: the number of steps.
        on_step: called before each one.
    """

    def __init__(
        self, path: Path | None, identity: str, total: int = 0, on_step: OnStep | None = None
    ) -> None:
        self._path = path
        self._total = total
        self._on_step = on_step
        self._found: dict[str, Any] = {}
        self._done = 0
        if path is None:
            return
        first = json.dumps({"study": identity})
        old = path.read_text("utf-8").split("\n") if path.is_file() else []
        if old[:1] == [first]:
            # The last piece is empty, or a line that an interruption cut short.
            self._found = dict(json.loads(line) for line in old[1:-1])
        lines = [first, *map(json.dumps, self._found.items()), ""]
        # Written again from its whole lines, so that new ones begin on a new line.
        with writing(path):
            path.write_text("\n".join(lines), "utf-8")

    def take(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the result of a step, which is computed if it is not there."""
        if self._on_step is not None:
            self._on_step(key.partition(" ")[2], self._done, self._total)
        self._done += 1
        if key not in self._found:
            self._found[key] = compute()
            if self._path is not None:
                with writing(self._path), self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, self._found[key]]) + "\n")
        return self._found[key]
