"""Input of fixed size: whether it is the efficient one, against other layouts of batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from pellucid.data import make_source_batch
from pellucid.lessons.why.cells import (
    PERCENT,
    Cells,
    Column,
    Row,
    decide,
    judge_seeds,
    measure_cells,
)
from pellucid.lessons.why.clock import seconds_of
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import make_transformer
from pellucid.machine.randomness import generator
from pellucid.model import Transformer

FIXED = 64
ROWS = 16
SHORTEST_BUCKET = 8
SLOWER = 0.8
"""One way is slower than another below this share of its speed."""

WAYS = ("one at a time", "fixed size", "longest of batch", "sorted by length", "buckets")
SAID = {
    "one at a time": "one sentence at a time",
    "longest of batch": "padding to the longest sentence of each batch",
    "sorted by length": "batches of sentences of similar length",
    "buckets": "batches of sentences of similar length, padded to a few sizes",
}
"""The other ways, in an answer."""
KINDS = {"mixed": "mixed lengths", "alike": "nearly equal lengths"}
Layout = list[tuple[list[list[int]], int]]
"""For each batch its sentences and the length that all get."""


def measure(setting: MeasurementSetting) -> Found:
    """Encode the same sentences in several layouts, for mixed and for equal lengths."""
    count, width, repeats = setting.choose((128, 256, 2), (8, 16, 1))
    sizes = setting.choose((FIXED,), (FIXED,), (32, FIXED, 128))
    cells = measure_cells(
        setting,
        f"{count} sentences, {{kind}}, fixed size {{size}}, d {width}",
        lambda size, kind, seed: _race(
            draw_sentences(size, kind, count, seed),
            size,
            make_encoder(width, seed=seed),
            repeats,
        ),
        is_timed=True,
        size=sizes,
        kind=KINDS,
    )
    cells = cells.add(share=lambda row: row["sentences_per_second"] / _best(cells, row))
    middle = sizes[len(sizes) // 2]
    mixed = cells.where(size=middle, kind="mixed")
    padding = mixed.mean("padding", way="fixed size")
    speed = {way: mixed.mean("sentences_per_second", way=way) for way in mixed.values("way")}
    # Among the others only: on a busy machine the fixed size may happen to be the fastest.
    best = max(SAID, key=lambda way: speed[way])
    return Found(
        f"if texts of mixed lengths are all padded to {middle} tokens, {padding:.0%} of the input "
        f"is padding. A model then reads {speed['fixed size']:,.0f} sentences a second. The "
        f"fastest other way is {SAID[best]}. With it the model reads {speed[best]:,.0f} sentences "
        "a second",
        f"An encoder of two layers, d = {width}, reads {count} sentences in batches of up to "
        f"{ROWS}. Mixed lengths lie between 4 tokens and the fixed size, short ones more often; "
        "nearly equal ones are at most two tokens shorter than it. Buckets are "
        f"{SHORTEST_BUCKET}, {2 * SHORTEST_BUCKET}, {4 * SHORTEST_BUCKET} … tokens: a sentence "
        "goes into the shortest that holds it, so that only a few shapes occur. The verdict is "
        f"about the size {middle}.",
        {"efficient": judge_seeds(judge, cells.where(size=middle))},
        tuple(_tables(cells)),
        tuple(_panel(cells.where(kind=kind), name.capitalize()) for kind, name in KINDS.items()),
    )


def _best(cells: Cells, row: Row) -> float:
    """Find the speed of the fastest way for the sentences of a row."""
    same = {axis: row[axis] for axis in ("size", "kind", "seed")}
    return float(max(cells.all("sentences_per_second", **same)))


def judge(cells: Cells) -> Verdict:
    """Judge by the speed of the fixed size, next to the best other way."""

    def share(kind: str) -> float:
        here = cells.where(kind=kind)
        speeds = {way: here.mean("sentences_per_second", way=way) for way in here.values("way")}
        # pop, so that the fixed size is not compared with itself.
        return speeds.pop("fixed size") / max(speeds.values())

    mixed = share("mixed")
    alike = share("alike")
    return decide(
        f"the fixed size is efficient from {SLOWER:.0%} of the speed of the best other way; holds "
        "if it is for mixed lengths, fails if it is not even for sentences that fill it",
        f"{mixed:.0%} of the best other speed for mixed lengths, {alike:.0%} for equal",
        f"With texts of mixed lengths, the fixed size reaches {mixed:.0%} of the speed of the best "
        f"other way. With texts that nearly fill it, at most two tokens shorter, it reaches "
        f"{alike:.0%}. From {SLOWER:.0%} on it counts as efficient.",
        fails=max(mixed, alike) < SLOWER,
        unless={"the texts nearly fill that size": mixed < SLOWER},
    )


def draw_sentences(size: int, kind: str, count: int, seed: int) -> list[list[int]]:
    """Draw sentences of mixed or nearly equal lengths.

    Args:
        size: the longest.
        kind: one of `KINDS`.
        count: the number of sentences.
        seed: of the draws.
    """
    numbers = generator(seed, "why fixed size", size, kind)
    # Even in logarithms: short ones more often.
    if kind == "mixed":
        lengths = np.exp(numbers.uniform(np.log(4), np.log(size + 1), count)).astype(int)
    else:
        lengths = numbers.integers(size - 2, size + 1, count)
    return [list(numbers.integers(4, 100, length)) for length in lengths]


def cut_batches(
    sentences: Sequence[list[int]], way: str, *, rows: int = ROWS, fixed: int = FIXED
) -> Layout:
    """Cut sentences into batches.

    Args:
        sentences: their token ids.
        way: one of `WAYS`; buckets have a few widths that double.
        rows: sentences in a batch.
        fixed: the fixed size, no shorter than any sentence.
    """
    if way == "buckets":
        widths = [width for width in (SHORTEST_BUCKET * 2**n for n in range(10)) if width < fixed]
        buckets: dict[int, list[list[int]]] = {width: [] for width in (*widths, fixed)}
        for sentence in sentences:
            # The first that fits, since widths rise.
            buckets[next(width for width in buckets if len(sentence) <= width)].append(sentence)
        return [
            (inside[start : start + rows], width)
            for width, inside in buckets.items()
            for start in range(0, len(inside), rows)
        ]
    # Sorting needs all sentences beforehand, the other ways do not.
    chosen = sorted(sentences, key=len) if way == "sorted by length" else list(sentences)
    size = 1 if way == "one at a time" else rows
    batches = [chosen[start : start + size] for start in range(0, len(chosen), size)]
    return [(batch, fixed if way == "fixed size" else max(map(len, batch))) for batch in batches]


def make_encoder(width: int, *, seed: int) -> Transformer:
    """Make an untrained encoder of two layers."""
    return make_transformer(
        seed,
        d_model=width,
        d_ff=4 * width,
        num_heads=4,
        num_encoder_layers=2,
        num_decoder_layers=1,
        source_vocabulary_size=100,
        target_vocabulary_size=100,
    ).eval()


def _race(
    sentences: Sequence[list[int]],
    size: int,
    model: Transformer,
    repeats: int,
) -> list[dict[str, Any]]:
    """Time the encoder on the same sentences in each layout."""
    return [
        {"way": way} | time_layout(model, cut_batches(sentences, way, fixed=size), repeats=repeats)
        for way in WAYS
    ]


@torch.inference_mode()
def time_layout(model: Transformer, layout: Layout, *, repeats: int) -> dict[str, float]:
    """Time the encoder on sentences in a layout.

    Args:
        model: reads them.
        layout: of the sentences.
        repeats: timings after the first, of which the shortest counts.

    Returns:
        The share of positions that are ``padding``, and ``sentences_per_second``.
    """
    batches = []
    for batch, length in layout:
        # One more row sets the width of the batch, and is then dropped.
        source_BS, mask_BS = make_source_batch([*batch, [0] * length], pad_id=0)
        batches.append((source_BS[:-1], mask_BS[:-1]))
    positions = sum(source_BS.numel() for source_BS, _ in batches)
    sentences = [sentence for batch, _ in layout for sentence in batch]
    seconds = seconds_of(
        lambda: [model.encode(source_BS, mask_BS) for source_BS, mask_BS in batches],
        repeats=repeats,
    )
    return {
        "padding": 1 - sum(map(len, sentences)) / positions,
        "sentences_per_second": len(sentences) / seconds,
    }


def _tables(cells: Cells) -> Iterator[ResultTable]:
    for size in cells.values("size"):
        for kind, name in KINDS.items():
            yield cells.where(size=size, kind=kind).table(
                f"Fixed size {size}, {name}",
                "way",
                (
                    Column("padding, %", "padding", ".0f", 100),
                    Column("sentences/s", "sentences_per_second", ",.0f"),
                    Column("of the best, %", "share", ".0f", 100),
                ),
                is_of_this_machine=True,
            )


def _panel(cells: Cells, title: str) -> Panel:
    """Draw the share of the best speed of each way by fixed size."""
    ways = ("fixed size", "longest of batch", "buckets", "sorted by length")
    return cells.panel(
        title,
        ("fixed size, tokens", "% of the best speed"),
        {way: {"way": way} for way in ways},
        "size",
        "share",
        scale=100,
        kind="bars",
        y_range=PERCENT,
    )
