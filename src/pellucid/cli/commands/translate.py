"""``pellucid translate``: lines in, lines out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pellucid.cli.ending import warn
from pellucid.cli.lines.constraints import INPUT, ConstraintOptions
from pellucid.cli.lines.job import Job, load_job
from pellucid.cli.lines.resumable import DirectOutput, ResumableOutput, open_lasting
from pellucid.cli.lines.streams import (
    STANDARD,
    Readers,
    Window,
    check_files,
    check_target,
    is_special,
)
from pellucid.cli.options import (
    CONSTRAINTS,
    SEARCH,
    Ensemble,
    InputFile,
    Json,
    Model,
    OutputFile,
    Overwrite,
    Progress,
    SplitLong,
    Stream,
    Threads,
    Workers,
    useless_options,
    with_options,
)
from pellucid.cli.progress import is_terminal, show_progress
from pellucid.errors import InputError

__all__ = ["translate"]

Output = DirectOutput | ResumableOutput


@with_options(SEARCH, CONSTRAINTS)
def translate(
    model: Model,
    input_file: InputFile = STANDARD,
    output_file: OutputFile = STANDARD,
    overwrite: Overwrite = False,
    json: Json = False,
    stream: Stream = False,
    progress: Progress = None,
    split_long: SplitLong = False,
    ensemble: Ensemble = None,
    threads: Threads = None,
    workers: Workers = 1,
    **options: Any,
) -> int:
    """Translate lines of text, keeping their order.

    Without -i and -o, or with '-', the standard streams are used. A line that cannot be
    translated gives an empty line and a sentence on standard error, and the exit code is 2.

    With -o FILE the same command goes on where it was interrupted. Options of the search that
    are not given are the model's own.
    """
    given = {name: options[name] for name in SEARCH if options[name] is not None}
    constraints = ConstraintOptions.read(options, input_file)
    files = {INPUT: input_file, **constraints.files}
    total = check_files(files, damaged_in=INPUT).get(INPUT)
    if not is_special(output_file):
        check_target(output_file, may_overwrite=overwrite)
    job = load_job(
        model,
        given=given,
        constraints=constraints,
        form="json" if json else "n-best" if "n_best" in given else "plain",
        split_long=split_long,
        ensemble=tuple(ensemble or ()),
        threads=threads,
        workers=workers,
    )
    is_typed = input_file == STANDARD and is_terminal("stdin")
    by_line = stream or is_typed
    lines_at_once = 1 if by_line else job.max_lines
    _tell_useless(job, given, output_file, overwrite=overwrite, lines_at_once=lines_at_once)
    is_read = output_file == STANDARD and is_terminal("stdout")
    if progress is None:
        progress = is_terminal("stderr") and not by_line and not is_read
    with open_lasting(
        output_file,
        run={} if is_special(output_file) else job.identify() | {"--stream": by_line},
        may_overwrite=overwrite,
        may_resume=not is_typed,
    ) as output:
        readers = _start_reading(files, output)
        windows = readers.windows(lines_at_once)
        if is_typed and is_read:
            windows = _prompt(windows)
        if progress:
            warn(job.describe())
        answer = _answer_at_once if by_line and is_read and job.can_stream else _answer
        with show_progress(is_wanted=progress, total=total, done=readers.num_lines) as update:
            for window in windows:
                if isinstance(output, ResumableOutput) and not window.is_whole:
                    continue  # its lines come again once the bad line behind them is mended
                num_failed = output.state.num_failed + answer(job, window, output)
                output.keep(readers.num_lines, num_failed, readers.hashes())
                update(readers.num_lines)
    return 2 if output.state.num_failed else 0


def _tell_useless(
    job: Job, given: Mapping[str, Any], output_file: str, *, overwrite: bool, lines_at_once: int
) -> None:
    """Say which options change nothing."""
    for sentence in useless_options(given, job.decoding, is_score_shown=job.form != "plain"):
        warn(sentence)
    if overwrite and is_special(output_file):
        warn("--overwrite has no effect without -o FILE.")
    if not job.can_share(lines_at_once):
        warn(f"--workers has no effect on so few lines at once ({lines_at_once}).")


def _start_reading(files: Mapping[str, str], output: Output) -> Readers:
    """Read the input up to where the output is, after finding out that the two belong together."""
    readers = Readers(files, damaged_in=INPUT)
    if isinstance(output, ResumableOutput) and output.state.num_lines:
        readers.skip(output.state.num_lines)
        can_restart = not any(map(is_special, files.values()))
        if not output.check_input(readers.num_lines, readers.hashes(), can_restart=can_restart):
            readers = Readers(files, damaged_in=INPUT)
    return readers


def _prompt(windows: Iterator[Window]) -> Iterator[Window]:
    """Ask for each line on standard error."""
    while True:
        sys.stderr.write("> ")
        sys.stderr.flush()
        window = next(windows, None)
        if window is None:
            sys.stderr.write("\n")
            return
        yield window


def _answer(job: Job, window: Window, output: Output) -> int:
    """Write the translations of a window; say what is wrong with lines, and how many these are."""
    num_failed = 0
    for number, translation in enumerate(job.translate(window.columns), start=window.first):
        output.write(job.write(number, translation))
        if translation.error is not None:
            num_failed += 1
            warn(f"line {number + 1}: {translation.error}")
    return num_failed


def _answer_at_once(job: Job, window: Window, _output: Output) -> int:
    """Show the translation of one line on the terminal while it is found; likewise."""
    problem = None
    try:
        for piece in job.stream(window.columns):
            sys.stdout.write(piece)
            sys.stdout.flush()
    except InputError as error:
        problem = error
    sys.stdout.write("\n")
    if problem is not None:
        warn(f"line {window.first + 1}: {problem}")
    return int(problem is not None)
