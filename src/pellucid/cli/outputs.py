"""Results in several forms: ``-o FILE``, whose ending decides the form, and standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Annotated

import typer

from pellucid.cli.lines.streams import STANDARD, check_target, is_special, open_output
from pellucid.errors import InputError, not_together
from pellucid.files import endings, is_packed
from pellucid.terminal.text import any_of

Files = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write into FILE instead of the terminal; its ending decides the form. May be "
        "repeated; '-' is standard output, and -.html (or -.npz …) in that form.",
    ),
]
OverwriteFiles = Annotated[
    bool, typer.Option("--overwrite", help="Replace output files that exist.")
]
Csv = Annotated[bool, typer.Option("--csv", help="Write CSV.")]

PACKABLE = ("html", "json", "csv", "txt")
"""The forms that may also end in ``.gz``: text, which our writers pack."""


@dataclass(frozen=True)
class Outputs:
    """The places that results go to.

    Attributes:
        files: the form of each file by its path.
        standard: the form of standard output: ``text``, ``json`` or ``csv``; None if nothing is
            written there.
    """

    files: Mapping[Path, str]
    standard: str | None

    @property
    def forms(self) -> set[str]:
        """All forms that are written, with ``text`` for the terminal's."""
        return {*self.files.values(), *([self.standard] if self.standard else [])}


TERMINAL = Outputs({}, "text")
"""Only standard output, for people."""


def choose_outputs(
    paths: Sequence[str] | None,
    known: Sequence[str],
    *,
    overwrite: bool,
    json: bool = False,
    csv: bool = False,
    count: int = 1,
) -> Outputs:
    """Choose the form of each output.

    Args:
        paths: as ``-o`` names them; without any, standard output gets the result.
        known: the forms of files, which are their endings without the dot; ``txt`` is what the
            terminal shows.
        overwrite: True if existing files may be replaced.
        json: standard output is JSON.
        csv: standard output is CSV.
        count: the number of results, each of which gets a numbered file.

    Raises:
        InputError: an ending says no form that is known, a file is named twice or exists already,
            or its folder does not exist.
    """
    if json and csv:
        raise not_together("--json", "--csv")
    asked = "json" if json else "csv" if csv else "text"
    found: dict[Path, str] = {}
    is_standard = not paths or json or csv
    for name in paths or ():
        if name == STANDARD:
            is_standard = True
            continue
        path = _file_for_standard(name, known, count) if name.startswith("-.") else Path(name)
        if path in found:
            raise InputError(f"Each output must have its own file, but {name} is named twice.")
        found[path] = form_of(path, known, asked)
        for index in range(count):
            check_target(str(numbered(path, index, count)), may_overwrite=overwrite)
    return Outputs(found, asked if is_standard else None)


BINARY = ("npz", "png", "pdf")
"""The forms that a terminal cannot show."""

_awaiting: list[Path] = []
"""Files in the place of standard output: sent there once the command is done."""


def _file_for_standard(name: str, known: Sequence[str], count: int) -> Path:
    """Name a file for ``-.html``: standard output in the form of that ending.

    Pages and arrays are written by what needs a file, some of it not from beginning to end.
    """
    form = form_of(Path(f"x{name[1:]}"), known, "")
    if is_packed(Path(name)):
        raise InputError(f"Standard output is not packed, but -o {name} asks for it. Use gzip.")
    if _awaiting:
        raise InputError(f"Standard output takes one form, but -o {name} is another. Name a file.")
    if count > 1:
        raise InputError(f"--n-best writes several files, but -o {name} is one place. Name a file.")
    if form in BINARY and sys.stdout.isatty():
        raise InputError(
            f"A terminal cannot show what -o {name} writes. Redirect it, or name a file."
        )
    _awaiting.append(Path(mkdtemp(prefix="pellucid-")) / name)
    return _awaiting[-1]


def shown_path(path: Path) -> str:
    """Write the name of an output as it was given."""
    return path.name if path in _awaiting else str(path)


@contextmanager
def sending_standard() -> Iterator[None]:
    """Send what a command writes for ``-o -.html`` to standard output when it is done."""
    try:
        yield
        for path in _awaiting:
            sys.stdout.flush()
            sys.stdout.buffer.write(path.read_bytes())
            sys.stdout.buffer.flush()
    finally:
        for path in _awaiting:
            rmtree(path.parent, ignore_errors=True)
        _awaiting.clear()


def write_outputs(outputs: Outputs, make: Callable[[str], str]) -> None:
    """Write the text of each form where it goes; names that end in ``.gz`` are packed.

    Raises:
        OutputError: a file cannot be written.
    """
    for path, form in outputs.files.items():
        # That it may be replaced was checked when it was chosen, before any work.
        with open_output(str(path), may_overwrite=True) as stream:
            stream.write(make(form))
    if outputs.standard is not None:
        sys.stdout.write(make(outputs.standard))


def form_of(path: Path, known: Sequence[str], otherwise: str) -> str:
    """Read the form of a file from its ending.

    Args:
        path: the file.
        known: the forms.
        otherwise: that of a pipe or device without such an ending.

    Raises:
        InputError: no form has that ending.
    """
    kind, packing = endings(path)
    form = kind.removeprefix(".")
    is_known = form in known and (not packing or (packing == ".gz" and form in PACKABLE))
    if is_known:
        return "text" if form == "txt" else form
    if is_special(str(path)) and otherwise.replace("text", "txt") in known:
        return otherwise
    names = any_of(f".{form}" for form in known)
    packed = " NumPy does not unpack .gz." if form == "npz" else ""
    raise InputError(
        f"The output must end in {names}, but is named {path.name}.{packed} Rename it."
    )


def numbered(path: Path, index: int, count: int) -> Path:
    """Name the file of one of several results: ``x.0.npz``; a single one keeps its name."""
    if count == 1:
        return path
    # The number goes before both endings: x.0.json.gz.
    packed = path.suffix if is_packed(path) else ""
    inner = Path(path.name.removesuffix(packed))
    return path.with_name(f"{inner.stem}.{index}{inner.suffix}{packed}")
