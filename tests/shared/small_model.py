"""A model small enough to test its passes, and batches for it, with a prime for each axis."""

from __future__ import annotations

from typing import Any

import torch

from pellucid.config import ModelConfig
from pellucid.data import Batch
from pellucid.model import Transformer, initialize

V = 37


def make_model(*, has_output_bias: bool = False, **changes: Any) -> Transformer:
    """A model of one layer on each side, always with the same weights."""
    config = ModelConfig(
        d_model=22,
        d_ff=19,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        source_vocabulary_size=V,
        target_vocabulary_size=V,
        **changes,
    )
    model = Transformer(config, has_output_bias=has_output_bias)
    initialize(model, seed=3)
    return model


def make_batch(
    num_rows: int = 7,
    source_length: int = 5,
    target_length: int = 11,
    *,
    seed: int = 5,
    has_guide: bool = False,
) -> Batch:
    """A batch of rows of random ids and lengths."""
    numbers = torch.Generator().manual_seed(seed)
    masks, ids = [], []
    for length in (source_length, target_length):
        lengths = torch.randint(1, length + 1, (num_rows, 1), generator=numbers)
        masks.append(torch.arange(length) < lengths)
    for length in (source_length, target_length, target_length):
        ids.append(torch.randint(4, V, (num_rows, length), generator=numbers))
    guide_BTS = None
    if has_guide:
        guide_BTS = torch.rand(num_rows, target_length, source_length, generator=numbers)
    return Batch(
        source_BS=ids[0],
        source_mask_BS=masks[0],
        target_in_BT=ids[1],
        target_out_BT=ids[2],
        target_mask_BT=masks[1],
        num_source_tokens=int(masks[0].sum()),
        num_target_tokens=int(masks[1].sum()),
        guide_BTS=guide_BTS,
    )
