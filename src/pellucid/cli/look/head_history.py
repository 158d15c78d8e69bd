"""The history of heads through a training: its table, its records and its picture."""

from __future__ import annotations

import csv
import io
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pellucid.cli.ending import LINES_FAILED, say_error
from pellucid.cli.lines.streams import to_json_line
from pellucid.cli.outputs import Outputs, write_outputs
from pellucid.terminal.progress import ProgressLine
from pellucid.terminal.text import count_of, lay_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pellucid.bundle import Bundle
    from pellucid.evaluation.word_links import GoldLinks
    from pellucid.inside.studies.patched import PatchedCorpus
    from pellucid.inside.studies.training_history import HeadHistory


def follow_run(
    run: str, columns: Mapping[str, list[str]], heads: Sequence[str] | None
) -> HeadHistory:
    """Follow the heads through a run.

    Args:
        run: the run folder.
        columns: the lines of each file, by its option.
        heads: names of the heads; None for all.
    """
    from pellucid.bundle import load_bundle
    from pellucid.corpora.example import read_pronouns
    from pellucid.inside.studies.training_history import find_models, follow_heads

    golds = pronouns = None
    if "--gold" in columns:
        golds = read_gold_columns(
            # The last model cuts the lines into words, as for the study.
            columns,
            "the gold links",
            load_bundle(find_models(Path(run))[-1][1]),
        )
    if "--antecedents" in columns:
        pronouns = read_pronouns(columns["--antecedents"])
    with ProgressLine(bar="short") as line:
        return follow_heads(
            run,
            columns["--source"],
            columns.get("--target"),
            golds=golds,
            antecedents=pronouns,
            heads=heads or None,
            on_step=lambda done, total: line.show(f"{done} of {total} models"),
        )


def draw_history(found: HeadHistory, figure: str, name: str) -> tuple[Callable[[], str], str]:
    """Return a function that draws one figure, and the heading of its table."""
    from pellucid.inside.studies.moving import moving_picture
    from pellucid.inside.studies.training_history import MEANINGS

    meaning = f"{count_of(found.num_lines, 'line')}. {MEANINGS[figure]}"
    title = f"{name}: {figure}"
    return partial(moving_picture, found, figure, title=title, meaning=meaning), meaning


def write_found(
    found: HeadHistory | PatchedCorpus,
    title: str,
    cells: Sequence[Sequence[str]],
    outputs: Outputs,
    draw: Callable[[], str] | None = None,
) -> int:
    """Write a table to read, all numbers as JSON or CSV, or a picture; return the exit code."""
    for sentence in found.left_out:
        say_error(sentence)

    def make(form: str) -> str:
        if form == "svg" and draw is not None:
            return draw()
        if form == "json":
            return to_json_line(found.record())
        if form == "csv":
            return to_csv(found.records())
        rows = "".join(f"{row}\n" for row in lay_out_figures(cells))
        return f"{title}\n\n{rows}"

    write_outputs(outputs, make)
    return LINES_FAILED if found.left_out else 0


def lay_out_figures(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lay out a table whose first column has names, and whose others have numbers."""
    is_number = [True] * (len(cells[0]) - 1)
    return lay_out(cells, [False, *is_number])


def read_gold_columns(
    columns: Mapping[str, list[str]], path: str, bundle: Bundle
) -> list[GoldLinks]:
    """Parse gold links, checking that they join words of the lines."""
    from pellucid.evaluation.word_links import parse_gold
    from pellucid.inside.align.linked_units import count_linkable_words

    lengths = []
    for source, target in zip(columns["--source"], columns["--target"], strict=True):
        num_source_words = count_linkable_words(bundle.tokenizer, "source", source)
        num_target_words = count_linkable_words(bundle.tokenizer, "target", target)
        lengths.append((num_source_words, num_target_words))
    return parse_gold(columns["--gold"], lengths, path)


def to_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Write records as CSV, with the names of the first one as the heading."""
    output = io.StringIO()
    writer = csv.DictWriter(output, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return output.getvalue()
