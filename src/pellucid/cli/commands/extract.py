"""``pellucid extract``: pairs of texts out of documents."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from pellucid.cli.ending import LINES_FAILED, note, say_error
from pellucid.cli.options import OutputFile, Overwrite, described
from pellucid.errors import DataError
from pellucid.terminal.text import count_of


@described(
    source_language=("CODE", "The language of the texts, which a TMX needs: en."),
    target_language=("CODE", "The language of the translations."),
)
def extract(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="PO, XLIFF and TMX files, or tables of pairs."),
    ],
    output_file: OutputFile = "-",
    overwrite: Overwrite = False,
    source_language: str = "",
    target_language: str = "",
) -> int:
    """Write the texts of documents with their translations as tab-separated pairs.

    Each line is SOURCE, tab, TARGET. Tags are removed, and placeholders stay. Entries that are
    fuzzy, obsolete, untranslated or without words are left out and counted on standard error.
    Training takes the same files.
    """
    from pellucid.cli.lines.streams import open_output
    from pellucid.files import expand_home
    from pellucid.text.reading.bad_lines import BadLines
    from pellucid.text.reading.sentence_pairs import read_pairs_of_file

    bad = BadLines()
    num_pairs = 0
    with open_output(output_file, may_overwrite=overwrite) as output:
        for name in expand_home(files):
            for pair in read_pairs_of_file(name, (source_language, target_language), bad):
                # A tab or a line end would begin another side, or another pair.
                sides = (re.sub(r"[\t\n]+", " ", one) for one in (pair.source, pair.target))
                output.write("\t".join(sides) + "\n")
                num_pairs += 1
        # Inside the block: after an error the old file, if any, stays as it was.
        if not num_pairs:
            none = "The files must hold at least one pair, but hold none."
            raise DataError(f"{none} {bad.about_entries()}".strip())
    pairs = count_of(num_pairs, "pair was", "pairs were")
    note(f"{pairs} written. {bad.about_entries()}".strip())
    if bad.count:
        say_error(f"{count_of(bad.count, 'line')} cannot be used: {bad.listed()}.")
    return LINES_FAILED if bad.count else 0
