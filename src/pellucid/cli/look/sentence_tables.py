"""Tables of one sentence: its heads, its word links, a change, and a word in several sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from pellucid.attention.probe import Probe
from pellucid.bundle import Bundle
from pellucid.cli.ending import warn
from pellucid.cli.look.writer import LookWriter
from pellucid.config import DecodingConfig
from pellucid.errors import InputError
from pellucid.evaluation.word_links import parse_links
from pellucid.inside.align.attention_links import align_pairs
from pellucid.inside.align.link_views import View, guided_view
from pellucid.inside.align.linked_units import Aligned, words_of_pair
from pellucid.inside.ask import require_attention
from pellucid.inside.changes.cutting import change_model
from pellucid.inside.changes.what_if import WhatIf, what_if
from pellucid.inside.contexts import Contexts, compare_contexts
from pellucid.inside.heads.head_rows import FIGURES, Gold, HeadRow, head_rows, sort_rows
from pellucid.inside.pair import PairData
from pellucid.inside.show.steps import NumberTable
from pellucid.inside.show.view import TAUGHT, WHY_IT_RESTS, views_of
from pellucid.inside.traces import Trace
from pellucid.text.language_tokens import with_codes
from pellucid.translate.translator import load

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


_HABITS = {
    "even": "Heads that look at all words alike in most rows, and are idle there",
    "look-up": "Heads that take one word only in most rows, as a look-up does",
}


def show_heads(
    pair: PairData, trace: Trace, sort: str | None, gold: Gold | None, writer: LookWriter
) -> None:
    """Show a table of all layers and heads.

    Raises:
        InputError: the figure to sort by does not exist.
    """
    rows = head_rows(trace, pair=pair, gold=gold)
    if sort is not None:
        rows = sort_rows(rows, sort)
    writer.table(_heads_table(rows, has_errors=gold is not None))
    legend = ["", LEGEND, *describe_heads(trace)]
    if gold is not None:
        legend.append(ERROR_LEGEND.format(convention=gold.convention))
    writer.lines(legend)


def describe_heads(trace: Trace) -> Iterator[str]:
    """Name the head that was taught word links, and those with one habit: resting, even, look-ups.

    Args:
        trace: holds the weights.
    """
    views = [view for view in views_of(trace) if view.stage == "weights"]
    for view in views:
        if view.is_taught:
            yield f"{view.site}.{view.head} is {TAUGHT}."
    resting: dict[str, list[str]] = {}
    for view in views:
        resting.setdefault(view.rests_on, []).append(f"{view.site}.{view.head}")
    # The empty name is that of heads that rest on nothing.
    for token in sorted(resting.keys() - {""}):
        names = ", ".join(resting[token])
        yield f"Heads that rest on {token} with half of their weight or more: {names}."
    if resting.keys() - {""}:
        yield f"{WHY_IT_RESTS[0].upper()}{WHY_IT_RESTS[1:]}."
    for habit, said in _HABITS.items():
        names = ", ".join(f"{view.site}.{view.head}" for view in views if view.habit.name == habit)
        if names:
            yield f"{said}: {names}."


def read_gold_of_pair(pair: PairData, source: str, target: str, links: str) -> Gold:
    """Read the gold links of a pair.

    Args:
        pair: the sentence and the model.
        source: its source line.
        target: its target line.
        links: the links between the words of these lines.

    Raises:
        DataError: a link is malformed, or names a word that does not exist.
    """
    words = words_of_pair(pair.tokenizer, (source, target), (pair.source_ids, pair.target_ids))
    return Gold(parse_links(links, "--gold-links", words.sizes), words, "predicts")


def _heads_table(rows: Sequence[HeadRow], *, has_errors: bool) -> NumberTable:
    header: tuple[str, ...] = ("head", "entropy", "confidence", "end", "marks", "distance", "cut")
    cells: list[tuple[str | float, ...]] = [
        (str(row.head), *(getattr(row, figure) for figure in FIGURES[:-1]), row.cut_effect or 0.0)
        for row in rows
    ]
    if has_errors:
        header = (*header, "error")
        errors = ["" if row.alignment_error is None else row.alignment_error for row in rows]
        cells = [(*cell, error) for cell, error in zip(cells, errors, strict=True)]
    return NumberTable("All heads on this sentence, means over the rows", "", header, tuple(cells))


def show_links(
    bundle: Bundle,
    source: str,
    target: str,
    writer: LookWriter,
    *,
    changes: Probe | None = None,
) -> None:
    """Show which words of a translation go with which words of its source.

    Links are read from the head that was taught word links; if none was, from the mean of the last
    layer's heads, which is a guess. ``pellucid align --gold`` measures every head.

    Args:
        bundle: the model.
        source: the line.
        target: its translation.
        writer: where to show them.
        changes: of the model.

    Raises:
        InputError: the pair cannot be aligned.
    """
    view, why = _choose_view(bundle)
    model, under = change_model(bundle.model, bundle.tokenizer, changes)
    links = align_pairs(model, bundle.tokenizer, [source], [target], [view], change=under)
    (aligned,) = links
    if aligned.error is not None:
        raise InputError(aligned.error)
    writer.lines(_describe_links(aligned, view, why))


def _choose_view(bundle: Bundle) -> tuple[View, str]:
    view = guided_view(bundle)
    if view is not None:
        return view, "which was taught word links"
    require_attention(bundle.config.model)
    last = bundle.config.model.attending_layers[-1]
    return View(last, "layer-mean", None, "predicts"), "in a model that was taught no word links"


def _describe_links(aligned: Aligned, view: View, why: str) -> Iterator[str]:
    links = sorted(aligned.links[0])
    rows = {
        source: " ".join(aligned.target_words[target] for _, target in group)
        for source, group in groupby(links, key=lambda link: link[0])
    }
    yield aligned.source
    yield aligned.target
    yield ""
    yield f"Words that go together, by cross-attention ({view.place}, {why}):"
    width = max(map(len, aligned.source_words))
    for number, word in enumerate(aligned.source_words):
        yield f"  {word:{width}}  {('→ ' + rows[number]) if number in rows else '–'}"
    linked = {target for _, target in links}
    left = [word for number, word in enumerate(aligned.target_words) if number not in linked]
    if left:
        yield f"  (nothing){' ' * max(0, width - 9)}  → {' '.join(left)}"
    yield ""
    yield f"In numbers: {' '.join(f'{i}-{j}' for i, j in links)}"


def show_changes(
    pair: PairData,
    changes: Sequence[str],
    prefix: str | None,
    search: DecodingConfig,
    num_random: int,
    writer: LookWriter,
) -> None:
    """Show how changes affect a sentence.

    Args:
        pair: the sentence and the model.
        changes: as written on the command line.
        prefix: beginning of the new translation.
        search: how both models search.
        num_random: number of other heads to make the same change to, at random.
        writer: where to show it.

    Raises:
        InputError: a change cannot be read, or its place does not exist.
    """
    found = what_if(
        pair,
        changes,
        prefix=prefix or "",
        num_random=num_random,
        search=search,
    )
    writer.lines(_summarize_changes(found))
    if found.baseline is not None and len(found.baseline.effects) < num_random:
        warn(
            f"--random {num_random:,} asks for more other heads than there are: "
            f"{len(found.baseline.effects):,} differ."
        )
    writer.table(
        NumberTable(
            "Log-probability of the original, token by token",
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


def _summarize_changes(found: WhatIf) -> Iterator[str]:
    yield f"What if: {', '.join(found.changes)}"
    yield f"Original          {found.original.text}"
    total = found.original.log_probability
    yield f"  log-probability {total:.4f} → {total + found.effect:.4f} ({found.effect:+.4f})"
    if found.before.text != found.original.text:
        yield f"Before            {found.before.text}"
    yield f"Now               {found.after.text}"
    for edit in found.edits:
        before = " ".join(edit.before) or "nothing"
        after = " ".join(edit.after) or "nothing"
        yield f"  word {edit.place}: {before} → {after}"
    if not found.edits:
        yield "  the same words"
    if found.baseline is not None:
        low, high = found.baseline.range
        yield (
            f"The same change to {len(found.baseline.effects)} other heads, at random: mean "
            f"{found.baseline.mean:+.4f}, from {low:+.4f} to {high:+.4f}"
        )


_MOST_COLUMNS = 6
"""Pairs of occurrences shown in a column each; of more, the least, the mean and the most."""


def show_contexts(
    model: str,
    word: str,
    sentences: Sequence[str],
    *,
    language: str | None,
    threads: int | None,
) -> int:
    """Show the cosines of a word's vectors in several sentences.

    Args:
        model: the name of a model.
        word: the word.
        sentences: those that it stands in.
        language: that to write, for a model with language codes.
        threads: number of processor threads.

    Returns:
        The exit code.

    Raises:
        InputError: a sentence lacks the word, or it stands only once.
    """
    bundle = load(model, threads=threads).bundle
    sentences = with_codes(bundle.tokenizer, language, sentences)
    found = compare_contexts(bundle, word, sentences)
    writer = LookWriter()
    writer.lines(_describe_contexts(found, sentences))
    writer.table(_contexts_table(found))
    writer.lines(["", *_explain(found)])
    return 0


def _describe_contexts(found: Contexts, sentences: Sequence[str]) -> Iterator[str]:
    yield f"The word {found.word!r} in the encoder, {len(found.occurrences)} times:"
    for number, one in enumerate(found.occurrences):
        tokens = " ".join(one.tokens)
        yield f"  {number}  position {one.position}, {tokens}: {sentences[one.sentence]}"


def _contexts_table(found: Contexts) -> NumberTable:
    cosines = found.cosines()
    header: tuple[str, ...] = tuple(f"{i} and {j}" for i, j in found.pairs)
    rows = cosines.tolist()
    # A recurrent encoder adds no positions.
    is_recurrent = found.places[-1].endswith(".state")
    if len(header) > _MOST_COLUMNS:
        header = ("least", "mean", "most")
        # Many pairs do not fit a window, and few readers want them all.
        rows = [[min(row), sum(row) / len(row), max(row)] for row in rows]
    return NumberTable(
        "Cosine of its vectors",
        "x · y / (|x| |y|)",
        ("after", *header),
        tuple(
            (_name(place, has_positions=not is_recurrent), *row)
            for place, row in zip(found.places, rows, strict=True)
        ),
    )


def _name(place: str, *, has_positions: bool) -> str:
    if place == "encoder.embedding":
        return "embedding"
    if place == "encoder.input":
        return "embedding + position" if has_positions else "input"
    return f"layer {place.split('.')[1]}"


def _explain(found: Contexts) -> Iterator[str]:
    last = found.cosines()[-1]
    ends = sorted({f"{last.min():.2f}", f"{last.max():.2f}"})
    yield (
        "1 is the same direction, 0 a right angle. The embedding is the same wherever the word "
        f"stands; after the last layer the cosine is {' to '.join(ends)}."
    )
    if any(len(one.tokens) > 1 for one in found.occurrences):
        yield "The word has several tokens: its vector is their mean."
