"""Documents are read through and checked, with their options, before any work is done."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pellucid.cli.ending import warn
from pellucid.cli.lines.chosen_keys import ChosenKeys
from pellucid.cli.lines.document_report import Report
from pellucid.cli.lines.document_windows import DocumentForm, Marks
from pellucid.cli.lines.streams import is_special
from pellucid.cli.lines.translation_memory import Memory
from pellucid.documents.formats import FORMATS, Format
from pellucid.documents.units import How
from pellucid.errors import DataError, InputError
from pellucid.files import reading
from pellucid.text.reading.lines import read_chunks, read_content

if TYPE_CHECKING:
    from pellucid.cli.lines.translation_job import TranslationJob

_MOST_BLANK = 1 << 16
"""Bytes that are read to see if a file is empty."""


def _open_parts(path: str, form: Format) -> Callable[[], Iterable[str]]:
    """Return what reads a document: piece by piece if it is a file of a streamed format.

    Raises:
        DataError: it is not UTF-8, or damaged.
    """
    if is_special(path) or not form.is_streamed:
        parts = [*read_chunks(path)]
        return lambda: parts

    with reading(path):
        before = Path(path).stat()

    def read() -> Iterator[str]:
        yield from read_chunks(path)
        now = Path(path).stat()
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            what = "A document must not change while it is translated, but"
            raise DataError(f"{what} {path} has changed. Start again.")

    return read


def _read_blank(path: str) -> str | None:
    """Read a file that has nothing but white space; None for others, and for streams."""
    if is_special(path):
        return None
    with reading(path), Path(path).open("rb") as stream:
        content = stream.read(_MOST_BLANK)
    # A byte order mark is not text either.
    is_blank = len(content) < _MOST_BLANK and not content.removeprefix(BOM_UTF8).strip()
    return content.decode() if is_blank else None


def open_document(
    job: TranslationJob, path: str, name: str, options: Mapping[str, Any], *, may_overwrite: bool
) -> DocumentForm:
    """Read a document through once, so that a damaged one is refused before any work is done.

    Args:
        job: how to translate.
        path: the document.
        name: of its format.
        options: the command's options.
        may_overwrite: True if an existing report may be replaced.

    Raises:
        InputError: it cannot be read, or an option cannot be combined with it.
    """
    kind = FORMATS[name]
    if job.form != "plain" or job.aligner is not None or job.constraints.files:
        raise InputError(
            "Documents cannot be combined with --json, --n-best, --align, --prefix @FILE and "
            "--require @FILE, which are for lines. Leave these out."
        )
    for option in ("column", "into"):
        if options[option] and name not in ("csv", "tsv"):
            warn(f"--{option} has no effect on a document without columns.")
    if options["all"] and not (kind.has_pairs or options["into"]):
        warn(f"--all has no effect on {name}, whose texts have no translations next to them.")
    if options["mark"] is not None and not kind.has_marks:
        warn(f"--mark has no effect on {name}, which has no marks; --report FILE lists units.")
    source, target = job.languages
    languages = (source, job.to or target)
    how = How(
        path,
        languages,
        options["all"],
        column=options["column"] or "",
        into=options["into"] or "",
    )
    # What is not streamed is held in memory anyway; a pipe can be read once.
    is_whole = kind.is_zip or not (kind.is_streamed or is_special(path))
    content = read_content(path) if is_whole else b""
    marks: Marks = options["mark"] or "all"
    blank = _read_blank(path)
    if blank is not None:
        form = DocumentForm(lambda: (blank,), kind, how, marks)
        form.nothing = f"{path} is empty: there is nothing to translate."
    elif kind.is_packed(content):
        parts = kind.unpack(content, how)
        form = DocumentForm(lambda: (parts,), kind, how, marks, content=content)
    else:
        form = DocumentForm(_open_parts(path, kind), kind, how, marks)
    form.keys = ChosenKeys.read(options, name)
    if options["report"]:
        form.report = Report(options["report"], may_overwrite=may_overwrite)
        form.report_name = options.get("report_of_all") or options["report"]
    for _ in form.rows():
        pass
    form.num_fuzzy = how.left["fuzzy"]
    if not (options.get("is_one_of_many") or form.nothing):
        form.keys.check(path)
    if options["memory"]:
        form.memory = Memory(options["memory"], languages)
    return form
