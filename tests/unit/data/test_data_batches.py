"""Padded tensors: shift by one, masks, fixed size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pellucid.data import TokenStore, build_store, make_batch, make_source_batch

PAD, START = 0, 2


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    pairs = [([5, 7, 3], [11, 3]), ([3], [13, 12, 10, 9, 3]), ([8, 3], [6, 3])]
    return build_store(
        tmp_path / "store", pairs, source_vocabulary_size=17, target_vocabulary_size=19
    )


def test_batch_of_two_pairs_is_as_by_hand(store: TokenStore) -> None:
    batch = make_batch(store, np.array([1, 0]), pad_id=PAD, start_id=START)
    assert batch.source_BS.tolist() == [[3, 0, 0], [5, 7, 3]]
    assert batch.source_mask_BS.tolist() == [[True, False, False], [True, True, True]]
    assert batch.target_in_BT.tolist() == [[2, 13, 12, 10, 9], [2, 11, 0, 0, 0]]
    assert batch.target_out_BT.tolist() == [[13, 12, 10, 9, 3], [11, 3, 0, 0, 0]]
    assert batch.target_mask_BT.tolist() == [[True] * 5, [True, True, False, False, False]]
    assert (batch.num_source_tokens, batch.num_target_tokens) == (4, 7)


def test_turned_pairs_change_sides_and_the_others_do_not(store: TokenStore) -> None:
    turned = np.array([False, True, True])
    batch = make_batch(store, np.array([2, 1, 0]), pad_id=PAD, start_id=START, turned=turned)
    assert batch.source_BS.tolist() == [[8, 3, 0, 0, 0], [13, 12, 10, 9, 3], [11, 3, 0, 0, 0]]
    assert batch.target_out_BT.tolist() == [[6, 3, 0], [3, 0, 0], [5, 7, 3]]
    assert batch.target_in_BT.tolist() == [[2, 6, 0], [2, 0, 0], [2, 5, 7]]
    assert batch.source_mask_BS.sum(1).tolist() == [2, 5, 2]
    assert (batch.num_source_tokens, batch.num_target_tokens) == (9, 6)


def test_batch_types_are_integers_and_truth_values(store: TokenStore) -> None:
    batch = make_batch(store, np.array([1, 0]), pad_id=PAD, start_id=START)
    for ids in (batch.source_BS, batch.target_in_BT, batch.target_out_BT):
        assert ids.dtype == torch.int64
    for mask in (batch.source_mask_BS, batch.target_mask_BT):
        assert mask.dtype == torch.bool


def test_batch_padded_with_the_start_token_keeps_its_mask(store: TokenStore) -> None:
    batch = make_batch(store, np.array([1, 0]), pad_id=START, start_id=START)
    assert batch.target_in_BT.tolist() == [[2, 13, 12, 10, 9], [2, 11, 2, 2, 2]]
    assert batch.target_mask_BT.sum().item() == 7


def test_source_batch_is_padded_on_the_right() -> None:
    source_BS, source_mask_BS = make_source_batch([[5, 3], [], [7, 9, 8, 3]], pad_id=1)
    assert source_BS.tolist() == [[5, 3, 1, 1], [1, 1, 1, 1], [7, 9, 8, 3]]
    assert source_mask_BS.sum(1).tolist() == [2, 0, 4]
    assert source_BS.dtype == torch.int64
    assert source_mask_BS.dtype == torch.bool


def test_source_batch_of_nothing_is_empty() -> None:
    source_BS, source_mask_BS = make_source_batch([], pad_id=0)
    assert source_BS.shape == source_mask_BS.shape == (0, 0)
