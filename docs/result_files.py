"""Read result files of benchmarks/results, and write tables of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"

Rows = Iterable[Sequence[str]]


def load(name: str) -> dict[str, Any]:
    """Read a result file."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def link(text: str, name: str) -> str:
    """Link a result file, as a page in docs/ does."""
    return f"[{text}](../benchmarks/results/{name}.json)"


def table(heading: str, line: str, rows: Rows) -> str:
    """Write a table below its heading and the line of its columns."""
    body = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"{heading}\n{line}\n" + re.sub(r"(?<=\|) +(?=\|)", " ", body)


def several(numbers: Iterable[float], digits: int = 1) -> str:
    """Write numbers one after the other."""
    return ", ".join(f"{one:.{digits}f}" for one in numbers)


def span(numbers: Sequence[float], digits: int = 1) -> str:
    """Write the range of some numbers, or the number if they are written alike."""
    ends = dict.fromkeys(f"{one:.{digits}f}" for one in (min(numbers), max(numbers)))
    return " to ".join(ends)


def count(number: float) -> str:
    """Write a whole number with commas."""
    return f"{number:,.0f}"
