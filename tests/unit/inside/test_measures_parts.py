"""The parts that an attention sums, and the measures made from them."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_pairs import FORMS, small_pair

from pellucid.errors import InputError
from pellucid.inside import Pair
from pellucid.inside.measures.alti import alti, shares
from pellucid.inside.measures.contributions import Attention, contributions, take_apart
from pellucid.inside.measures.maps import MapKind, Part
from pellucid.inside.measures.norms import mixing_ratio, norms, residual_norms
from pellucid.inside.measures.rollout import roll_decoder, roll_encoder, rollout

ATTENTIONS: tuple[tuple[Part, MapKind], ...] = (
    ("encoder", "self"),
    ("decoder", "self"),
    ("decoder", "cross"),
)


@pytest.fixture(params=list(FORMS))
def pair(request: pytest.FixtureRequest, bundle_folder: Path) -> Pair:
    return small_pair(bundle_folder, **FORMS[request.param])


@pytest.fixture
def plain_pair(bundle_folder: Path) -> Pair:
    return small_pair(bundle_folder)


@pytest.mark.parametrize("layer", [0, 1])
def test_contributions_sum_to_the_output_in_every_form(pair: Pair, layer: int) -> None:
    seen = pair.see(("output",))
    for part, kind in ATTENTIONS:
        found = contributions(pair, part, kind, layer)
        output_LD = seen[f"{part}.{layer}.{kind}.output"]
        sum_LD = found.terms_HLMD.sum(dim=(0, 2)) + found.bias_D
        assert torch.equal(found.output_LD, output_LD)
        torch.testing.assert_close(sum_LD, output_LD, rtol=0, atol=1e-11)
        assert found.largest_difference < 1e-11
        assert found.terms_HLMD.abs().max() > 0.01


@pytest.mark.parametrize(("part", "kind"), ATTENTIONS)
def test_parts_and_rest_sum_to_what_leaves_the_sublayer(
    pair: Pair, part: Part, kind: MapKind
) -> None:
    site = f"{part}.1.{kind}"
    stage = "norm" if pair.model.config.norm == "post" else "residual"
    leaving_LD = pair.see((stage,))[f"{site}.{stage}"]
    apart = take_apart(pair, [site])[site]
    for row, leaving_D in enumerate(leaving_LD):
        sum_D = apart.parts(row).sum(dim=0) + apart.rest(row)
        torch.testing.assert_close(sum_D, leaving_D, rtol=0, atol=1e-10)
        torch.testing.assert_close(apart.result(row), leaving_D, rtol=0, atol=1e-10)


def test_norms_are_the_lengths_of_the_contributions(pair: Pair) -> None:
    terms_HLMD = contributions(pair, "decoder", "cross", 1).terms_HLMD
    of_head = norms(pair, part="decoder", kind="cross", layer=1, head=1)
    of_layer = norms(pair, part="decoder", kind="cross")
    np.testing.assert_allclose(of_head.matrix, terms_HLMD[1].norm(dim=-1), atol=1e-12)
    np.testing.assert_allclose(of_layer.matrix, terms_HLMD.sum(0).norm(dim=-1), atol=1e-12)
    assert of_head.title == "norms, decoder cross layer 1 head 1"
    assert "all heads summed" in of_layer.title


def test_residual_norms_count_the_rows_own_vector(plain_pair: Pair) -> None:
    own = residual_norms(plain_pair, part="encoder", kind="self", layer=0)
    site = "encoder.0.self"
    apart = take_apart(plain_pair, [site])[site]
    brought_MD = apart.bring(2)
    brought_MD[2] += plain_pair.see(("input",))[f"{site}.input"][2]
    norm: Any = plain_pair.model.get_submodule("encoder.layers.0.self_attention_norm")
    whole_D = plain_pair.see(("residual",))[f"{site}.residual"][2]
    deviation = (whole_D.var(correction=0) + norm.eps).sqrt()
    centered_MD = brought_MD - brought_MD.mean(dim=-1, keepdim=True)
    expected_M = (centered_MD / deviation * norm.weight).norm(dim=-1)
    np.testing.assert_allclose(own.matrix[2], expected_M, atol=1e-12)


def test_residual_norms_of_cross_attention_have_a_column_for_the_row(bundle_folder: Path) -> None:
    with_own = residual_norms(small_pair(bundle_folder), part="decoder", kind="cross")
    without = residual_norms(
        small_pair(bundle_folder, residual=False), part="decoder", kind="cross"
    )
    assert with_own.matrix.shape[1] == without.matrix.shape[1] + 1
    assert with_own.column_labels[-1] == "(own row)"
    assert with_own.num_source_columns == without.num_source_columns == without.matrix.shape[1]
    assert (with_own.matrix[:, -1] > 0).all()


def test_mixing_ratio_is_0_where_nothing_comes_from_elsewhere(plain_pair: Pair) -> None:
    of_self = mixing_ratio(plain_pair, part="decoder", kind="self")
    assert of_self[0] == pytest.approx(0, abs=1e-12)  # The first row sees only itself.
    assert ((of_self[1:] > 0.01) & (of_self[1:] < 0.99)).all()


def test_mixing_ratio_is_1_for_cross_attention_without_residual(bundle_folder: Path) -> None:
    pair = small_pair(bundle_folder, residual=False)
    assert mixing_ratio(pair, part="decoder", kind="cross") == pytest.approx(1)


def by_hand(terms_MD: list[list[float]], own_D: list[float], bias_D: list[float]) -> Attention:
    """One head, one row, no norm: a row of cross-attention."""
    terms = torch.tensor([terms_MD], dtype=torch.float64)
    own, bias = torch.tensor([own_D]).double(), torch.tensor(bias_D).double()
    output = terms.sum(dim=1) + bias
    return Attention(
        weights_HLM=torch.ones(1, 1, len(terms_MD), dtype=torch.float64),
        transformed_HMD=terms,
        bias_D=bias,
        output_LD=output,
        own_LD=own,
        sum_LD=output + own,
        gain_D=None,
        shift_D=None,
        deviation_L1=None,
        is_cross=True,
        has_residual=True,
    )


def test_shares_are_those_computed_by_hand() -> None:
    # y = (3, 1) + (0, 1) + (1, 0) = (4, 2), ‖y‖₁ = 6. Distances: (1, 1) → 2, (4, 1) → 5,
    # (3, 2) → 5. Nearness 4, 1, 1.
    attention = by_hand([[3, 1], [0, 1]], [1, 0], [0, 0])
    np.testing.assert_allclose(shares(attention), [[4 / 6, 1 / 6, 1 / 6]])


def test_shares_leave_out_parts_that_lead_away() -> None:
    # y = (4, 0) + (−1, 0) + (0, 0) + bias (1, 0) = (4, 0). Distances 0, 5, 4: nearness 4, 0, 0.
    attention = by_hand([[4, 0], [-1, 0]], [0, 0], [1, 0])
    np.testing.assert_allclose(shares(attention), [[1, 0, 0]])


def test_shares_are_0_where_no_part_is_near() -> None:
    # y = (1, −1) + bias (−2, 2) = (−1, 1): the only part leads away from it.
    attention = by_hand([[1, -1]], [0, 0], [-2, 2])
    np.testing.assert_array_equal(shares(attention), [[0, 0]])


def test_alti_says_where_rows_have_no_part_near_their_result(
    plain_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alti(plain_pair, part="decoder").sums_to_one
    module = import_module("pellucid.inside.measures.alti")
    monkeypatch.setattr(module, "shares", lambda apart: 0.5 * shares(apart))
    found = alti(plain_pair, part="decoder")
    assert not found.sums_to_one
    assert "sum to less than 1" in found.title


def test_shares_of_single_head_go_through_the_norm() -> None:
    bare = by_hand([[3, 1], [0, 1]], [1, 0], [0, 0])
    # L(v) = (v − mean) / 2 with gain (1, 3): (3, 1) → (0.5, −1.5), (0, 1) → (−0.25, 0.75),
    # (1, 0) → (0.25, −0.75); y = (0.5, −1.5) + (0.1, 0.2) = (0.6, −1.3), ‖y‖₁ = 1.9.
    # Distances 0.1 + 0.2, 0.85 + 2.05, 0.35 + 0.55; nearness 1.6, 0, 1.0.
    normed = replace(
        bare,
        gain_D=torch.tensor([1.0, 3.0]).double(),
        shift_D=torch.tensor([0.1, 0.2]).double(),
        deviation_L1=torch.tensor([[2.0]]).double(),
    )
    np.testing.assert_allclose(shares(normed), [[1.6 / 2.6, 0, 1 / 2.6]])


def test_alti_is_never_negative_sums_to_1_and_sees_nothing_ahead(pair: Pair) -> None:
    num_source = len(pair.source_ids)
    for part, kind in (*ATTENTIONS, ("encoder", "whole"), ("decoder", "whole")):
        found = alti(pair, part=part, kind=kind)
        assert (found.matrix >= 0).all()
        np.testing.assert_allclose(found.matrix.sum(axis=1), 1, atol=1e-9)
    whole = alti(pair, part="decoder")
    prefix = whole.matrix[:, num_source:]
    assert not (np.triu(prefix, 1) > 0).any() or not pair.model.config.look_ahead_mask
    assert (np.tril(prefix) > 0).any() or not pair.model.config.residual
    assert whole.column_labels == (*pair.source_tokens, *pair.read_tokens)
    np.testing.assert_allclose(whole.source_share, 1 - prefix.sum(axis=1), atol=1e-9)


def test_rolling_identities_gives_the_identity() -> None:
    np.testing.assert_array_equal(roll_encoder([np.eye(3)] * 4), np.eye(3))
    nothing, everything = np.zeros((2, 3)), np.ones(2)
    rolled = roll_decoder([(np.eye(2), nothing, everything)] * 3, np.eye(3))
    np.testing.assert_array_equal(rolled, np.concatenate([np.zeros((2, 3)), np.eye(2)], axis=1))


def test_rolling_a_decoder_is_as_computed_by_hand() -> None:
    own = np.array([[1, 0], [0.5, 0.5]])
    cross = np.array([[0.5], [0.25]])
    kept = np.array([0.5, 0.75])
    once = roll_decoder([(own, cross, kept)], np.eye(1))
    np.testing.assert_allclose(once, [[0.5, 0.5, 0], [0.25, 0.375, 0.375]])
    twice = roll_decoder([(own, cross, kept)] * 2, np.eye(1))
    # Row 1: 0.75 · (0.5 · row 0 + 0.5 · row 1) + 0.25 from the source.
    np.testing.assert_allclose(
        twice, [[0.75, 0.25, 0], [0.75 * 0.375 + 0.25, 0.75 * 0.4375, 0.75 * 0.1875]]
    )


def test_rollout_of_one_layer_is_half_the_mean_of_heads(plain_pair: Pair) -> None:
    weights_HLM = plain_pair.see(("weights",))["encoder.0.self.weights"]
    expected_LM = weights_HLM.mean(dim=0) / 2 + torch.eye(len(plain_pair.source_ids)) / 2
    found = rollout(plain_pair, part="encoder", layer=0)
    np.testing.assert_allclose(found.matrix, expected_LM, atol=1e-12)


def test_rollout_without_residual_is_the_product_of_weights(bundle_folder: Path) -> None:
    pair = small_pair(bundle_folder, residual=False)
    seen = pair.see(("weights",))
    mean_0, mean_1 = (seen[f"encoder.{layer}.self.weights"].mean(dim=0) for layer in (0, 1))
    found = rollout(pair, part="encoder")
    np.testing.assert_allclose(found.matrix, mean_1 @ mean_0, atol=1e-12)
    cross_TS = seen["decoder.1.cross.weights"].mean(dim=0)
    whole = rollout(pair, part="decoder")
    np.testing.assert_allclose(whole.source_matrix, cross_TS @ mean_1 @ mean_0, atol=1e-12)
    assert whole.source_share == pytest.approx(1)
    assert (whole.matrix[:, -1] == 0).all()


def test_rollout_sums_to_1_in_every_form(pair: Pair) -> None:
    for part in ("encoder", "decoder"):
        matrix = rollout(pair, part=part).matrix
        np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize(
    ("part", "kind", "layer", "says"),
    [
        ("encoder", "cross", 0, "encoder self, decoder self or decoder cross"),
        ("decoder", "self", 2, "from 0 to 1 for this model's decoder"),
    ],
)
def test_contributions_of_what_is_not_there_say_so(
    plain_pair: Pair, part: Part, kind: str, layer: int, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        contributions(plain_pair, part, kind, layer)


def test_contributions_too_large_for_memory_say_so(
    plain_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("pellucid.inside.pair")
    monkeypatch.setattr(module, "available_memory", lambda _: 999)
    with pytest.raises(InputError, match="The terms of an attention must fit"):
        contributions(plain_pair, "decoder", "cross")
