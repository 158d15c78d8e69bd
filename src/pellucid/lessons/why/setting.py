"""The setting of a measurement: its size, its seeds, and the file that keeps finished parts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from pellucid.errors import DataError
from pellucid.files import read_bytes, write_text

Size = Literal["quick", "toy", "full"]
T = TypeVar("T")


def say_nothing(doing: str) -> None:
    """Take the place of a line of progress."""


@dataclass(frozen=True)
class MeasurementSetting:
    """The setting of a measurement.

    Attributes:
        size: ``quick`` takes a minute or two; ``full`` takes up to 25 minutes, with
            more sizes and three seeds, or five where each takes seconds; ``toy`` takes a second or
            two, and its numbers prove nothing.
        seed: of everything drawn; with ``full`` the first of three.
        say: receives what is being computed, for a line of progress.
        kept: holds the finished cells of a full measurement; None keeps nothing.
    """

    size: Size = "quick"
    seed: int = 1
    say: Callable[[str], None] = say_nothing
    kept: KeptCells | None = None

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds to measure with: three in a row for ``full``, otherwise one."""
        return self.seeds_of(3)

    def seeds_of(self, count: int) -> tuple[int, ...]:
        """List as many seeds in a row for ``full``, otherwise one."""
        # In a row, so that --seed 4 shares none with the seeds 1 to 3.
        return tuple(range(self.seed, self.seed + (count if self.size == "full" else 1)))

    @property
    def is_long(self) -> bool:
        """Whether to measure what only the long form has."""
        return self.size == "full"

    def choose(self, quick: T, toy: T, full: T | None = None) -> T:
        """Choose by the size; without a value for ``full`` that takes the quick one."""
        # Most numbers are the same in both forms.
        if self.size == "full" and full is not None:
            return full
        return toy if self.size == "toy" else quick

    def cell(self, key: str, make: Callable[[], Any], *, is_timed: bool = False) -> Any:
        """Compute a part of a measurement, or return it as it was kept.

        Args:
            key: names everything that the value depends on, in words: it is the only thing by which
                a kept value is recognized.
            make: computes the value from numbers, strings, lists and dictionaries, as JSON has
                them.
            is_timed: True if the value holds times: values of other machines are not returned.
        """
        # Also for a kept value, so that progress never stands still.
        self.say(key)
        return make() if self.kept is None else self.kept.get(key, make, is_timed=is_timed)


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
