"""The recurrent model against PyTorch's GRU, numbers computed by hand, and NumPy."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from small_recurrent import FORMS, WORDS, make_recurrent, save_recurrent
from torch import nn

from pellucid.bundle import load_bundle
from pellucid.config import ModelConfig
from pellucid.inside import Ask
from pellucid.inside.line_traces import Replaying, look_at_given
from pellucid.model import GatedCell
from pellucid.model.cross_attention import AdditiveAttention, DotAttention
from pellucid.model.recurrent import RecurrentEncoderLayer
from pellucid.model.site import Site

sys.path.insert(0, str(Path(__file__).parent))

from numpy_recurrent import NumpyRecurrent

B, L, WIDTH, STATE = 3, 7, 5, 11


def with_weights_of(gru: nn.GRU, cell: GatedCell, suffix: str = "") -> None:
    """Give a cell the weights of one direction of PyTorch's GRU."""
    for ours, theirs in (("input", "ih"), ("state", "hh")):
        linear = getattr(cell, ours)
        for what in ("weight", "bias"):
            source = getattr(gru, f"{what}_{theirs}_l0{suffix}")
            getattr(linear, what).data = source.detach().clone()


def test_cell_equals_gru_of_pytorch_with_gradients() -> None:
    torch.manual_seed(1)
    gru = nn.GRU(WIDTH, STATE, batch_first=True).double()
    cell = GatedCell(WIDTH, STATE).double()
    with_weights_of(gru, cell)
    x, start = torch.randn(B, L, WIDTH).double(), torch.randn(B, STATE).double()
    ours_x, theirs_x = (x.clone().requires_grad_() for _ in range(2))
    ours_start, theirs_start = (start.clone().requires_grad_() for _ in range(2))
    steps = cell.run(cell.input(ours_x), ours_start)
    ours = torch.stack([step.state for step in steps], dim=1)
    theirs, last = gru(theirs_x, theirs_start[None])
    assert (ours - theirs).abs().max() < 1e-10
    assert (steps[-1].state - last[0]).abs().max() < 1e-10
    weights = torch.randn_like(ours)
    (ours * weights).sum().backward()
    (theirs * weights).sum().backward()
    pairs = [(ours_x, theirs_x), (ours_start, theirs_start)]
    pairs += [
        (getattr(getattr(cell, one), what), getattr(gru, f"{what}_{other}_l0"))
        for one, other in (("input", "ih"), ("state", "hh"))
        for what in ("weight", "bias")
    ]
    for one, other in pairs:
        assert one.grad is not None
        assert other.grad is not None
        assert (one.grad - other.grad).abs().max() < 1e-10


def test_encoder_layer_equals_bidirectional_gru_despite_padding() -> None:
    torch.manual_seed(2)
    width = 2 * STATE
    config = ModelConfig.model_validate(
        {"architecture": "recurrent", "d_model": width}
        | dict.fromkeys(("source_vocabulary_size", "target_vocabulary_size"), 13)
    )
    layer = RecurrentEncoderLayer(config).double()
    gru = nn.GRU(width, STATE, batch_first=True, bidirectional=True).double()
    with_weights_of(gru, layer.left_to_right)
    with_weights_of(gru, layer.right_to_left, "_reverse")
    x, lengths = torch.randn(B, L, width).double(), torch.tensor([7, 3, 5])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    theirs, _ = nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True)
    mask = torch.arange(L) < lengths[:, None]
    ours = layer(x, mask, Site("encoder.0"))
    assert ((ours - theirs)[mask]).abs().max() < 1e-10


def test_additive_attention_equals_numbers_by_hand() -> None:
    config = ModelConfig.model_validate(
        {"architecture": "recurrent", "d_model": 2}
        | dict.fromkeys(("source_vocabulary_size", "target_vocabulary_size"), 13)
    )
    attention = AdditiveAttention(config).double()
    attention.query.weight.data = torch.tensor([[1.0, 1.0], [0.0, 1.0]]).double()
    attention.key.weight.data = torch.tensor([[2.0, 0.0], [-1.0, 1.0]]).double()
    attention.energy.weight.data = torch.tensor([[1.0, 2.0]]).double()
    state = torch.tensor([[[0.5, -0.5]]]).double()
    memory = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]]).double()
    query = attention.project_query(state)
    key, value = attention.project_key_value(memory)
    assert query[0, 0].tolist() == [[0.0, -0.5]]
    assert key[0, 0].tolist() == [[2.0, -1.0], [0.0, 1.0], [1.0, 0.0]]
    assert value[0, 0].tolist() == memory[0].tolist()
    expected = [
        math.tanh(2.0) + 2 * math.tanh(-1.5),
        math.tanh(0.0) + 2 * math.tanh(0.5),
        math.tanh(1.0) + 2 * math.tanh(-0.5),
    ]
    assert attention.score(query, key)[0, 0, 0].tolist() == pytest.approx(expected, abs=1e-15)


def test_dot_attention_multiplies_the_states_themselves() -> None:
    attention = DotAttention()
    state, memory = torch.tensor([[[2.0, 3.0]]]), torch.tensor([[[1.0, 0.0], [5.0, -1.0]]])
    key, _ = attention.project_key_value(memory)
    assert attention.score(attention.project_query(state), key).tolist() == [[[[2.0, 7.0]]]]
    assert not list(attention.parameters())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tied", ["all", "none"])
def test_every_array_of_a_trace_equals_numpy(form: str, tied: str, tmp_path: Path) -> None:
    folder = save_recurrent(tmp_path / "bundle", form, tied_embeddings=tied)
    bundle = load_bundle(folder)
    source, target = " ".join(WORDS[2:7]), " ".join(WORDS[8:12])
    how = Replaying(Ask(everything=True), float64=True)
    trace = look_at_given(bundle, source, target, how)
    expected = NumpyRecurrent(folder).run(trace.source_ids, trace.target_ids)
    assert set(trace.arrays) == set(expected)
    for name, array in trace.arrays.items():
        assert array.shape == expected[name].shape, name
        difference = np.abs(array - expected[name]).max()
        assert difference < 1e-10, f"{name} differs by up to {difference}"
    assert not trace.problems
    has_checks = {"weights", "rows", "contributions"} <= set(trace.checks)
    assert has_checks is (form != "none")


def test_size_of_a_trace_is_known_before_it_is_computed(tmp_path: Path) -> None:
    bundle = load_bundle(save_recurrent(tmp_path / "bundle", "additive"))
    ask = Ask(everything=True)
    trace = look_at_given(bundle, " ".join(WORDS[:3]), " ".join(WORDS[4:9]), Replaying(ask))
    size = sum(array.nbytes for array in trace.arrays.values())
    lengths = len(trace.source_ids), len(trace.target_ids)
    assert ask.num_bytes(make_recurrent("additive").config, *lengths) == size
