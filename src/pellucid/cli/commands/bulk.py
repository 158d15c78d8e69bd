"""``pellucid bulk``: many files, many workers, one result."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pellucid.cli.ending import warn
from pellucid.cli.lines.decoding_options import (
    MATCH,
    TREATMENT,
    file_of,
    given_decoding,
    given_treatment,
    some_decoding,
)
from pellucid.cli.lines.translation_job import choose_form
from pellucid.cli.option_rules import Apart, Needs, check_rules
from pellucid.cli.options import (
    CONSTRAINTS,
    Device,
    Ensemble,
    From,
    Json,
    Model,
    Option,
    OutputFile,
    Overwrite,
    Threads,
    To,
    described,
    given_of,
)
from pellucid.errors import InputError
from pellucid.languages.codes import direction
from pellucid.machine.limits import seconds_to_write

if TYPE_CHECKING:
    from pellucid.bulk.driver import Crew

SEARCH = some_decoding("beam", "n_best", "sample", "precision")
RULES = (
    Apart("score", " ".join(("json", *SEARCH, *CONSTRAINTS)), "nothing is searched for"),
    Needs("into", "score", "which reads pairs: translations are lines of their own"),
)

KEYS: Mapping[str, Option] = {
    "column": (
        str,
        "KEY",
        "Key or number of the text in JSON Lines, tables and Parquet; with --score that of the "
        "source. [default: text, with --score source; or column 1]",
    ),
    "into": (
        str,
        "KEY",
        "With --score: key or number of the target. [default: target, or column 2]",
    ),
}

# Stored and claimed as a whole: a command that is killed loses what it had begun of one
# (docs/decisions/0025).
PIECE_BYTES = 16_000_000

Job = Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a job, or its address.")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        help="Workers of this command. [default: one a thread; with --device cuda one a GPU, which "
        "they share out]",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Let actors of this Ray cluster work: an address, auto, or local.",
    ),
]
AnyMachine = Annotated[
    bool,
    typer.Option(
        "--any-machine", help="Accept workers whose processors compute with other instructions."
    ),
]
Minutes = Annotated[
    float | None,
    typer.Option(
        "--minutes",
        metavar="N",
        min=0.01,
        help="Time budget in minutes: no window begins that would not end in time; a job that is "
        "not finished then ends with 75.",
    ),
]


@described(
    TREATMENT,
    SEARCH,
    CONSTRAINTS,
    KEYS,
    output=("FOLDER", "The folder of the job, or an address.", {"name": "-o --output"}),
    score=("", "Compute log-probabilities of the pairs in the shards instead."),
    piece_bytes=("N", "Bytes of a piece, the unit of the job.", {"min": 1}),
)
def bulk_run(
    model: Model,
    shards: Annotated[
        list[str],
        typer.Argument(
            metavar="SHARD",
            help="Lines, .tsv, .jsonl or .parquet, plain or packed, or an address such as "
            "s3://b/part-*.gz.",
        ),
    ],
    output: str,
    score: bool = False,
    json: Json = False,
    source_language: From = None,
    to: To = None,
    ensemble: Ensemble = None,
    workers: Workers = None,
    ray: Ray = None,
    threads: Threads = None,
    device: Device = None,
    any_machine: AnyMachine = False,
    minutes: Minutes = None,
    piece_bytes: int = PIECE_BYTES,
    **options: Any,
) -> int:
    """Begin a job of many files with many workers, or resume it.

    FOLDER holds a manifest of the work, cut into pieces, and the results. The same command again
    resumes; pellucid bulk join FOLDER adds workers from any machine that reaches the folder.
    Equal jobs give equal bytes, however many workers there were and however often they ended. A
    line that cannot be translated is an empty line and listed in FOLDER/failed.tsv.

    With --score, shards hold pairs, and a result is the natural logarithm of a probability;
    --column and --into then name the columns of both sides.
    """
    until = _end_of(minutes)
    from pellucid.cli.bulk import bulk_jobs

    check_rules(RULES, {"score": score, "json": json, **options})
    paths, kind = bulk_jobs.find_inputs(shards)
    task = _make_task(
        model, kind, score, json, direction(source_language, to), ensemble or (), options
    )
    make_crew = partial(_make_crew, workers, ray)
    return bulk_jobs.begin(
        task,
        paths,
        output,
        make_crew,
        piece_bytes=piece_bytes,
        any_machine=any_machine,
        until=until,
    )


def bulk_join(
    folder: Job,
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL", help="Where the model is on this machine, if it is elsewhere."
        ),
    ] = None,
    workers: Workers = None,
    ray: Ray = None,
    threads: Threads = None,
    device: Device = None,
    any_machine: AnyMachine = False,
    minutes: Minutes = None,
) -> int:
    """Work on a job that another command began, from any machine that reaches its folder."""
    until = _end_of(minutes)
    from pellucid.cli.bulk import bulk_jobs

    make_crew = partial(_make_crew, workers, ray)
    return bulk_jobs.join_job(folder, make_crew, model=model, any_machine=any_machine, until=until)


def _end_of(minutes: float | None) -> float:
    """Return the ``time.monotonic()`` at which a command must end that has so many minutes."""
    if minutes is None:
        return math.inf
    seconds = 60 * minutes
    return time.monotonic() + seconds - seconds_to_write(seconds)


def bulk_status(folder: Job, json: Json = False) -> int:
    """Show what of a job is done, and by which commands; ends with 3 if lines failed.

    With --json, also how often each piece was begun again, and every line that failed.
    """
    from pellucid.cli.bulk import bulk_jobs

    return bulk_jobs.show_status(folder, is_json=json)


@described(back_translation=("TAG", "Swap the sides of pairs, and begin translations with TAG."))
def bulk_collect(
    folder: Job,
    output_file: OutputFile = "-",
    overwrite: Overwrite = False,
    back_translation: str | None = None,
) -> int:
    """Write the results of a finished job; ends with 3 if lines failed.

    A FILE that ends in .tsv or .jsonl gets pairs, any other one only results.
    """
    from pellucid.cli.bulk import bulk_jobs

    return bulk_jobs.collect(folder, output_file, tag=back_translation, may_overwrite=overwrite)


def _make_crew(workers: int | None, ray: str | None, task: Mapping[str, Any]) -> Crew:
    from pellucid.machine.devices import CPU, device_in_use, share_devices
    from pellucid.machine.hardware import share_threads, threads_in_use

    # Not in the manifest: workers that join the job may compute on another device.
    task = {**task, "device": device_in_use()}
    if ray is not None:
        from pellucid.bulk.on_ray import RayCrew

        # An actor sees one device, whose number is 0.
        task = {**task, "device": task["device"].partition(":")[0]}
        return RayCrew(ray, "pellucid.cli.bulk.work:Work", task, size=workers)
    from pellucid.bulk.local import LocalCrew

    devices = share_devices(task["device"])
    size = workers or (threads_in_use() if task["device"] == CPU else len(devices))
    return LocalCrew(
        "pellucid.cli.bulk.work:serve_windows",
        task,
        size=size,
        threads=share_threads(size),
        devices=devices,
    )


def _make_task(
    model: str,
    kind: str,
    score: bool,
    json: bool,
    to: str | None,
    ensemble: Any,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Gather the instructions for workers; names of files become absolute."""
    given = given_decoding(options)
    if score and kind == "lines":
        raise InputError(
            "--score needs pairs (.tsv, .jsonl or .parquet), but the files hold lines. Leave it "
            "out, or give pairs."
        )
    for name, values in (("prefix", [options["prefix"] or ""]), ("require", options["require"])):
        if any(file_of(one) is not None for one in values or ()):
            raise InputError(
                f"--{name} @FILE has a line for each line of one input, but a job has many. Give a "
                "text, or use pellucid translate."
            )
    if kind == "lines" and given_of(KEYS, options):
        warn("--column and --into have no effect on lines of text.")
    files = {
        "model": [model, *ensemble],
        "forbid": [path for one in options["forbid"] or () if (path := file_of(one)) is not None],
        "glossary": options["glossary"] or [],
    }
    return {
        "files": {kind: [*map(_absolute, names)] for kind, names in files.items()},
        "kind": kind,
        "score": score,
        "form": choose_form(given, is_json=json),
        "to": to,
        "given": given,
        "constraints": {
            "prefix": options["prefix"],
            "forbid": [one for one in options["forbid"] or () if file_of(one) is None],
            "require": options["require"],
            "set": [one for one in options["set"] or () if one.startswith(MATCH)],
        },
        "treatment": given_treatment(options),
        **{name: options[name] for name in KEYS},
    }


def _absolute(name: str) -> str:
    """Make the name of a file absolute; names of packaged models stay."""
    # Workers may run in other folders than this command.
    return str(Path(name).resolve()) if Path(name).exists() else name
