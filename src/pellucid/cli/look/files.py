"""The files that ``pellucid look`` writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pellucid.files import is_packed, write_bytes
from pellucid.inside.traces import Trace, save_trace


def write_files(
    traces: Sequence[Trace], wanted: Mapping[str, Path], make_page: Callable[[Trace], str]
) -> None:
    """Write each trace in every kind of file that was asked for.

    Args:
        traces: one for each hypothesis; files of several are numbered.
        wanted: file by kind (``npz``, ``svg``, …).
        make_page: makes the page of a trace.

    Raises:
        OutputError: a file cannot be written.
    """
    for index, trace in enumerate(traces):
        for kind, path in wanted.items():
            own = numbered(path, index, len(traces))
            if kind == "html":
                write_bytes(own, make_page(trace).encode(), follows_link=True)
            else:
                save_trace(trace, own, kind=kind)


def numbered(path: Path, index: int, count: int) -> Path:
    """Name the file of one of several hypotheses: ``x.0.npz``; a single one keeps its name."""
    if count == 1:
        return path
    packed = path.suffix if is_packed(path) else ""
    inner = Path(path.name.removesuffix(packed))
    return path.with_name(f"{inner.stem}.{index}{inner.suffix}{packed}")
