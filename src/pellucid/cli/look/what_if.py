"""A sentence under changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pellucid.cli.look.heads import pair_of
from pellucid.cli.look.terminal import Writer
from pellucid.inside.changes.what_if import WhatIf, what_if
from pellucid.inside.changes.words import parse_changes
from pellucid.inside.show.steps import Step
from pellucid.inside.traces import Trace
from pellucid.translator import Translator

__all__ = [
    "show_changes",
]


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
