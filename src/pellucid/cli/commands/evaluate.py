"""``pellucid evaluate``: BLEU, chrF and TER against a reference."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pellucid.cli.ending import LINES_FAILED, note, say_error, warn
from pellucid.cli.lines.decoding_options import (
    describe_search,
    given_decoding,
    option_for,
    some_decoding,
    useless_options,
)
from pellucid.cli.lines.pair_files import SOURCE, Pairs, pair_files
from pellucid.cli.lines.streams import read_parallel, to_json_line
from pellucid.cli.option_rules import Apart, check_rules
from pellucid.cli.options import Device, From, Json, ModelChanges, Threads, To, described
from pellucid.errors import InputError
from pellucid.files import expand_home
from pellucid.text.reading.pair_sides import is_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pellucid.check.lost_parts import KeptPlaceholders
    from pellucid.evaluation.statistics import Normalized
    from pellucid.functions.evaluate_model import ModelEvaluation
    from pellucid.translate.results import Translation
    from pellucid.translate.translator import Translator

RULES = (
    Apart("change", "against", "it compares with the unchanged model"),
    Apart("tokenize", "moses", "text is tokenized once"),
)

METRICS = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}

# Lines that are named in a warning.
MOST_NAMED = 10

# Lines that end in a separate period, above which a text is taken for tokenized.
MANY_TOKENIZED = 100


@described(
    some_decoding("beam", "precision"),
    reference=("FILE", "Translations made by people; repeat for several references of each line."),
    source=SOURCE,
    hypothesis=("FILE", "Translations to score."),
    against=("FILE", "Other translations to compare with (paired bootstrap)."),
    tokenize=(
        "NAME",
        "sacreBLEU's tokenizer, such as zh, char or flores200; none for files that are tokenized "
        "already. [default: by the script]",
    ),
    moses=(
        "LANGUAGE",
        "Lower-case and tokenize as Moses does for this language, to compare with figures "
        "published so.",
    ),
    no_normalize=("", "Compare the texts as they are, not in the model's normalization or NFC."),
)
def evaluate(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="Translate --source with this model first."),
    ] = None,
    pairs: Pairs = None,
    reference: list[str] | None = None,
    source: str | None = None,
    hypothesis: str | None = None,
    source_language: From = None,
    to: To = None,
    change: ModelChanges = None,
    against: str | None = None,
    tokenize: str | None = None,
    moses: str | None = None,
    no_normalize: bool = False,
    json: Json = False,
    threads: Threads = None,
    device: Device = None,
    **options: Any,
) -> int:
    """Score translations against a reference: BLEU, chrF and TER.

    Give MODEL and the text, as PAIRS or with --source and --reference, or --hypothesis; without
    files, a run is scored on the test text of its recipe. Each score comes with a 95 % bootstrap
    interval and the signature that says how it was computed. MODEL searches as it does in
    translate, and the last line says how. With --change, the changed model is compared with the
    unchanged one.
    """
    check_rules(RULES, {"tokenize": tokenize, "moses": moses, "change": change, "against": against})
    given = given_decoding(options)
    if hypothesis is not None and model is not None and (pairs or is_table(model)):
        # Nothing is translated, so that all names are those of the texts.
        pairs = [model, *(pairs or ())]
        model = None
    if pairs:
        first = reference[0] if reference else None
        sides = pair_files(
            pairs, source, first, model=model, command="evaluate", target_name="--reference"
        )
        source = sides["--source"]
        reference = [sides["--reference"]]
    if model is None:
        own = {"--from": source_language, "--to": to, "--change": change}
        _refuse_of_model([*(name for name, value in own.items() if value), *map(option_for, given)])
        if threads is not None:
            warn("--threads has no effect without MODEL, which translates.")
    names = ["--reference", *(f"--reference {n}" for n in range(2, len(reference or ()) + 1))]
    # A chain: all three must be None.
    if model is not None and not reference and source is hypothesis is against is None:
        columns = _read_test(model)
    else:
        files = _choose_given(model, source=source, hypothesis=hypothesis)
        columns = _read_files(files, dict(zip(names, reference or (), strict=False)), against)

    from pellucid.check.lost_parts import count_kept_placeholders
    from pellucid.functions.evaluate_model import evaluate as run_evaluation

    translator = None if model is None else _load(model, change, given)
    references = [columns[name] for name in names]
    found = run_evaluation(
        translator,
        reference=references,
        source=columns["--source"] if translator is not None else None,
        hypothesis=columns.get("--hypothesis"),
        against=columns.get("--against"),
        source_language=source_language,
        to=to,
        changes=change,
        tokenize=tokenize,
        moses=moses,
        normalize=not no_normalize,
        **given,
    )
    num_failed = 0 if translator is None else _say_faults(translator, found.translations)
    if moses is None and tokenize != "none":
        _warn_if_tokenized(found.hypotheses)
    # Without sources, the first reference says which placeholders a line must have.
    kept = count_kept_placeholders(columns.get("--source", references[0]), found.hypotheses)
    _warn_of_placeholders(kept)
    if found.normalized is not None:
        _warn_of_normalization(found.normalized, len(found.hypotheses), len(references))
    other = "unchanged" if change else "against"
    sys.stdout.write(_to_json(found, other, kept) if json else _to_text(found, other))
    return LINES_FAILED if num_failed else 0


def _refuse_of_model(options: Sequence[str]) -> None:
    """Refuse options of translating, since no model translates."""
    if options:
        raise InputError(
            f"{options[0]} needs MODEL, which translates. Add it, or leave {options[0]} out."
        )


def _read_files(
    files: dict[str, str], references: dict[str, str], against: str | None
) -> dict[str, list[str]]:
    """Read the files that the options name."""
    if not references:
        raise InputError(
            "No reference to compare with was given. Add --reference FILE, or PAIRS (a .tsv or "
            ".jsonl)."
        )
    files = files | references
    if against is not None:
        files["--against"] = against
    return dict(zip(files, read_parallel(files, damaged_in=["--source"]), strict=True))


def _read_test(model: str) -> dict[str, list[str]]:
    """Read the test text of the recipe that a run was trained with."""
    from pellucid.bundle import resolve_model
    from pellucid.training.start.prepare import describe_known, read_test

    pairs, num_known = read_test(Path(expand_home(model)))
    # A run without a model is refused before the note about its test text.
    resolve_model(model)
    note(f"Scored on the {len(pairs):,} pairs of the test text of its recipe.")
    if num_known:
        warn(describe_known(num_known))
    return {"--source": [p.source for p in pairs], "--reference": [p.target for p in pairs]}


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
        sources = {} if source is None else {"--source": source}
        return {"--hypothesis": hypothesis, **sources}
    if source is None:
        raise InputError(
            "No text to translate was given. Add --source FILE, or PAIRS (a .tsv or .jsonl)."
        )
    return {"--source": source}


def _load(model: str, change: list[str] | None, given: dict[str, Any]) -> Translator:
    """Load the model, and say which options and changes do not do what one may expect."""
    from pellucid.translate.translator import load

    found = load(model)
    asked = found.changed(change) if change else found
    for sentence in useless_options(given, asked.options(**given), is_score_shown=False):
        warn(sentence)
    return found


def _say_faults(translator: Translator, translations: Sequence[Translation]) -> int:
    """Name the lines that could not be translated or have no language code; count the former."""
    from pellucid.text.language_tokens import CodeFaults

    codes = CodeFaults()
    for number, one in enumerate(translations):
        codes.add(number, one.notes.language_code)
    if sentence := codes.sentence(translator.tokenizer, "--to LANGUAGE"):
        warn(sentence)
    errors = [(n, one.error) for n, one in enumerate(translations, 1) if one.error is not None]
    for number, error in errors:
        say_error(f"line {number}: {error}")
    return len(errors)


def _warn_if_tokenized(hypotheses: Sequence[str]) -> None:
    """Notice text that looks tokenized, by sacreBLEU's rule."""
    num_tokenized = sum(line.endswith(" .") for line in hypotheses)
    if num_tokenized >= MANY_TOKENIZED:
        warn(
            f"{num_tokenized:,} of {len(hypotheses):,} translations end in ' .', as tokenized text "
            "does, which changes BLEU. If all files are tokenized, add --tokenize none; otherwise "
            "detokenize them."
        )


