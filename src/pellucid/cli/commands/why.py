"""``pellucid why``: why a model wrote a word and not another one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pellucid.cli.lines.constraint_options import read_prefix
from pellucid.cli.lines.decoding_options import some_decoding
from pellucid.cli.look.look_options import (
    MEASURING,
    check_measures,
    check_one_text,
    read_texts,
)
from pellucid.cli.option_rules import Apart, check_rules
from pellucid.cli.options import HEADS, Json, Model, Threads, check_utf8, described

_DECODING = some_decoding("beam")
_RULES = (Apart("translation", " ".join((*_DECODING, "prefix")), "it is not decoded"),)

DEFAULT = ("occlusion", "integrated-gradients")
"""The measures that are shown if none is named: those of a word, whose differences are exact."""


@described(
    MEASURING,
    {"head": HEADS},
    _DECODING,
    other=(
        "OTHER",
        "The other word. [default: the next likeliest]",
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
    json: Json = False,
    threads: Threads = None,
    **options: Any,
) -> int:
    """Say why a model wrote a word and not another one: which words speak for either.

    Every --measure is shown as the difference of the two words: above 0 a token speaks for WORD,
    below 0 for the other. Without --measure they are occlusion and integrated-gradients, whose
    differences are exact. --head chooses the place of a measure of attention.
    """
    check_rules(_RULES, {**options, "translation": translation, "prefix": prefix})
    names = options["measure"] or DEFAULT
    check_measures(names)
    for name, given in (
        ("WORD", word),
        ("--not", other),
        ("--translation", translation),
        ("--prefix", prefix),
    ):
        check_utf8(name, given or "")
    line = check_one_text(read_texts([text]), [text], "why")

    from pellucid.cli.look.replaying import LookedLine
    from pellucid.cli.look.why_word import explain_word

    looked = LookedLine(line, translation, read_prefix(prefix))
    return explain_word(model, looked, (word, other), names, {**options, "json": json}, threads)
