"""Input of fixed size at full length: three sizes, against buckets of length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from pellucid.lessons.why.claims.fixed_size import (
    ROWS,
    SAYS,
    WAYS,
    Speed,
    judge,
    lay_out,
    make_encoder,
    time_layout,
)
from pellucid.lessons.why.long.sums import mean, series_of, write
from pellucid.lessons.why.result import Cell, Finding, Measurement, Panel, Plot, Table
from pellucid.lessons.why.setting import Setting
from pellucid.machine.hardware import describe_machine
from pellucid.machine.randomness import generator

SHORTEST_BUCKET = 8
ALL_WAYS = (*WAYS, "buckets")
KINDS = {"mixed": "mixed lengths", "alike": "nearly equal lengths"}
Found = dict[tuple[int, str], list[dict[str, Speed]]]


def measure(setting: Setting) -> Measurement:
    """Encode the same sentences in five layouts, for three fixed sizes."""
    sizes = setting.choose((32, 64, 128), (16, 32))
    found: Found = {
        (size, kind): [_race(size, kind, seed, setting) for seed in setting.seeds]
        for size in sizes
        for kind in KINDS
    }
    middle = sizes[1]
    averaged = {
        kind: [_average(way, found[middle, kind]) for way in ALL_WAYS] for kind in KINDS
    }  # fmt: skip
    by_way = {one.way: one for one in averaged["mixed"]}
    fixed, bucket = by_way["fixed size"], by_way["buckets"]
    return Measurement(
        claim="fixed-size",
        question="Is an input of fixed size the efficient one?",
        number=f"With mixed lengths the fixed size of {middle} reads "
        f"{fixed.sentences_per_second:,.0f} sentences a second, of which {fixed.padding:.0%} of "
        f"the positions are padding; buckets of length read "
        f"{bucket.sentences_per_second:,.0f} with {bucket.padding:.0%}.",
        method=f"An encoder of two layers, d = {setting.choose(256, 16)}, reads "
        f"{setting.choose(128, 8)} sentences in batches of up to {ROWS}. Mixed lengths lie between "
        "4 tokens and the fixed size, short ones more often; nearly equal ones are at most two "
        f"tokens shorter than it. Buckets are {SHORTEST_BUCKET}, {2 * SHORTEST_BUCKET}, "
        f"{4 * SHORTEST_BUCKET} … tokens: a sentence goes into the shortest that holds it, so that "
        f"only a few shapes occur. The verdict is about the size {middle}.",
        findings=(Finding(SAYS, judge(averaged["mixed"], averaged["alike"])),),
        tables=tuple(_table(size, kind, found[size, kind]) for size in sizes for kind in KINDS),
        plot=_plot(found, sizes),
        notes=(
            "A batch is one matrix, so that its sentences need one length. That length may differ "
            "from batch to batch.",
            "Sorting wastes the least. Buckets need not know all sentences beforehand.",
        ),
        to_try=("pellucid why padding", "pellucid why length"),
        seed=setting.seed,
        size=setting.size,
        machine=describe_machine(),
    )


def lay_out_in_buckets(
    sentences: Sequence[list[int]], fixed: int, *, rows: int = ROWS
) -> list[tuple[list[list[int]], int]]:
    """Cut sentences into batches of equal width, from a few widths that double.

    Args:
        sentences: their token ids, none longer than ``fixed``.
        fixed: the widest bucket.
        rows: sentences in a batch.

    Returns:
        For each batch its sentences and the length that all get.
    """
    widths = []
    width = SHORTEST_BUCKET
    while width < fixed:
        widths.append(width)
        width *= 2
    widths.append(fixed)
    buckets: dict[int, list[list[int]]] = {width: [] for width in widths}
    for sentence in sentences:
        buckets[next(width for width in widths if len(sentence) <= width)].append(sentence)
    return [
        (inside[start : start + rows], width)
        for width, inside in buckets.items()
        for start in range(0, len(inside), rows)
    ]


def _race(size: int, kind: str, seed: int, setting: Setting) -> dict[str, Speed]:
    count, width, repeats = setting.choose((128, 256, 2), (8, 16, 1))

    def make() -> list[dict[str, Any]]:
        numbers = generator(seed, "why fixed size", size, kind)
        if kind == "mixed":
            lengths = np.exp(numbers.uniform(np.log(4), np.log(size + 1), count)).astype(int)
        else:
            lengths = numbers.integers(size - 2, size + 1, count)
        sentences = [list(numbers.integers(4, 100, length)) for length in lengths]
        model = make_encoder(width, seed=seed)
        layouts = {way: lay_out(sentences, way, fixed=size) for way in WAYS}
        layouts["buckets"] = lay_out_in_buckets(sentences, size)
        return [
            asdict(time_layout(model, way, layout, repeats=repeats))
            for way, layout in layouts.items()
        ]

    found = setting.cell(
        f"{count} sentences, {kind}, fixed size {size}, d {width}, seed {seed}", make, is_timed=True
    )
    return {one["way"]: Speed(**one) for one in found}


def _average(way: str, by_seed: Sequence[dict[str, Speed]]) -> Speed:
    return Speed(
        way,
        mean([one[way].padding for one in by_seed]),
        mean([one[way].sentences_per_second for one in by_seed]),
    )


def _table(size: int, kind: str, by_seed: Sequence[dict[str, Speed]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for way in ALL_WAYS:
        shares = [
            one[way].sentences_per_second / max(two.sentences_per_second for two in one.values())
            for one in by_seed
        ]
        rows.append(
            (
                way,
                write([one[way].padding for one in by_seed], scale=100),
                write([one[way].sentences_per_second for one in by_seed]),
                write(shares, scale=100),
            )
        )
    return Table(
        f"Fixed size {size}, {KINDS[kind]}",
        ("", "padding, %", "sentences/s", "of the best, %"),
        ("", "", "", ""),
        tuple(rows),
        is_of_this_machine=True,
    )


def _plot(found: Found, sizes: Sequence[int]) -> Plot:
    def share(size: int, kind: str, way: str) -> list[float]:
        return [
            one[way].sentences_per_second / max(two.sentences_per_second for two in one.values())
            for one in found[size, kind]
        ]

    panels = [
        Panel(
            name.capitalize(), "fixed size, tokens", "% of the best speed",
            tuple(
                series_of(way, range(len(sizes)), [share(size, kind, way) for size in sizes],
                          "accent" if way == "fixed size" else "plain", scale=100)
                for way in ("fixed size", "longest of batch", "buckets", "sorted by length")
            ),
            kind="bars", names=tuple(map(str, sizes)), y_range=(0, 105),
        )
        for kind, name in KINDS.items()
    ]  # fmt: skip
    return Plot(tuple(panels))
