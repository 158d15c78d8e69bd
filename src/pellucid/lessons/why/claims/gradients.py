"""Vanishing gradients: how much of a gradient reaches a position, by its distance from the last."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid.lessons.why.cells import (
    Cells,
    average,
    decide,
    join_rows,
    judge_seeds,
    measure_cells,
    write_small,
)
from pellucid.lessons.why.result import Found, Panel, ResultTable, Series, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import FORMS, Form, Tiny, make_form
from pellucid.lessons.why.tiny.random_letters import LETTERS, draw_letters, study_training
from pellucid.machine.randomness import generator
from pellucid.model import RecurrentModel

VANISHED = 1e-3
ALIVE = 0.1
NO_GATES = "no gates"
STAGES = ("untrained", "trained")


def measure(setting: MeasurementSetting) -> Found:
    """Measure the gradient by distance in untrained encoders and in those that learned to copy."""
    # The Transformer last: the answer compares the first form with it.
    forms: tuple[Form, ...] = setting.choose(
        ("fixed vector", "additive", "Transformer"), ("fixed vector", "Transformer"), tuple(FORMS)
    )
    length, updates = setting.choose((50, 100), (5, 2), (50, 200))
    cells = measure_cells(
        setting,
        f"{{form}}, {length} letters, {updates} updates of copying",
        lambda form, seed: _measure_form(form, length, updates, seed),
        read=_by_distance,
        form=forms,
    )
    cells = join_rows((cells, _without_gates(setting, length)))
    vector = [write_small(left(cells, stage, forms[0], length - 1)) for stage in STAGES]
    transformer = [write_small(left(cells, stage, "Transformer", length - 1)) for stage in STAGES]
    return Found(
        "a network learns from gradients, which flow from the last letter of a text back to the "
        f"letters before it. The networks read {length} letters. The gradient that reaches the "
        f"first letter, {length - 1} places before the last, was divided by the gradient that "
        "reaches the letter just before the last. If nothing is lost, the result is 1. Less than "
        f"{VANISHED} counts as vanished. In a recurrent network with one vector the result is "
        f"{vector[0]} before training. Then the networks were trained to copy the letters. That "
        "works all the same: they learn the last letters first, whose gradients arrive. After "
        f"training it is {vector[1]}. In a Transformer it is {transformer[0]} before training. "
        f"After training it is {transformer[1]}. A gradient that arrives is not yet a memory: the "
        f"claim `memory` "
        "shows how much such a network forgets all the same",
        f"Encoders of equal size, d = 64, read {length} random letters. The gradient of the "
        "vector at the last letter, in a random direction, is taken with respect to the embedding "
        "of each letter before it, in float64; its length is averaged over 32 sequences and "
        "divided by that at distance 1. With attention an encoder reads in both directions; this "
        f"is the one from left to right. Then each form learns to copy, in {updates} updates of 16 "
        f"sequences, and is measured again. “{NO_GATES}” is a cell of the same weights whose new "
        "state is the candidate only: tanh(Wx + Uh). Means over seeds are geometric.",
        {"vanish": judge_seeds(judge, cells)},
        tuple(_table(cells, stage) for stage in STAGES),
        tuple(_panel(cells, stage) for stage in STAGES),
    )


def left(cells: Cells, stage: str, form: str, distance: int) -> float:
    """Average the gradient at a distance over seeds, as factors."""
    # A vanishing gradient differs by factors from seed to seed.
    return average(cells.all(stage, form=form, distance=distance), in_logarithms=True)


def judge(cells: Cells) -> Verdict:
    """Judge by the gradient that is left at the largest distance, untrained and trained."""
    last = cells.values("distance")[-1]
    numbers = []
    said = []
    holds = []
    for stage in STAGES:
        vector = left(cells, stage, "fixed vector", last)
        transformer = left(cells, stage, "Transformer", last)
        numbers.append(
            f"{stage} {write_small(vector)} with a fixed vector and {write_small(transformer)} in "
            "the Transformer"
        )
        said.append(
            f"In {'an' if stage == 'untrained' else 'a'} {stage} recurrent network with one "
            f"vector, the gradient over {last} letters is {write_small(vector)} times that over "
            "one letter."
        )
        if vector < VANISHED and transformer >= ALIVE:
            holds.append(stage)
    return decide(
        f"vanished means less than {VANISHED} at the largest distance, alive at least {ALIVE}; "
        "holds if the fixed vector's gradient has vanished before and after training and the "
        "Transformer's is alive in both, only before or after training if in one; fails otherwise",
        "; ".join(numbers),
        f"{' '.join(said)} Vanished means less than {VANISHED}. To hold, it must have vanished "
        f"before and after training, and the Transformer's must be {ALIVE} or more. There it is "
        f"{write_small(left(cells, STAGES[0], 'Transformer', last))} before training. After "
        f"training it is {write_small(left(cells, STAGES[1], 'Transformer', last))}.",
        fails=not holds,
        unless={
            "the network is not trained yet": holds == ["untrained"],
            "the network is trained": holds == ["trained"],
        },
    )


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
    # float32 would lose what is smaller than about 1e-38, and training needs the first one back.
    model = copy.deepcopy(tiny.model).double()
    numbers = generator(seed, "why gradients", length)
    ids_BS = draw_letters("recall", length, rows=rows, numbers=numbers).source_BS[:, :-1]
    taker = _Taker()
    last_BD = model.encode(ids_BS, probe=taker)[:, -1]
    config = model.config
    # The half that reads from right to left has seen only the last letter here.
    if config.is_recurrent and config.has_attention:
        last_BD = last_BD[:, : config.d_model // 2]
    return _lengths(last_BD, taker.taken, numbers)


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
        # The candidate is the last of the cell's three parts, behind both gates.
        from_input_BD = cell.input(x_BD).chunk(3, dim=-1)[2]
        from_state_BD = cell.state(state_BD).chunk(3, dim=-1)[2]
        state_BD = torch.tanh(from_input_BD + from_state_BD)
    return _lengths(state_BD, taker.taken, numbers)


class _Taker:
    """A probe that puts the embeddings in its place at the beginning of the graph."""

    taken: Tensor

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Take the encoder's input, so that gradients with respect to it can be asked for."""
        if (site, stage) != ("encoder", "input"):
            return None
        self.taken = tensor.detach().requires_grad_()
        return self.taken


