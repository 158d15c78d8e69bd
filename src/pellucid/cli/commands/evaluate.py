"""``pellucid evaluate``: BLEU, chrF and TER against a reference."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pellucid.cli.ending import warn
from pellucid.cli.lines.streams import read_parallel, to_json_line
from pellucid.cli.lines.translate import translate_all
from pellucid.cli.options import Json
from pellucid.errors import InputError

if TYPE_CHECKING:
    from pellucid.evaluate import Comparison, Evaluation

__all__ = ["evaluate"]

METRICS = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}


def evaluate(
    reference: Annotated[
        str, typer.Option("--reference", metavar="FILE", help="Translations made by people.")
    ],
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="Translate --source with this model first."),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="FILE", help="Lines for MODEL to translate.")
    ] = None,
    hypothesis: Annotated[
        str | None, typer.Option("--hypothesis", metavar="FILE", help="Translations to score.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="FILE",
            help="Other translations to compare with (paired bootstrap).",
        ),
    ] = None,
    lowercased_tokenized: Annotated[
        str | None,
        typer.Option(
            "--lowercased-tokenized",
            metavar="LANGUAGE",
            help="Lower-case and tokenize as Moses does, to compare with figures published so.",
        ),
    ] = None,
    tokenized: Annotated[
        bool,
        typer.Option("--tokenized", help="Treat the files as tokenized: BLEU only cuts at spaces."),
    ] = False,
    json: Json = False,
) -> int:
    """Score translations against a reference: BLEU, chrF and TER.

    Give either MODEL and --source, or --hypothesis. Each score comes with a 95 % bootstrap
    interval and the signature that says how it was computed.
    """
    files = _choose_given(model, source=source, hypothesis=hypothesis)
    files["--reference"] = reference
    if baseline is not None:
        files["--baseline"] = baseline
    columns = dict(zip(files, read_parallel(files), strict=True))

    from pellucid.evaluate import compare, evaluate_corpus

    _check_tokenization(lowercased_tokenized, is_tokenized=tokenized)
    how: dict[str, Any] = {
        "lowercased_tokenized": lowercased_tokenized,
        "is_tokenized": tokenized,
    }
    errors: list[str] = []
    if model is not None:
        columns["--hypothesis"], errors = translate_all(model, columns["--source"])
    for error in errors:
        warn(error)
    texts = (columns["--hypothesis"], columns["--reference"])
    evaluation = evaluate_corpus(*texts, **how)
    comparison = None
    if baseline is not None:
        comparison = compare(texts[0], columns["--baseline"], texts[1], **how)
    write = _to_json if json else _to_text
    sys.stdout.write(write(evaluation, comparison))
    return 2 if errors else 0


def _choose_given(
    model: str | None, *, source: str | None, hypothesis: str | None
) -> dict[str, str]:
    """Choose the file to compare with the reference, or to translate for that."""
    if (model is None) == (hypothesis is None):
        raise InputError(
            "Exactly one of MODEL and --hypothesis must be given, but "
            f"{'neither is' if model is None else 'both are'}. "
            "Give MODEL with --source FILE, or --hypothesis FILE."
        )
    if hypothesis is not None:
        if source is not None:
            raise InputError("--source cannot be combined with --hypothesis. Leave one out.")
        return {"--hypothesis": hypothesis}
    if source is None:
        raise InputError("No text to translate was given. Add --source FILE.")
    return {"--source": source}


def _check_tokenization(language: str | None, *, is_tokenized: bool) -> None:
    """Refuse an impossible tokenization before anything is translated."""
    from pellucid.evaluate import lowercase_and_tokenize

    if is_tokenized and language is not None:
        raise InputError(
            "--tokenized cannot be combined with --lowercased-tokenized, which would tokenize "
            "again. Leave one of them out."
        )
    if language is not None:
        lowercase_and_tokenize([], language)


def _to_json(evaluation: Evaluation, comparison: Comparison | None) -> str:
    record: dict[str, Any] = dataclasses.asdict(evaluation)
    if comparison is not None:
        record["baseline"] = {
            name: {
                "score": entry["baseline"],
                "difference": entry["difference"],
                "p_value": entry["p_value"],
                "signature": entry["signature"],
            }
            for name, entry in dataclasses.asdict(comparison).items()
        }
    return to_json_line(record)


def _to_text(evaluation: Evaluation, comparison: Comparison | None) -> str:
    lines = []
    for name, label in METRICS.items():
        score = getattr(evaluation, name)
        lines.append(
            f"{label:<4} {score.score:6.2f}  [{score.low:.2f}, {score.high:.2f}]  {score.signature}"
        )
    for name, label in METRICS.items() if comparison is not None else ():
        entry = getattr(comparison, name)
        lines.append(
            f"{label:<4} {entry.difference:+6.2f}  against the baseline's {entry.baseline:.2f}, "
            f"p = {entry.p_value:.4f}"
        )
    return "".join(f"{line}\n" for line in lines)
