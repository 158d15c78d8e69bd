"""``pellucid translate``: lines in, lines out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pellucid.cli.ending import warn
from pellucid.cli.options import Json, Model, Threads
from pellucid.cli.streams import check_input, open_output, to_json_line, windows

if TYPE_CHECKING:
    from pellucid.translator import Translation

__all__ = ["translate"]


def translate(
    model: Model,
    input_file: Annotated[
        str,
        typer.Option("-i", "--input", metavar="FILE", help="Lines to translate, plain or .gz."),
    ] = "-",
    output_file: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Where the translations go.")
    ] = "-",
    json: Json = False,
    threads: Threads = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output file if it exists.")
    ] = False,
) -> int:
    """Translate lines of text, keeping their order.

    Without -i and -o, or with '-', the standard streams are used. A line that cannot be
    translated gives an empty line and a sentence on standard error, and the exit code is 2.
    """
    check_input(input_file)
    has_errors = False
    number = 0
    with open_output(output_file, may_overwrite=overwrite) as output:
        from pellucid.translator import load

        translator = load(model, threads=threads)
        for lines in windows(input_file):
            for translation in translator.translate(lines):
                if translation.error is not None:
                    has_errors = True
                    warn(f"line {number + 1}: {translation.error}")
                if json:
                    output.write(to_json_line(_to_record(number, translation)))
                else:
                    output.write(f"{translation.text}\n")
                number += 1
            output.flush()
    return 2 if has_errors else 0


def _to_record(number: int, translation: Translation) -> dict[str, Any]:
    hypothesis = {
        "text": translation.text,
        "tokens": translation.tokens,
        "ids": translation.ids,
        "token_log_probabilities": translation.token_log_probabilities,
        "log_probability": translation.log_probability,
        "score": translation.score,
    }
    return {
        "line": number,
        "source": translation.source,
        "error": translation.error,
        "hypotheses": [hypothesis] if translation.error is None else [],
    }
