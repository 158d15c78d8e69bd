"""Padding at full length: three draws of sentences, and more padding than words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from pellucid.lessons.why.claims.padding import SAYS, Padded, judge, pad_more
from pellucid.lessons.why.long.sums import mean, series_of, write
from pellucid.lessons.why.result import Finding, Measurement, Panel, Plot, Table
from pellucid.lessons.why.setting import Setting


def measure(setting: Setting) -> Measurement:
    """Translate sentences of all seeds with more and more padding, with and without its mask."""
    amounts = setting.choose((1, 2, 4, 8, 16, 32, 64, 128), (1, 8))
    sizes = setting.choose((600, 100), (40, 5))
    found = [_pad(amounts, sizes, seed, setting) for seed in setting.seeds]
    last = [one[-1] for one in found]
    changed = [mean([one.masked_changed for one in last]), mean([one.open_changed for one in last])]
    return Measurement(
        claim="padding",
        question="Does padding leave the words of a sentence as they are?",
        number=f"With {amounts[-1]} padding tokens {changed[0]:.0%} of the translations change if "
        f"padding is masked, {changed[1]:.0%} if it is not.",
        method=f"The packaged model translates up to {sizes[1]} new sentences of one length for "
        "each seed: as they are, with padding that no token may attend to, and with padding that "
        "all may attend to. Differences are the largest in the encoder's output of any word, "
        "divided by the root mean square of the outputs. The verdict is about all seeds.",
        findings=(Finding(SAYS, judge([one for by_amount in found for one in by_amount])),),
        tables=(_table(found, amounts),),
        plot=_plot(found, amounts),
        notes=(
            "The masks set the scores of padding to −∞, so that its weights are exactly 0. What "
            "is left is rounding, since longer sums are added in another order.",
        ),
        to_try=("pellucid why fixed-size",),
        seed=setting.seed,
        size=setting.size,
    )


def _pad(
    amounts: Sequence[int], sizes: tuple[int, int], seed: int, setting: Setting
) -> list[Padded]:
    found = setting.cell(
        f"padding of {', '.join(map(str, amounts))}, of {sizes[0]} sentences {sizes[1]}, "
        f"seed {seed}",
        lambda: [asdict(one) for one in pad_more(amounts, sizes, seed=seed)[0]],
    )
    return [Padded(**one) for one in found]


def _column(found: Sequence[Sequence[Padded]], place: int, what: str) -> list[float]:
    return [getattr(one[place], what) for one in found]


def _table(found: Sequence[Sequence[Padded]], amounts: Sequence[int]) -> Table:
    return Table(
        "Difference of the encoder's output, and translations that change",
        ("padding", "masked", "changed, %", "not masked", "changed, %"),
        ("d", "", "", "", ""),
        tuple(
            (amount,
             write(_column(found, place, "masked_difference")),
             write(_column(found, place, "masked_changed"), scale=100),
             write(_column(found, place, "open_difference")),
             write(_column(found, place, "open_changed"), scale=100))
            for place, amount in enumerate(amounts)
        ),
    )  # fmt: skip


def _plot(found: Sequence[Sequence[Padded]], amounts: Sequence[int]) -> Plot:
    def panel(title: str, label: str, columns: tuple[str, str], scale: float) -> Panel:
        opened, masked = (
            [_column(found, place, column) for place in range(len(amounts))] for column in columns
        )
        return Panel(
            title, "padding tokens after each sentence", label,
            (
                series_of("not masked", amounts, opened, "accent", scale=scale,
                          in_logarithms=scale == 1),
                series_of("masked", amounts, masked, scale=scale, in_logarithms=scale == 1),
            ),
            x_log=True, y_log=scale == 1, y_range=None if scale == 1 else (0, 100),
        )  # fmt: skip

    return Plot(
        (
            panel("Translations that change", "%", ("open_changed", "masked_changed"), 100),
            panel("Difference of the encoder's output", "share of its root mean square",
                  ("open_difference", "masked_difference"), 1),
        )
    )  # fmt: skip
