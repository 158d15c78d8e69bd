"""Averages of weights, checked by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from pellucid.config import TrainingConfig
from pellucid.errors import BundleError
from pellucid.training.weights.averaging import Averaging


class Point(nn.Module):
    """One trained and one frozen weight."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.full((3, 5), value))
        self.frozen = nn.Parameter(torch.full((2,), 7.0), requires_grad=False)

    def move(self, value: float) -> None:
        with torch.no_grad():
            self.x.fill_(value)


def value_of(weights: dict[str, Tensor]) -> float:
    assert float(weights["frozen"][0]) == 7
    return float(weights["x"][0, 0])


def follow(
    point: Point, averaging: Averaging, values: Iterable[tuple[float, float]]
) -> list[float]:
    """Move, update, read the average, and validate with a BLEU; returns the averages."""
    seen = []
    for value, bleu in values:
        point.move(value)
        averaging.update()
        seen.append(value_of(averaging.weights()))
        averaging.validated(bleu)
    return seen


def test_without_averaging_the_weights_are_the_models() -> None:
    point = Point()
    averaging = Averaging(point, TrainingConfig())
    assert follow(point, averaging, [(1, 1), (5, 2)]) == [1, 5]
    assert averaging.tensors() == {}


def test_running_average_follows_its_formula() -> None:
    point = Point(100.0)
    averaging = Averaging(point, TrainingConfig(averaging="running", averaging_decay=0.5))
    average, expected = 100.0, []
    values = [3.0, 5.0, 8.0, 2.0, 2.0, 9.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]
    for t, value in enumerate(values):
        decay = min(0.5, (1 + t) / (10 + t))
        average = decay * average + (1 - decay) * value
        expected.append(average)
    assert follow(point, averaging, [(v, 0) for v in values]) == pytest.approx(expected, rel=1e-5)


def test_last_is_the_mean_of_the_last_validated_weights() -> None:
    point = Point()
    averaging = Averaging(point, TrainingConfig(averaging="last", averaging_count=3))
    seen = follow(point, averaging, [(3, 9), (6, 1), (12, 5), (30, 2), (60, 1)])
    assert seen == pytest.approx([3, 4.5, 7, 16, 34])


def test_best_keeps_those_with_the_highest_bleu() -> None:
    point = Point()
    averaging = Averaging(point, TrainingConfig(averaging="best", averaging_count=3))
    seen = follow(point, averaging, [(3, 9), (6, 1), (12, 5), (30, 2), (60, 1)])
    # Before the third: 3 and 6. Before the fourth: 3 (9) and 12 (5), since 6 had 1. And so on.
    assert seen == pytest.approx([3, 4.5, 7, 15, 25])


def test_a_mean_of_one_is_the_current_weights() -> None:
    point = Point()
    averaging = Averaging(point, TrainingConfig(averaging="last", averaging_count=1))
    assert follow(point, averaging, [(3, 9), (6, 1), (12, 5)]) == [3, 6, 12]


@pytest.mark.parametrize("kind", ["none", "running", "last", "best"])
def test_restored_average_goes_on_bit_for_bit(kind: Any) -> None:
    training = TrainingConfig(averaging=kind, averaging_decay=0.9, averaging_count=3)
    path = [(0.1 * step**1.5, float(step % 4)) for step in range(1, 9)]
    whole = Point()
    expected = follow(whole, Averaging(whole, training), path)
    point = Point()
    averaging = Averaging(point, training)
    first = follow(point, averaging, path[:4])
    saved = safetensors.torch.load(safetensors.torch.save(averaging.tensors()))
    averaging = Averaging(point, training)
    averaging.restore(saved)
    assert first + follow(point, averaging, path[4:]) == expected


def test_average_of_another_model_is_refused() -> None:
    training = TrainingConfig(averaging="running")
    with pytest.raises(BundleError, match="average must fit"):
        Averaging(Point(), training).restore({"num_updates": torch.tensor(3)})
    with pytest.raises(BundleError, match="average must fit"):
        Averaging(Point(), training).restore(
            {"num_updates": torch.tensor(3), "running.x": torch.zeros(2, 2)}
        )


@pytest.mark.parametrize("kind", ["last", "best"])
def test_kept_weights_that_do_not_fit_are_refused(kind: Any) -> None:
    point = Point()
    averaging = Averaging(point, TrainingConfig(averaging=kind, averaging_count=4))
    follow(point, averaging, [(3, 9), (6, 1), (12, 5)])
    saved = averaging.tensors()
    # A single number would silently spread over the whole weight.
    damaged: list[dict[str, Tensor]] = [
        {**saved, "1.x": torch.ones(1)},
        {**saved, "1.x": saved["1.x"].to(torch.bfloat16)},
        {name: tensor for name, tensor in saved.items() if name != "2.x"},
    ]
    for tensors in damaged:
        with pytest.raises(BundleError, match="average must fit"):
            Averaging(point, TrainingConfig(averaging=kind, averaging_count=4)).restore(tensors)
    with pytest.raises(BundleError, match="average must fit"):
        Averaging(point, TrainingConfig(averaging=kind, averaging_count=3)).restore(saved)
    with pytest.raises(BundleError, match="average must fit"):
        Averaging(point, TrainingConfig()).restore(saved)


def test_best_of_equal_bleu_keeps_the_later() -> None:
    point = Point()
    averaging = Averaging(point, TrainingConfig(averaging="best", averaging_count=3))
    seen = follow(point, averaging, [(3, 2), (6, 2), (12, 2), (30, 1)])
    assert seen == pytest.approx([3, 4.5, 7, 16])


@pytest.mark.parametrize("kind", ["last", "best"])
def test_weights_that_were_validated_already_count_once(kind: Any) -> None:
    point = Point()
    averaging = Averaging(point, TrainingConfig(averaging=kind, averaging_count=3))
    follow(point, averaging, [(2, 10), (6, 20)])
    before = averaging.tensors()
    assert value_of(averaging.weights()) == 4
    averaging.validated(20)
    assert averaging.tensors().keys() == before.keys()
    assert value_of(averaging.weights()) == 4