def _warn_of_normalization(normalized: Normalized, num_lines: int, num_references: int) -> None:
    note(
        f"Compared in one normalization ({normalized.form}), which changed "
        f"{normalized.hypotheses:,} of {num_lines:,} translations and {normalized.references:,} of "
        f"{num_lines * num_references:,} references. --no-normalize compares them as they are."
    )


def _warn_of_placeholders(kept: KeptPlaceholders) -> None:
    if not kept.lost:
        return
    lines = "line" if len(kept.lost) == 1 else "lines"
    shown = ", ".join(map(str, kept.lost[:MOST_NAMED]))
    if len(kept.lost) > MOST_NAMED:
        shown += f" and {len(kept.lost) - MOST_NAMED:,} more (--json has all)"
    warn(
        f"Placeholders such as %s or {{name}} are kept in {kept.kept:,} of {kept.lines:,} lines "
        f"that have some; not in {lines} {shown}."
    )


def _to_json(found: ModelEvaluation, other: str, kept: KeptPlaceholders) -> str:
    record: dict[str, Any] = {}
    # Only what happened is reported, as in the warnings.
    for name in (*METRICS, "normalized"):
        if (part := getattr(found, name)) is not None:
            record[name] = dataclasses.asdict(part)
    if found.decoding is not None:
        record["decoding"] = found.decoding.model_dump(mode="json", exclude={"forbidden_tokens"})
    if kept.lines:
        record["placeholders"] = dataclasses.asdict(kept)
    if found.comparison is not None:
        record[other] = {
            name: {
                "score": entry["baseline"],
                "difference": entry["difference"],
                "p_value": entry["p_value"],
                "signature": entry["signature"],
            }
            for name, entry in dataclasses.asdict(found.comparison).items()
        }
    return to_json_line(record)


def _to_text(found: ModelEvaluation, other: str) -> str:
    from pellucid.evaluation.corpus_scores import FEW_LINES

    whose = "unchanged model's" if other == "unchanged" else "other translations'"
    few = ", but too few lines to tell" if len(found.hypotheses) < FEW_LINES else ""
    lines = []
    for name, label in METRICS.items():
        score = getattr(found, name)
        lines.append(
            f"{label:<4} {score.score:6.2f}  [{score.low:.2f}, {score.high:.2f}]  {score.signature}"
        )
    if found.comparison is not None:
        for name, label in METRICS.items():
            entry = getattr(found.comparison, name)
            lines.append(
                f"{label:<4} {entry.difference:+6.2f}  against the {whose} {entry.baseline:.2f}, "
                f"p = {entry.p_value:.4f} (two tails{few})"
            )
    if found.decoding is not None:
        lines.append(f"Searched with {describe_search(found.decoding)}.")
    return "".join(f"{line}\n" for line in lines)
