"""``pellucid bulk``: many files, many workers, one result."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pellucid.cli.commands.translate import KEYS
from pellucid.cli.ending import warn
from pellucid.cli.lines.decoding_options import DECODING, TREATMENT
from pellucid.cli.lines.streams import check_target
from pellucid.cli.lines.translation_job import choose_form
from pellucid.cli.option_rules import Apart, Needs, check_rules
from pellucid.cli.options import (
    CONSTRAINTS,
    Ensemble,
    Json,
    Overwrite,
    Threads,
    To,
    described,
    given_of,
)
from pellucid.errors import InputError

if TYPE_CHECKING:
    from pellucid.bulk.driver import Crew

# Constraints on all lines; files with one for each line belong to one input.
_BY_LINE = ("prefix_file", "require_file")
PHRASES = {name: option for name, option in CONSTRAINTS.items() if name not in _BY_LINE}

RULES = (
    Apart("join status", "input output", "its folder names the job already"),
    Apart("join", "status"),
    Apart("score", " ".join(("json", *DECODING, *PHRASES)), "nothing is searched for"),
    Needs("back_translation", "collect"),
)

# Stored and claimed as a whole: a command that is killed loses what it had begun of one
# (docs/decisions/0025).
PIECE_BYTES = 16_000_000


@described(
    TREATMENT,
    DECODING,
    PHRASES,
    KEYS,
    inputs=(
        "SHARD",
        "Lines, .tsv, .jsonl or .parquet, plain or packed, or an address such as s3://b/part-*.gz; "
        "may be repeated.",
        {"name": "-i --input"},
    ),
    output=("FOLDER", "The folder of the job, which may be an address.", {"name": "-o --output"}),
    workers=("N", "Workers of this command. [default: one a thread or processor]", {"min": 1}),
    ray=("ADDRESS", "Let actors of this Ray cluster work: an address, auto, or local."),
    score=("", "Compute log-probabilities of the pairs in the shards instead."),
    join=("FOLDER", "Work on the job of this folder, begun by another command."),
    status=("FOLDER", "Show the state of the job of this folder."),
    collect=("FILE", "Write the results of a finished job: pairs into .tsv or .jsonl, else lines."),
    back_translation=("TAG", "With --collect: swap pairs, and begin translations with TAG."),
    any_machine=("", "Accept workers whose processors compute with other instructions."),
    piece_bytes=("N", "Bytes of a piece, the unit of the job.", {"min": 1}),
)
def bulk(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="The model.")] = None,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SHARD]...", help="More files, as the shell expands -i *.gz."),
    ] = None,
    inputs: list[str] | None = None,
    output: str | None = None,
    workers: int | None = None,
    ray: str | None = None,
    score: bool = False,
    join: str | None = None,
    status: str | None = None,
    collect: str | None = None,
    back_translation: str | None = None,
    overwrite: Overwrite = False,
    json: Json = False,
    to: To = None,
    ensemble: Ensemble = None,
    threads: Threads = None,
    any_machine: bool = False,
    piece_bytes: int = PIECE_BYTES,
    **options: Any,
) -> int:
    """Translate many files with many workers, on one machine or on many.

    FOLDER holds a manifest of the work, cut into pieces, and the results. The same command again
    resumes; --join FOLDER adds workers from any machine that reaches the folder. Equal jobs give
    equal bytes, however many workers there were and however often they ended. A line that cannot
    be translated is an empty line and listed in FOLDER/failed.tsv; --status and --collect then
    end with 3.

    With --score, shards hold pairs, and a result is the natural logarithm of a probability;
    --column and --into then name the columns of both sides.
    """
    from pellucid.cli.bulk import bulk_jobs

    own = {"input": inputs, "output": output, "join": join, "status": status, "score": score}
    own |= {"json": json, "collect": collect, "back_translation": back_translation}
    check_rules(RULES, {**own, **options})
    if collect is not None:
        # Before hours of work, not after them.
        check_target(collect, may_overwrite=overwrite)
    # Workers are made when their task is known, which --join reads from the job's manifest.
    make_crew = partial(_make_crew, workers, ray)
    code = 0
    if status is not None:
        code = bulk_jobs.show_status(status)
    elif join is not None:
        code = bulk_jobs.join_job(join, make_crew, model=model, any_machine=any_machine)
    elif model is not None and inputs and output is not None:
        paths, kind = bulk_jobs.find_inputs([*inputs, *(more or ())])
        task = _make_task(model, kind, score, json, to, ensemble or (), options)
        code = bulk_jobs.begin(
            task, paths, output, make_crew, piece_bytes=piece_bytes, any_machine=any_machine
        )
    # What else is allowed is -o FOLDER --collect FILE, which only writes results.
    elif model is not None or inputs or output is None or collect is None:
        raise InputError(
            "Name a job: MODEL -i SHARD -o FOLDER begins one, --join FOLDER works on one, --status "
            "FOLDER shows one, and -o FOLDER --collect FILE writes its results."
        )
    if collect is not None:
        place = join or status or output or ""
        code = bulk_jobs.collect(place, collect, tag=back_translation, may_overwrite=overwrite)
    return code


def _make_crew(workers: int | None, ray: str | None, task: Mapping[str, Any]) -> Crew:
    if ray is not None:
        from pellucid.bulk.on_ray import RayCrew

        return RayCrew(ray, "pellucid.cli.bulk.work:Work", task, size=workers)
    from pellucid.bulk.local import LocalCrew
    from pellucid.machine.hardware import share_threads, threads_in_use

    size = workers or threads_in_use()
    return LocalCrew(
        "pellucid.cli.bulk.work:serve_windows", task, size=size, threads=share_threads(size)
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
    given = given_of(DECODING, options)
    if score and kind == "lines":
        raise InputError(
            "--score needs pairs (.tsv, .jsonl or .parquet), but the files hold lines. Leave it "
            "out, or give pairs."
        )
    if kind == "lines" and given_of(KEYS, options):
        warn("--column and --into have no effect on lines of text.")
    files = {
        "model": [model, *ensemble],
        "forbid": [options["forbid_file"]] if options["forbid_file"] else [],
        "glossary": options["glossary"] or [],
    }
    return {
        "files": {kind: [*map(_absolute, names)] for kind, names in files.items()},
        "kind": kind,
        "score": score,
        "form": choose_form(given, is_json=json),
        "to": to,
        "given": given,
        "constraints": {name: options.get(name) for name in CONSTRAINTS},
        "treatment": {name: options[name] for name in TREATMENT},
        **{name: options[name] for name in KEYS},
    }


def _absolute(name: str) -> str:
    """Make the name of a file absolute; names of packaged models stay."""
    # Workers may run in other folders than this command.
    return str(Path(name).resolve()) if Path(name).exists() else name
