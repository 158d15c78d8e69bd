"""The report of ``pellucid train --check``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pellucid.cli.progress import show_progress

if TYPE_CHECKING:
    from pellucid.config import DataConfig
    from pellucid.train.start.fit import ModelLimits
    from pellucid.train.start.worst import WorstPairs

NUM_WORST = 20
"""Pairs that are listed of those that a model finds least likely."""


def check_text(
    data: DataConfig,
    folder: Path,
    *,
    sizes: Mapping[str, Any],
    start: str | None,
    model: str | None,
    num_worst: int,
    is_json: bool,
) -> int:
    """Check a recipe's text, and print what is odd.

    Args:
        data: the recipe's data section.
        folder: the recipe's folder.
        sizes: the recipe's model section.
        start: the model that training starts from, if any.
        model: a model whose least likely pairs are listed as well.
        num_worst: the number of these.
        is_json: write one JSON object instead of text.

    Returns:
        The exit code: 2 if something must be wrong.
    """
    from pellucid.check.data import check_data

    # Report a missing model first. Otherwise PyTorch, which these functions load, waits
    # until the check has given its memory back.
    limits = None if start is None else _read_limits(sizes, start)
    report = check_data(data, folder)
    from pellucid.train.start.fit import check_fit

    limits = limits or _read_limits(sizes, start)
    report = report.with_findings(check_fit(data, folder, limits))
    if data.train_alignments:
        from pellucid.train.start.links import check_links

        report = report.with_findings(check_links(data, folder, limits.tokenizer))
    found = None if model is None else _score(model, data, folder, num_worst)
    if is_json:
        record = report.to_record()
        if found is not None:
            record["worst"] = asdict(found)
        sys.stdout.write(f"{json.dumps(record, ensure_ascii=False)}\n")
    else:
        lines = report.lines() + ([] if found is None else list(_describe(found, str(model))))
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 2 if report.has_errors else 0


def _read_limits(sizes: Mapping[str, Any], start: str | None) -> ModelLimits:
    from pellucid.train.start.fit import ModelLimits

    return ModelLimits.read(sizes, start)


def _score(model: str, data: DataConfig, folder: Path, count: int) -> WorstPairs:
    from pellucid.train.start.worst import find_worst
    from pellucid.translate.translator import load

    translator = load(model)
    with show_progress(is_wanted=True, total=None) as progress:
        return find_worst(translator, data, folder, count, progress)


def _describe(found: WorstPairs, model: str) -> Iterator[str]:
    """Format the worst pairs, with their places and texts."""
    from pellucid.check.findings import cut_line

    left_out = f" ({found.num_left_out:,} could not be scored)" if found.num_left_out else ""
    yield (
        f"The {len(found.pairs):,} least likely of {found.num_scored:,} training pairs{left_out}, "
        f"by {model}: log-probability of the target, per token."
    )
    for pair in found.pairs:
        yield f"{pair.score:8.3f}  {pair.source_where} | {pair.target_where}"
        yield cut_line(f"    {pair.source}")
        yield cut_line(f"    {pair.target}")
