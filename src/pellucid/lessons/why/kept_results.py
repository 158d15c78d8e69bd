"""Finished parts of long measurements, kept in a file so that nothing is measured twice."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pellucid.errors import DataError
from pellucid.files import read_bytes, write_text


class KeptCells:
    """The cells of one claim in one JSON file, written after each cell.

    Args:
        path: the file; its folder exists.
        claim: the name of the claim.
        is_judged_again: True to take times of whichever machine measured them, and to measure none.

    Raises:
        DataError: the file cannot be read, or holds something else.
    """

    def __init__(self, path: Path, claim: str, *, is_judged_again: bool = False) -> None:
        self._path = path
        self._claim = claim
        self._is_judged_again = is_judged_again
        self._cells: dict[str, dict[str, Any]] = {}
        self._measurement: dict[str, Any] | None = None
        self._asked: set[str] = set()
        if path.exists():
            self._read()

    def get(self, key: str, make: Callable[[], Any], *, is_timed: bool = False) -> Any:
        """Return the value of a cell; compute and keep it if the file does not have it."""
        machine = _describe_machine()
        # Times are only comparable on one machine.
        place = f"{key} [{machine}]" if is_timed else key
        if self._is_judged_again and is_timed:
            place = next((one for one in self._cells if one.startswith(f"{key} [")), "")
            if not place:
                raise DataError(
                    f"{self._path} must have the times of {key!r}, but does not. Measure them: "
                    f"pellucid claim {self._claim} --full -o {self._path.parent}/"
                )
        # What is no longer asked for belongs to another setting, and is dropped at the end.
        self._asked.add(place)
        if place not in self._cells:
            started = time.monotonic()
            # Through JSON at once, so that a kept value and a new one never differ.
            value = json.loads(json.dumps(make()))
            self._cells[place] = {
                "value": value,
                # For the page of claims, which says how long all parts took.
                "seconds": round(time.monotonic() - started, 2),
                "date": datetime.now(UTC).date().isoformat(),
                "machine": machine,
            }
            # After each cell, so that an interrupted run continues where it was.
            self._write()
        return self._cells[place]["value"]

    def finish(self, record: dict[str, Any]) -> None:
        """Keep the whole measurement, and drop the cells that it did not ask for."""
        self._measurement = record
        self._cells = {key: cell for key, cell in self._cells.items() if key in self._asked}
        self._write()

    def _read(self) -> None:
        try:
            found = json.loads(read_bytes(self._path))
            self._cells = dict(found["cells"])
            self._measurement = found["measurement"]
            is_own = found["claim"] == self._claim and all(
                "value" in cell for cell in self._cells.values()
            )
        except (ValueError, KeyError, TypeError):
            is_own = False
        if not is_own:
            raise DataError(
                f"A file of results must hold those of the claim {self._claim}, but does not "
                f"({self._path}). Delete it to measure again, or name another folder with "
                "-o FOLDER/."
            )

    def _write(self) -> None:
        record = {"claim": self._claim, "measurement": self._measurement, "cells": self._cells}
        write_text(self._path, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def _describe_machine() -> str:
    from pellucid.machine.hardware import describe_machine  # Loads PyTorch.

    return describe_machine()
