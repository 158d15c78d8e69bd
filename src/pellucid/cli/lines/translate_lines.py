"""Translation of lines: from files to an output window by window, or a whole list at once."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pellucid.cli.ending import LINES_FAILED, note, say_error, warn
from pellucid.cli.lines.decoding_options import INPUT
from pellucid.cli.lines.document_windows import DocumentForm, DocumentReader, WrittenUnit
from pellucid.cli.lines.notices import Notices, say_words, words_to_name
from pellucid.cli.lines.resumable import DirectOutput, ResumableOutput, open_resumable
from pellucid.cli.lines.streams import STANDARD, LineWindow, ParallelReader, is_special
from pellucid.cli.lines.translation_job import TranslationJob
from pellucid.errors import InputError
from pellucid.terminal.progress import is_terminal, show_progress

if TYPE_CHECKING:
    from pellucid.cli.lines.objects import ObjectForm

Output = DirectOutput | ResumableOutput
Result = TypeVar("Result")

# One that the engine works on, and one that Python prepares or judges.
WINDOWS_AT_ONCE = 2


def translate_files(
    job: TranslationJob,
    files: Mapping[str, str],
    output_file: str,
    *,
    num_lines: int | None,
    may_overwrite: bool,
    by_line: bool,
    objects: ObjectForm | DocumentForm | None = None,
) -> int:
    """Translate the lines of files, and resume an interrupted output.

    Args:
        job: how to translate each line.
        files: path of the input, and of files with a constraint for each line, by option.
        output_file: path of the output.
        num_lines: number of lines in the input, if known.
        may_overwrite: True if an existing output may be replaced.
        by_line: True to answer each line before the next one is read.
        objects: the places of texts and translations, for JSON Lines and documents.

    Returns:
        The exit code: 3 if a line could not be translated.
    """
    from pellucid.machine.hardware import search_garbage_rarely

    search_garbage_rarely()
    is_typed = files[INPUT] == STANDARD and is_terminal("stdin")
    # A bar would mix with the lines that a person reads.
    is_read = output_file == STANDARD and is_terminal("stdout")
    by_line = by_line or is_typed
    window_lines = 1 if by_line else job.max_lines
    has_progress = is_terminal("stderr") and not by_line and not is_read
    if may_overwrite and is_special(output_file):
        warn("--overwrite has no effect without -o FILE.")
    run: dict[str, Any] = {}
    if not is_special(output_file):
        run = {**job.identify(), "--stream": by_line}
        if objects is not None:
            run |= objects.settings()
    document = objects if isinstance(objects, DocumentForm) else None
    packing = None if document is None else document.packing
    if packing is not None and is_read:
        raise InputError("A file of this format is not shown on a terminal. Name one with -o FILE.")
    with open_resumable(
        output_file,
        run=run,
        may_overwrite=may_overwrite,
        may_resume=not is_typed,
        packing=packing,
    ) as output:
        reader = _start_reading(job, files, output, window_lines, objects)
        windows = reader.windows(window_lines)
        if isinstance(output, ResumableOutput):
            # A window that a bad line cut short is not committed: it grows once that is corrected.
            windows = (window for window in windows if window.is_whole)
        if is_typed and is_read:
            windows = _prompt(windows)
        can_stream = by_line and is_read and job.can_stream and objects is None
        if has_progress:
            note(job.describe(is_streamed=can_stream))
        notices = Notices()
        if document is not None:
            name = document.report_name
            see = f"see {Path(name).name}" if name else "--report FILE says why"
            notices = Notices("text", see)
        first_line = reader.num_lines
        with show_progress(
            is_wanted=has_progress, total=num_lines, done=reader.num_lines, log=note
        ) as update:
            for window, answers in answer_windows(
                windows,
                lambda window: None if can_stream else _answers(job, objects, window),
                num_at_once=1 if by_line or not job.can_overlap else WINDOWS_AT_ONCE,
            ):
                num_failed = output.state.num_failed
                if answers is None:
                    num_failed += _stream(job, window, output, notices)
                else:
                    num_failed += _write(answers, output, notices, document)
                    if job.constraints.glossary is not None:
                        for number, terms in chain.from_iterable(one.terms for one in answers):
                            notices.add_terms(number, terms)
                output.commit(window.end, num_failed, window.hashes)
                update(window.end)
                if job.aligner is not None and (sentence := job.aligner.take_sentence()):
                    note(sentence)
        _warn_at_end(job, notices, reader.num_lines - first_line)
    if document is not None:
        document.end()
    elif not reader.num_lines and not is_special(files[INPUT]):
        note(f"{files[INPUT]} is empty: there is nothing to translate.")
    return LINES_FAILED if output.state.num_failed else 0


def answer_windows(
    windows: Iterator[LineWindow], answer: Callable[[LineWindow], Result], *, num_at_once: int
) -> Iterator[tuple[LineWindow, Result]]:
    """Read windows and answer them, several at once.

    The engine in C lets Python run, so that one window's lines are prepared, or its translations
    judged, while the engine works on another. Another thread reads windows: a slow source
    of lines does not keep back the answers to those that it has given.

    Args:
        windows: the windows; an error of theirs is raised after the answers to what came before.
        answer: answers one window; with several at once it is called from several threads.
        num_at_once: the number of windows.

    Yields:
        Each window with its answer, in order.
    """
    if num_at_once == 1:
        for window in windows:
            yield window, answer(window)
        return
    # One thread, since windows come from an iterator, which cannot be shared.
    reader = ThreadPoolExecutor(1, "read")
    workers = ThreadPoolExecutor(num_at_once, "answer")

    def work(reading: Future[LineWindow | None]) -> tuple[LineWindow, Result] | None:
        window = reading.result()
        return None if window is None else (window, answer(window))

    try:
        begun: deque[Future[tuple[LineWindow, Result] | None]] = deque()
        while True:
            while len(begun) < num_at_once:
                begun.append(workers.submit(work, reader.submit(next, windows, None)))
            answered = begun.popleft().result()
            if answered is None:
                return
            yield answered
    finally:
        # Not waited for: an interruption must not wait for lines that may never come.
        for pool in (reader, workers):
            pool.shutdown(wait=False, cancel_futures=True)


def _warn_at_end(job: TranslationJob, notices: Notices, num_lines: int) -> None:
    """Say what was unusual about so many lines and their translations."""
    from pellucid.translate.chain.chained import Chain

    for sentence in notices.facts():
        note(sentence)
    counted = [("", notices, job.translator)]
    if isinstance(job.translator, Chain):
        for name, model in zip(job.translator.names, job.translator.models, strict=True):
            counted.append((f"{name}: ", notices.by_model.get(name, Notices()), model))
    for name, found, translator in counted:
        for sentence in chain(
            found.sentences(num_lines),
            found.about_words(translator),
            found.about_codes(translator),
        ):
            warn(f"{name}{sentence}")
    own = job.translator.own_precision
    if (ran := job.decoding.precision) != own:
        note(f"Computed in {ran}. The model's own precision is {own}, which may give other words.")
    if job.aligner is not None and (sentence := job.aligner.closing_sentence()):
        note(sentence)


def _start_reading(
    job: TranslationJob,
    files: Mapping[str, str],
    output: Output,
    window_lines: int,
    objects: ObjectForm | DocumentForm | None,
) -> ParallelReader | DocumentReader:
    """Skip the lines whose output exists, after checking that it belongs to them."""

    def start() -> ParallelReader | DocumentReader:
        if isinstance(objects, DocumentForm):
            return DocumentReader(objects.rows())
        return ParallelReader(files, damaged_in=[INPUT])

    reader = start()
    if isinstance(output, ResumableOutput) and output.state.num_lines:
        first = next(reader.windows(window_lines), None) if job.aligner is not None else None
        reader.skip(output.state.num_lines)
        can_restart = not any(map(is_special, files.values()))
        if not output.check_input(reader.num_lines, reader.hashes(), can_restart=can_restart):
            reader = start()
        elif first is not None:  # links are read from the head that the first lines chose
            job.translate(first.columns)
    if isinstance(objects, DocumentForm):
        objects.begin(reader.num_lines)
    return reader


def _prompt(windows: Iterator[LineWindow]) -> Iterator[LineWindow]:
    """Ask for each line on standard error."""
    while True:
        sys.stderr.write("> ")
        sys.stderr.flush()
        window = next(windows, None)
        if window is None:
            sys.stderr.write("\n")
            return
        yield window


def _answers(
    job: TranslationJob, objects: ObjectForm | DocumentForm | None, window: LineWindow
) -> list[WrittenUnit]:
    """Translate a window; give what to write for each line, with its translations."""
    if objects is not None:
        return list(objects.answer(job, window.first, window.columns))
    return [
        WrittenUnit(job.write(number, one), [(number, one)], terms=[(number, one.terms)])
        for number, one in enumerate(job.translate(window.columns), start=window.first)
    ]


def _write(
    answers: Sequence[WrittenUnit], output: Output, notices: Notices, document: DocumentForm | None
) -> int:
    """Write the translations of a window, report lines that failed, and return their number."""
    from pellucid.translate.results import NO_NOTES

    num_failed = 0
    if document is not None:
        document.add(answers)
    for one in answers:
        output.write(one.text)
    for number, translation in chain.from_iterable(one.translations for one in answers):
        # Nearly always there is nothing to count.
        if translation.notes is not NO_NOTES:
            notices.add_all(number, translation)
        if translation.error is not None:
            num_failed += 1
            say_error(f"line {number + 1}: {translation.error}")
    return num_failed


def _stream(job: TranslationJob, window: LineWindow, output: Output, notices: Notices) -> int:
    """Do the same for a window of one line, writing its text while it is decoded."""
    problem = None
    notes = job.examine(window.columns)
    if words := words_to_name(notes):
        # Said with its answer, not at the end, which a reader who types may not wait for.
        warn(say_words(window.first, words, job.translator))
        notes = replace(notes, unknown_words=(), unknown_tokens=0.0)
    notices.add(window.first, notes)
    try:
        for piece in job.stream(window.columns):
            output.write(piece)
            sys.stdout.flush()
    except InputError as error:
        problem = error
    output.write("\n")
    if problem is not None:
        say_error(f"line {window.first + 1}: {problem}")
    return int(problem is not None)
