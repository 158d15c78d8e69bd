"""``pellucid why``: why a model wrote a word and not another one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pellucid.cli.lines.decoding_options import read_prefix, some_decoding
from pellucid.cli.look.look_options import (
    MEASURING,
    check_measures,
    check_one_text,
    read_texts,
)
from pellucid.cli.option_rules import Apart, Needs, check_rules
from pellucid.cli.options import (
    HEADS,
    Device,
    From,
    Json,
    Model,
    Threads,
    To,
    check_utf8,
    described,
)

_DECODING = some_decoding("beam")
_RULES = (
    Needs("head", "measure"),
    Apart("translation", " ".join((*_DECODING, "prefix")), "it is not decoded"),
)


@described(
    MEASURING,
    {"head": HEADS},
    _DECODING,
    other=(
        "OTHER",
        "The other word. [default: another gender or number of WORD; otherwise none]",
        {"name": "--not"},
    ),
    translation=("TEXT", "Use this translation instead of the model's own."),
    prefix=("TEXT", "Begin the translation with TEXT."),
)
def why(
    model: Model,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="The line; '-' is that of standard input.")
    ],
    word: Annotated[
        str,
        typer.Argument(metavar="WORD", help="A word of the translation, or its number from 0."),
    ],
    other: str | None = None,
    translation: str | None = None,
    prefix: str | None = None,
    source_language: From = None,
    to: To = None,
    json: Json = False,
    threads: Threads = None,
    device: Device = None,
    **options: Any,
) -> int:
    """Say why a model wrote a word and not another one: what becomes of it without each word.

    Each word of TEXT is hidden from all others in turn, and the sentence is translated again, as on
    the page: by how much do the odds of WORD fall? With --measure the two words are compared by a
    measure instead: above 0 a token speaks for WORD, below 0 for the other. --head chooses the
    place of a measure of attention.
    """
    check_rules(_RULES, {**options, "translation": translation, "prefix": prefix})
    names = options["measure"] or ()
    check_measures(names)
    for name, given in (
        ("WORD", word),
        ("--not", other),
        ("--translation", translation),
        ("--prefix", prefix),
    ):
        check_utf8(name, given or "")
    line = check_one_text(read_texts([text]), [text], "why")

    from pellucid.cli.look.line import explain_word
    from pellucid.cli.look.replaying import LookedLine
    from pellucid.languages.codes import direction

    language = direction(source_language, to)
    looked = LookedLine(line, translation, read_prefix(prefix), language)
    return explain_word(model, looked, (word, other), names, {**options, "json": json}, threads)
