"""A sentence under changes: what if a head were cut, or a word were missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pellucid.cli.ending import warn
from pellucid.cli.look.writer import Writer
from pellucid.inside.changes.what_if import WhatIf, what_if
from pellucid.inside.changes.words import parse_changes
from pellucid.inside.pair import Pair
from pellucid.inside.show.steps import Step


def show_changes(
    pair: Pair,
    source: str,
    changes: Sequence[str],
    prefix: str | None,
    num_random: int,
    writer: Writer,
) -> None:
    """Show how changes affect a sentence.

    Args:
        pair: the sentence and the model.
        source: its source line.
        changes: as written on the command line.
        prefix: beginning of the new translation.
        num_random: number of other heads to make the same change to, at random.
        writer: where to show it.

    Raises:
        InputError: a change cannot be read, or its place does not exist.
    """
    found = what_if(
        pair,
        parse_changes(changes, pair.tokenizer, source, pair.source_ids),
        prefix=prefix or "",
        num_random=num_random,
    )
    writer.lines(_summarize(found))
    if found.baseline is not None and len(found.baseline.effects) < num_random:
        warn(
            f"--random {num_random:,} asks for more other heads than there are: "
            f"{len(found.baseline.effects):,} differ."
        )
    writer.step(
        Step(
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


def _summarize(found: WhatIf) -> Iterator[str]:
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
            f"The same change to {len(found.baseline.effects)} other heads, at random: mean "
            f"{found.baseline.mean:+.4f}, from {low:+.4f} to {high:+.4f}"
        )
