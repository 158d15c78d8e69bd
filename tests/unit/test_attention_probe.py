"""Probes record results and replace them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pellucid.attention import show
from pellucid.errors import InputError


class Recorder:
    """A probe that keeps what it sees and returns a fixed replacement."""

    def __init__(self, replacement: Tensor | None = None) -> None:
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
