"""``pellucid attend``: attention by hand, step by step."""

from __future__ import annotations

from typing import Annotated

import typer

from pellucid.cli.ending import warn
from pellucid.cli.options import Json, described
from pellucid.cli.outputs import Files, OverwriteFiles, choose_outputs
from pellucid.errors import InputError, not_together, suggestion
from pellucid.files import endings

# They are spelled out because importing the examples would make `--help` import PyTorch.
NAMES = (
    "toy-four",
    "pizza",
    "not-on-your-life",
    "help-me",
    "room-number",
    "show-me-the-money",
    "lets-go",
    "positions",
    "heads",
    "encoder-layer",
    "gradient",
    "padding",
    "recurrent-step",
)


@described(
    row=("N", "Follow row N, from 0, number by number."),
    page=(
        "N",
        "Show page N, from 1, or all without a pause. In a terminal the pages pause.",
    ),
    quiz=("", "Ask for the next number before it is shown."),
    d_key=("N", "The d_k of not-on-your-life, which its text does not give; 64 by default."),
)
def attend(
    example: Annotated[
        str,
        typer.Argument(
            metavar="EXAMPLE", help=f"One of {', '.join(NAMES)}; or a .toml or .csv file."
        ),
    ],
    row: int | None = None,
    page: str | None = None,
    quiz: bool = False,
    d_key: int | None = None,
    json: Json = False,
    output: Files = None,
    overwrite: OverwriteFiles = False,
) -> None:
    """Work out attention by hand: an example from a text, or your own matrices.

    Every number is computed in float64. If a text prints a different number, the difference and
    its cause are shown. A file that ends in .html is a page for a browser or a printer, .json has
    all numbers. PELLUCID_PLAIN=1 in the environment writes sentences instead of tables, for a
    screen reader.

    A TOML file has x, with one row for each token, and any of w_query, w_key and w_value, which
    are the identity by default. Or it has query, key and value directly. It may also have
    tokens = ["a", "b"] and key_tokens; mask = "causal", or rows of true and false (true = may
    attend); scale = false, or a number to divide the scores by instead of √d_k; heads = 2, or a
    table [[heads]] with matrices for each, and w_output; positions = "sinusoidal", or rows to add
    to x; norm = "post" or "pre", for residual connections and layer norms; feed_forward with
    inner, inner_bias, outer and outer_bias; and a title and a note.

    A CSV file has one matrix, with a token on each line, that is used as queries, keys and values.
    Its first line may name the tokens.
    """
    outputs = choose_outputs(output, ("html", "json"), overwrite=overwrite, json=json)
    if outputs.standard != "text":
        form = "--json" if json else "-o FILE"
        if quiz:
            raise not_together("--quiz", form, "it is for the terminal")
    if d_key is not None and example != "not-on-your-life":
        warn("--d-key has no effect except on not-on-your-life.")
    if example not in NAMES and endings(example).kind not in (".toml", ".csv"):
        raise InputError(
            f"EXAMPLE must be a known example or a .toml or .csv file, but is {example!r}. "
            + suggestion(example, NAMES)
        )

    # Options are read before PyTorch is imported, so that a mistake shows at once.
    number = _read_page(page)

    # Not at the top, because --help must not import PyTorch (docs/decisions/0002).
    from pellucid.cli.attend.show import AttendOptions, show_example

    show_example(
        example,
        AttendOptions(
            row=row,
            page=number,
            has_pauses=page is None,
            d_key=d_key,
            is_quiz=quiz,
            outputs=outputs,
        ),
    )


def _read_page(page: str | None) -> int | None:
    """Read the number of a page; None means all of them."""
    if page is None or page == "all":
        return None
    # Python refuses to read numbers of thousands of digits.
    if page.isdecimal() and len(page) < 19:
        return int(page)
    raise InputError(
        f"--page must be a number from 1 or the word all, but is {page!r}. Leave it out to read "
        "page by page."
    )
