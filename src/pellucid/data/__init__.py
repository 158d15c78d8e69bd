"""From token ids to batches: a memory-mapped store, the order of an epoch, padded tensors."""

from pellucid.data.batches import Batch, make_batch, make_source_batch
from pellucid.data.order import BatchOrder, Plan, padding_share, plan_epoch
from pellucid.data.store import TokenStore, build_store

__all__ = [
    "Batch",
    "BatchOrder",
    "Plan",
    "TokenStore",
    "build_store",
    "make_batch",
    "make_source_batch",
    "padding_share",
    "plan_epoch",
]
