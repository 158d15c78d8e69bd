"""The Transformer, and the recurrent model: layers, stacks, cache and initialization.

Reading order: `site` (a place with its probe and dropout), `layers`, `transformer`; its common part
with other models is in `encoder_decoder`. `recurrent` is translation as it was before. `kv_cache`
serves decoding, `dropout` training, `initialization` a new model, `stored_tensors` weights on
disk.
"""

from pellucid.model.dropout import Dropout
from pellucid.model.encoder_decoder import EncoderDecoder
from pellucid.model.initialization import initialize
from pellucid.model.kv_cache import DecoderCache, GrowingKeysValues
from pellucid.model.layers import (
    AddNorm,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
)
from pellucid.model.make import make_model
from pellucid.model.recurrent import GatedCell, RecurrentCache, RecurrentModel
from pellucid.model.site import Site
from pellucid.model.transformer import Stack, Transformer

__all__ = [
    "AddNorm",
    "DecoderCache",
    "DecoderLayer",
    "Dropout",
    "EncoderDecoder",
    "EncoderLayer",
    "FeedForward",
    "GatedCell",
    "GrowingKeysValues",
    "MultiHeadAttention",
    "RecurrentCache",
    "RecurrentModel",
    "Site",
    "Stack",
    "Transformer",
    "initialize",
    "make_model",
]
