"""Tables and plot of what the long form of ``position`` found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pellucid.lessons.why.claims.position import Shuffled
from pellucid.lessons.why.long.sums import series_of, write
from pellucid.lessons.why.result import Cell, Panel, Plot, Table

KINDS = ("sinusoidal", "learned", "none")
OFFSETS = (1, 2, 3, 5, 8)
By = dict[str, list[dict[str, Any]]]
"""What the trainings of all seeds found, by the kind of positions."""


def tabulate_positions(
    shuffled: Shuffled,
    order: By,
    lengths: dict[str, list[list[float]]],
    trained_to: int,
    *,
    errors: dict[int, float],
    learned: Sequence[dict[str, Any]],
    waves: Sequence[float],
    told: Sequence[dict[str, Any]],
) -> tuple[Table, ...]:
    """Write the tables.

    Args:
        shuffled: the largest changes of untrained models.
        order: statements after training.
        lengths: the shares of lists that are right, by kind, seed and length from 1.
        trained_to: the longest list of training.
        errors: of M, by offset.
        learned: R² of learned tables, for each seed.
        waves: R² of sinusoids.
        told: moving maps of the packaged model, for each seed.
    """
    return (
        _shuffling_table(shuffled),
        _order_table(order),
        _length_table(lengths, trained_to),
        _matrix_table(errors),
        _fit_table(learned, waves),
        _moving_table(order, told),
    )


def _shuffling_table(shuffled: Shuffled) -> Table:
    return Table(
        "Largest relative change when the words are turned around, untrained, of all seeds",
        ("", "change"),
        ("", ".1e"),
        (
            ("encoder, each word, without positions", shuffled.encoder),
            ("decoder of one layer, last row, without", shuffled.decoder_first),
            ("decoder of two layers, last row, without", shuffled.decoder_deep),
            ("encoder, each word, with positions", shuffled.encoder_with),
        ),
    )


def _order_table(order: By) -> Table:
    return Table(
        "Statements after training",
        ("positions", "right, %", "alike when exchanged, %"),
        ("", "", ""),
        tuple(
            (kind, *(write([one[what] for one in order[kind]], scale=100)
                     for what in ("exact", "same")))
            for kind in KINDS
        ),
    )  # fmt: skip


def _length_table(lengths: dict[str, list[list[float]]], trained_to: int) -> Table:
    longest = len(lengths[KINDS[0]][0])
    return Table(
        "Lists of animals by length, % right",
        ("animals", *KINDS, ""),
        ("d", "", "", "", ""),
        tuple(
            (size,
             *(write([one[size - 1] for one in lengths[kind]], scale=100) for kind in KINDS),
             "in training" if size <= trained_to else "longer")
            for size in range(1, longest + 1)
        ),
    )  # fmt: skip


def _matrix_table(errors: dict[int, float]) -> Table:
    return Table(
        "Largest error of M · PE_i = PE_{i+δ}, 5,000 positions of width 512, float64",
        ("δ", "error"),
        ("d", ".1e"),
        tuple(errors.items()),
    )


def _fit_table(learned: Sequence[dict[str, Any]], waves: Sequence[float]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for place, offset in enumerate(OFFSETS):
        cells = [
            write([one[what][place] for one in learned])
            for what in ("encoder", "decoder", "before")
        ]
        rows.append((offset, waves[place], *cells))
    return Table(
        "R² of the best linear map from PE_i to PE_{i+δ}, for positions it was not fitted on",
        ("δ", "sinusoids", "learned, encoder", "decoder", "before training"),
        ("d", ".3f", "", "", ""),
        tuple(rows),
    )


def _moving_table(order: By, told: Sequence[dict[str, Any]]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (f"tiny model, {kind}",
         *(write([one[what] for one in order[kind]], scale=100)
           for what in ("moved_by_word", "moved_by_place")))
        for kind in KINDS
    ]  # fmt: skip
    rows.append(
        (
            f"packaged model, {sum(one['sentences'] for one in told)} sentences with told",
            *(write([one[what] for one in told], scale=100) for what in ("by_word", "by_place")),
        )
    )
    bank = f"{100 * told[0]['bank']:.3g}"
    rows.append(("packaged model, “the bank told the man he was bankrupt”", bank, "–"))
    return Table(
        "Weight that moves when “then” is put in front, encoder, all layers and heads",
        ("", "same words, %", "same places, %"),
        ("", "", ""),
        tuple(rows),
    )


def draw_positions(
    lengths: dict[str, list[list[float]]],
    trained_to: int,
    *,
    learned: Sequence[dict[str, Any]],
    waves: Sequence[float],
    order: By,
) -> Plot:
    """Make the plot; the arguments are those of `tabulate_positions`."""
    sizes = range(1, len(lengths[KINDS[0]][0]) + 1)
    by_length = Panel(
        f"Lists, trained on up to {trained_to} animals", "animals in the list", "% right",
        tuple(
            series_of(kind, sizes, list(zip(*lengths[kind], strict=True)),
                      "accent" if kind == "sinusoidal" else "plain", scale=100)
            for kind in KINDS
        ),
        y_range=(0, 105),
    )  # fmt: skip
    fits = Panel(
        "A step δ as a linear map", "δ, positions", "R², positions not fitted on",
        (
            series_of("sinusoids", OFFSETS, [[one] for one in waves], "accent"),
            *(series_of(name, OFFSETS,
                        [[one[side][i] for one in learned] for i in range(len(OFFSETS))])
              for name, side in (("learned, encoder", "encoder"), ("learned, decoder", "decoder"),
                                 ("before training", "before"))),
        ),
        y_range=(-0.1, 1.1),
    )  # fmt: skip
    moved = Panel(
        "Weight moved by “then” in front", "", "%",
        tuple(
            series_of(name, range(len(KINDS)),
                      [[one[what] for one in order[kind]] for kind in KINDS],
                      "accent" if what == "moved_by_word" else "plain", scale=100)
            for name, what in (("same words", "moved_by_word"), ("same places", "moved_by_place"))
        ),
        kind="bars", names=KINDS,
    )  # fmt: skip
    return Plot((by_length, fits, moved))
