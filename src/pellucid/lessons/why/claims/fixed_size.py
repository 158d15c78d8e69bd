"""Input of fixed size: whether it is the efficient one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pellucid.config import ModelConfig
from pellucid.data import make_source_batch
from pellucid.lessons.why.clock import seconds_of
from pellucid.lessons.why.result import (
    NOTES,
    Finding,
    Measurement,
    Panel,
    Plot,
    Series,
    Statement,
    Table,
    Verdict,
)
from pellucid.lessons.why.setting import Setting
from pellucid.machine.hardware import describe_machine
from pellucid.machine.randomness import generator
from pellucid.model import Transformer, initialize

FIXED = 64
ROWS = 16
SLOWER = 0.8
"""One way is slower than another below this share of its speed."""

WAYS = ("one at a time", "fixed size", "longest of batch", "sorted by length")

SAYS = Statement(NOTES, "section 5", "for efficient computation the encoder input is fixed in size")


@dataclass(frozen=True)
class Speed:
    """The speed of one way to lay out sentences.

    Attributes:
        way: one of `WAYS`.
        padding: the share of positions that are padding.
        sentences_per_second: measured on this machine.
    """

    way: str
    padding: float
    sentences_per_second: float


def measure(setting: Setting) -> Measurement:
    """Encode the same sentences in four layouts, for mixed and for equal lengths."""
    count = setting.choose(128, 8)
    numbers = generator(setting.seed, "why fixed size")
    mixed = np.exp(numbers.uniform(np.log(4), np.log(FIXED + 1), count)).astype(int)
    alike = numbers.integers(FIXED - 2, FIXED + 1, count)
    model = make_encoder(setting.choose(256, 16), seed=setting.seed)
    found: dict[str, list[Speed]] = {}
    for name, lengths in (("mixed", mixed), ("alike", alike)):
        sentences = [list(numbers.integers(4, 100, length)) for length in lengths]
        found[name] = []
        for way in WAYS:
            setting.say(f"{name} lengths, {way}")
            layout = lay_out(sentences, way)
            found[name].append(time_layout(model, way, layout, repeats=setting.choose(2, 1)))
    by_way = {one.way: one for one in found["mixed"]}
    fixed, fair = by_way["fixed size"], by_way["longest of batch"]
    return Measurement(
        claim="fixed-size",
        question="Is an input of fixed size the efficient one?",
        number=f"With mixed lengths the fixed size of {FIXED} reads "
        f"{fixed.sentences_per_second:,.0f} sentences a second, of which {fixed.padding:.0%} of "
        f"the positions are padding; padding to the longest of each batch reads "
        f"{fair.sentences_per_second:,.0f}.",
        method=f"An encoder of {model.config.num_encoder_layers} layers, d = "
        f"{model.config.d_model}, reads {count} sentences in batches of up to {ROWS}. Mixed "
        f"lengths lie between 4 and {FIXED} tokens, short ones more often; alike are "
        f"{FIXED - 2} to {FIXED}. The same weights read every length: none of them depends on it.",
        findings=(Finding(SAYS, judge(found["mixed"], found["alike"])),),
        tables=tuple(_table(name, speeds) for name, speeds in found.items()),
        plot=_plot(found),
        notes=(
            "A batch is one matrix, so that its sentences need one length. That length may differ "
            "from batch to batch.",
        ),
        to_try=("pellucid why padding", "pellucid why length"),
        seed=setting.seed,
        size=setting.size,
        machine=describe_machine(),
    )


def judge(mixed: Sequence[Speed], alike: Sequence[Speed]) -> Verdict:
    """Judge by the speed of the fixed size, next to the best other way.

    Args:
        mixed: the ways with sentences of mixed lengths.
        alike: the ways with sentences that nearly fill the fixed size.
    """

    def share(speeds: Sequence[Speed]) -> float:
        by_way = {one.way: one.sentences_per_second for one in speeds}
        return by_way["fixed size"] / max(v for way, v in by_way.items() if way != "fixed size")

    shares = share(mixed), share(alike)
    rule = (
        f"the fixed size is efficient from {SLOWER:.0%} of the speed of the best other way; holds "
        "if it is for mixed lengths, fails if it is not even for sentences that fill it"
    )
    numbers = (
        f"{shares[0]:.0%} of the best other speed for mixed lengths, {shares[1]:.0%} for equal"
    )
    if shares[0] >= SLOWER:
        return Verdict("holds", "", rule, numbers)
    if shares[1] >= SLOWER:
        return Verdict("holds only if", "the texts nearly fill that size", rule, numbers)
    return Verdict("fails", "", rule, numbers)


def lay_out(
    sentences: Sequence[list[int]], way: str, *, rows: int = ROWS, fixed: int = FIXED
) -> list[tuple[list[list[int]], int]]:
    """Cut sentences into batches.

    Args:
        sentences: their token ids.
        way: one of `WAYS`.
        rows: sentences in a batch.
        fixed: the fixed size.

    Returns:
        For each batch its sentences and the length that all get.
    """
    chosen = sorted(sentences, key=len) if way == "sorted by length" else list(sentences)
    size = 1 if way == "one at a time" else rows
    batches = [chosen[start : start + size] for start in range(0, len(chosen), size)]
    return [
        (batch, fixed if way == "fixed size" else max(map(len, batch))) for batch in batches
    ]  # fmt: skip


def make_encoder(width: int, *, seed: int) -> Transformer:
    """Make an untrained encoder of two layers."""
    config = ModelConfig.model_validate(
        {"d_model": width, "d_ff": 4 * width, "num_heads": 4, "num_encoder_layers": 2}
        | {"num_decoder_layers": 1, "source_vocabulary_size": 100, "target_vocabulary_size": 100}
    )
    model = Transformer(config)
    initialize(model, seed)
    return model.eval()


@torch.inference_mode()
def time_layout(
    model: Transformer, way: str, layout: Sequence[tuple[list[list[int]], int]], *, repeats: int
) -> Speed:
    """Time the encoder on sentences in a layout.

    Args:
        model: reads them.
        way: the name of the layout.
        layout: for each batch its sentences and the length that all get.
        repeats: timings after the first, of which the shortest counts.
    """
    batches = []
    for batch, length in layout:
        # One more row sets the width of the batch, and is then dropped.
        source_BS, mask_BS = make_source_batch([*batch, [0] * length], pad_id=0)
        batches.append((source_BS[:-1], mask_BS[:-1]))
    positions = sum(source_BS.numel() for source_BS, _ in batches)
    sentences = [sentence for batch, _ in layout for sentence in batch]
    padding = 1 - sum(map(len, sentences)) / positions
    seconds = seconds_of(
        lambda: [model.encode(source_BS, mask_BS) for source_BS, mask_BS in batches],
        repeats=repeats,
    )  # fmt: skip
    return Speed(way, padding, len(sentences) / seconds)


def _table(name: str, speeds: Sequence[Speed]) -> Table:
    best = max(one.sentences_per_second for one in speeds)
    return Table(
        f"Sentences of {'mixed' if name == 'mixed' else 'nearly equal'} lengths",
        ("", "padding, %", "sentences/s", "of the best, %"),
        ("", ".0f", ",.0f", ".0f"),
        tuple(
            (one.way, 100 * one.padding, one.sentences_per_second,
             100 * one.sentences_per_second / best)
            for one in speeds
        ),
        is_of_this_machine=True,
    )  # fmt: skip


def _plot(found: dict[str, list[Speed]]) -> Plot:
    panels = []
    for name, title in (("mixed", "Mixed lengths"), ("alike", "Nearly equal lengths")):
        heights = [one.sentences_per_second for one in found[name]]
        fixed = WAYS.index("fixed size")
        others = tuple(float("nan") if i == fixed else y for i, y in enumerate(heights))
        panels.append(
            Panel(
                title, "", "sentences per second",
                (
                    Series("fixed size", tuple(map(float, range(4))),
                           tuple(y if i == fixed else float("nan") for i, y in enumerate(heights)),
                           "accent"),
                    Series("other ways", tuple(map(float, range(4))), others),
                ),
                kind="bars", names=WAYS,
            )
        )  # fmt: skip
    return Plot(tuple(panels))
