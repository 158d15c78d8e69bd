"""``pellucid patch``: one sentence with vectors of another, for a pair or for a corpus of pairs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pellucid.cli.lines.decoding_options import some_decoding
from pellucid.cli.lines.pair_files import OWN_TARGET, pair_files
from pellucid.cli.lines.streams import read_columns
from pellucid.cli.option_rules import Apart, Needs, check_rules
from pellucid.cli.options import (
    Device,
    From,
    Json,
    Model,
    Threads,
    To,
    check_utf8,
    described,
)
from pellucid.cli.outputs import Csv, Files, OverwriteFiles, choose_outputs
from pellucid.errors import InputError
from pellucid.text.reading.pair_sides import is_table

_DECODING = some_decoding()
PATCH_RULES = (
    Needs("target", "source"),
    Needs("not", "word"),
    Needs("noise", "word row"),
    Apart("noise", "source by_gradient", "it needs one sentence, and runs of it"),
    Apart(
        f"word translation {' '.join(_DECODING)}",
        "source",
        "the pairs of a file are answered by their targets, or greedily",
    ),
    Apart("translation", " ".join(_DECODING), "it is not decoded"),
    Apart("row", "word source", "a word has its row, and each pair of a file has its own"),
)


@described(
    _DECODING,
    source=(
        "FILE",
        "Source lines; '-' is standard input. Line 2i is patched with vectors of line 2i - 1.",
    ),
    target=OWN_TARGET,
    at=(
        "PLACE",
        "The vectors: encoder (after each layer), encoder.0, an array such as "
        "encoder.0.self.value, or that of one head, encoder.0.self.3.value; with > only by way of "
        "what reads it: 'encoder.0.self.3 > decoder.*.cross.value'. May be repeated. "
        "[default: encoder]",
    ),
    position=(
        "WORD",
        "Only this word of the sentence that is patched (of decoder rows: the token read), or "
        "number N; of a file a column for this word. May be repeated.",
    ),
    word=("WORD", "The word of the first answer to ask about. [default: where the two differ]"),
    other=("OTHER", "The other word, that of the second answer; needs --word.", {"name": "--not"}),
    row=("N", "Ask about the tokens of row N of both translations, from 0, instead of a word."),
    by_gradient=("", "Approximate every share by a gradient, which is fast: attribution patching."),
    noise=(
        "WORD",
        "Causal tracing, with one sentence: spoil this word with noise, and restore its vectors. "
        "Needs --word or --row. May be repeated.",
    ),
    translation=(
        "TEXT",
        "Use this translation of INTO instead of the model's own; with --word that of both, up to "
        "it.",
    ),
)
def patch(
    model: Model,
    giver: Annotated[
        str | None,
        typer.Argument(
            metavar="FROM",
            help="The sentence whose vectors are taken; or a file of pairs, as .tsv or .jsonl.",
        ),
    ] = None,
    getter: Annotated[
        str | None, typer.Argument(metavar="INTO", help="The sentence that gets them.")
    ] = None,
    source: str | None = None,
    target: str | None = None,
    at: list[str] | None = None,
    position: list[str] | None = None,
    word: str | None = None,
    other: str | None = None,
    row: int | None = None,
    by_gradient: bool = False,
    noise: list[str] | None = None,
    translation: str | None = None,
    source_language: From = None,
    to: To = None,
    json: Json = False,
    csv_table: Csv = False,
    output: Files = None,
    overwrite: OverwriteFiles = False,
    threads: Threads = None,
    device: Device = None,
    **options: Any,
) -> int:
    """Put vectors of one sentence into another, and see which turn the translation.

    For two sentences a map has the share of the difference between their answers that each vector
    of FROM restores in INTO (activation patching); .svg, .png and .pdf are pictures of it. With
    PAIRS a table has that share over all pairs of lines, with 95 % intervals.
    """
    if giver is not None and getter is None and is_table(giver):
        sides = pair_files([giver], source, target, model=model, command="patch")
        giver = None
        source = sides["--source"]
        target = sides["--target"]
    options |= {"word": word, "not": other, "translation": translation, "row": row}
    options |= {"noise": noise, "by_gradient": by_gradient}
    check_rules(PATCH_RULES, {**options, "source": source, "target": target})
    texts = [text for text in (giver, getter) if text is not None]
    if noise and len(texts) != 1:
        raise InputError(
            f"--noise needs one sentence, but {len(texts)} are given. Give the one whose word is "
            "spoiled."
        )
    if not noise and len(texts) != (2 if source is None else 0):
        raise InputError(
            "patch needs two sentences, FROM and INTO, or PAIRS or --source FILE with lines, but "
            f"has {len(texts)}{' and --source' if source else ''}. Give one or the other."
        )
    forms = ("svg", "png", "pdf", "json") if source is None else ("json", "csv", "txt")
    if csv_table and source is None:
        raise InputError("--csv needs PAIRS or --source. Add them, or leave --csv out.")
    from pellucid.languages.codes import direction

    language = direction(source_language, to)
    outputs = choose_outputs(output, forms, overwrite=overwrite, json=json, csv=csv_table)
    if source is not None:
        columns = read_columns({"--source": source, "--target": target})

        from pellucid.cli.look.patch_view import patch_lines

        return patch_lines(model, columns, at, position, outputs, threads, language, by_gradient)
    names = ("FROM", "INTO", "--word", "--not", "--translation")
    for name, given in zip(names, (giver, getter, word, other, translation), strict=True):
        check_utf8(name, given or "")
    options |= {"at": at, "position": position, "language": language}

    from pellucid.cli.look.patch_view import look_patched, look_spoiled

    if noise:
        return look_spoiled(model, texts[0], outputs, options, threads)
    first, second = texts
    return look_patched(model, first, second, outputs, options, threads)
