"""What ``pellucid look`` shows beside one map: all heads, and what if."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pellucid.cli.look.terminal import Writer
from pellucid.evaluate.links import parse_links
from pellucid.inside.align.maps import Convention
from pellucid.inside.changes.what_if import WhatIf, what_if
from pellucid.inside.changes.words import parse_changes
from pellucid.inside.heads.rows import Gold, HeadRow, head_rows, sort_rows
from pellucid.inside.pair import Pair
from pellucid.inside.record.data import Trace
from pellucid.inside.show.steps import Step
from pellucid.text.token_words import split_pieces, words_of_tokens
from pellucid.translator import Translator

__all__ = ["pair_of", "read_gold", "show_changes", "show_heads"]

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


def show_changes(
    translator: Translator,
    trace: Trace,
    source: str,
    changes: Sequence[str],
    prefix: str | None,
    num_random: int,
    writer: Writer,
) -> None:
    """Show what a sentence becomes under changes.

    Raises:
        InputError: a change cannot be read, or its place does not exist.
    """
    found = what_if(
        pair_of(translator, trace),
        parse_changes(changes, translator.tokenizer, source, trace.source_ids),
        prefix=prefix or "",
        num_random=num_random,
    )
    writer.lines(_say(found))
    writer.step(
        Step(
            "What the model says of the original, token by token",
            "",
            ("token", "before", "changed", "difference"),
            tuple(
                (token, before, after, after - before)
                for token, before, after in zip(
                    found.original.tokens,
                    found.original.log_probabilities,
                    found.under_change,
                    strict=True,
                )
            ),
        )
    )


def _say(found: WhatIf) -> Iterator[str]:
    yield f"What if: {', '.join(found.changes)}"
    yield f"Original          {found.original.text}"
    total = found.original.log_probability
    yield f"  log-probability {total:.4f} → {total + found.effect:.4f} ({found.effect:+.4f})"
    if found.before.text != found.original.text:
        yield f"Greedy before     {found.before.text}"
    yield f"Greedy now        {found.after.text}"
    for edit in found.edits:
        before, after = " ".join(edit.before) or "nothing", " ".join(edit.after) or "nothing"
        yield f"  word {edit.place}: {before} → {after}"
    if not found.edits:
        yield "  the same words"
    if found.baseline is not None:
        low, high = found.baseline.range
        yield (
            f"The same of {len(found.baseline.effects)} other heads, at random: mean "
            f"{found.baseline.mean:+.4f}, from {low:+.4f} to {high:+.4f}"
        )


def pair_of(translator: Translator, trace: Trace) -> Pair:
    """The sentence of a trace with its model."""
    return Pair(translator.model, translator.tokenizer, trace.source_ids, trace.predicted_ids)
