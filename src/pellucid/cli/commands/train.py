"""``pellucid train``: from a recipe to a model."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from json import dumps as to_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pellucid.cli.ending import CHECK_FAILED, note, show_made
from pellucid.cli.option_rules import Needs, check_rules
from pellucid.cli.options import Changes, Threads, described
from pellucid.errors import ConfigurationError
from pellucid.machine.launch import find_place

if TYPE_CHECKING:
    from pellucid.check.findings import DataReport
    from pellucid.config import DataConfig
    from pellucid.training.start.found_recipe import FoundRecipe
    from pellucid.training.start.worst import WorstPairs

RULES = (Needs("model json", "check"), Needs("worst", "model"))

# Pairs that are listed of those that a model finds least likely.
NUM_WORST = 20


@described(
    source_language=("CODE", "The language of the source, for text without a recipe: en."),
    target_language=("CODE", "The language of the target."),
    out=("RUN", "The run folder; runs/NAME by default."),
    minutes=(
        "N",
        "Take so many minutes at most, preparation and validation included, and plan for them.",
        {"min": 0.01},
    ),
    start=("MODEL", "Start from a trained model: weights and tokenizer.", {"name": "--from"}),
    check=("", "Check the text, report what is odd, and stop."),
    model=("MODEL", "With --check: list the pairs it finds least likely."),
    worst=("N", "With --model: list N pairs; 20 by default."),
    json=("", "With --check: write the report as one JSON object."),
    log_every=("N", "Write a line of the log every N updates; 50 by default.", {"min": 1}),
    samples=("N", "Show N translations at each validation; 3 by default.", {"min": 0}),
    save_minutes=(
        "N",
        "Save a checkpoint every N minutes too; 5 by default, 0 only at validations.",
        {"min": 0},
    ),
    keep=("every:N", "Keep the model of every N updates in RUN/history, for study --history."),
    tensorboard=("", "Write the figures for TensorBoard too, into RUN/tensorboard."),
    wait=("S", "With torchrun or srun: seconds in which every rank must come; 300 by default."),
)
def train(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RECIPE|TABLE",
            help="A recipe file, the name of one that comes with pellucid, or text: a .tsv, .csv, "
            ".jsonl, .parquet, .po, .xlf or .tmx, a folder of them, or a source and a target file.",
            show_default=False,
        ),
    ] = None,
    source_language: str | None = None,
    target_language: str | None = None,
    out: Path | None = None,
    start: str | None = None,
    minutes: float | None = None,
    check: bool = False,
    model: str | None = None,
    worst: int | None = None,
    json: bool = False,
    log_every: int | None = None,
    samples: int | None = None,
    save_minutes: float | None = None,
    keep: str | None = None,
    tensorboard: bool = False,
    wait: float | None = None,
    threads: Threads = None,
    changes: Changes = None,
) -> int:
    """Train a model from a recipe or a table of pairs; the same command again resumes.

    Without a recipe, one is written next to RUN: it sets a thousand pairs aside for validation,
    as many for a test, and leaves the rest to be chosen for the text. The best model so far is in
    RUN/bundle, which every other command takes. Ctrl-C saves first.
    """
    # --minutes counts from here, the import of PyTorch included.
    began = time.monotonic()
    check_rules(RULES, {"check": check, "model": model, "json": json, "worst": worst})
    if worst is not None and worst < 1:
        raise ConfigurationError(f"--worst must be at least 1, but is {worst}. Change it.")
    from pellucid.functions.train_model import start_of, train_found
    from pellucid.training.start.found_recipe import find_start

    settings = {
        "max_minutes": minutes,
        "log_every": log_every,
        "validation_samples": samples,
        "save_minutes": save_minutes,
        "tensorboard": "true" if tensorboard else None,
        "keep_every": None if keep is None else _read_keep(keep),
    }
    given = [f"training.{key}={value}" for key, value in settings.items() if value is not None]
    changes = [*(changes or ()), *given]
    with contextlib.ExitStack() as stack:
        ranks = None
        place = find_place(os.environ, wait)
        if place is not None and not check:
            # PyTorch's messages about lost connections have the traces of its own calls.
            os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
            from pellucid.training.update.hands import be_hand
            from pellucid.training.update.ranks import Ranks

            # The first rank reads, logs and saves; all others only compute.
            if place.rank:
                return be_hand(place)
            ranks = stack.enter_context(Ranks(place))
        recipe = find_start(
            texts or [],
            (source_language, target_language),
            out,
            changes,
            is_checked=check,
            say=note,
        )
        start = start if start is not None else start_of(recipe.values)
        if not check:
            limit = None if minutes is None else began
            train_found(recipe, start, say=note, ranks=ranks, began=limit)
            show_made(str(recipe.run / "bundle"))
            return 0
    from pellucid.config import DataConfig, validate

    data = validate(DataConfig, recipe.values.get("data", {}), str(recipe.path))
    report = _check_text(recipe, data, start)
    found = None if model is None else _score(model, data, recipe.folder, worst or NUM_WORST)
    return _print_check(report, found, model, is_json=json)


def _read_keep(keep: str) -> str:
    """Read the number of ``every:N``."""
    word, _, number = keep.partition(":")
    if word != "every" or not number.isdecimal() or not int(number):
        raise ConfigurationError(
            f"--keep must be every:N, such as every:100, but is {keep!r}. Change it."
        )
    return number


def _check_text(found: FoundRecipe, data: DataConfig, start: str | None) -> DataReport:
    """Check a recipe's text, as training with this recipe in this run folder would read it."""
    from pellucid.check.data_check import check_data
    from pellucid.config import Recipe, validate

    values: Mapping[str, Any] = found.values
    # The text may be checked before it is known how to train on it.
    text = {**values["data"], "train_alignments": [], "on_bad_line": "skip"}
    sizes = values.get("model", {})
    if isinstance(sizes, Mapping):
        longest = (sizes.get("max_source_length"), sizes.get("max_target_length"))
        if given := [number for number in longest if isinstance(number, int)]:
            # `Recipe` refuses a model that is too short for its text; here only the text counts.
            text["max_pair_length"] = min(data.max_pair_length, *given)
    values = {**values, "data": text, "training": {}}
    # A missing model is reported first. Without one, PyTorch, which these functions load, waits
    # until the check has given its memory back.
    bundle = None
    if start is not None:
        from pellucid.training.start.from_model import with_start

        values = with_start(values, start, found.run)
    recipe = validate(Recipe, values, str(found.path))
    if recipe.start.model:
        from pellucid.training.start.from_model import load_start

        bundle = load_start(recipe.start, found.run)
    report = check_data(data, found.folder)
    from pellucid.check.findings import Finding
    from pellucid.training.start.choices import complete, describe_few
    from pellucid.training.start.fit import check_fit
    from pellucid.training.start.kept_pairs import KeptText

    few = describe_few(report.num_pairs["train"])
    report = report.with_findings(
        Finding("warning", "few", "train", report.num_pairs["train"], 1.0, one) for one in few
    )
    kept = KeptText(found.folder)
    recipe = validate(Recipe, complete(values, found.folder, kept)[0], str(found.path))
    tokenizer = None if bundle is None else bundle.tokenizer
    report = report.with_findings(check_fit(recipe, found.folder, kept, report.tags, tokenizer))
    if data.train_alignments:
        from pellucid.check.link_check import check_links

        report = report.with_findings(check_links(data, found.folder, tokenizer))
    return report


