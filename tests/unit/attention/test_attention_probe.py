"""Probes record results and replace them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pellucid.attention import show
from pellucid.errors import InputError


class Recorder:
    """A probe that keeps what it sees and returns a fixed replacement."""

    def __init__(self, replacement: Any = None) -> None:
        self.seen: list[tuple[str, str, Tensor]] = []
        self.replacement = replacement

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        self.seen.append((site, stage, tensor))
        return self.replacement


def test_show_without_probe_returns_the_tensor_itself() -> None:
    tensor = torch.ones(3)
    assert show(None, "encoder.0.self", "weights", tensor) is tensor


def test_show_probe_that_returns_none_sees_and_changes_nothing() -> None:
    probe, tensor = Recorder(), torch.ones(3)
    assert show(probe, "encoder.0.self", "weights", tensor) is tensor
    assert probe.seen[0][:2] == ("encoder.0.self", "weights")
    assert probe.seen[0][2] is tensor


def test_show_probe_that_returns_a_tensor_replaces() -> None:
    replacement = torch.zeros(3)
    assert show(Recorder(replacement), "decoder", "logits", torch.ones(3)) is replacement


def test_show_replacement_of_another_shape_is_refused_with_its_place() -> None:
    with pytest.raises(InputError, match=r"\(3,\).*\(3, 1\).*decoder\.1\.cross\.weights"):
        show(Recorder(torch.zeros(3, 1)), "decoder.1.cross", "weights", torch.ones(3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_replacement_of_another_floating_type_is_converted(dtype: torch.dtype) -> None:
    result = torch.ones(3, dtype=torch.float64)
    found = show(Recorder(torch.zeros(3, dtype=dtype)), "encoder.0.self", "weights", result)
    assert (found.dtype, found.device) == (result.dtype, result.device)


@pytest.mark.parametrize(
    ("replacement", "said"),
    [
        (torch.zeros(3, dtype=torch.int64), "int64"),
        (torch.zeros(3, dtype=torch.bool), "bool"),
        (torch.zeros(3, dtype=torch.complex64), "complex64"),
        (torch.zeros(3).to_sparse(), "dense"),
        (torch.zeros(3, device="meta"), "meta"),
        (np.zeros(3), "ndarray"),
        ([0.0, 0.0, 0.0], "list"),
        (0.5, "float"),
        (torch.tensor([0.0, math.nan, 0.0]), "not finite"),
        (torch.tensor([0.0, math.inf, 0.0]), "not finite"),
        (torch.tensor([0.0, -math.inf, 0.0]), "not finite"),
    ],
    ids=str,
)
def test_replacement_that_cannot_stand_there_is_refused_with_its_place(
    replacement: Any, said: str
) -> None:
    with pytest.raises(InputError, match=rf"{said}.*encoder\.0\.self\.weights"):
        show(Recorder(replacement), "encoder.0.self", "weights", torch.ones(3))


@pytest.mark.parametrize("stage", ["scores", "scaled", "masked", "logits"])
def test_replacement_may_forbid_by_minus_infinity_before_a_softmax(stage: str) -> None:
    replacement = torch.tensor([0.0, -math.inf, 0.0])
    assert show(Recorder(replacement), "decoder", stage, torch.ones(3)) is replacement
    with pytest.raises(InputError, match=f"not finite.*{stage}"):
        show(Recorder(-replacement), "decoder", stage, torch.ones(3))
