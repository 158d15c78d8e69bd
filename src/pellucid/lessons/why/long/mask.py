"""The look-ahead mask at full length: three seeds, and models of one and two layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pellucid.lessons.why.claims.mask import (
    SAYS,
    Taught,
    judge,
    least_when_fair,
    weight_on_next,
)
from pellucid.lessons.why.long.sums import mean, series_of, thin, write
from pellucid.lessons.why.result import Cell, Finding, Measurement, Panel, Plot, Series, Table
from pellucid.lessons.why.setting import Setting
from pellucid.lessons.why.tiny.learn import loss_on, make_tiny, train_tiny, translate_tiny
from pellucid.lessons.why.tiny.sentences import draw_ambiguous, is_translation

EVERY = 10
NAMES = {True: "with the mask", False: "without the mask"}
Found = dict[tuple[int, bool], list[dict[str, Any]]]


def measure(setting: Setting) -> Measurement:
    """Train equal models with and without the mask, of two depths and with all seeds."""
    depths = (1, 2)
    count, steps = setting.choose((12000, 300), (100, 4))
    found: Found = {
        (depth, has_mask): [
            _teach(depth, has_mask, count, steps, seed, setting) for seed in setting.seeds
        ]
        for depth in depths
        for has_mask in (True, False)
    }
    floor = mean([one["floor"] for one in found[1, True]])
    cheat, fair = (_sum_up(found, has_mask) for has_mask in (False, True))
    return Measurement(
        claim="mask",
        question="Does a decoder without the look-ahead mask cheat?",
        number=f"Without the mask the training loss falls to {cheat.training_loss:.4f} nats a "
        f"word, where no fair model gets below {floor:.4f}; of the new sentences it translates "
        f"{cheat.exact:.0%}, with the mask {fair.exact:.0%}.",
        method=f"Equal models of one and of two layers learn {count:,} sentences of a tiny English "
        f"and French in {steps} updates. Each verb has two French words, and a coin decides "
        "which one a sentence has: it cannot be foreseen, and a fair model pays log 2 nats "
        "for it. Decoding is greedy. The verdict takes the depth that is harder on the claim.",
        findings=(Finding(SAYS, judge({True: fair, False: cheat}, floor)),),
        tables=(_table(found, depths, floor),),
        plot=_plot(found, depths, floor),
        notes=(
            "The test loss with teacher forcing does not show the fault, because it lets the model "
            "read the answer too. Only decoding does.",
            "A model of two layers can also look further ahead through what its first layer "
            "gathered.",
        ),
        to_try=("pellucid attend not-on-your-life", "pellucid inspect demo --draw masked"),
        seed=setting.seed,
        size=setting.size,
    )


def _teach(
    depth: int, has_mask: bool, count: int, steps: int, seed: int, setting: Setting
) -> dict[str, Any]:
    def make() -> dict[str, Any]:
        train = draw_ambiguous(count, seed=seed, part="train")
        test = draw_ambiguous(setting.choose(200, 7), seed=seed, part="test")
        tiny = make_tiny(
            [*train, *test], seed=seed, look_ahead_mask=has_mask, num_encoder_layers=depth,
            num_decoder_layers=depth,
        )  # fmt: skip
        tiny = train_tiny(tiny, train, steps=steps, seed=seed)
        written = translate_tiny(tiny, [pair[0] for pair in test])
        right = sum(is_translation(text, pair) for text, pair in zip(written, test, strict=True))
        tail = tiny.losses[-max(1, steps // 20) :]
        return {
            "floor": least_when_fair(train),
            "losses": thin(tiny.losses, EVERY),
            "training_loss": sum(tail) / len(tail),
            "test_loss": loss_on(tiny, test),
            "exact": right / len(test),
            "weight_on_next": weight_on_next(tiny, test),
        }

    found: dict[str, Any] = setting.cell(
        f"training {NAMES[has_mask]}, {depth} layers, {count} sentences, {steps} updates, "
        f"seed {seed}",
        make,
    )
    return found


def _sum_up(found: Found, has_mask: bool) -> Taught:
    """Take the mean of each depth, and of these the one that is hardest on the claim."""

    def hardest(what: str, choose: Callable[[list[float]], float]) -> float:
        return choose(
            [mean([one[what] for one in ones])
             for (_, masked), ones in found.items() if masked == has_mask]
        )  # fmt: skip

    above, below = (min, max) if has_mask else (max, min)
    return Taught(
        hardest("training_loss", above),
        hardest("test_loss", above),
        hardest("exact", above),
        hardest("weight_on_next", below),
    )


def _table(found: Found, depths: Sequence[int], floor: float) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (depth, has_mask), ones in found.items():
        rows.append(
            (
                depth, NAMES[has_mask],
                *(write([one[what] for one in ones]) for what in ("training_loss", "test_loss")),
                *(write([one[what] for one in ones], scale=100)
                  for what in ("exact", "weight_on_next")),
            )
        )  # fmt: skip
    rows.append((None, "least possible when fair", f"{floor:.3g}", f"{floor:.3g}", None, None))
    return Table(
        "Loss in nats a word, sentences translated, weight on the next token in the decoder's "
        "first layer, head with the most",
        ("layers", "", "training loss", "test loss", "right, %", "next token, %"),
        ("d", "", "", "", "", ""),
        tuple(rows),
    )


def _plot(found: Found, depths: Sequence[int], floor: float) -> Plot:
    def course(name: str, depth: int, has_mask: bool, role: Any) -> Series:
        losses = [one["losses"] for one in found[depth, has_mask]]
        places = [EVERY * (i + 0.5) for i in range(len(losses[0]))]
        return series_of(name, places, list(zip(*losses, strict=True)), role, in_logarithms=True)

    ends = (0.0, EVERY * float(len(found[1, True][0]["losses"])))
    loss = Panel(
        "Training loss", "update", "nats a word",
        (
            course("without the mask", 1, False, "accent"),
            course("without, two layers", 2, False, "plain"),
            course("with the mask", 1, True, "plain"),
            course("with, two layers", 2, True, "plain"),
            Series("least possible when fair", ends, (floor, floor), "faint"),
        ),
        y_log=True,
    )  # fmt: skip
    decoding = Panel(
        "New sentences translated", "", "% right",
        tuple(
            series_of(NAMES[has_mask], range(len(depths)),
                      [[one["exact"] for one in found[depth, has_mask]] for depth in depths],
                      "plain" if has_mask else "accent", scale=100)
            for has_mask in (False, True)
        ),
        kind="bars", names=("one layer", "two layers"), y_range=(0, 105),
    )  # fmt: skip
    return Plot((loss, decoding))
