"""The history of a run's heads: error and entropy at every checkpoint that the run keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from pellucid.cli.lines.streams import to_json_line
from pellucid.evaluate.links import GoldLinks
from pellucid.inside.align.links import LinkRule
from pellucid.inside.align.maps import Convention
from pellucid.inside.survey import Moment, follow_heads


def write_history(
    run: str,
    pairs: Sequence[tuple[str, str]],
    golds: Sequence[GoldLinks],
    options: Mapping[str, Any],
    output: TextIO,
    *,
    is_json: bool,
) -> None:
    """Write the alignment error and the entropy of each head of cross-attention, step by step.

    Args:
        run: a run folder.
        pairs: sources and targets.
        golds: their gold links.
        options: ``convention`` and ``links``; None takes the default.
        output: where to write.
        is_json: True for one object for each checkpoint, False for a table.

    Raises:
        InputFileNotFoundError: the run keeps no checkpoints.
        InputError: a pair cannot go through the model.
    """
    convention: Convention = options["convention"] or "predicts"
    rule: LinkRule = options["links"] or "both"
    moments = follow_heads(Path(run), pairs, gold=golds, convention=convention, rule=rule)
    if is_json:
        for moment in moments:
            output.write(to_json_line(_to_record(moment, convention, rule)))
        return
    output.write(
        f"Alignment error and mean entropy in nats, {convention}, {rule}; {len(pairs)} pairs\n"
    )
    steps = "".join(f"{f'step {moment.step:,}':>16}" for moment in moments)
    output.write(f"{'head':<20}{steps}\n")
    for index, row in enumerate(moments[0].rows):
        if row.head.kind == "cross":
            rows = [moment.rows[index] for moment in moments]
            cells = (f"{one.alignment_error or 0:>8.1%} {one.entropy:>7.3f}" for one in rows)
            output.write(f"{row.head!s:<20}{''.join(cells)}\n")


def _to_record(moment: Moment, convention: str, rule: str) -> dict[str, Any]:
    return {
        "step": moment.step,
        "convention": convention,
        "links": rule,
        "heads": {
            str(row.head): {"error": row.alignment_error, "entropy": row.entropy}
            for row in moment.rows
            if row.head.kind == "cross"
        },
    }
