"""``pellucid look``: looks inside one translation."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pellucid.cli.lines.decoding_options import FEW_DECODING, read_prefix
from pellucid.cli.look.look_options import (
    FORMS,
    PLACE,
    SHOWN,
    check_look_options,
    check_one_text,
    is_beside,
    read_changed,
    read_row_place,
    read_texts,
    to_files,
)
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
from pellucid.cli.outputs import Files, OverwriteFiles, choose_outputs


@described(
    PLACE,
    SHOWN,
    FEW_DECODING,
    translation=("TEXT", "Use this translation instead of the model's own."),
    prefix=("TEXT", "Begin the translation with TEXT."),
    float64=("", "Replay in double precision."),
)
def look(
    model: Model,
    text: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT",
            help="The line to look inside; without one, or with '-', that of standard input. "
            "Several with --contexts.",
        ),
    ] = None,
    translation: str | None = None,
    prefix: str | None = None,
    float64: bool = False,
    source_language: From = None,
    to: To = None,
    json: Json = False,
    output: Files = None,
    overwrite: OverwriteFiles = False,
    threads: Threads = None,
    device: Device = None,
    **options: Any,
) -> int:
    """Look inside one translation: translate, replay, and show what was computed.

    The terminal shows it unless a file is asked for: .html is a page, .svg, .png and .pdf are
    pictures, .npz and .json hold the arrays. Without --head and --stage a file holds the weights
    of everything; the terminal shows one head and says which. With --n-best K files are numbered
    F.0, F.1 and so on, before the ending. With --contexts TEXT may be repeated: it needs the word
    at least twice. With PELLUCID_PLAIN=1 in the environment, and on a terminal that calls itself
    dumb, everything is written in sentences instead of pictures, for a screen reader.
    """
    for name, given in (
        ("--translation", translation),
        ("--prefix", prefix),
        ("--compare-text", options["compare_text"]),
        ("--contexts", options["contexts"]),
    ):
        # Bytes that are not text would only fail inside the model.
        check_utf8(name, given or "")
    outputs = choose_outputs(
        output, FORMS, overwrite=overwrite, json=json, count=options["n_best"] or 1
    )
    options["row"], options["key_column"] = read_row_place(options["row"])
    options["changed"] = read_changed({**options, "translation": translation})
    if options["changed"]:
        # The translation that is shown was made under them: there is nothing left to change.
        options["change"] = None
    check_look_options({**options, "translation": translation, "prefix": prefix}, outputs)
    texts = read_texts(text)

    from pellucid.languages.codes import direction

    language = direction(source_language, to)
    if options["contexts"] is not None:
        from pellucid.cli.look.sentence_tables import show_contexts

        word = options["contexts"]
        return show_contexts(model, word, texts, language=language, threads=threads)

    from pellucid.cli.look.line import look_at_line
    from pellucid.cli.look.replaying import LookedLine

    looked = check_one_text(texts, text or (), "look")
    line = LookedLine(looked, translation, read_prefix(prefix), language)
    files = to_files(outputs)
    if is_beside(options):
        from pellucid.cli.look.two import look_beside

        models = (model, options["compare_model"])
        return look_beside(models, line, files, options, float64=float64, threads=threads)
    return look_at_line(model, line, files, options, float64=float64, threads=threads)