def _lengths(last_BD: Tensor, x_BSD: Tensor, numbers: np.random.Generator) -> list[float]:
    # A random direction stands for whatever a loss would ask for.
    direction_BD = torch.from_numpy(numbers.standard_normal(tuple(last_BD.shape)))
    (gradient_BSD,) = torch.autograd.grad((last_BD * direction_BD).sum(), x_BSD)
    lengths_S: list[float] = gradient_BSD.norm(dim=-1).mean(dim=0).tolist()
    # From the nearest letter back; the last one itself is left out.
    return lengths_S[-2::-1]


def _measure_form(form: Form, length: int, updates: int, seed: int) -> dict[str, list[float]]:
    # The letters are the whole vocabulary, whatever their number.
    tiny = make_form(form, LETTERS, seed=seed)
    before = _relative(gradient_from_last(tiny, length, seed=seed))
    # More than all letters right is never reached, so every form gets all its updates.
    study_training(tiny, "copy", length, updates=updates, seconds=0, seed=seed, enough=2)
    return {
        "untrained": before,
        "trained": _relative(gradient_from_last(tiny, length, seed=seed)),
    }


def _without_gates(setting: MeasurementSetting, length: int) -> Cells:
    """Measure the cell without gates, which is not trained."""
    rows = []
    for seed in setting.seeds:
        tiny = make_form("fixed vector", LETTERS, seed=seed)
        shares = _relative(gradient_without_gates(tiny, length, seed=seed))
        for distance, share in enumerate(shares, start=1):
            row = {"form": NO_GATES, "seed": seed, "distance": distance}
            rows.append({**row, "untrained": share, "trained": None})
    return Cells(tuple(rows))


def _relative(lengths: Sequence[float]) -> list[float]:
    return [length / lengths[0] for length in lengths]


def _by_distance(found: dict[str, list[float]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for before, after in zip(found["untrained"], found["trained"], strict=True):
        rows.append({"distance": len(rows) + 1, "untrained": before, "trained": after})
    return rows


def _forms(cells: Cells, stage: str) -> list[str]:
    return [form for form in cells.values("form") if cells.all(stage, form=form)]


def _table(cells: Cells, stage: str) -> ResultTable:
    forms = _forms(cells, stage)
    last = cells.values("distance")[-1]
    distances = [distance for distance in (2, 5, 10, 20, 50) if distance < last] + [last]

    def write_at(form: str, distance: int) -> str:
        found = cells.all(stage, form=form, distance=distance)
        return " · ".join(map(write_small, found))

    return ResultTable(
        f"Gradient by distance from the last letter, {stage} (1 at distance 1)",
        ("distance", *forms),
        ("d", *("" for _ in forms)),
        tuple((distance, *(write_at(form, distance) for form in forms)) for distance in distances),
    )


def _panel(cells: Cells, stage: str) -> Panel:
    forms = [form for form in _forms(cells, stage) if form != NO_GATES]
    reference: list[Series] = []
    if cells.all(stage, form=NO_GATES):
        reference = [
            cells.line(NO_GATES, "distance", stage, "faint", is_log=True, form=NO_GATES),
        ]
    return cells.panel(
        f"Encoder, {stage}",
        ("distance from the last letter", "gradient"),
        {form: {"form": form} for form in forms},
        "distance",
        stage,
        more=reference,
        y_log=True,
    )
