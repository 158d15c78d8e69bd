"""``pellucid export``: a model in other formats, or in fewer bits."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pellucid.cli.ending import LINES_FAILED, note, say_error, show_made
from pellucid.cli.lines.pair_files import Pairs, pair_files
from pellucid.cli.lines.streams import read_columns
from pellucid.cli.options import Model, Threads, described
from pellucid.config.config_json import MASKS
from pellucid.terminal.text import count_of

MOST_SHOWN = 5
"""The most lines with other words that are shown."""


@described(
    out=("FOLDER", "The new folder to write.", {"name": "-o --output"}),
    target=(
        "",
        "The format of FOLDER: Hugging Face's MarianMT, CTranslate2, or another bundle.",
        {"name": "--format"},
    ),
    precision=(
        "",
        "Precision of the stored weights; auto is int8 if it loses at most 0.2 BLEU on the lines "
        "of PAIRS, else that of the model.  [default: the model's in a bundle, else float32]",
    ),
)
def export(
    model: Model,
    out: Path,
    target: Literal["marian", "ctranslate2", "pellucid"],
    pairs: Pairs = None,
    precision: Literal["auto", "float32", "bfloat16", "int8"] | None = None,
    threads: Threads = None,
) -> int:
    """Export a model to Marian or CTranslate2, or to a bundle of lower precision.

    A model that the other format cannot express is refused. With PAIRS, a
    bundle translates the lines before and after: both BLEU scores are shown and kept in its
    manifest, and lines with other words are named. Every command then computes in the new
    precision; without these lines the bundle stores it, and computes in float32.
    """
    columns: dict[str, list[str]] = {}
    if pairs:
        sides = pair_files(pairs, None, None, model=model, command="export")
        columns = read_columns(sides, damaged_in=())
    from pellucid.functions.convert_model import export as export_model

    made = export_model(
        model,
        out,
        format=target,
        precision=precision,
        source=columns.get("--source"),
        reference=columns.get("--target"),
    )
    for error in made.errors:
        say_error(error)
    if made.rejected is not None and made.before is not None:
        show_made(_bleu(made.rejected, "after (int8)", made.before) + ": too low")
    if made.before is not None and made.after is not None:
        show_made(_bleu(made.before, f"before ({made.original})"))
        show_made(_bleu(made.after, f"after ({made.precision})", made.before))
    elif made.precision != made.computes:
        note(
            f"Nothing was measured, so the bundle stores {made.precision} and computes in "
            f"{made.computes}. Give PAIRS, lines with their translations, to let it compute in "
            f"{made.precision}."
        )
    if made.changed:
        show_made(f"{count_of(len(made.changed), 'line')} with other words:")
    for source, before, after in made.changed[:MOST_SHOWN]:
        show_made(f"  {source} → before: {before} → after: {after}")
    if made.has_masks:
        note(
            f"The model reads {MASKS[0]} to {MASKS[-1]} in the place of placeholders such as %s: "
            "put them in and take them out around the other program."
        )
    show_made(str(out))
    return LINES_FAILED if made.errors else 0


def _bleu(score: float, which: str, before: float | None = None) -> str:
    difference = "" if before is None else f", difference {score - before:+.2f}"
    return f"BLEU {score:6.2f}  {which}{difference}"
