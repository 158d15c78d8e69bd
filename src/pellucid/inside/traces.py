"""A trace that saves and shows itself, above the modules that draw it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid.errors import InputError
from pellucid.files import write_bytes
from pellucid.inside.record.data_frames import to_frame, to_xarray
from pellucid.inside.record.trace_data import TraceData
from pellucid.inside.record.trace_files import name_without_gz, read_trace, write_json, write_npz


@dataclass(frozen=True, eq=False, repr=False)
class Trace(TraceData):
    """The record of one sentence, which can save and show itself.

    `TraceData` holds the data and its checks, and lies below everything that draws it. Saving a
    page or a picture needs the modules that draw, so that part lies above them, here.
    """

    def save(self, path: str | Path) -> None:
        """Write the trace to a file in the format of its ending.

        ``.npz`` and ``.json`` hold everything; see `save_trace` for the others.

        Raises:
            InputError: the ending is not known.
            OutputError: the file cannot be written.
        """
        save_trace(self, Path(path))

    def frame(self, name: str) -> Any:
        """Write an array as a pandas data frame: a row for each number, with its place and tokens.

        Args:
            name: such as ``decoder.1.cross.weights``.

        Raises:
            InputError: the trace does not hold the array.
            ConfigurationError: pandas is not installed.
        """
        return to_frame(self, name)

    def xarray(self, name: str) -> Any:
        """Write an array as an xarray array with named axes, and tokens along them.

        Args:
            name: such as ``decoder.1.cross.weights``.

        Raises:
            InputError: the trace does not hold the array.
            ConfigurationError: xarray is not installed.
        """
        return to_xarray(self, name)

    def _repr_html_(self) -> str:
        from pellucid.inside.show.static import fragment

        return fragment(self)


def load_trace(path: str | Path) -> Trace:
    """Read a trace back, equal to the one that was written.

    Raises:
        InputFileNotFoundError: the file does not exist.
        InputError: the file is damaged, is not a trace, or is of a later version.
    """
    return Trace(**vars(read_trace(path)))


def save_trace(trace: TraceData, path: Path, *, kind: str | None = None) -> None:
    """Write a trace to a file.

    Args:
        trace: what to write.
        path: the file. If the name of a ``.json`` or ``.html`` file ends in ``.gz``, it is packed.
        kind: ``npz``, ``json``, ``html``, ``svg``, ``png`` or ``pdf``; the file's ending unless
            given. A picture shows one head if the trace holds only one; otherwise all layers and
            heads of one kind, cross-attention if possible.

    Raises:
        InputError: the kind is not known, or the trace holds nothing to draw.
        OutputError: the file cannot be written.
    """
    writers: dict[str, Callable[[TraceData, Path], None]] = {
        "npz": write_npz,
        "json": write_json,
        "html": _save_page,
        **dict.fromkeys(("svg", "png", "pdf"), _save_picture),
    }
    # The ending before .gz says the format.
    kind = kind or Path(name_without_gz(path)).suffix.removeprefix(".")
    if kind not in writers:
        raise InputError(
            f"A trace's file must end in .{', .'.join(writers)}, but is named {path.name}. "
            "Rename it."
        )
    writers[kind](trace, path)


def _save_page(trace: TraceData, path: Path) -> None:
    from pellucid.inside.show.model_page import trace_page

    write_bytes(path, trace_page(trace).encode(), follows_link=True)


def _save_picture(trace: TraceData, path: Path) -> None:
    from pellucid.inside.show.figures.draw import draw_picture

    draw_picture(trace, path)