def _print_check(
    report: DataReport, found: WorstPairs | None, model: str | None, *, is_json: bool
) -> int:
    """Print what is odd, and the worst pairs; return the exit code."""
    if is_json:
        record = report.to_record()
        if found is not None:
            record["worst"] = asdict(found)
        sys.stdout.write(f"{to_json(record, ensure_ascii=False)}\n")
    else:
        lines = report.lines()
        if found is not None:
            lines += _list_worst(found, str(model))
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    return CHECK_FAILED if report.has_errors else 0


def _score(model: str, data: DataConfig, folder: Path, count: int) -> WorstPairs:
    from pellucid.terminal.progress import show_progress
    from pellucid.training.start.worst import find_worst
    from pellucid.translate.translator import load

    translator = load(model)
    with show_progress(is_wanted=True, total=None, log=note) as progress:
        return find_worst(translator, data, folder, count, progress)


def _list_worst(found: WorstPairs, model: str) -> Iterator[str]:
    """Format the worst pairs, with their places and texts."""
    from pellucid.check.findings import cut_line

    left_out = f" ({found.num_left_out:,} could not be scored)" if found.num_left_out else ""
    yield (
        f"The {len(found.pairs):,} least likely of {found.num_scored:,} training pairs{left_out}, "
        f"by {model}: log-probability of the target, per token."
    )
    for pair in found.pairs:
        # In a table both sides stand in one place.
        places = dict.fromkeys((pair.source_where, pair.target_where))
        yield f"{pair.score:8.3f}  {' | '.join(places)}"
        yield cut_line(f"    {pair.source}")
        yield cut_line(f"    {pair.target}")
