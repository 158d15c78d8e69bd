"""``pellucid translate``: lines in, lines out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pellucid.cli.align.align_options import (
    TRANSLATED_LINKS_RULES,
    WORDS,
    read_place,
    unit_rule,
)
from pellucid.cli.ending import warn, warn_without_engine
from pellucid.cli.lines.decoding_options import (
    DECODING,
    INPUT,
    TREATMENT,
    ConstraintOptions,
    given_decoding,
    given_treatment,
    useless_options,
)
from pellucid.cli.lines.document_windows import DocumentForm, Marks
from pellucid.cli.lines.folder_files import Rest
from pellucid.cli.lines.streams import (
    LINES,
    STANDARD,
    check_readable,
    check_target,
    choose_format,
    is_special,
)
from pellucid.cli.lines.translate_lines import translate_files
from pellucid.cli.lines.translation_job import TranslationJob, choose_form
from pellucid.cli.option_rules import check_rules
from pellucid.cli.options import (
    CONSTRAINTS,
    Device,
    Ensemble,
    From,
    Json,
    Model,
    ModelChanges,
    Option,
    OutputFile,
    Overwrite,
    Threads,
    To,
    described,
    flag,
)
from pellucid.errors import InputError, not_together
from pellucid.languages.codes import direction

if TYPE_CHECKING:
    from pellucid.cli.lines.objects import ObjectForm
    from pellucid.translate.links.aligning import Aligner
    from pellucid.translate.translator import Translator

LINKS: Mapping[str, Option] = {
    "align": (
        bool,
        "",
        'Write word links after each translation: TEXT ||| 0-0 1-2; in --json as "alignment".',
    ),
    "align_head": (
        str,
        "ADDRESS",
        "With --align: the cross-attention to read links from, such as decoder.1.cross.0, or "
        "decoder.1 for a layer.",
    ),
}


# Options for the keys of JSON Lines and the columns of tables.
KEYS: Mapping[str, Option] = {
    "column": (
        str,
        "KEY",
        "Key of the text in JSON Lines, such as text or translation.en. [default: text, source, "
        "or the code of the source language]",
    ),
    "into": (
        str,
        "KEY",
        "Key of the translation in JSON Lines. [default: translation, or the code of the target "
        "language next to that of the source] Of a table: the column that gets it. [default: the "
        "same]",
    ),
}

# Options for documents.
DOCUMENTS: Mapping[str, Option] = {
    "keys": (
        list[str],
        "PATTERN",
        "In JSON, ARB, YAML and properties: translate only the texts of these keys, such as title, "
        "menu.* or *.label; may be repeated.",
    ),
    "skip_keys": (
        list[str],
        "PATTERN",
        "In the same: leave the texts of these keys, such as id or description; may be repeated.",
    ),
    "all": (bool, "", "In PO, XLIFF, TMX and --into: also translate what has a translation."),
    "mark": (
        Marks,
        None,
        "In PO and XLIFF: the translations to mark for review, as fuzzy or by a state. "
        "[default: all]",
    ),
    "rest": (
        Rest,
        None,
        "Of a folder: what to do with files of other kinds. [default: skip]",
    ),
    "report": (
        str,
        "FILE",
        "Write a line of JSON for each translation to look at; for FILE.html a page to work "
        "through.",
    ),
    "memory": (
        str,
        "FILE",
        "Take translations of texts from a TMX, XLIFF, PO or table. Similar texts in it (75 %) are "
        "suggestions in --report.",
    ),
}


@described(
    TREATMENT,
    DECODING,
    CONSTRAINTS,
    LINKS,
    WORDS,
    KEYS,
    DOCUMENTS,
    input_file=("FILE", "Lines to translate, plain or .gz.", {"name": "-i --input"}),
    stream=("", "Answer each line before the next one is read."),
    file_format=(
        "FORMAT",
        "What the input holds: lines of text, whatever its name ends in, jsonl, or a kind of "
        "document: po, srt, vtt, xliff, tmx, android, resx, qt, fluent, markdown, html, json, "
        "yaml, properties, strings, xcstrings, csv, tsv, docx, pptx, xlsx, odt, odp, ods, epub. "
        "[default: by its name]",
        {"name": "--format"},
    ),
)
def translate(
    model: Model,
    # Many try it, so that it gets a better answer than "unexpected".
    text: Annotated[list[str] | None, typer.Argument(metavar="", hidden=True)] = None,
    input_file: str = STANDARD,
    output_file: OutputFile = STANDARD,
    overwrite: Overwrite = False,
    json: Json = False,
    source_language: From = None,
    to: To = None,
    change: ModelChanges = None,
    stream: bool = False,
    ensemble: Ensemble = None,
    threads: Threads = None,
    device: Device = None,
    file_format: str | None = None,
    **options: Any,
) -> int:
    """Translate lines, the texts of JSON Lines, or a document, keeping their order.

    Without -i and -o, or with '-', the standard streams are used. A line that cannot be
    translated gives an empty line and a sentence on standard error, and the exit code is 3.

    Each object of JSON Lines (-i FILE.jsonl, or --format jsonl) is written with its translation
    added, or with "error"; a text with line breaks is translated line by line.

    A document (see --format) is written as it was read, with its texts translated, and its tags
    and placeholders kept. A folder (pellucid translate MODEL locales/en -o locales/fr) has each of
    its documents translated into another one; the command resumes when it is given again.

    Lines unlike the text that the model learned from, and translations that look wrong, are
    counted on standard error at the end, and described one by one under "notes" in --json.

    With -o FILE, an interrupted command resumes when it is given again. Decoding options that are
    not given keep the model's defaults. With --n-best, each hypothesis is a line
    LINE ||| TEXT ||| LOG_PROBABILITY ||| SCORE.

    Where no model has the pair, join several with commas, as in fr-en,en-de: each translates what
    the one before it wrote. --json shows the texts between them.
    """
    given = given_decoding(options)
    # Options and files are checked before the model is loaded, so that a mistake shows at once.
    folder = _find_folder(text, input_file, output_file)
    if folder is not None:
        _check_folder(folder, output_file, file_format, {**options, "--json": json})
        # The command reads no other input.
        input_file = os.devnull
        file_format = "lines"
    check_rules(TRANSLATED_LINKS_RULES, options)
    read_place(options, "align_head")
    choice = choose_format(input_file, file_format)
    constraints = ConstraintOptions.read(options, input_file)
    # The input may have damaged lines, which get no translation; the other files may not.
    files = {INPUT: input_file, **constraints.files}
    is_document = choice not in LINES
    # How many texts a document has does not follow from its lines.
    num_lines = None if is_document else check_readable(files, damaged_in=[INPUT]).get(INPUT)
    _check_outputs(folder, output_file, options["report"], may_overwrite=overwrite)

    translator = _load(model, threads, ensemble, change)
    warn_without_engine()
    if change:
        translator = translator.changed(change)
    given_direction = direction(source_language, to)
    job = TranslationJob(
        translator,
        given,
        constraints.for_model(translator, given_direction),
        form=choose_form(given, is_json=json),
        treatment=given_treatment(options),
        ensemble=tuple(ensemble or ()),
        to=given_direction,
        aligner=_make_aligner(translator, options) if options["align"] else None,
        change=tuple(change or ()),
    )
    # In a document the options for documents do have an effect.
    _warn_of_useless(job, {} if is_document or folder else options)
    if folder is not None:
        from pellucid.cli.lines.folders import translate_folder

        rest: Rest = options["rest"] or "skip"
        return translate_folder(
            job, folder, Path(output_file), options, rest=rest, may_overwrite=overwrite
        )
    from pellucid.cli.lines.document_opening import open_document
    from pellucid.cli.lines.objects import choose_objects

    objects: DocumentForm | ObjectForm | None
    if is_document:
        objects = open_document(job, input_file, choice, options, may_overwrite=overwrite)
    else:
        objects = choose_objects(job, input_file, output_file, choice, options)
    return translate_files(
        job,
        files,
        output_file,
        num_lines=num_lines,
        may_overwrite=overwrite,
        by_line=stream,
        objects=objects,
    )


def _find_folder(text: list[str] | None, input_file: str, output_file: str) -> Path | None:
    """Return the folder that is named as an argument or by -i; None for a file or a stream.

    Raises:
        InputError: an argument is not a folder.
    """
    named = text[0] if text and len(text) == 1 else input_file
    # A sentence may be too long for a name, at which Path fails.
    if os.path.isdir(named):  # noqa: PTH112
        return Path(named)
    if text:
        raise _not_a_folder(text[0], has_output=output_file != STANDARD)
    return None


def _not_a_folder(text: str, *, has_output: bool) -> InputError:
    """Word the refusal of an argument that only a folder may be."""
    if os.path.isfile(text):  # noqa: PTH113
        return InputError(
            f"A file to translate must be given with -i, but {text} is given without it. Write "
            f"pellucid translate MODEL -i {text}."
        )
    missing = ", which is neither a file nor a folder" if has_output else ""
    return InputError(
        "translate reads lines from standard input, a file or a folder, but is given "
        f"{text!r}{missing}. Write echo '…' | pellucid translate MODEL, or pellucid translate "
        "MODEL -i FILE, or name a folder that exists."
    )


def _check_folder(
    folder: Path, output_file: str, file_format: str | None, options: Mapping[str, Any]
) -> None:
    """Refuse what cannot be done with a folder."""
    output = Path(output_file)
    if output_file == STANDARD or output.is_file() or output.resolve() == folder.resolve():
        raise InputError(
            f"The output for the folder {folder} must be another folder. Name it with -o FOLDER."
        )
    given = {**options, "--format": file_format}
    for name in ("--format", "--json", "n_best", "align", "require", "prefix"):
        if given.get(name):
            shown = name if name.startswith("--") else f"--{name.replace('_', '-')}"
            raise not_together(shown, "a folder", "each of its files is a document")


def _check_outputs(
    folder: Path | None, output_file: str, report: str | None, *, may_overwrite: bool
) -> None:
    """Refuse an output or a report that cannot be written; the files of a folder come later."""
    if folder is not None:
        from pellucid.cli.lines.folders import STATE

        # A run that refused some file has written a report, which is checked with its state.
        is_resumed = (Path(output_file) / STATE).exists()
        if report:
            check_target(report, may_overwrite=may_overwrite or is_resumed)
        return
    check_target(output_file, may_overwrite=may_overwrite)
    # Two names, such as a link and its file, may be one file.
    if report and (is_special(report) or os.path.realpath(report) == os.path.realpath(output_file)):
        raise InputError(
            f"The report must be a file, and another one than the output, but is {report}. Name "
            "another one."
        )


def _load(
    model: str, threads: int | None, ensemble: list[str] | None, change: list[str] | None
) -> Translator:
    """Load a model, with others of an ensemble, or several that are joined by commas."""
    from pellucid.bundle import names_of_chain

    if len(names_of_chain(model)) == 1:
        from pellucid.translate.translator import load

        return load(model, threads=threads, ensemble=tuple(ensemble or ()))
    for name, given in (("--ensemble", ensemble), ("--change", change)):
        if given:
            raise not_together(name, f"a chain of models ({model})", "it means one model")
    from pellucid.translate.chain.chained import chain

    return chain(model, threads=threads)


def _make_aligner(translator: Translator, options: Mapping[str, Any]) -> Aligner:
    from pellucid.translate.links.aligning import Aligner

    if len(translator.tokenizers) > 1:
        return translator.aligner(unit_rule(options), head=options["align_head"])
    layer, head = read_place(options, "align_head")
    return Aligner(translator.attention_reader(), unit_rule(options), layer, head)


def _warn_of_useless(job: TranslationJob, options: Mapping[str, Any]) -> None:
    """Report the options that cannot change anything."""
    _ = job.code  # a language that the model does not have shows before anything is read
    useless = useless_options(job.given, job.decoding, is_score_shown=job.form != "plain")
    for sentence in (*job.useless_treatment(), *useless):
        warn(sentence)
    for name in ("keys", "skip_keys", "all", "mark", "rest", "report", "memory"):
        if options.get(name):
            warn(f"{flag(name)} has no effect on lines; it is for documents.")
