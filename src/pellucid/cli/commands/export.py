"""``pellucid export``: a model in other formats, or in fewer bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from pellucid.cli.ending import LINES_FAILED, note, say_error, show_made
from pellucid.cli.lines.streams import read_parallel
from pellucid.cli.lines.translate_lines import translate_all
from pellucid.cli.option_rules import Needs, check_rules
from pellucid.cli.options import Model, Threads, described
from pellucid.config.config_json import MASKS
from pellucid.errors import InputError

if TYPE_CHECKING:
    from pellucid.bundle import Bundle
    from pellucid.config import Precision
    from pellucid.native.precision import AskedPrecision

RULES = (Needs("source", "reference"), Needs("reference", "source"))


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
        "of --source, else that of the model.",
    ),
    source=("FILE", "Lines to measure BLEU with (--format pellucid)."),
    reference=("FILE", "Their translations."),
)
def export(
    model: Model,
    out: Path,
    target: Literal["marian", "ctranslate2", "pellucid"],
    precision: Literal["auto", "float32", "bfloat16", "int8"] = "float32",
    source: str | None = None,
    reference: str | None = None,
    threads: Threads = None,
) -> int:
    """Export a model to Marian or CTranslate2, or to a bundle of lower precision.

    A model that the other format cannot express is refused. With --source and --reference, a
    bundle translates the lines before and after; both BLEU scores are shown and kept in its
    manifest.
    """
    from pellucid.formats.safe_reading import check_place
    from pellucid.formats.to_ctranslate2 import export_ctranslate2
    from pellucid.formats.to_marian import export_marian

    lines = _read_lines(target, source, reference)
    if precision == "auto" and lines is None:
        raise InputError(
            "--precision auto needs lines to measure BLEU with. Give --format pellucid with "
            "--source FILE and --reference FILE, or name a precision."
        )
    # Before the model is loaded, and before minutes of measuring.
    check_place(out)

    from pellucid.bundle import load_bundle, resolve_model

    bundle = load_bundle(resolve_model(model))
    errors: Sequence[str] = ()
    # `auto` needs lines, and lines need a bundle: the first half is for the type checker.
    if precision == "auto" or target == "pellucid":
        errors = _export_bundle(bundle, out, precision, lines)
    elif target == "marian":
        export_marian(bundle, out, precision)
    else:
        export_ctranslate2(bundle, out, precision)
    if target != "pellucid" and bundle.tokenizer.has_masks:
        note(
            f"The model reads {MASKS[0]} to {MASKS[-1]} in the place of placeholders such as %s: "
            "put them in and take them out around the other program."
        )
    show_made(str(out))
    return LINES_FAILED if errors else 0


def _read_lines(
    target: str, source: str | None, reference: str | None
) -> tuple[list[str], ...] | None:
    """Read the lines to measure with, after checking that the options fit together."""
    check_rules(RULES, {"source": source, "reference": reference})
    if source is None or reference is None:
        return None
    if target != "pellucid":
        raise InputError(
            f"--source and --reference cannot be combined with --format {target}, whose format "
            "pellucid does not translate with. Leave them out."
        )
    return read_parallel({"--source": source, "--reference": reference})


def _export_bundle(
    bundle: Bundle, out: Path, asked: AskedPrecision, lines: tuple[list[str], ...] | None
) -> Sequence[str]:
    """Write the bundle, measured if there are lines; return a sentence for each that failed."""
    from pellucid.evaluation.corpus_scores import evaluate_corpus
    from pellucid.formats.exporting import export_bundle
    from pellucid.native.precision import LOSS_ALLOWED
    from pellucid.translate.translator import load

    precision: Precision = "float32" if bundle.config.model.is_recurrent else "int8"
    if asked != "auto":
        precision = asked
    if lines is None:
        export_bundle(bundle, out, precision)
        note(
            "Nothing was measured. Give --source FILE and --reference FILE to see how the change "
            f"to {precision} affects BLEU."
        )
        return ()
    sources, references = lines
    # The manifest has the scores, so the bundle is translated with before it is written for good.
    with TemporaryDirectory() as folder:
        trial = Path(folder) / "bundle"
        export_bundle(bundle, trial, precision)
        texts, errors, _ = translate_all(load(bundle.folder), sources)
        before = evaluate_corpus(texts, references).bleu
        texts, errors_after, _ = translate_all(load(trial), sources)
        after = evaluate_corpus(texts, references).bleu
    # A line that failed before as well says nothing about the precision.
    lost = [f"After ({precision}): {error}" for error in errors_after if error not in errors]
    for error in (*errors, *lost):
        say_error(error)
    difference = after.score - before.score
    # Too much is lost, so that the bundle keeps the precision that it has.
    if asked == "auto" and difference < -LOSS_ALLOWED:
        show_made(
            f"BLEU {after.score:6.2f}  after ({precision}), difference {difference:+.2f}: too low"
        )
        precision = bundle.config.precision
        after = before
        difference = 0.0
        lost = []  # of a bundle that is not written
    export_bundle(
        bundle,
        out,
        precision,
        measured={
            "before": before.score,
            "after": after.score,
            "difference": difference,
            "signature": before.signature,
            "lines": len(sources),
        },
    )
    show_made(f"BLEU {before.score:6.2f}  before ({bundle.config.precision})")
    show_made(f"BLEU {after.score:6.2f}  after ({precision}), difference {difference:+.2f}")
    return [*errors, *lost]
