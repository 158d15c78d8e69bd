"""Sinusoidal positions: equations 2 to 4, and the offset read off two encodings."""

from __future__ import annotations

import math

import pytest
import torch

from pellucid.attention import offset_matrix, sinusoidal_positions
from pellucid.by_hand.examples.positions import recover_offset
from pellucid.errors import InputError


@pytest.mark.parametrize("d_model", [2, 4, 22, 128])
def test_sinusoidal_positions_equal_equations_two_and_three(d_model: int) -> None:
    positions = sinusoidal_positions(13, d_model, dtype=torch.float64)
    assert positions.shape == (13, d_model)
    for i in range(13):
        for j in range(d_model // 2):
            angle = i / 10000 ** (2 * j / d_model)
            assert positions[i, 2 * j].item() == pytest.approx(math.sin(angle), abs=1e-14)
            assert positions[i, 2 * j + 1].item() == pytest.approx(math.cos(angle), abs=1e-14)


def test_sinusoidal_positions_halves_hold_the_same_numbers_sines_first() -> None:
    interleaved = sinusoidal_positions(11, 6, dtype=torch.float64)
    halves = sinusoidal_positions(11, 6, halves=True, dtype=torch.float64)
    assert torch.equal(halves[:, :3], interleaved[:, 0::2])
    assert torch.equal(halves[:, 3:], interleaved[:, 1::2])


@pytest.mark.parametrize("halves", [False, True])
def test_sinusoidal_positions_with_offset_continue_the_table(halves: bool) -> None:
    whole = sinusoidal_positions(23, 6, halves=halves)
    assert torch.equal(sinusoidal_positions(6, 6, offset=17, halves=halves), whole[17:])
    assert sinusoidal_positions(0, 6).shape == (0, 6)


def test_sinusoidal_positions_far_out_in_float32_are_rounded_only_once() -> None:
    far = sinusoidal_positions(3, 128, offset=1_000_003)
    exact = sinusoidal_positions(3, 128, offset=1_000_003, dtype=torch.float64)
    assert far.dtype == torch.float32
    assert torch.equal(far, exact.float())
    assert far[0, 0].item() == pytest.approx(math.sin(1_000_003), abs=1e-7)


@pytest.mark.parametrize("d_model", [4, 128])
def test_sinusoidal_positions_to_five_thousand_lie_in_the_unit_range(d_model: int) -> None:
    positions = sinusoidal_positions(5001, d_model, dtype=torch.float64)
    assert positions.min() >= -1
    assert positions.max() <= 1


@pytest.mark.parametrize("d_model", [4, 128])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_sinusoidal_positions_to_five_thousand_are_pairwise_distinct(
    d_model: int, dtype: torch.dtype
) -> None:
    positions = sinusoidal_positions(5001, d_model, dtype=dtype)
    assert len(torch.unique(positions, dim=0)) == 5001
    # not only by rounding: one rotation leads from i to j, so distances depend only on j − i
    from_first = (positions[1:] - positions[0]).norm(dim=-1)
    assert from_first.min() > 1e-3


@pytest.mark.parametrize("offset", [-600, -7, 0, 1, 31, 600])
@pytest.mark.parametrize("d_model", [4, 128])
def test_offset_matrix_moves_every_position_by_the_offset(offset: int, d_model: int) -> None:
    matrix = offset_matrix(offset, d_model, dtype=torch.float64)
    before = sinusoidal_positions(17, d_model, offset=1000, dtype=torch.float64)
    after = sinusoidal_positions(17, d_model, offset=1000 + offset, dtype=torch.float64)
    assert (before @ matrix.T - after).abs().max() < 1e-12


def test_offset_matrix_is_block_diagonal_rotation() -> None:
    matrix = offset_matrix(3, 4, dtype=torch.float64)
    expected = torch.zeros(4, 4, dtype=torch.float64)
    for j, angle in enumerate((3.0, 0.03)):
        block = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        expected[2 * j : 2 * j + 2, 2 * j : 2 * j + 2] = torch.tensor(block)
    assert (matrix - expected).abs().max() < 1e-7
    assert (matrix @ matrix.T - torch.eye(4)).abs().max() < 1e-12


def test_offset_matrices_compose() -> None:
    first, second = (offset_matrix(d, 22, dtype=torch.float64) for d in (5, -18))
    assert (first @ second - offset_matrix(-13, 22, dtype=torch.float64)).abs().max() < 1e-12


@pytest.mark.parametrize("d_model", [4, 128])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_recover_offset_every_offset_to_six_hundred_is_found(
    d_model: int, dtype: torch.dtype
) -> None:
    table = sinusoidal_positions(1301, d_model, dtype=dtype)
    start = 650
    step = 1 if dtype == torch.float64 or d_model == 4 else 7
    for offset in range(-600, 601, step):
        found = recover_offset(table[start], table[start + offset], max_offset=640)
        assert found == offset


@pytest.mark.parametrize("d_model", [4, 128])
def test_recover_offset_far_ones_are_found_by_default(d_model: int) -> None:
    table = sinusoidal_positions(9001, d_model)
    for i, j in ((0, 4999), (9000, 4001), (628, 0), (0, 628), (8000, 8000), (123, 4567)):
        assert recover_offset(table[i], table[j]) == j - i


def test_recover_offset_bank_and_man_the_same_in_both_sentences() -> None:
    found = []
    for sentence in (
        "the bank told the man he was bankrupt",
        "then the bank told the man he was bankrupt",
    ):
        words = sentence.split()
        table = sinusoidal_positions(len(words), 4)
        bank, man = words.index("bank"), words.index("man")
        found.append(recover_offset(table[bank], table[man]))
    assert found == [3, 3]


def test_positions_of_impossible_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="even"):
        sinusoidal_positions(3, 5)
    with pytest.raises(InputError, match="even"):
        offset_matrix(3, 0)
    with pytest.raises(InputError, match="negative"):
        sinusoidal_positions(-1, 4)
    with pytest.raises(InputError, match="one width"):
        recover_offset(torch.zeros(4), torch.zeros(6))
    with pytest.raises(InputError, match="even"):
        recover_offset(torch.zeros(5), torch.zeros(5))
    with pytest.raises(InputError, match="max_offset"):
        recover_offset(torch.zeros(4), torch.zeros(4), max_offset=-1)
