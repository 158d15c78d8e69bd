"""Vanishing gradients: how much of a gradient reaches a position, by its distance from the last."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from pellucid.lessons.why.intervals import Interval, interval
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
from pellucid.lessons.why.tiny.forms import FORMS, Form, make_form
from pellucid.lessons.why.tiny.learn import Tiny
from pellucid.lessons.why.tiny.letters import LETTERS, draw_letters, study
from pellucid.machine.randomness import generator
from pellucid.model import RecurrentModel

VANISHED, ALIVE = 1e-3, 0.1
NO_GATES = "no gates"
STAGES = ("untrained", "trained")

SAYS = Statement(
    NOTES,
    "introduction",
    "recurrent networks suffer from vanishing gradients when sequences are long",
)

Reach = Mapping[str, Sequence[Sequence[float]]]
"""For each form and seed the gradient at distance 1, 2, …, as a share of that at distance 1."""


def measure(setting: Setting) -> Measurement:
    """Measure the gradient by distance in untrained encoders and in those that learned to copy."""
    forms: tuple[Form, ...] = setting.choose(
        ("fixed vector", "additive", "Transformer"), ("fixed vector", "Transformer"), tuple(FORMS)
    )
    length, updates = setting.choose((50, 100), (5, 2), (50, 200))
    found: dict[str, dict[str, list[list[float]]]] = {stage: {} for stage in STAGES}
    for form in forms:
        for seed in setting.seeds:
            cell = setting.cell(
                f"{form}, {length} letters, {updates} updates of copying, seed {seed}",
                partial(_measure_form, form, length, updates, seed),
            )
            for stage, shares in cell.items():
                found[stage].setdefault(form, []).append(shares)
    for seed in setting.seeds:
        tiny = make_form("fixed vector", LETTERS, seed=seed)
        shares = _relative(gradient_without_gates(tiny, length, seed=seed))
        found["untrained"].setdefault(NO_GATES, []).append(shares)
    vector, transformer = (
        _middle([one[-1] for one in found["untrained"][form]]).mean
        for form in (forms[0], "Transformer")
    )
    return Measurement(
        claim="gradients",
        question="Do gradients vanish on the way to early words?",
        number=f"Over {length - 1} letters the gradient of an untrained recurrent encoder falls to "
        f"{_write(vector)} of what it is next to the last letter, in a Transformer to "
        f"{transformer:.2f}.",
        method=f"Encoders of equal size, d = 64, read {length} random letters. The gradient of the "
        "vector at the last letter, in a random direction, is taken with respect to the embedding "
        "of each letter before it, in float64; its length is averaged over 32 sequences and "
        "divided by that at distance 1. With attention an encoder reads in both directions; this "
        f"is the one from left to right. Then each form learns to copy, in {updates} updates of 16 "
        f"sequences, and is measured again. “{NO_GATES}” is a cell of the same weights whose new "
        "state is the candidate only: tanh(Wx + Uh). Means over seeds are geometric.",
        findings=(Finding(SAYS, judge(found)),),
        tables=tuple(_table(stage, found[stage]) for stage in STAGES),
        plot=_plot(found),
        notes=_NOTES,
        to_try=("pellucid why memory", "pellucid attend recurrent-step", "pellucid why residual"),
        seed=setting.seed,
        size=setting.size,
    )


_NOTES = (
    "Gates slow the fall: a state passes to the next one in part unchanged. Attention does not "
    "mend the recurrence, it goes around it: the decoder's loss reaches the state at each word in "
    "one step.",
    "In the Transformer the last letter's own embedding also reaches its vector through the "
    "residual connection; it is left out, so that only what attention carries is compared.",
)


def judge(found: Mapping[str, Reach]) -> Verdict:
    """Judge by the gradient that is left at the largest distance, untrained and trained."""
    rule = (
        f"vanished means less than {VANISHED} at the largest distance, alive at least {ALIVE}; "
        "holds if the fixed vector's gradient has vanished before and after training and the "
        "Transformer's is alive in both, only before or after training if in one; fails otherwise"
    )
    left = {
        (stage, form): _middle([one[-1] for one in found[stage][form]]).mean
        for stage in STAGES
        for form in ("fixed vector", "Transformer")
    }
    numbers = "; ".join(
        f"{stage} {_write(left[stage, 'fixed vector'])} with a fixed vector and "
        f"{_write(left[stage, 'Transformer'])} in the Transformer"
        for stage in STAGES
    )
    holds = [
        stage for stage in STAGES
        if left[stage, "fixed vector"] < VANISHED and left[stage, "Transformer"] >= ALIVE
    ]  # fmt: skip
    if len(holds) == 2:
        return Verdict("holds", "", rule, numbers)
    if holds == ["untrained"]:
        condition = "the model is untrained: its gates learn to pass the gradient on"
        return Verdict("holds only if", condition, rule, numbers)
    if holds:
        return Verdict("holds only if", "it is about models after training", rule, numbers)
    return Verdict("fails", "", rule, numbers)


def gradient_from_last(tiny: Tiny, length: int, *, seed: int, rows: int = 32) -> list[float]:
    """Measure the gradient of the last letter's vector by the distance of each letter.

    Args:
        tiny: its encoder is measured. Of one that reads in both directions only the half from left
            to right counts.
        length: letters.
        seed: of the letters and of the direction.
        rows: sequences to average over.

    Returns:
        The length of the gradient at distance 1, 2, … from the last letter.
    """
    model = copy.deepcopy(tiny.model).double()
    numbers = generator(seed, "why gradients", length)
    ids_BS = draw_letters("recall", length, rows=rows, numbers=numbers).source_BS[:, :-1]
    taker = _Taker()
    last_BD = model.encode(ids_BS, probe=taker)[:, -1]
    config = model.config
    if config.is_recurrent and config.has_attention:
        last_BD = last_BD[:, : config.d_model // 2]
    return _by_distance(last_BD, taker.taken, numbers)


def gradient_without_gates(tiny: Tiny, length: int, *, seed: int, rows: int = 32) -> list[float]:
    """Measure the same for a cell whose new state is tanh(Wx + Uh), of the candidate's weights."""
    model = copy.deepcopy(tiny.model).double()
    assert isinstance(model, RecurrentModel)
    cell = model.encoder.layers[0].left_to_right
    numbers = generator(seed, "why gradients", length)
    ids_BS = draw_letters("recall", length, rows=rows, numbers=numbers).source_BS[:, :-1]
    taker = _Taker()
    model.encode(ids_BS, probe=taker)
    state_BD = taker.taken.new_zeros(rows, cell.state.in_features)
    for x_BD in taker.taken.unbind(dim=1):
        from_input_BD, from_state_BD = (
            part.chunk(3, dim=-1)[2] for part in (cell.input(x_BD), cell.state(state_BD))
        )
        state_BD = torch.tanh(from_input_BD + from_state_BD)
    return _by_distance(state_BD, taker.taken, numbers)


