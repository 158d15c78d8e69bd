"""The files that ``pellucid look`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pellucid.files import is_packed
from pellucid.inside.traces import Trace, save_trace

__all__ = ["numbered", "write_files"]


def write_files(traces: Sequence[Trace], wanted: Mapping[str, Path]) -> None:
    """Write each trace in every kind of file that was asked for.

    Args:
        traces: one for each hypothesis; files of several are numbered.
        wanted: file by kind (``npz``, ``svg``, …).

    Raises:
        OutputError: a file cannot be written.
    """
    for index, trace in enumerate(traces):
        for kind, path in wanted.items():
            save_trace(trace, numbered(path, index, len(traces)), kind=kind)


def numbered(path: Path, index: int, count: int) -> Path:
    """Name the file of one of several hypotheses: ``x.0.npz``; a single one keeps its name."""
    if count == 1:
        return path
    packed = path.suffix if is_packed(path) else ""
    inner = Path(path.name.removesuffix(packed))
    return path.with_name(f"{inner.stem}.{index}{inner.suffix}{packed}")
