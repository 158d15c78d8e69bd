"""``pellucid corpus``: the built-in corpus as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from pellucid.cli.ending import show_made
from pellucid.cli.options import Overwrite, described
from pellucid.errors import InputError, OutputPlaceError, suggestion

if TYPE_CHECKING:
    from pellucid.corpora import SplitName


@described(
    out=("DIR", "The folder to write into.", {"name": "-o --output"}),
    part=(
        "PART",
        "train, validation, test, compositional or pronoun; may be repeated.  [default: all]",
    ),
    count=("N", "Sentence pairs in each part, instead of its usual number.", {"min": 1}),
    seed=("N", "Seed of everything drawn."),
)
def corpus(
    out: Path = Path("corpus"),
    part: list[str] | None = None,
    count: int | None = None,
    seed: int = 1,
    overwrite: Overwrite = False,
) -> None:
    """Write the built-in English-French corpus, with its gold links and antecedents.

    Each part is four files whose lines belong together: NAME.en and NAME.fr hold the sentences,
    NAME.align the links between their words as i-j from 0, and NAME.antecedents a JSON object that
    names the noun that each pronoun stands for. In the pronoun part, lines 2i and 2i + 1 differ
    only in the predicate, and therefore in what the pronoun stands for.
    """
    from pellucid.corpora import DEFAULT_COUNTS, example_files, make_split, write_examples

    names = list(dict.fromkeys(part)) if part else list(DEFAULT_COUNTS)
    for name in names:
        # All names are checked before the first file is written.
        if name not in DEFAULT_COUNTS:
            raise InputError(
                f"--part must be a part of the corpus, but is {name!r}. "
                + suggestion(name, DEFAULT_COUNTS)
            )
    taken = [path for name in names for path in example_files(out, name) if path.exists()]
    if taken and not overwrite:
        raise OutputPlaceError(
            f"The output must be a new file, but {taken[0]} exists. Choose another folder, or add "
            "--overwrite."
        )
    for name in names:
        examples = make_split(cast("SplitName", name), seed=seed, count=count)
        for path in write_examples(out, name, examples):
            show_made(str(path))
