"""A folder of documents: each known file is translated into another folder, with one report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pellucid.cli.ending import LINES_FAILED, note, say_error, speaking_of, warn
from pellucid.cli.lines.chosen_keys import KEYED, ChosenKeys
from pellucid.cli.lines.decoding_options import INPUT
from pellucid.cli.lines.document_opening import open_document
from pellucid.cli.lines.document_report import save_report
from pellucid.cli.lines.document_windows import DocumentForm
from pellucid.cli.lines.folder_files import (
    FolderFile,
    FoundFiles,
    Rest,
    list_folder,
    refuse_equal_names,
)
from pellucid.cli.lines.resumable import describe_difference
from pellucid.cli.lines.streams import check_readable, check_target, to_json_line
from pellucid.cli.lines.text_counts import DOUBTFUL, say_counts
from pellucid.cli.lines.translate_lines import translate_files
from pellucid.cli.lines.translation_job import TranslationJob
from pellucid.documents.formats import FORMATS
from pellucid.errors import InputError, OutputError, fault_of_machine, not_readable
from pellucid.files import (
    hash_file,
    read_bytes,
    reading,
    write_bytes,
    write_text,
    writing,
)
from pellucid.terminal.progress import is_terminal
from pellucid.terminal.text import count_of

_OWN = ("--keys", "--skip-keys", "--report")
"""Options that all files depend on, besides those of the job."""

STATE = ".pellucid-translate.state"
"""The name of the file in the new folder that says which files are done, until all are."""


@dataclass
class _State:
    """Which files are done, kept in the new folder until all are.

    Attributes:
        path: its file.
        run: the command's settings.
        done: the hash of each source that is translated, by its name.
        begun: that of the source whose translation was begun last.
        has_report: True if the report is that of an earlier run, to which some files were missing.
        faulty: names of the files that lack a translation of a text.
        counts: of the texts of each document to look at, see `text_counts`.
    """

    path: Path
    run: Mapping[str, Any]
    done: dict[str, str] = field(default_factory=dict)
    begun: dict[str, str] = field(default_factory=dict)
    has_report: bool = False
    faulty: list[str] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)

    def take_over(self, files: list[FolderFile], *, may_overwrite: bool) -> None:
        """Go on where an earlier run of the same command ended.

        Raises:
            InputError: it was of another command.
        """
        if not self.path.exists():
            return
        try:
            found = json.loads(read_bytes(self.path))
            earlier = _State(self.path, **found)
        except (ValueError, TypeError):
            if may_overwrite:
                return
            raise InputError(
                f"{self.path} must be as a command left it, but is damaged. Add --overwrite."
            ) from None
        if earlier.run == self.run:
            vars(self).update(vars(earlier))
            return
        is_empty = not earlier.done and not any(one.part.exists() for one in files)
        if not is_empty and not may_overwrite:
            difference = describe_difference(earlier.run, self.run)
            raise InputError(
                f"The interrupted run that left {self.path} must be of the same command, but "
                f"{difference}. Repeat that command, or add --overwrite."
            )

    def has_changed(self, file: FolderFile) -> bool:
        """Tell whether a source is another one than that of what was made of it."""
        before = self.done.get(file.name) if file.target.exists() else None
        if file.part.exists():
            before = self.begun.get(file.name)
        with suppress(OSError):
            return before is not None and before != hash_file(file.source)
        # What cannot be read is refused when its turn comes.
        return False

    def store(self) -> None:
        """Write the file."""
        values = {name: value for name, value in vars(self).items() if name != "path"}
        write_text(self.path, to_json_line(values))


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
    source, target = job.languages
    # As the user names it: a model may call it fra_Latn.
    languages = (source, (job.to or "").rpartition(":")[2] or target)
    found = list_folder(folder, output, languages, rest)
    files = found.files
    refuse_equal_names(files)
    _check_keys(job, folder, files, options)
    chosen = {name: options[name[2:].replace("-", "_")] for name in _OWN}
    run = {**job.identify(), "the folder": str(folder), **chosen, "--rest": rest}
    state = _State(output / STATE, json.loads(json.dumps(run)))
    _begin(state, files, may_overwrite=may_overwrite)
    num_before = 0
    for error in found.closed:
        say_error(str(not_readable(error, error.filename)))
    failed: list[str] = []
    for number, file in enumerate(files, start=1):
        try:
            with reading(file.source):
                digest = hash_file(file.source)
            if state.done.get(file.name) == digest and file.target.exists():
                num_before += 1
                continue
            with writing(file.target):
                file.target.parent.mkdir(parents=True, exist_ok=True)
            if is_terminal("stderr"):
                note(f"{number} of {len(files)}: {file.name}")
            state.begun = {file.name: digest}
            state.store()
            with speaking_of(file.name, str(file.source)):
                code, counts = _translate(job, file, options, may_overwrite=may_overwrite)
        except (InputError, OutputError) as error:
            # A full disk is full for the other files, too.
            if fault_of_machine(error.__cause__ or error):
                raise
            sentence = str(error)
            is_named = any(str(one) in sentence for one in (file.source, file.target))
            say_error(sentence if is_named else f"{file.name}: {sentence}")
            failed.append(file.name)
            continue
        state.done[file.name] = digest
        state.faulty = [one for one in state.faulty if one != file.name]
        state.faulty += [file.name] if code else []
        state.counts[file.name] = counts
        state.store()
    has_all = not failed and not found.closed
    _finish(state, files, options["report"], has_all=has_all)
    _say(found, failed, num_before, languages[1])
    counts = sum(map(Counter, state.counts.values()), Counter())
    if sentence := say_counts(counts, options["report"]):
        (warn if counts[DOUBTFUL] else note)(sentence)
    return LINES_FAILED if state.faulty or not has_all else 0


def _begin(state: _State, files: list[FolderFile], *, may_overwrite: bool) -> None:
    """Take over what an earlier run of this command has made.

    Raises:
        InputError: files exist that no earlier run made, its settings were others, or a source
            has changed since.
    """
    if not any(file.kind for file in files):
        raise InputError("The folder must hold a document that can be read, but holds none.")
    state.take_over(files, may_overwrite=may_overwrite)
    if report := state.run["--report"]:
        check_target(report, may_overwrite=may_overwrite or state.has_report)
    if not may_overwrite:
        existing = [one.target for one in files if one.target.exists()]
        known = {one.target for one in files if one.name in state.done}
        others = [one for one in existing if one not in known]
        if others:
            raise InputError(
                f"The output must be new files, but {others[0]} exists{_and_more(others)}. "
                "Choose another folder, or add --overwrite."
            )
        changed = [one.source for one in files if state.has_changed(one)]
        if changed:
            raise InputError(
                f"A source must stay as it is until its folder is translated, but {changed[0]} has "
                f"changed since it was begun{_and_more(changed)}. Add --overwrite to translate "
                "what has changed again; the rest stays."
            )
    with writing(state.path.parent):
        state.path.parent.mkdir(parents=True, exist_ok=True)
    state.store()


def _and_more(found: Sequence[object]) -> str:
    return f", and {len(found) - 1} more" if len(found) > 1 else ""


def _open(job: TranslationJob, file: FolderFile, options: Mapping[str, Any]) -> DocumentForm:
    """Read a document with the options that have an effect on it; others are for other files."""
    kind = FORMATS[file.kind]
    has_columns = kind.name in ("csv", "tsv")
    own = {
        **options,
        "mark": options["mark"] if kind.has_marks else None,
        "column": options["column"] if has_columns else None,
        "into": options["into"] if has_columns else None,
        "all": options["all"] and (kind.has_pairs or (has_columns and options["into"])),
        "report": str(file.report) if options["report"] else None,
        "report_of_all": options["report"],
        **({} if kind.name in KEYED else {"keys": None, "skip_keys": None}),
        # A key may be in some files only.
        "is_one_of_many": True,
    }
    return open_document(job, str(file.source), kind.name, own, may_overwrite=True)


def _check_keys(
    job: TranslationJob, folder: Path, files: list[FolderFile], options: Mapping[str, Any]
) -> None:
    """Refuse a pattern that no key of any file has.

    Raises:
        InputError: there is one.
    """
    chosen = ChosenKeys(tuple(options["keys"] or ()), tuple(options["skip_keys"] or ()))
    if not chosen.keys and not chosen.skipped:
        return
    for file in files:
        # A damaged file is refused when its turn comes.
        with suppress(InputError):
            if file.kind in KEYED:
                form = _open(job, file, {**options, "report": None, "memory": None})
                chosen.used.update(form.keys.used)
    chosen.check(f"a file in {folder}")


def _translate(
    job: TranslationJob, file: FolderFile, options: Mapping[str, Any], *, may_overwrite: bool
) -> tuple[int, dict[str, int]]:
    """Translate a file; return the exit code, and how many of its texts should be looked at."""
    if not file.kind:
        write_bytes(file.target, read_bytes(file.source))
        return 0, {}
    kind = FORMATS.get(file.kind)
    objects = None
    if kind is None:
        # A file with a damaged line is refused as a damaged document is.
        check_readable({INPUT: str(file.source)})
    else:
        objects = _open(job, file, options)
    code = translate_files(
        job,
        {INPUT: str(file.source)},
        str(file.target),
        num_lines=None,
        may_overwrite=may_overwrite,
        by_line=False,
        objects=objects,
    )
    return code, dict(objects.counts) if objects is not None else {}


def _finish(state: _State, files: list[FolderFile], report: str | None, *, has_all: bool) -> None:
    """Join the reports, and delete what resuming would need if nothing is missing."""
    if report:
        lines = []
        for file in files:
            if file.report.exists():
                records = map(json.loads, file.report.read_text(encoding="utf-8").splitlines())
                lines += [{"file": file.name, **one} for one in records]
        save_report(Path(report), str(state.path.parent), lines)
    if not has_all:
        state.has_report = bool(report)
        state.store()
        return
    for file in files:
        file.report.unlink(missing_ok=True)
    state.path.unlink(missing_ok=True)


def _say(found: FoundFiles, failed: list[str], num_before: int, target: str) -> None:
    """Say how many files became what."""
    num_translated = sum(bool(one.kind) and one.name not in failed for one in found.files)
    num_copied = sum(not one.kind and one.name not in failed for one in found.files)
    others = found.others[:3]
    num_more = len(found.others) - len(others)
    others += [f"{num_more:,} more"] if num_more else []
    *first, last = others or [""]
    names = f"{', '.join(first)} and {last}" if first else last
    documents = "not a document" if found.num_skipped == 1 else "not documents"
    begin = f"{count_of(num_translated, 'file')} translated"
    counts = {
        begin + (f" ({num_before:,} of them before)" if num_before else ""): True,
        f"{num_copied:,} copied": num_copied,
        f"{found.num_skipped:,} skipped ({documents})": found.num_skipped,
        f"{found.num_there:,} already in {target}": found.num_there,
        f"{names} left out (other languages)": len(found.others),
        f"{len(failed):,} refused": len(failed),
        f"{count_of(len(found.closed), 'folder')} unreadable": len(found.closed),
    }
    what = "files" if failed else "folders"
    advice = f" Fix the {what} and run the same command again: it translates only what is missing."
    has_all = not failed and not found.closed
    said = "; ".join(words for words, count in counts.items() if count)
    note(f"{said}.{'' if has_all else advice}")
