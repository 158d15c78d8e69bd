"""``pellucid check``: what is odd about text to train on."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from json import dumps as to_json
from typing import TYPE_CHECKING, Any

from pellucid.cli.ending import CHECK_FAILED, note
from pellucid.cli.option_rules import Needs, check_rules
from pellucid.cli.options import Changes, Json, Texts, Threads, described

if TYPE_CHECKING:
    from pathlib import Path

    from pellucid.check.findings import DataReport
    from pellucid.config import DataConfig
    from pellucid.training.start.found_recipe import FoundRecipe
    from pellucid.training.start.worst import WorstPairs

RULES = (Needs("worst", "model"),)


# Pairs that are listed of those that a model finds least likely.
NUM_WORST = 20


@described(
    source_language=("CODE", "The language of the source, for text without a recipe: en."),
    target_language=("CODE", "The language of the target."),
    start=("MODEL", "Check for a training that starts from this model, with its tokenizer."),
    model=("MODEL", "List the pairs that this model finds least likely, too."),
    worst=("N", "With --model: list N pairs.  [default: 20]", {"min": 1}),
)
def check(
    texts: Texts,
    source_language: str | None = None,
    target_language: str | None = None,
    start: str | None = None,
    model: str | None = None,
    worst: int | None = None,
    json: Json = False,
    threads: Threads = None,
    changes: Changes = None,
) -> int:
    """Report what is odd about the text of a recipe, or about a table of pairs.

    Lines that are shifted, exchanged, copied, in another language or too long are listed with
    their places. The exit code is 1 if something must be wrong, so that training would be of no
    use. Nothing is written.
    """
    check_rules(RULES, {"model": model, "worst": worst})
    from pellucid.training.start.found_recipe import find_start, start_of

    languages = (source_language, target_language)
    recipe = find_start(texts, languages, None, changes or (), is_checked=True)
    start = start if start is not None else start_of(recipe.values)
    from pellucid.config import DataConfig, validate

    data = validate(DataConfig, recipe.values.get("data", {}), str(recipe.path))
    report = _check_text(recipe, data, start)
    found = None if model is None else _score(model, data, recipe.folder, worst or NUM_WORST)
    return _print_check(report, found, model, is_json=json)


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
