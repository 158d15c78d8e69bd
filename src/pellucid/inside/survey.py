"""All heads of a model, averaged over many sentences and followed through a run's checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pellucid.bundle import Bundle, load_bundle
from pellucid.errors import InputError, InputFileNotFoundError
from pellucid.evaluate.links import GoldLinks
from pellucid.inside.align.links import LinkRule
from pellucid.inside.align.maps import Convention
from pellucid.inside.align.units import SIDES, find_units
from pellucid.inside.heads.rows import Gold, HeadRow, head_rows, mean_rows
from pellucid.inside.pair import make_pair
from pellucid.inside.replay import replay


def table_of_heads(
    bundle: Bundle,
    pairs: Sequence[tuple[str, str]],
    *,
    gold: Sequence[GoldLinks] | None = None,
    convention: Convention = "predicts",
    rule: LinkRule = "both",
    has_cut_effects: bool = False,
) -> list[HeadRow]:
    """Compute the figures of every head, averaged over given pairs.

    Args:
        bundle: the model.
        pairs: sources and targets.
        gold: the right links of each pair.
        convention: whether a decoder row counts for the token that it predicts or reads.
        rule: which links to take from a map.
        has_cut_effects: cut each head in each pair, which takes one run for each.

    Raises:
        InputError: no pair was given, or one cannot go through the model.
    """
    if gold is not None and len(gold) != len(pairs):
        raise InputError(
            f"The number of gold links must be that of the pairs, {len(pairs)}, but is "
            f"{len(gold)}. Give the links of each pair."
        )
    tables = []
    for index, (source, target) in enumerate(pairs):
        pair = make_pair(bundle, source, target)
        right = None
        if gold is not None:
            lines, ids = (source, target), (pair.source_ids, pair.target_ids)
            source_words, target_words = (
                find_units(bundle.tokenizer, side, line, rule="auto", ids=one).of_tokens(
                    bundle.tokenizer, side, line, one
                )
                for side, line, one in zip(SIDES, lines, ids, strict=True)
            )
            right = Gold(
                gold[index],
                source_words,
                target_words,
                convention,
                rule,
            )
        cut = pair if has_cut_effects else None
        tables.append(head_rows(replay(pair), pair=cut, gold=right))
    return mean_rows(tables)


@dataclass(frozen=True)
class Moment:
    """The heads of one checkpoint.

    Attributes:
        step: the number of updates so far; 0 is the untrained model.
        rows: the figures of each head, averaged over all sentences.
    """

    step: int
    rows: tuple[HeadRow, ...]


def find_checkpoints(run: Path) -> list[tuple[int, Path]]:
    """Find the checkpoints in a run folder, by step, the untrained model first.

    Raises:
        InputFileNotFoundError: the folder keeps none.
    """
    found = [
        (int(path.name.removeprefix("step-")), path)
        for path in (run / "checkpoints").glob("step-*")
        if path.name.removeprefix("step-").isdecimal()
    ]
    if (run / "untrained").is_dir():
        found.append((0, run / "untrained"))
    if not found:
        raise InputFileNotFoundError(
            f"The run folder {run} keeps no checkpoints. Name the folder of another run, or train "
            "with training.keep_checkpoints in the recipe."
        )
    return sorted(found)


def follow_heads(
    run: Path,
    pairs: Sequence[tuple[str, str]],
    *,
    gold: Sequence[GoldLinks] | None = None,
    convention: Convention = "predicts",
    rule: LinkRule = "both",
) -> list[Moment]:
    """Follow the heads through a run: their entropy, and with gold links their alignment error.

    Args:
        run: a run folder with checkpoints.
        pairs: sources and targets, run through every checkpoint with teacher forcing.
        gold: the right links of each pair.
        convention: whether a decoder row counts for the token that it predicts or reads.
        rule: which links to take from a map.

    Returns:
        A moment for each checkpoint, in the order of steps.

    Raises:
        InputFileNotFoundError: the folder keeps no checkpoints.
        InputError: no pair was given, or one cannot go through the model.
    """
    return [
        Moment(
            step,
            tuple(
                table_of_heads(
                    load_bundle(path), pairs, gold=gold, convention=convention, rule=rule
                )
            ),
        )
        for step, path in find_checkpoints(run)
    ]
