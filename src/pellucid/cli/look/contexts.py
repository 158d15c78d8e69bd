"""One word in several sentences: how similar its vectors are, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pellucid.cli.look.writer import Writer
from pellucid.inside.contexts import Contexts, compare_contexts
from pellucid.inside.show.steps import Step
from pellucid.translate.translator import load

_MOST_COLUMNS = 6
"""Pairs of occurrences shown in a column each; of more, the least, the mean and the most."""


def show_contexts(model: str, word: str, sentences: Sequence[str], *, is_plain: bool) -> int:
    """Show the cosines of a word's vectors in several sentences.

    Args:
        model: the name of a model.
        word: the word.
        sentences: those that it stands in.
        is_plain: True for sentences instead of a table.

    Returns:
        The exit code.

    Raises:
        InputError: a sentence lacks the word, or it stands only once.
    """
    found = compare_contexts(load(model).own_bundle, word, sentences)
    writer = Writer(is_plain=is_plain)
    writer.lines(_describe(found, sentences))
    writer.step(_table(found))
    writer.lines(["", *_explain(found)])
    return 0


def _describe(found: Contexts, sentences: Sequence[str]) -> Iterator[str]:
    yield f"The word {found.word!r} in the encoder, {len(found.occurrences)} times:"
    for number, one in enumerate(found.occurrences):
        tokens = " ".join(one.tokens)
        yield f"  {number}  position {one.position}, {tokens}: {sentences[one.sentence]}"


def _table(found: Contexts) -> Step:
    cosines = found.cosines()
    header: tuple[str, ...] = tuple(f"{i} and {j}" for i, j in found.pairs)
    rows = cosines.tolist()
    is_recurrent = found.places[-1].endswith(".state")
    if len(header) > _MOST_COLUMNS:
        header = ("least", "mean", "most")
        rows = [[min(row), sum(row) / len(row), max(row)] for row in rows]
    return Step(
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
