"""``pellucid align``: which words of a translation belong to which words of its source."""

from __future__ import annotations

from typing import Any

from pellucid.cli.align.align_options import (
    JOINED,
    MAY_BE_DAMAGED,
    VIEWS,
    WORDS,
    check_align_options,
)
from pellucid.cli.lines.pair_files import GOLD, SOURCE, TARGET, Pairs, pair_files
from pellucid.cli.lines.streams import STANDARD, check_readable, check_target
from pellucid.cli.options import (
    Device,
    From,
    Json,
    Model,
    ModelChanges,
    OutputFile,
    Overwrite,
    Threads,
    To,
    described,
)
from pellucid.text.reading.pair_sides import is_table


@described(
    VIEWS,
    WORDS,
    source=SOURCE,
    target=TARGET,
    source_words=(
        "FILE",
        "The words of each source line that links count, separated by spaces: a tokenized text. "
        "The model reads the lines of --source.",
    ),
    target_words=("FILE", "The same for the target lines."),
    gold=GOLD,
)
def align(
    model: Model,
    pairs: Pairs = None,
    source: str | None = None,
    target: str | None = None,
    source_words: str | None = None,
    target_words: str | None = None,
    gold: str | None = None,
    source_language: From = None,
    to: To = None,
    change: ModelChanges = None,
    json: Json = False,
    output_file: OutputFile = STANDARD,
    overwrite: Overwrite = False,
    threads: Threads = None,
    device: Device = None,
    **options: Any,
) -> int:
    """Link the words of lines and their translations by cross-attention.

    Each pair gives one line of links in the Pharaoh format: i-j joins word i of the source and
    word j of the target, both counted from 0 between spaces (see --words-by for scripts without
    spaces). PAIRS may also be one file, or '-', with SOURCE ||| TARGET on each line. If --head,
    --map and --convention leave several views, the one with the most consistent links is chosen,
    and standard error names it.

    With --gold the alignment error of every view is written instead, with its 95 % bootstrap
    interval, and -o FILE takes the links of the best view.
    """
    others = {"--source-words": source_words, "--target-words": target_words, "--gold": gold}
    if pairs and len(pairs) == 1 and not is_table(pairs[0]) and source is target is None:
        # The lines of fast_align and its relatives.
        files = {JOINED: pairs[0]}
    else:
        files = pair_files(pairs, source, target, model=model, command="align")
    files |= {name: path for name, path in others.items() if path is not None}
    check_align_options(options, files)
    # An output that cannot be written would only show after all the work.
    if output_file != STANDARD:
        check_target(output_file, may_overwrite=overwrite)
    # Before PyTorch is loaded, so that a mistake shows at once.
    check_readable(files, damaged_in=MAY_BE_DAMAGED)

    from pellucid.cli.align.aligned_files import align_files
    from pellucid.languages.codes import direction
    from pellucid.machine.hardware import set_threads

    set_threads(threads)
    options |= {"language": direction(source_language, to), "change": change}
    return align_files(model, files, options, output_file, may_overwrite=overwrite, is_json=json)
