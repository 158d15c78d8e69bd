"""The history of heads through a training: its table, its records and its picture."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pellucid.cli.ending import LINES_FAILED, say_error
from pellucid.cli.lines.streams import open_output, to_json_line
from pellucid.terminal.progress import ProgressLine
from pellucid.terminal.text import lay_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TextIO

    from pellucid.bundle import Bundle
    from pellucid.evaluation.word_links import GoldLinks
    from pellucid.inside.studies.patched import PatchedCorpus
    from pellucid.inside.studies.training_history import HeadHistory

Form = Literal["text", "json", "csv"]
"""A table to read, or all numbers for a program."""


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
            heads=heads,
            on_step=lambda done, total: line.show(f"{done} of {total} models"),
        )


def draw_history(found: HeadHistory, figure: str, name: str, svg: str | None) -> str:
    """Draw one figure if a file is named, and return the heading of its table."""
    from pellucid.files import write_text
    from pellucid.inside.studies.moving import moving_picture
    from pellucid.inside.studies.training_history import MEANINGS

    meaning = f"{found.num_lines:,} lines. {MEANINGS[figure]}"
    if svg is not None:
        picture = moving_picture(found, figure, title=f"{name}: {figure}", meaning=meaning)
        write_text(Path(svg), picture)
    return meaning


def write_found(
    found: HeadHistory | PatchedCorpus,
    title: str,
    cells: Sequence[Sequence[str]],
    form: Form,
    output_file: str,
    *,
    overwrite: bool,
) -> int:
    """Write a table to read, or all numbers as JSON or CSV; return the exit code."""
    for sentence in found.left_out:
        say_error(sentence)
    with open_output(output_file, may_overwrite=overwrite) as output:
        if form == "json":
            output.write(to_json_line(found.record()))
        elif form == "csv":
            write_csv(found.records(), output)
        else:
            rows = "".join(f"{row}\n" for row in lay_out_figures(cells))
            output.write(f"{title}\n\n{rows}")
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


def write_csv(rows: Sequence[Mapping[str, object]], output: TextIO) -> None:
    """Write records as CSV, with the names of the first one as the heading."""
    writer = csv.DictWriter(output, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
