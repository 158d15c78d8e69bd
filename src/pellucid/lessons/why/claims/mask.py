"""The look-ahead mask: training without it is easier than possible, and decoding is lost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from pellucid.inside.pair import Keeper
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
from pellucid.lessons.why.tiny.learn import Tiny, loss_on, make_tiny, train_tiny, translate_tiny
from pellucid.lessons.why.tiny.sentences import draw_ambiguous, is_translation
from pellucid.lessons.why.tiny.words import Pair, make_pair_batch

CHEATS, LOST, COMPLETELY = 0.25, 0.25, 0.5
"""It cheats if its loss is below this share of what no fair model can undercut; decoding is lost
below this share of sentences; it attends completely to the next token above this weight."""

SAYS = Statement(
    NOTES,
    "section 4.2",
    "a token could cheat and attend completely on the next token in the sequence",
)


@dataclass(frozen=True)
class Taught:
    """A model that was trained with or without the mask.

    Attributes:
        training_loss: of its last updates, nats for each word, with teacher forcing.
        test_loss: the same for new sentences.
        exact: the share of new sentences that it translates, word by word.
        weight_on_next: the weight of the token after the row's own in the decoder's
            self-attention, in the head with the most.
    """

    training_loss: float
    test_loss: float
    exact: float
    weight_on_next: float


def measure(setting: Setting) -> Measurement:
    """Train two equal models, one without the look-ahead mask, and let both translate."""
    count, steps = setting.choose((12000, 400), (100, 6))
    train = draw_ambiguous(count, seed=setting.seed, part="train")
    test = draw_ambiguous(setting.choose(200, 11), seed=setting.seed, part="test")
    floor = least_when_fair(train)
    found: dict[bool, Taught] = {}
    curves: dict[bool, tuple[float, ...]] = {}
    examples: dict[bool, str] = {}
    for has_mask in (True, False):
        setting.say(f"training {'with' if has_mask else 'without'} the look-ahead mask")
        tiny = make_tiny([*train, *test], seed=setting.seed, look_ahead_mask=has_mask)
        tiny = train_tiny(tiny, train, steps=steps, seed=setting.seed)
        written = translate_tiny(tiny, [pair[0] for pair in test])
        right = sum(is_translation(text, pair) for text, pair in zip(written, test, strict=True))
        tail = tiny.losses[-max(1, steps // 20) :]
        found[has_mask] = Taught(
            sum(tail) / len(tail),
            loss_on(tiny, test),
            right / len(test),
            weight_on_next(tiny, test),
        )
        curves[has_mask], examples[has_mask] = tiny.losses, written[0]
    return Measurement(
        claim="mask",
        question="Does a decoder without the look-ahead mask cheat?",
        number=f"Without the mask the training loss falls to {found[False].training_loss:.4f} nats "
        f"a word, where no fair model gets below {floor:.4f}; of {len(test)} new sentences it "
        f"translates {found[False].exact:.0%}, with the mask {found[True].exact:.0%}.",
        method=f"Two equal models of one layer learn {count:,} sentences of a tiny English "
        f"and French in {steps} updates. Each verb has two French words, and a coin decides "
        "which one a sentence has: it cannot be foreseen, and a fair model pays log 2 nats "
        "for it. Decoding is greedy.",
        findings=(Finding(SAYS, judge(found, floor)),),
        tables=(_table(found, floor),),
        plot=_plot(curves, found, floor),
        notes=(
            f"“{test[0][0]}” is “{test[0][1]}”. With the mask: “{examples[True]}”. Without: "
            f"“{examples[False][:60]}”.",
            "The test loss with teacher forcing does not show the fault, because it lets the model "
            "read the answer too. Only decoding does.",
        ),
        to_try=("pellucid attend not-on-your-life", "pellucid inspect demo --draw masked"),
        seed=setting.seed,
        size=setting.size,
    )


def judge(found: dict[bool, Taught], floor: float) -> Verdict:
    """Judge by the loss that no fair model can reach, by decoding, and by the weights.

    Args:
        found: the two models, by whether they had the mask.
        floor: the least loss of a model that cannot read the answer.
    """
    fair, cheat = found[True], found[False]
    rule = (
        f"it cheats if the loss is below {CHEATS:.0%} of the least that is possible without seeing "
        f"the answer, and the masked model's is not; decoding is lost below {LOST:.0%} right if "
        "the masked model has twice as much; completely means a weight above "
        f"{COMPLETELY:.0%} on the next token in some head"
    )
    numbers = (
        f"loss {cheat.training_loss:.4f} without and {fair.training_loss:.4f} with the mask, least "
        f"possible {floor:.4f}; right {cheat.exact:.0%} and {fair.exact:.0%}; weight on the next "
        f"token {cheat.weight_on_next:.0%} and {fair.weight_on_next:.0%}"
    )
    cheats = cheat.training_loss < CHEATS * floor <= fair.training_loss
    is_lost = cheat.exact < LOST and fair.exact >= 2 * cheat.exact and fair.exact > 0
    if not (cheats and is_lost):
        return Verdict("fails", "", rule, numbers)
    if cheat.weight_on_next <= COMPLETELY:
        return Verdict(
            "holds only if", "part of the attention is enough to cheat", rule, numbers
        )  # fmt: skip
    return Verdict("holds", "", rule, numbers)


def least_when_fair(pairs: list[Pair]) -> float:
    """Compute the loss, in nats a word, that no model without a view of the answer undercuts.

    A drawn verb costs log 2 and the other words nothing, if the model is perfect.
    """
    words = sum(len(french.split()) + 1 for _, french in pairs)
    return math.log(2) * len(pairs) / words


@torch.inference_mode()
def weight_on_next(tiny: Tiny, pairs: list[Pair]) -> float:
    """Average the weight on the next token over rows, for the head of the decoder with the most."""
    keeper = Keeper(("weights",), ("decoder.0.self",))
    batch = make_pair_batch(
        tiny.source.encode_all([pair[0] for pair in pairs]),
        tiny.target.encode_all([pair[1] for pair in pairs]),
    )
    # As in training: without the look-ahead mask, padding must be hidden.
    hidden = None if tiny.model.config.look_ahead_mask else batch.target_mask_BT
    tiny.model(
        batch.source_BS, batch.target_in_BT, batch.source_mask_BS, target_mask_BT=hidden,
        probe=keeper,
    )  # fmt: skip
    weights_BHTM = keeper.found["decoder.0.self.weights"]
    next_BHX = weights_BHTM.diagonal(offset=1, dim1=-2, dim2=-1)
    has_next_BX = batch.target_mask_BT[:, 1:]
    sums_H = (next_BHX * has_next_BX[:, None]).sum(dim=(0, 2))
    return float((sums_H / has_next_BX.sum()).max())


def _table(found: dict[bool, Taught], floor: float) -> Table:
    rows = tuple(
        (f"{'with' if has_mask else 'without'} the mask", one.training_loss, one.test_loss,
         100 * one.exact, 100 * one.weight_on_next)
        for has_mask, one in found.items()
    )  # fmt: skip
    return Table(
        "Loss in nats a word, sentences translated, weight on the next token",
        ("", "training loss", "test loss", "right, %", "next token, %"),
        ("", ".4f", ".4f", ".0f", ".0f"),
        (*rows, ("least possible when fair", floor, floor, None, None)),
    )


def _plot(curves: dict[bool, tuple[float, ...]], found: dict[bool, Taught], floor: float) -> Plot:
    def line(has_mask: bool, name: str, role: str) -> Series:
        losses = curves[has_mask]
        steps = tuple(float(step) for step in range(1, len(losses) + 1))
        return Series(name, steps, losses, role)  # type: ignore[arg-type]

    ends = (1.0, float(len(curves[True])))
    loss = Panel(
        "Training loss", "update", "nats a word",
        (
            line(False, "without the mask", "accent"),
            line(True, "with the mask", "plain"),
            Series("least possible when fair", ends, (floor, floor), "faint"),
        ),
        y_log=True,
    )  # fmt: skip
    nothing = float("nan")
    decoding = Panel(
        "New sentences translated", "", "% right",
        (
            Series("without the mask", (0.0, 1.0), (100 * found[False].exact, nothing), "accent"),
            Series("with the mask", (0.0, 1.0), (nothing, 100 * found[True].exact), "plain"),
        ),
        kind="bars", names=("without the mask", "with the mask"), y_range=(0, 100),
    )  # fmt: skip
    return Plot((loss, decoding))
