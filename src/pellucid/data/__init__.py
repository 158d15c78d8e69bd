"""Batches from token ids: a memory-mapped store, the order of an epoch, padded tensors."""

from pellucid.data.batches import Batch, make_batch, make_source_batch, with_guide
from pellucid.data.epoch_order import (
    BatchOrder,
    EpochPlan,
    padding_share,
    pairs_of_epoch,
    plan_epoch,
    turned_pairs,
)
from pellucid.data.segmentations import EpochText, VariantStore, build_variants
from pellucid.data.shape_table import BatchShape, choose_shapes, plan_in_shapes
from pellucid.data.token_store import TokenStore, build_store

__all__ = [
    "Batch",
    "BatchOrder",
    "BatchShape",
    "EpochPlan",
    "EpochText",
    "TokenStore",
    "VariantStore",
    "build_store",
    "build_variants",
    "choose_shapes",
    "make_batch",
    "make_source_batch",
    "padding_share",
    "pairs_of_epoch",
    "plan_epoch",
    "plan_in_shapes",
    "turned_pairs",
    "with_guide",
]
