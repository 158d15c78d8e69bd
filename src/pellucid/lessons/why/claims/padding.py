"""Padding: whether it leaves the words of a sentence as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.decode.greedy import decode_greedily
from pellucid.lessons.why.packaged import load_packaged, write_examples_of
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

ROUNDING = 1e-4
"""A relative difference below this is rounding."""

SAYS = Statement(
    NOTES,
    "section 5",
    "by adding padding tokens … input sequences of variable length can be processed",
)


@dataclass(frozen=True)
class Padded:
    """Sentences with padding after them, compared with the same without.

    Attributes:
        num_padding: padding tokens after each sentence.
        masked_difference: the largest difference in the encoder's output of a word, as a share of
            the outputs' root mean square, if padding is masked.
        masked_changed: the share of translations that change.
        open_difference: the same if words may attend to padding.
        open_changed: the same if words may attend to padding.
    """

    num_padding: int
    masked_difference: float
    masked_changed: float
    open_difference: float
    open_changed: float


def measure(setting: Setting) -> Measurement:
    """Translate sentences with more and more padding, with and without its mask."""
    sizes = setting.choose((600, 100), (40, 5))
    amounts = setting.choose((1, 2, 4, 8, 16, 32, 64), (1, 8))
    setting.say(f"up to {amounts[-1]} padding tokens")
    found, count, length = pad_more(amounts, sizes, seed=setting.seed)
    last = found[-1]
    return Measurement(
        claim="padding",
        question="Does padding leave the words of a sentence as they are?",
        number=f"With {last.num_padding} padding tokens {last.masked_changed:.0%} of the "
        f"translations change if padding is masked, {last.open_changed:.0%} if it is not.",
        method=f"The packaged model translates {count} new sentences of "
        f"{length} tokens, </s> included: as they are, with padding that no token may "
        "attend to, and with padding that all may attend to. Differences are the largest in "
        "the encoder's output of any word, divided by the root mean square of the outputs.",
        findings=(Finding(SAYS, judge(found)),),
        tables=(_table(found),),
        plot=_plot(found),
        notes=(
            "The masks set the scores of padding to −∞, so that its weights are exactly 0. What "
            "is left is rounding, since longer sums are added in another order.",
        ),
        to_try=("pellucid why fixed-size",),
        seed=setting.seed,
        size=setting.size,
    )


@torch.inference_mode()
def pad_more(
    amounts: Sequence[int], sizes: tuple[int, int], *, seed: int
) -> tuple[list[Padded], int, int]:
    """Translate sentences of one length with more and more padding.

    Args:
        amounts: padding tokens after each sentence.
        sizes: sentences to draw, and the most to take of those of the commonest length.
        seed: of the sentences.

    Returns:
        What padding changes, by amount; the number of sentences, and their length in tokens.
    """
    bundle = load_packaged()
    source_BS = _equally_long(bundle, sizes, seed)
    plain_BSD = bundle.model.encode(source_BS)
    expected = _translate(bundle, source_BS, torch.ones_like(source_BS, dtype=torch.bool))
    found = []
    for amount in amounts:
        padding_BX = source_BS.new_full((len(source_BS), amount), bundle.tokenizer.config.pad_id)
        padded_BS = torch.cat((source_BS, padding_BX), dim=1)
        differences, changes = [], []
        for is_masked in (True, False):
            mask_BS = torch.ones_like(padded_BS, dtype=torch.bool)
            mask_BS[:, source_BS.shape[1] :] = not is_masked
            memory_BSD = bundle.model.encode(padded_BS, mask_BS)[:, : source_BS.shape[1]]
            off = (memory_BSD - plain_BSD).abs().max() / plain_BSD.square().mean().sqrt()
            differences.append(float(off))
            written = _translate(bundle, padded_BS, mask_BS)
            changed = sum(a != b for a, b in zip(written, expected, strict=True))
            changes.append(changed / len(expected))
        found.append(Padded(amount, differences[0], changes[0], differences[1], changes[1]))
    return found, len(source_BS), source_BS.shape[1]


def judge(found: Sequence[Padded]) -> Verdict:
    """Judge by what padding changes, with and without its mask."""
    masked = max(one.masked_difference for one in found)
    masked_changed = max(one.masked_changed for one in found)
    opened = max(one.open_difference for one in found)
    open_changed = max(one.open_changed for one in found)
    rule = (
        f"a relative difference below {ROUNDING} and no changed translation is harmless; holds if "
        "padding is harmless even without its mask, fails if it is not even with it"
    )
    numbers = (
        f"masked: difference {masked:.1e}, {masked_changed:.0%} changed; not masked: "
        f"{opened:.1e}, {open_changed:.0%} changed"
    ).replace("e-", "e−")
    if masked >= ROUNDING or masked_changed > 0:
        return Verdict("fails", "", rule, numbers)
    if opened >= ROUNDING or open_changed > 0:
        return Verdict("holds only if", "padding is masked", rule, numbers)
    return Verdict("holds", "", rule, numbers)


def _equally_long(bundle: Bundle, sizes: tuple[int, int], seed: int) -> Tensor:
    """Take sentences of one length, so that the batch itself has no padding."""
    drawn, most = sizes
    examples = write_examples_of(drawn, seed=seed)
    encoded = [bundle.tokenizer.encode_source(one.source) for one in examples]
    ((commonest, _),) = Counter(map(len, encoded)).most_common(1)
    return torch.tensor([ids for ids in encoded if len(ids) == commonest][:most])


def _translate(bundle: Bundle, source_BS: Tensor, mask_BS: Tensor) -> list[tuple[int, ...]]:
    special = bundle.tokenizer.config
    found = decode_greedily(
        bundle.model, source_BS, mask_BS, start_id=special.target_start_id, eos_id=special.eos_id,
        max_lengths=[40] * len(source_BS),
    )  # fmt: skip
    return [one.ids for one in found]


def _table(found: Sequence[Padded]) -> Table:
    return Table(
        "Difference of the encoder's output, and translations that change",
        ("padding", "masked", "changed, %", "not masked", "changed, %"),
        ("d", ".1e", ".0f", ".1e", ".0f"),
        tuple(
            (one.num_padding, one.masked_difference, 100 * one.masked_changed,
             one.open_difference, 100 * one.open_changed)
            for one in found
        ),
    )  # fmt: skip


def _plot(found: Sequence[Padded]) -> Plot:
    places = tuple(float(one.num_padding) for one in found)

    def panel(title: str, label: str, columns: tuple[str, str], scale: float) -> Panel:
        opened, masked = (
            tuple(scale * getattr(one, column) for one in found) for column in columns
        )
        return Panel(
            title, "padding tokens after each sentence", label,
            (Series("not masked", places, opened, "accent"), Series("masked", places, masked)),
            x_log=True, y_log=scale == 1, y_range=None if scale == 1 else (0, 100),
        )  # fmt: skip

    return Plot(
        (
            panel("Translations that change", "%", ("open_changed", "masked_changed"), 100),
            panel("Difference of the encoder's output", "share of its root mean square",
                  ("open_difference", "masked_difference"), 1),
        )
    )  # fmt: skip
