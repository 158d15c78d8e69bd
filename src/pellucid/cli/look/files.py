"""The files that ``pellucid look`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pellucid.files import is_packed
from pellucid.inside.traces import Trace, save_trace

__all__ = ["numbered", "write_files"]


def write_files(traces: Sequence[Trace], wanted: Mapping[str, Path]) -> None:
    """Write every kind of file that was asked for, for every trace.

    Args:
        traces: one for each hypothesis; of several the files are numbered.
        wanted: kind (``npz``, ``svg``, …) to file.

    Raises:
        OutputError: a file cannot be written.
    """
    for index, trace in enumerate(traces):
        for kind, path in wanted.items():
            save_trace(trace, numbered(path, index, len(traces)), kind=kind)


def numbered(path: Path, index: int, count: int) -> Path:
    """The file of one of several hypotheses: ``x.0.npz``; of a single one it is the file itself."""
    if count == 1:
        return path
    packed = path.suffix if is_packed(path) else ""
    inner = Path(path.name.removesuffix(packed))
    return path.with_name(f"{inner.stem}.{index}{inner.suffix}{packed}")
