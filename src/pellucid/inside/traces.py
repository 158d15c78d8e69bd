"""A trace that saves and shows itself, above the modules that draw it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pellucid.arguments import checked
from pellucid.errors import InputError
from pellucid.files import write_bytes
from pellucid.inside.record.data_frames import named_array, to_frame, to_labeled
from pellucid.inside.record.tensor_files import write_tensors
from pellucid.inside.record.trace_data import TraceData
from pellucid.inside.record.trace_files import name_without_gz, read_trace, write_json, write_npz
from pellucid.inside.show.view import view_named
from pellucid.terminal.text import any_of
from pellucid.wording.other_names import no_attribute


@dataclass(frozen=True, eq=False, repr=False)
class Trace(TraceData):
    """The record of one sentence, which can save and show itself.

    ``trace["decoder.1.cross.0"]`` is the weights of a head, ``trace["decoder.1.cross.0.scores"]``
    another stage of it; ``"decoder.1.cross.0" in trace`` tells whether it is held. `TraceData`
    explains the attributes. Nothing of a trace can be written to, so that its checks stay true.
    """

    if not TYPE_CHECKING:  # Type checkers would take every name for an attribute.

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(no_attribute("Trace", name), name=name, obj=self)

    @checked
    def save(self, path: str | Path, *, head: str | None = None) -> None:
        """Write the trace to a file in the format of its ending.

        ``.npz``, ``.json`` and ``.safetensors`` hold everything; see `save_trace` for the others.

        Args:
            path: the file.
            head: the head to draw, such as ``decoder.1.cross.0``, for pictures.

        Raises:
            InputError: the ending is not known, or the trace does not hold the head.
            OutputError: the file cannot be written.
        """
        save_trace(self, Path(path), head=head)

    @checked
    def plot(self, name: str | None = None, *, ax: Any = None) -> Any:
        """Draw a map of a head on axes of Matplotlib.

        Args:
            name: such as ``decoder.1.cross.0``, or ``decoder.1.cross.0.scores``; the head that
                was taught word links, or else the clearest, unless given.
            ax: the axes; those of a new figure unless given.

        Returns:
            The axes.

        Raises:
            InputError: the trace does not hold the head, or Matplotlib is not installed.
        """
        from pellucid.inside.show.figures.plotting import plot_view

        return plot_view(view_named(self, name), ax)

    @checked
    def to_pandas(self, name: str) -> Any:
        """Write an array as a pandas data frame: a row for each number, with its place and tokens.

        Args:
            name: such as ``decoder.1.cross.weights``, or a head such as ``decoder.1.cross.0``.

        Raises:
            InputError: the trace does not hold the array, or pandas is not installed.
        """
        return to_frame(*named_array(self, name))

    @checked
    def to_xarray(self, name: str) -> Any:
        """Write an array as an xarray array with named axes, and tokens along them.

        Args:
            name: as for `to_pandas`.

        Raises:
            InputError: the trace does not hold the array, or xarray is not installed.
        """
        return to_labeled(*named_array(self, name), name)

    def _repr_html_(self) -> str:
        from pellucid.inside.show.static import fragment

        return fragment(self)


def load_trace(source: str | Path | bytes) -> Trace:
    """Read a trace back, equal to the one that was written.

    Args:
        source: a ``.npz``, ``.json``, ``.json.gz`` or ``.safetensors`` file, or the bytes of one;
            also what ``/v1/look`` of the service answers.

    Raises:
        InputFileNotFoundError: the file does not exist.
        InputError: the file is damaged, is not a trace, or is of a later version.
    """
    return Trace(**vars(read_trace(source)))


PICTURES = ("svg", "png", "pdf")


def save_trace(
    trace: TraceData, path: Path, *, kind: str | None = None, head: str | None = None
) -> None:
    """Write a trace to a file.

    Args:
        trace: what to write.
        path: the file. If the name of a ``.json`` or ``.html`` file ends in ``.gz``, it is packed.
        kind: ``npz``, ``json``, ``safetensors``, ``html``, ``svg``, ``png`` or ``pdf``; the file's
            ending unless given. A picture shows one head if the trace holds only one; otherwise all
            layers and heads of one kind, cross-attention if possible.
        head: the head that a picture shows.

    Raises:
        InputError: the kind is not known, the trace holds nothing to draw, or a head is named for
            something else than a picture.
        OutputError: the file cannot be written.
    """
    writers: dict[str, Callable[[TraceData, Path], None]] = {
        "npz": write_npz,
        "json": write_json,
        "safetensors": write_tensors,
        "html": _save_page,
        **dict.fromkeys(PICTURES, _save_picture),
    }
    # The ending before .gz says the format.
    kind = kind or Path(name_without_gz(path)).suffix.removeprefix(".")
    if kind not in writers:
        names = any_of(f".{one}" for one in writers)
        raise InputError(
            f"A trace's file must end in {names}, but is named {path.name}. Rename it."
        )
    if head is None:
        writers[kind](trace, path)
        return
    if kind not in PICTURES:
        raise InputError(
            f"head must be left out unless a picture (.{', .'.join(PICTURES)}) is saved, but is "
            f"{head!r} for {path.name}. A file holds all that the trace holds."
        )
    from pellucid.inside.show.figures.draw import draw_view

    draw_view(view_named(trace, head), path)


def _save_page(trace: TraceData, path: Path) -> None:
    from pellucid.inside.show.model_page import trace_page

    write_bytes(path, trace_page(trace).encode(), follows_link=True)


def _save_picture(trace: TraceData, path: Path) -> None:
    from pellucid.inside.show.figures.draw import draw_picture

    draw_picture(trace, path)
