"""Models of other programs, in and out: ``pellucid convert`` and ``export`` as functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, Unpack

from pellucid.arguments import checked
from pellucid.bundle import Bundle, load_bundle, resolve_model
from pellucid.config import Precision
from pellucid.config.typed_options import DecodingOptions
from pellucid.errors import InputError, not_together
from pellucid.functions.evaluate_model import read_given

if TYPE_CHECKING:
    # Only here, so that it is checked by `read_given`, which names the line that is no text.
    from pellucid.functions.evaluate_model import GivenLines
    from pellucid.translate.translator import Translator

ImportFormat = Literal["auto", "marian", "nn-transformer"]
ExportFormat = Literal["marian", "ctranslate2", "pellucid"]
AskedPrecision = Literal["auto", "float32", "bfloat16", "int8"]

LOSS_ALLOWED = 0.2
"""The BLEU that int8 may lose for ``auto`` to take it."""


@dataclass(frozen=True)
class ConvertedModel:
    """A model that was read from another format.

    Attributes:
        model: its bundle, which every function and command takes.
        dropped: the settings of a translation that a bundle has no form for, so that translations
            may differ.
    """

    model: Path
    dropped: tuple[str, ...]

    def load(self, **decoding: Unpack[DecodingOptions]) -> Translator:
        """Load the model, with arguments as for `pellucid.load`."""
        from pellucid.translate.translator import load

        return load(self.model, **decoding)


@checked
def convert(
    folder: str | Path,
    output: str | Path,
    *,
    format: ImportFormat = "auto",
    config: str | Path | None = None,
) -> ConvertedModel:
    """Import a model of another program into a bundle.

    Args:
        folder: the model as distributed: Hugging Face's MarianMT, M2M100, NLLB, SMaLL-100, mBART-50
            or BART (``config.json``, ``model.safetensors``), an unpacked zip file of OPUS-MT
            (``decoder.yml``, an ``.npz``), or a model of Firefox Translations (a ``.bin`` and a
            vocabulary ``.spm``); or for ``nn-transformer`` the checkpoint of a model that is built
            on PyTorch's ``nn.Transformer``. No code in it is run.
        output: the bundle to write, a new folder.
        format: the format of the model, which a folder shows by itself.
        config: for ``nn-transformer``, the TOML file that says what its weights do not. If it does
            not exist, a draft is written there and refused.

    Raises:
        ConfigurationError: the description is wrong, or contradicts the weights.
        InputError: a folder is missing, or the output exists.
        BundleError: the folder is damaged, or holds another format.
    """
    from pellucid.formats.from_fairseq import import_fairseq, is_of_fairseq
    from pellucid.formats.from_marian import import_marian
    from pellucid.formats.safe_reading import check_place

    # Before the model is read: a folder that is in the way shows at once.
    check_place(Path(output))
    if format == "nn-transformer":
        from pellucid.formats.from_nn_transformer import import_nn_transformer

        if config is None:
            raise InputError(
                "The format nn-transformer needs --config FILE, which says what the weights do "
                "not. Name a new file: a draft is written there."
            )
        imported = import_nn_transformer(Path(folder), Path(config))
    else:
        if config is not None:
            raise not_together("--config", f"--format {format}", "its folder says everything")
        is_fairseq = format == "auto" and is_of_fairseq(Path(folder))
        imported = (import_fairseq if is_fairseq else import_marian)(Path(folder))
    imported.save(Path(output))
    return ConvertedModel(Path(output), imported.dropped)


@dataclass(frozen=True)
class ExportedModel:
    """A model in another format or precision.

    Attributes:
        folder: where it was written.
        precision: of the weights that it stores.
        original: the precision of the weights before.
        computes: the precision in which the bundle translates.
        has_masks: True if the model reads symbols in the place of placeholders, which another
            program must put in and take out.
        before: BLEU of the model on the lines that were given; None without any.
        after: BLEU of the exported bundle on them.
        rejected: BLEU of the int8 bundle that lost too much, so that it was not written.
        changed: of each line whose words differ: the source, its translation before, and after.
        errors: a sentence for each line that could not be translated.
    """

    folder: Path
    precision: Precision
    original: Precision
    computes: Precision
    has_masks: bool = False
    before: float | None = None
    after: float | None = None
    rejected: float | None = None
    changed: tuple[tuple[str, str, str], ...] = ()
    errors: tuple[str, ...] = ()


@checked
def export(
    model: str | Path,
    output: str | Path,
    *,
    format: ExportFormat,
    precision: AskedPrecision | None = None,
    source: GivenLines | None = None,
    reference: GivenLines | None = None,
) -> ExportedModel:
    """Export a model to Marian or CTranslate2, or to a bundle of lower precision.

    Args:
        model: its name or folder.
        output: the folder to write, a new one.
        format: ``marian``, ``ctranslate2``, or ``pellucid`` for a bundle.
        precision: of the stored weights; unless given, that of the model for a bundle, and else
            float32. ``auto`` is int8 if it loses at most 0.2 BLEU on the lines of ``source``, else
            that of the model.
        source: the file or the lines to measure BLEU with, for a bundle. Only a bundle that was
            measured computes in its precision; others compute in float32.
        reference: the file or the lines of their translations.

    Raises:
        InputError: an argument is impossible, the output exists, or the other format cannot
            express the model.
    """
    from pellucid.formats.safe_reading import check_place
    from pellucid.formats.to_ctranslate2 import export_ctranslate2
    from pellucid.formats.to_marian import export_marian

    has_lines = source is not None or reference is not None
    if has_lines and format != "pellucid":
        raise InputError(
            f"A source and a reference cannot be combined with the format {format}, with which "
            "pellucid does not translate. Leave them out."
        )
    if (source is None) != (reference is None):
        raise InputError("source and reference belong together. Give both, or leave both out.")
    lines = None
    if has_lines:
        lines = read_given("source", source), read_given("reference", reference)
    # Before the model is loaded, and before minutes of measuring.
    check_place(Path(output))
    if precision == "auto" and lines is None:
        raise InputError(
            "The precision auto needs lines to measure BLEU with. Give a source and a reference "
            "with the format pellucid, or name a precision."
        )
    bundle = load_bundle(resolve_model(model))
    # `auto` needs lines, and lines need a bundle: the first half is for the type checker.
    if precision == "auto" or format == "pellucid":
        return _export_bundle(bundle, Path(output), precision or bundle.config.precision, lines)
    write = export_marian if format == "marian" else export_ctranslate2
    stored = precision or "float32"
    write(bundle, Path(output), stored)
    return ExportedModel(
        Path(output),
        stored,
        bundle.config.precision,
        computes=stored,
        has_masks=bundle.tokenizer.has_masks,
    )


def _export_bundle(
    bundle: Bundle, output: Path, asked: AskedPrecision, lines: tuple[list[str], list[str]] | None
) -> ExportedModel:
    """Write the bundle, measured if there are lines."""
    from pellucid.evaluation.corpus_scores import evaluate_corpus
    from pellucid.formats.exporting import export_bundle

    precision: Precision = "float32" if bundle.config.model.is_recurrent else "int8"
    if asked != "auto":
        precision = asked
    if lines is None:
        chosen = export_bundle(bundle, output, precision)
        return ExportedModel(output, precision, bundle.config.precision, chosen)
    sources, references = lines
    # The manifest has the scores, so the bundle is translated with before it is written for good.
    with TemporaryDirectory() as folder:
        trial = Path(folder) / "bundle"
        export_bundle(bundle, trial, precision, computes=precision)
        texts, errors = _translate(bundle.folder, sources)
        before = evaluate_corpus(texts, references).bleu
        texts_after, errors_after = _translate(trial, sources)
        after = evaluate_corpus(texts_after, references).bleu
    changed = [
        (source, one, other)
        for source, one, other in zip(sources, texts, texts_after, strict=True)
        if one != other
    ]
    # A line that failed before as well says nothing about the precision.
    lost = [f"After ({precision}): {error}" for error in errors_after if error not in errors]
    rejected = None
    computes: Precision | None = precision
    # Too much is lost, so that the bundle keeps the precision that it has.
    if asked == "auto" and after.score - before.score < -LOSS_ALLOWED:
        rejected = after.score
        precision = bundle.config.precision
        computes = None
        after = before
        lost = []  # of a bundle that is not written
        changed = []
    measured = {
        "before": before.score,
        "after": after.score,
        "difference": after.score - before.score,
        "signature": before.signature,
        "lines": len(sources),
        "lines_changed": len(changed),
    }
    computes = export_bundle(bundle, output, precision, computes=computes, measured=measured)
    return ExportedModel(
        output,
        precision,
        bundle.config.precision,
        computes,
        before=before.score,
        after=after.score,
        rejected=rejected,
        changed=tuple(changed),
        errors=(*errors, *lost),
    )


def _translate(model: Path, sources: Sequence[str]) -> tuple[list[str], list[str]]:
    """Translate lines with a model's own options: texts, and a sentence for each that failed."""
    from pellucid.translate.translator import load

    found = load(model).translate(sources)
    errors = [f"line {n + 1}: {one.error}" for n, one in enumerate(found) if one.error is not None]
    return [one.text for one in found], errors
