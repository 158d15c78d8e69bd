"""``pellucid look``: looks inside one translation."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pellucid.cli.lines.decoding_options import DECODING
from pellucid.cli.lines.streams import check_target, is_special
from pellucid.cli.look.look_options import (
    FILES,
    PLACE,
    SHOWN,
    check_look_options,
    check_texts,
    to_files,
)
from pellucid.cli.options import Model, Threads, check_utf8, described


@described(
    PLACE,
    SHOWN,
    FILES,
    DECODING,
    target=("TEXT", "Look at this translation instead of the model's own."),
    prefix=("TEXT", "Begin the translation with TEXT."),
    other=("OTHER", "With --why: the word that might stand there instead.", {"name": "--not"}),
    float64=("", "Replay in double precision."),
)
def look(
    model: Model,
    text: Annotated[
        list[str],
        typer.Argument(metavar="TEXT", help="The line to look inside; several with --contexts."),
    ],
    target: str | None = None,
    prefix: str | None = None,
    other: str | None = None,
    float64: bool = False,
    threads: Threads = None,
    **options: Any,
) -> int:
    """Look inside one translation: translate, replay, and show what was computed.

    The terminal shows it unless a file is asked for. Without --layer, --head, --kind and --stage
    a file holds the weights of everything; the terminal shows one head and says which. With
    --n-best K files are numbered F.0, F.1 and so on, before the ending. With --contexts TEXT may
    be repeated: it needs the word at least twice.
    """
    options["not"] = other
    check_look_options(options, target=target, prefix=prefix)
    check_texts(text, options)
    # Bytes that are not text would only fail inside the model.
    for name, given in (
        ("--target", target),
        ("--prefix", prefix),
        ("--compare", options["compare"]),
        ("--contexts", options["contexts"]),
        ("--patch-from", options["patch_from"]),
    ):
        check_utf8(name, given or "")
    files = to_files(options)
    for path in files.values():
        if not is_special(str(path)):
            check_target(str(path), may_overwrite=True)

    if options["contexts"] is not None:
        from pellucid.cli.look.sentence_tables import show_contexts

        word = options["contexts"]
        is_plain = bool(options["plain"])
        return show_contexts(model, word, text, is_plain=is_plain, threads=threads)

    from pellucid.cli.look.line import look_at_line
    from pellucid.cli.look.replaying import LookedLine

    line = LookedLine(text[0], target, prefix)
    if options["beside"] is not None:
        from pellucid.cli.look.two import look_beside

        models = (model, options["beside"])
        return look_beside(models, line, files, options, float64=float64, threads=threads)
    return look_at_line(model, line, files, options, float64=float64, threads=threads)
