"""The Transformer: layers, stacks, cache and initialization.

Reading order: `site` (a place with its probe and dropout), `layers`, `transformer`. `cache` serves
decoding, `dropout` training, `initialization` a new model, `quantization` weights on disk.
"""

from pellucid.model.cache import DecoderCache, GrowingKeysValues
from pellucid.model.dropout import Dropout
from pellucid.model.initialization import initialize
from pellucid.model.layers import (
    AddNorm,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
)
from pellucid.model.site import Site
from pellucid.model.transformer import Stack, Transformer

__all__ = [
    "AddNorm",
    "DecoderCache",
    "DecoderLayer",
    "Dropout",
    "EncoderLayer",
    "FeedForward",
    "GrowingKeysValues",
    "MultiHeadAttention",
    "Site",
    "Stack",
    "Transformer",
    "initialize",
]
