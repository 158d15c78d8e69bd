"""``pellucid export``: a model in the formats of others, or in fewer bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pellucid.cli.ending import note, warn
from pellucid.cli.lines.streams import read_parallel
from pellucid.cli.options import Model
from pellucid.errors import InputError

if TYPE_CHECKING:
    from pellucid.bundle import Bundle
    from pellucid.config import Precision
    from pellucid.evaluate import Score

__all__ = ["export"]


def export(
    model: Model,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="A new folder.")],
    target: Annotated[
        Literal["marian", "ctranslate2", "pellucid"],
        typer.Option("--to", help="Hugging Face's MarianMT, CTranslate2, or a bundle again."),
    ],
    precision: Annotated[
        Literal["float32", "bfloat16", "int8"],
        typer.Option("--precision", help="How the weights are stored."),
    ] = "float32",
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="FILE", help="Lines to measure BLEU with (--to pellucid)."
        ),
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", metavar="FILE", help="Their translations.")
    ] = None,
) -> int:
    """Write a model for Marian or CTranslate2, or as a bundle of lower precision.

    What the other side cannot compute is refused. With --source and --reference a bundle is
    translated with before and after, and both BLEU scores are shown and kept in its manifest.
    """
    from pellucid.formats import check_place, export_ctranslate2, export_marian

    lines = _read_lines(target, source, reference)
    check_place(out)

    from pellucid.bundle import load_bundle, resolve_model

    bundle = load_bundle(resolve_model(model))
    has_errors = False
    if target == "pellucid":
        has_errors = _export_bundle(bundle, out, precision, lines)
    else:
        {"marian": export_marian, "ctranslate2": export_ctranslate2}[target](bundle, out, precision)
    note(str(out))
    return 2 if has_errors else 0


def _read_lines(
    target: str, source: str | None, reference: str | None
) -> tuple[list[str], ...] | None:
    """The lines to measure with, after checking that the options belong together."""
    if source is None and reference is None:
        return None
    if target != "pellucid":
        raise InputError(
            f"--source and --reference must come with --to pellucid, but it is --to {target}, "
            "which pellucid does not translate with. Leave them out."
        )
    if source is None or reference is None:
        missing = "--source" if source is None else "--reference"
        raise InputError(
            f"--source and --reference must be given together, but {missing} is not. Add it, or "
            "leave out both to measure nothing."
        )
    return read_parallel({"--source": source, "--reference": reference})


def _export_bundle(
    bundle: Bundle, out: Path, precision: Precision, lines: tuple[list[str], ...] | None
) -> bool:
    """Write the bundle, measured where there are lines; say whether a line failed."""
    from pellucid.formats import export_bundle

    if lines is None:
        export_bundle(bundle, out, precision)
        warn(
            "Nothing was measured. Give --source FILE and --reference FILE to see what the "
            f"change to {precision} does to BLEU."
        )
        return False
    with TemporaryDirectory() as folder:
        trial = Path(folder) / "bundle"
        export_bundle(bundle, trial, precision)
        before, errors = _measure(bundle.folder, *lines)
        after, _ = _measure(trial, *lines)
    for error in errors:
        warn(error)
    difference = after.score - before.score
    export_bundle(
        bundle,
        out,
        precision,
        measured={
            "before": before.score,
            "after": after.score,
            "difference": difference,
            "signature": before.signature,
            "lines": len(lines[0]),
        },
    )
    note(f"BLEU {before.score:6.2f}  before ({bundle.config.precision})")
    note(f"BLEU {after.score:6.2f}  after ({precision}), difference {difference:+.2f}")
    return bool(errors)


def _measure(
    folder: Path, sources: Sequence[str], references: Sequence[str]
) -> tuple[Score, list[str]]:
    """Translate with a bundle and score the result; the sentences about lines that failed."""
    from pellucid.evaluate import evaluate_corpus
    from pellucid.translator import load

    translations = load(folder).translate(sources)
    errors = [
        f"line {number}: {translation.error}"
        for number, translation in enumerate(translations, start=1)
        if translation.error is not None
    ]
    texts = [translation.text for translation in translations]
    return evaluate_corpus(texts, references).bleu, errors
