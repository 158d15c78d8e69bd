"""The files that ``pellucid look`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pellucid.inside.saving import save_trace
from pellucid.inside.trace import Trace

__all__ = ["write_files"]


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
            if len(traces) > 1:
                path = path.with_name(f"{path.stem}.{index}{path.suffix}")
            save_trace(trace, path, kind=kind)
