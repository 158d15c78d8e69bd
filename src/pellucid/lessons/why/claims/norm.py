"""Layer normalization: the loss with and without it, for slow and fast training."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
from pellucid.lessons.why.tiny.learn import count_exact, loss_on, make_tiny, train_tiny
from pellucid.lessons.why.tiny.sentences import draw_statements

PLACES = ("post", "pre", "none")
NAMES = {"post": "post-norm", "pre": "pre-norm", "none": "no norm"}
LEARNED = 0.5
"""A model has learned if the loss of new sentences is below this, in nats a word."""

STABLE_SAYS = Statement(NOTES, "section 3.6", "layer normalisation stabilises training")
TIME_SAYS = Statement(
    NOTES, "section 3.6", "it improves model performance and reduces training time"
)


@dataclass(frozen=True)
class Course:
    """One training.

    Attributes:
        norm: ``post``, ``pre`` or ``none``.
        rate: the peak of the learning rate.
        test_loss: of new sentences at the end, in nats a word.
        exact: the share of new sentences translated exactly.
        updates: until the training loss stayed below `LEARNED`; None if it never did.
    """

    norm: str
    rate: float
    test_loss: float
    exact: float
    updates: int | None


def measure(setting: Setting) -> Measurement:
    """Train the same model with the norm in three places, at several learning rates."""
    rates = setting.choose((0.002, 0.008, 0.032), (0.008, 0.032))
    count, steps = setting.choose((6000, 200), (60, 4))
    train = draw_statements(count, seed=setting.seed, part="train")
    test = draw_statements(setting.choose(200, 7), seed=setting.seed, part="test")
    depth = setting.choose(4, 2)
    found: list[Course] = []
    curves: dict[tuple[str, float], tuple[float, ...]] = {}

    def teach(norm: str, rate: float, layers: int) -> tuple[Course, tuple[float, ...]]:
        setting.say(f"{NAMES[norm]}, {layers} layers, learning rate {rate:g}")
        tiny = make_tiny(
            [*train, *test], seed=setting.seed, norm=norm, d_model=32, d_ff=64, num_heads=2,
            num_encoder_layers=layers, num_decoder_layers=(layers + 1) // 2,
        )  # fmt: skip
        tiny = train_tiny(tiny, train, steps=steps, seed=setting.seed, rate=rate)
        updates = _updates_until(tiny.losses, LEARNED)
        return Course(
            norm, rate, loss_on(tiny, test), count_exact(tiny, test), updates
        ), tiny.losses

    for norm in PLACES:
        for rate in rates:
            course, curves[norm, rate] = teach(norm, rate, depth)
            found.append(course)
    shallow = [teach(norm, rates[1], 1)[0] for norm in PLACES]
    middle = {one.norm: one for one in found if one.rate == rates[1]}
    return Measurement(
        claim="norm",
        question="Does layer normalization stabilize and shorten training?",
        number=f"With {depth} layers at a learning rate of {rates[1]:g}, "
        f"{middle['post'].exact:.0%} of new sentences are right with post-norm, "
        f"{middle['pre'].exact:.0%} with pre-norm and {middle['none'].exact:.0%} without "
        "norms.",
        method=f"A model of {depth} encoder and {(depth + 1) // 2} decoder layers, d = 32, "
        f"learns {count:,} sentences of a tiny language in {steps} updates with Adam, with "
        "the norm after each residual sum "
        "(post), before each sub-layer (pre) or nowhere, at several learning rates. Weights "
        "and text are the same. The same is done with one and one layer. Learned means a "
        f"loss below {LEARNED} nats a word.",
        findings=(
            Finding(STABLE_SAYS, judge_stable(found, shallow)),
            Finding(TIME_SAYS, judge_time(found, shallow)),
        ),
        tables=(
            _table(f"After training, {depth} layers", found),
            _table("After training, one layer", shallow),
        ),
        plot=_plot(found, curves, rates),
        notes=(
            "A norm re-scales and re-centers the vectors of the forward pass, and through them the "
            "gradients. The notes say that it normalizes the gradients themselves.",
        ),
        to_try=("pellucid why residual", "pellucid attend show-me-the-money"),
        seed=setting.seed,
        size=setting.size,
    )


def judge_stable(deep: list[Course], shallow: list[Course]) -> Verdict:
    """Judge by the number of learning rates at which each model learns.

    Args:
        deep: trainings of a model of several layers.
        shallow: trainings of a model of one layer.
    """
    learned = {norm: _count_learned(deep, norm) for norm in PLACES}
    total = len(deep) // len(PLACES)
    rule = (
        "stable means learning at more of the learning rates than without norms; holds if "
        "post-norm and pre-norm are, only for several layers if one layer learns without norms "
        "too, fails if neither is"
    )
    numbers = (
        ", ".join(f"{NAMES[n]} {learned[n]} of {total} rates" for n in PLACES)
        + f"; one layer without norms {_count_learned(shallow, 'none')} of "
        f"{len(shallow) // len(PLACES)}"
    )
    better = [norm for norm in ("post", "pre") if learned[norm] > learned["none"]]
    return _sum_up(better, bool(_count_learned(shallow, "none")), rule, numbers)


def judge_time(deep: list[Course], shallow: list[Course]) -> Verdict:
    """Judge by the fewest updates until each model had learned, at its best learning rate.

    Args:
        deep: trainings of a model of several layers.
        shallow: trainings of a model of one layer.
    """
    fewest = {norm: _fewest(deep, norm) for norm in PLACES}
    flat = {norm: _fewest(shallow, norm) for norm in PLACES}
    rule = (
        f"the fewest updates to a loss of {LEARNED} at any of the learning rates; holds if "
        "post-norm and pre-norm need fewer than no norm, only for several layers if they do not "
        "with one layer, fails if neither does"
    )
    numbers = (
        ", ".join(f"{NAMES[n]} {_write(fewest[n])}" for n in PLACES)
        + "; one layer: "
        + ", ".join(_write(flat[n]) for n in PLACES)
    )
    better = [norm for norm in ("post", "pre") if fewest[norm] < fewest["none"]]
    is_flat_as_fast = flat["none"] <= min(flat["post"], flat["pre"]) < math.inf
    return _sum_up(better, is_flat_as_fast, rule, numbers)


def _sum_up(better: list[str], is_only_deep: bool, rule: str, numbers: str) -> Verdict:
    """Turn the places where a norm helps into a verdict."""
    if not better:
        return Verdict("fails", "", rule, numbers)
    conditions = []
    if len(better) == 1:
        conditions.append(f"it is {NAMES[better[0]]}")
    if is_only_deep:
        conditions.append("the model has several layers")
    if not conditions:
        return Verdict("holds", "", rule, numbers)
    return Verdict("holds only if", " and ".join(conditions), rule, numbers)


def _write(updates: float) -> str:
    return "never" if updates == math.inf else f"{updates:.0f}"


def _updates_until(losses: tuple[float, ...], limit: float) -> int | None:
    """Count the updates until the loss was below a limit for good."""
    above = [index for index, loss in enumerate(losses) if not loss < limit]
    last = above[-1] + 1 if above else 0
    return None if last == len(losses) else last + 1


def _count_learned(found: list[Course], norm: str) -> int:
    return sum(one.test_loss < LEARNED for one in found if one.norm == norm)


def _fewest(found: list[Course], norm: str) -> float:
    return min(
        (one.updates for one in found if one.norm == norm and one.updates is not None),
        default=math.inf,
    )


def _table(title: str, found: list[Course]) -> Table:
    return Table(
        title,
        ("", "learning rate", "updates to learn", "test loss", "right, %"),
        ("", "g", "d", ".3g", ".0f"),
        tuple(
            (NAMES[one.norm], one.rate, one.updates, one.test_loss, 100 * one.exact)
            for one in found
        ),
    )


def _plot(
    found: list[Course], curves: dict[tuple[str, float], tuple[float, ...]],
    rates: tuple[float, ...],
) -> Plot:  # fmt: skip
    def role(norm: str) -> str:
        return "accent" if norm == "post" else "plain"

    right = Panel(
        "New sentences translated exactly", "learning rate", "%",
        tuple(
            Series(NAMES[norm], tuple(map(float, range(len(rates)))),
                   tuple(100 * one.exact for one in found if one.norm == norm),
                   role(norm))  # type: ignore[arg-type]
            for norm in PLACES
        ),
        kind="bars", names=tuple(f"{rate:g}" for rate in rates), y_range=(0, 100),
    )  # fmt: skip
    fast = Panel(
        f"Training loss at a rate of {rates[1]:g}", "update", "nats a word",
        tuple(
            Series(NAMES[norm],
                   tuple(float(i) for i in range(1, len(curves[norm, rates[1]]) + 1)),
                   curves[norm, rates[1]],
                   role(norm))  # type: ignore[arg-type]
            for norm in PLACES
        ),
        y_log=True,
    )  # fmt: skip
    return Plot((right, fast))
