"""The history of heads through a training: its table, its records and its picture."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from pellucid.cli.ending import warn
from pellucid.cli.lines.streams import open_output, to_json_line
from pellucid.terminal.progress import ProgressLine
from pellucid.terminal.text import lay_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from pellucid.bundle import Bundle
    from pellucid.evaluate.links import GoldLinks


def follow_run(
    run: str,
    columns: Mapping[str, list[str]],
    heads: Sequence[str] | None,
    figure: str,
    svg: str | None,
    forms: Sequence[str],
    output_file: str,
    *,
    overwrite: bool,
) -> int:
    """Follow the heads through a run, and write one figure, or all of them as JSON or CSV.

    Args:
        run: the run folder.
        columns: the lines of each file, by its option.
        heads: names of the heads; None for all.
        figure: the one to show and to draw.
        svg: the file of the picture, if any.
        forms: ``--json`` or ``--csv``, or neither.
        output_file: where to write.
        overwrite: True if an existing file may be replaced.

    Returns:
        The exit code: 2 if a line was left out.
    """
    from pellucid.bundle import load_bundle
    from pellucid.corpora.example import read_pronouns
    from pellucid.files import write_text
    from pellucid.inside.corpus.history import MEANINGS, find_models, follow_heads
    from pellucid.inside.corpus.moving import moving_picture

    golds = pronouns = None
    if "--gold" in columns:
        golds = read_gold(columns, "the gold links", load_bundle(find_models(Path(run))[-1][1]))
    if "--antecedents" in columns:
        pronouns = read_pronouns(columns["--antecedents"])
    with ProgressLine(bar="short") as line:
        found = follow_heads(
            run,
            columns["--source"],
            columns.get("--target"),
            golds=golds,
            antecedents=pronouns,
            heads=heads,
            on_step=lambda done, total: line.show(f"{done} of {total} models"),
        )
    for sentence in found.left_out:
        warn(sentence)
    meaning = f"{found.num_lines:,} lines. {MEANINGS[figure]}"
    if svg is not None:
        picture = moving_picture(found, figure, title=f"{run}: {figure}", meaning=meaning)
        write_text(Path(svg), picture)
    with open_output(output_file, may_overwrite=overwrite) as output:
        if "--json" in forms:
            record = {"lines": found.num_lines, "left_out": list(found.left_out)}
            output.write(to_json_line({**record, "history": found.records()}))
        elif forms:
            write_csv(found.records(), output)
        else:
            cells = found.cells(figure)
            lines = lay_out(cells, [False, *[True] * (len(cells[0]) - 1)])
            output.write(f"{meaning}\n\n" + "".join(f"{line}\n" for line in lines))
    return 2 if found.left_out else 0


def read_gold(columns: Mapping[str, list[str]], path: str, bundle: Bundle) -> list[GoldLinks]:
    """Parse gold links, checking that they join words of the lines."""
    from pellucid.evaluate.links import parse_gold
    from pellucid.inside.align.units import SIDES, find_units

    lengths = []
    for pair in zip(columns["--source"], columns["--target"], strict=True):
        source, target = (
            len(find_units(bundle.tokenizer, side, line, rule="auto").names)
            for side, line in zip(SIDES, pair, strict=True)
        )
        lengths.append((source, target))
    return parse_gold(columns["--gold"], lengths, path)


def write_csv(rows: Sequence[Mapping[str, object]], output: TextIO) -> None:
    """Write records as CSV, with the names of the first one as the heading."""
    writer = csv.DictWriter(output, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