class _Taker:
    """A probe that puts the embeddings in its place at the beginning of the graph."""

    taken: Tensor

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Take the encoder's input, so that gradients with respect to it can be asked for."""
        if (site, stage) != ("encoder", "input"):
            return None
        self.taken = tensor.detach().requires_grad_()
        return self.taken


def _by_distance(last_BD: Tensor, x_BSD: Tensor, numbers: np.random.Generator) -> list[float]:
    direction_BD = torch.from_numpy(numbers.standard_normal(tuple(last_BD.shape)))
    (gradient_BSD,) = torch.autograd.grad((last_BD * direction_BD).sum(), x_BSD)
    lengths_S: list[float] = gradient_BSD.norm(dim=-1).mean(dim=0).tolist()
    return lengths_S[-2::-1]


def _measure_form(form: Form, length: int, updates: int, seed: int) -> dict[str, Any]:
    tiny = make_form(form, LETTERS, seed=seed)
    before = _relative(gradient_from_last(tiny, length, seed=seed))
    study(tiny, "copy", length, updates=updates, seconds=0, seed=seed, enough=2)
    return {
        "untrained": before,
        "trained": _relative(gradient_from_last(tiny, length, seed=seed)),
    }


def _relative(lengths: Sequence[float]) -> list[float]:
    return [length / lengths[0] for length in lengths]


def _middle(values: Sequence[float]) -> Interval:
    """Average over seeds as factors: the interval of the logarithms, turned back."""
    found = interval([math.log(value) for value in values])
    return Interval(*(math.exp(end) for end in (found.mean, found.low, found.high)))


def _line(
    name: str, found: Sequence[Interval], role: Literal["accent", "plain", "faint"]
) -> Series:
    has_band = any(one.low != one.high for one in found)
    return Series(
        name,
        tuple(float(distance) for distance in range(1, len(found) + 1)),
        tuple(one.mean for one in found),
        role,
        low=tuple(one.low for one in found) if has_band else (),
        high=tuple(one.high for one in found) if has_band else (),
    )


def _write(share: float) -> str:
    if share >= 0.0095:
        return f"{share:.2f}"
    return f"{share:.0e}".replace("e-0", "e-").replace("e-", "e−")


def _table(stage: str, reach: Reach) -> Table:
    (length,) = {len(one) for rows in reach.values() for one in rows}
    distances = [distance for distance in (2, 5, 10, 20, 50) if distance < length] + [length]

    def write_at(rows: Sequence[Sequence[float]], distance: int) -> str:
        found = _middle([one[distance - 1] for one in rows])
        if found.low == found.high:
            return _write(found.mean)
        return f"{_write(found.mean)} ({_write(found.low)} to {_write(found.high)})"

    return Table(
        f"Gradient by distance from the last letter, {stage} (1 at distance 1)",
        ("distance", *reach),
        ("d", *("" for _ in reach)),
        tuple(
            (distance, *(write_at(rows, distance) for rows in reach.values()))
            for distance in distances
        ),
    )


def _plot(found: Mapping[str, Reach]) -> Plot:
    return Plot(
        tuple(
            Panel(
                f"Encoder, {stage}", "distance from the last letter", "gradient",
                tuple(
                    _line(
                        form,
                        [_middle(values) for values in zip(*rows, strict=True)],
                        "accent" if form == "fixed vector"
                        else "faint" if form == NO_GATES else "plain",
                    )
                    for form, rows in found[stage].items()
                ),
                y_log=True,
            )
            for stage in STAGES
        )
    )  # fmt: skip
