"""What ``pellucid look`` shows beside one map: all heads, and what if."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.cli.look.terminal import Writer
from pellucid.evaluate.links import parse_links
from pellucid.inside.align.maps import Convention
from pellucid.inside.heads.rows import Gold, HeadRow, head_rows, sort_rows
from pellucid.inside.pair import Pair
from pellucid.inside.show.steps import Step
from pellucid.inside.traces import Trace
from pellucid.text.token_words import split_pieces, words_of_tokens
from pellucid.translator import Translator

__all__ = [
    "pair_of",
    "read_gold",
    "show_heads",
]

LEGEND = (
    "Entropy in nats; confidence: the largest weight of a row; end: the weight on </s>, in the "
    "decoder's self-attention on <s>; marks: on punctuation; distance in tokens; cut: what the "
    "target's log-probability gains when the head is cut. All but the last say what weights look "
    "like, not what they do."
)


ERROR_LEGEND = (
    "Error: alignment error of the head's links beside the given ones, where a row counts for the "
    "token that it {convention}; heads of self-attention have none."
)


def show_heads(
    translator: Translator,
    trace: Trace,
    sort: str | None,
    gold: Gold | None,
    writer: Writer,
) -> None:
    """Show a table of all layers and heads.

    Raises:
        InputError: there is no such figure to sort by.
    """
    rows = head_rows(trace, pair=pair_of(translator, trace), gold=gold)
    if sort is not None:
        rows = sort_rows(rows, sort)
    writer.step(_to_table(rows, has_errors=gold is not None))
    legend = ["", LEGEND]
    if gold is not None:
        legend.append(ERROR_LEGEND.format(convention=gold.convention))
    writer.lines(legend)


def read_gold(
    translator: Translator,
    trace: Trace,
    source: str,
    target: str | None,
    links: str,
    convention: Convention | None,
) -> Gold:
    """Read the right links of a pair; without a given target they count the words written.

    Raises:
        DataError: something is not a link, or leads to a word that is not there.
    """
    tokenizer = translator.tokenizer
    if target is None:
        target = tokenizer.decode_target(trace.predicted_ids)
    sizes = (len(split_pieces(source)), len(split_pieces(target)))
    return Gold(
        parse_links(links, "--gold", sizes),
        words_of_tokens(tokenizer, "source", source, trace.source_ids),
        words_of_tokens(tokenizer, "target", target, trace.predicted_ids),
        convention or "predicts",
    )


def _to_table(rows: Sequence[HeadRow], *, has_errors: bool) -> Step:
    header: tuple[str, ...] = (
        *("head", "entropy", "confidence", "end", "marks", "distance", "cut"),
        *(("error",) if has_errors else ()),
    )
    cells = []
    for row in rows:
        figures: list[str | float] = [str(row.head), row.entropy, row.confidence, row.end_mass]
        figures += [row.punctuation_mass, row.distance, row.cut_effect or 0.0]
        if has_errors:
            error = row.alignment_error
            figures.append("" if error is None else error)
        cells.append(tuple(figures))
    return Step("All heads on this sentence, means over the rows", "", header, tuple(cells))


def pair_of(translator: Translator, trace: Trace) -> Pair:
    """The sentence of a trace with its model."""
    return Pair(translator.model, translator.tokenizer, trace.source_ids, trace.predicted_ids)
