"""A table of all layers and heads on one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.cli.look.writer import Writer
from pellucid.evaluate.links import parse_links
from pellucid.inside.align.maps import Convention
from pellucid.inside.align.units import find_units
from pellucid.inside.heads.rows import Gold, HeadRow, head_rows, sort_rows
from pellucid.inside.pair import Pair
from pellucid.inside.show.steps import Step
from pellucid.inside.traces import Trace

LEGEND = (
    "Entropy in nats; confidence: the largest weight of a row; end: the weight on </s>, or in the "
    "decoder's self-attention on <s>; marks: the weight on punctuation; distance in tokens; cut: "
    "the change of the target's log-probability when the head is cut. All but the last describe "
    "the weights, not their effect."
)

ERROR_LEGEND = (
    "Error: alignment error of the head's links against the gold links. A row counts for the token "
    "that it {convention}. Heads of self-attention have no error."
)


def show_heads(
    pair: Pair, trace: Trace, sort: str | None, gold: Gold | None, writer: Writer
) -> None:
    """Show a table of all layers and heads.

    Raises:
        InputError: the figure to sort by does not exist.
    """
    rows = head_rows(trace, pair=pair, gold=gold)
    if sort is not None:
        rows = sort_rows(rows, sort)
    writer.step(_to_table(rows, has_errors=gold is not None))
    legend = ["", LEGEND]
    if gold is not None:
        legend.append(ERROR_LEGEND.format(convention=gold.convention))
    writer.lines(legend)


def read_gold(
    pair: Pair, source: str, target: str | None, links: str, convention: Convention | None
) -> Gold:
    """Read the gold links of a pair.

    Args:
        pair: the sentence and the model.
        source: its source line.
        target: its target line, or None for the one that the model wrote.
        links: the links between the words of these lines.
        convention: the token that a decoder row counts for.

    Raises:
        DataError: a link is malformed, or names a word that does not exist.
    """
    tokenizer = pair.tokenizer
    if target is None:
        target = tokenizer.decode_target(pair.target_ids)
    units = (
        find_units(tokenizer, "source", source, rule="auto"),
        find_units(tokenizer, "target", target, rule="auto"),
    )
    return Gold(
        parse_links(links, "--gold", (len(units[0].names), len(units[1].names))),
        units[0].of_tokens(tokenizer, "source", source, pair.source_ids),
        units[1].of_tokens(tokenizer, "target", target, pair.target_ids),
        convention or "predicts",
    )


def _to_table(rows: Sequence[HeadRow], *, has_errors: bool) -> Step:
    header: tuple[str, ...] = ("head", "entropy", "confidence", "end", "marks", "distance", "cut")
    cells: list[tuple[str | float, ...]] = [
        (
            str(row.head),
            row.entropy,
            row.confidence,
            row.end_mass,
            row.punctuation_mass,
            row.distance,
            row.cut_effect or 0.0,
        )
        for row in rows
    ]
    if has_errors:
        header = (*header, "error")
        errors = ["" if row.alignment_error is None else row.alignment_error for row in rows]
        cells = [(*cell, error) for cell, error in zip(cells, errors, strict=True)]
    return Step("All heads on this sentence, means over the rows", "", header, tuple(cells))
