"""``pellucid corpus`` and ``extract``: the built-in corpus as files, and pairs out of documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from pellucid.cli.ending import note, warn
from pellucid.cli.options import OutputFile, Overwrite, described
from pellucid.errors import DataError, InputError, suggestion
from pellucid.terminal.text import count_of

if TYPE_CHECKING:
    from pellucid.corpora import SplitName


@described(
    out=("DIR", "The folder to write into."),
    split=(
        "NAME",
        "train, validation, test, compositional or pronoun; may be repeated. All of them by "
        "default.",
    ),
    count=("N", "Sentence pairs in each split, instead of its usual number.", {"min": 1}),
    seed=("N", "Seed; another one gives another corpus."),
)
def corpus(
    out: Path = Path("corpus"),
    split: list[str] | None = None,
    count: int | None = None,
    seed: int = 1,
) -> None:
    """Write the built-in English-French corpus, with its gold links and antecedents.

    Each split is four files whose lines belong together: NAME.en and NAME.fr hold the sentences,
    NAME.align the links between their words as i-j from 0, and NAME.antecedents a JSON object that
    names the noun that each pronoun stands for. In the pronoun split, lines 2i and 2i + 1 differ
    only in the predicate, and therefore in what the pronoun stands for.
    """
    from pellucid.corpora import DEFAULT_COUNTS, make_split, write_examples

    names = list(dict.fromkeys(split)) if split else list(DEFAULT_COUNTS)
    for name in names:
        # All names are checked before the first file is written.
        if name not in DEFAULT_COUNTS:
            raise InputError(
                f"--split must be a split of the corpus, but is {name!r}. "
                + suggestion(name, DEFAULT_COUNTS)
            )
    for name in names:
        examples = make_split(cast("SplitName", name), seed=seed, count=count)
        for path in write_examples(out, name, examples):
            note(str(path))


@described(
    source_language=("CODE", "The language of the texts, which a TMX needs: en."),
    target_language=("CODE", "The language of the translations."),
)
def extract(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="PO, XLIFF and TMX files, or tables of pairs."),
    ],
    output_file: OutputFile = "-",
    overwrite: Overwrite = False,
    source_language: str = "",
    target_language: str = "",
) -> None:
    """Write the texts of documents with their translations as tab-separated pairs.

    Each line is SOURCE, tab, TARGET. Tags are removed, and placeholders stay. Entries that are
    fuzzy, obsolete, untranslated or without words are left out and counted on standard error.
    Training takes the same files.
    """
    from pellucid.cli.lines.streams import open_output
    from pellucid.files import expand_home
    from pellucid.text.reading.sentence_pairs import BadLines, read_pairs_of_file

    bad, num_pairs = BadLines(), 0
    with open_output(output_file, may_overwrite=overwrite) as output:
        for name in expand_home(files):
            for pair in read_pairs_of_file(name, (source_language, target_language), bad):
                # A tab or a line end would begin another side, or another pair.
                sides = (re.sub(r"[\t\n]+", " ", one) for one in (pair.source, pair.target))
                output.write("\t".join(sides) + "\n")
                num_pairs += 1
        # Inside the block, where an error leaves the old file or none.
        if not num_pairs:
            none = "The files must hold at least one pair, but hold none."
            raise DataError(f"{none} {bad.about_entries()}".strip())
    pairs = count_of(num_pairs, "pair was", "pairs were")
    warn(f"{pairs} written. {bad.about_entries()}".strip())
    if bad.count:
        warn(f"{count_of(bad.count, 'line')} cannot be used: {bad.listed()}.")
