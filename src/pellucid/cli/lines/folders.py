"""A folder of documents: each known file is translated into another folder, with one report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pellucid.cli.ending import LINES_FAILED, note, say_error
from pellucid.cli.lines.chosen_keys import KEYED
from pellucid.cli.lines.constraint_options import INPUT
from pellucid.cli.lines.document_report import write_report
from pellucid.cli.lines.document_windows import open_document
from pellucid.cli.lines.resumable import describe_difference
from pellucid.cli.lines.streams import choose_format, to_json_line
from pellucid.cli.lines.translate_lines import translate_files
from pellucid.cli.lines.translation_job import TranslationJob
from pellucid.documents.formats import FORMATS
from pellucid.errors import DataError, InputError
from pellucid.files import endings, hash_file, read_bytes, write_bytes, write_text, writing
from pellucid.terminal.progress import is_terminal
from pellucid.terminal.text import count_of

Rest = Literal["skip", "copy"]

STATE = ".pellucid-translate.state"
"""The name of the file in the new folder that says which files are done, until all are."""


@dataclass(frozen=True)
class _File:
    """A file of the folder.

    Attributes:
        name: its path in the folder.
        source: the file.
        target: the file to make.
        kind: the name of its format; empty for one that is copied.
    """

    name: str
    source: Path
    target: Path
    kind: str

    @property
    def report(self) -> Path:
        """Where the remarks on it wait for those on the others."""
        return self.target.with_name(f".{self.target.name}.report")


def translate_folder(
    job: TranslationJob,
    folder: Path,
    output: Path,
    options: Mapping[str, Any],
    *,
    rest: Rest,
    may_overwrite: bool,
) -> int:
    """Translate the documents of a folder, and resume an interrupted command.

    Args:
        job: how to translate.
        folder: is read, with the folders in it.
        output: gets a file for each one; names of the old language become those of the new one.
        options: the command's options.
        rest: what to do with files of other kinds.
        may_overwrite: True if existing files may be replaced.

    Returns:
        The exit code: 3 if a text or a file could not be translated.

    Raises:
        InputError: a file exists already, or an earlier command had other settings.
    """
    files = [*_list(folder, output, job.languages[0], job.to or job.languages[1], rest)]
    chosen = {"--keys": options["keys"], "--skip-keys": options["skip_keys"], "--rest": rest}
    run = json.loads(json.dumps({**job.identify(), "the folder": str(folder), **chosen}))
    done = _begin(output, files, run, may_overwrite=may_overwrite)
    failed: list[str] = []
    has_failed_lines = False
    for number, file in enumerate(files, start=1):
        digest = hash_file(file.source)
        if done.get(file.name) == digest and file.target.exists():
            continue
        with writing(file.target):
            file.target.parent.mkdir(parents=True, exist_ok=True)
        if is_terminal("stderr"):
            note(f"{number} of {len(files)}: {file.name}")
        try:
            code = _translate(job, file, options, may_overwrite=may_overwrite)
        except DataError as error:
            say_error(str(error))
            failed.append(file.name)
            continue
        has_failed_lines = has_failed_lines or code != 0
        done[file.name] = digest
        write_text(output / STATE, to_json_line({"run": run, "done": done}))
    _finish(output, files, options["report"])
    _say(files, failed)
    return LINES_FAILED if failed or has_failed_lines else 0


def _list(folder: Path, output: Path, source: str, target: str, rest: Rest) -> Iterator[_File]:
    """List the files to make, in the order of their names."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_hidden = any(one.startswith(".") for one in name.parts)
        # The new folder may stand in the old one.
        if is_hidden or not path.is_file() or output.resolve() in path.resolve().parents:
            continue
        own = _kind(path)
        if not own and rest == "skip":
            continue
        # A name such as app.en.json, messages_en.properties or en.yml holds the language.
        new = re.sub(rf"(?<![a-zA-Z]){re.escape(source)}(?=\.)", target, path.name)
        new = re.sub(r"\.pot\Z", ".po", new)
        yield _File(str(name), path, output / name.parent / new, own)


def _kind(path: Path) -> str:
    """Return the format of a file; empty for one that is not translated."""
    with suppress(InputError):
        name = choose_format(str(path), None)
        # Any file may be lines; only these are surely text.
        return name if name in FORMATS or endings(path) == (".txt", "") else ""
    return ""


def _begin(
    output: Path, files: list[_File], run: Mapping[str, Any], *, may_overwrite: bool
) -> dict[str, str]:
    """Return the files that an earlier run of this command has made, with hashes of their sources.

    Raises:
        InputError: files exist that no earlier run made.
    """
    if not any(file.kind for file in files):
        raise InputError("The folder must hold a document that can be read, but holds none.")
    made: dict[str, str] = {}
    state = output / STATE
    if state.exists():
        found = json.loads(state.read_text(encoding="utf-8"))
        if found["run"] != run and not may_overwrite:
            difference = describe_difference(found["run"], run)
            raise InputError(
                f"The interrupted run that left {state} must be of the same command, but "
                f"{difference}. Repeat that command, or add --overwrite."
            )
        made = found["done"] if found["run"] == run else {}
    existing = [file for file in files if file.target.exists() and file.name not in made]
    if existing and not may_overwrite:
        raise InputError(
            f"The output must be new files, but {existing[0].target} exists"
            f"{f', and {len(existing) - 1} more' if len(existing) > 1 else ''}. "
            "Choose another folder, or add --overwrite."
        )
    return made


def _translate(
    job: TranslationJob, file: _File, options: Mapping[str, Any], *, may_overwrite: bool
) -> int:
    """Translate a file; return the exit code."""
    if not file.kind:
        write_bytes(file.target, read_bytes(file.source))
        return 0
    kind = FORMATS.get(file.kind)
    objects = None
    if kind is not None:
        # What has no effect on a format is for others of the folder.
        has_columns = kind.name in ("csv", "tsv")
        own = {
            **options,
            "mark": options["mark"] if kind.has_marks else None,
            "column": options["column"] if has_columns else None,
            "into": options["into"] if has_columns else None,
            "all": options["all"] and (kind.has_pairs or (has_columns and options["into"])),
            "report": str(file.report) if options["report"] else None,
            **({} if kind.name in KEYED else {"keys": None, "skip_keys": None}),
            # A key may be in some files only.
            "is_one_of_many": True,
        }
        objects = open_document(job, str(file.source), kind.name, own, may_overwrite=True)
    return translate_files(
        job,
        {INPUT: str(file.source)},
        str(file.target),
        num_lines=None,
        may_overwrite=may_overwrite,
        by_line=False,
        objects=objects,
    )


def _finish(output: Path, files: list[_File], report: str | None) -> None:
    """Join the reports, and delete what resuming would need."""
    if report:
        lines = []
        for file in files:
            if file.report.exists():
                records = map(json.loads, file.report.read_text(encoding="utf-8").splitlines())
                lines += [{"file": file.name, **one} for one in records]
        write_report(Path(report), output.name, lines)
        for file in files:
            file.report.unlink(missing_ok=True)
    (output / STATE).unlink(missing_ok=True)


def _say(files: list[_File], failed: list[str]) -> None:
    translated = [one for one in files if one.kind and one.name not in failed]
    copied = sum(not one.kind for one in files)
    more = f", {count_of(copied, 'file')} copied" if copied else ""
    faulty = f", {count_of(len(failed), 'file')} refused" if failed else ""
    note(f"{count_of(len(translated), 'file')} translated{more}{faulty}.")
