"""The encoder–decoder Transformer of "Attention Is All You Need"."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from pellucid.attention.masks import causal_mask, padding_mask
from pellucid.attention.positions import position_rows
from pellucid.attention.probe import Probe
from pellucid.config import ModelConfig, known_option
from pellucid.errors import InputError
from pellucid.model.dropout import Dropout
from pellucid.model.encoder_decoder import (
    EncoderDecoder,
    Output,
    embed,
    make_embedding,
    number_layers,
)
from pellucid.model.kv_cache import DecoderCache
from pellucid.model.layers import DecoderLayer, EncoderLayer
from pellucid.model.rotary import IN_ATTENTION, make_norm
from pellucid.model.site import Site


class Stack(nn.Module):
    """The common part of encoder and decoder: input, list of layers, last norm."""

    def __init__(self, config: ModelConfig, part: Literal["encoder", "decoder"]) -> None:
        super().__init__()
        self.config = config
        self.part = part
        is_encoder = part == "encoder"
        self.max_length = config.max_source_length if is_encoder else config.max_target_length
        num_layers = config.num_encoder_layers if is_encoder else config.num_decoder_layers
        make_layer = EncoderLayer if is_encoder else DecoderLayer
        self.layers = nn.ModuleList(make_layer(config) for _ in range(num_layers))
        # The last sum of a pre-norm stack has had no norm yet; post-norm may end with a second one.
        known_option(config, "stack_norm", (False, True))
        self.norm = make_norm(config) if config.ends_in_norm else None
        has_input_norm = known_option(config, "input_norm", (False, True))
        self.input_norm = make_norm(config) if has_input_norm else None
        if config.positions == "learned":
            self.positions = make_embedding(self.max_length, config.d_model)

    def enter(
        self, ids_BL: Tensor, embedding: nn.Embedding, site: Site, *, offset: int = 0
    ) -> Tensor:
        """Turn token ids into the input of layer 0, embedding plus position: ``x_BLD``.

        With ``input_norm`` the sum is normalized.

        The first column has the position ``offset``, which is not 0 in decoding with a cache.

        Raises:
            InputError: the sentence is longer than the model allows.
        """
        end = offset + ids_BL.shape[1]
        x_BLD = embed(ids_BL, embedding, self.config, site, end=end)
        positions_LD = self.positions_of(offset, end, like=x_BLD)
        if positions_LD is not None:
            # Expanded, so that a probe can change the positions of one sentence.
            x_BLD = x_BLD + site.show("positions", positions_LD.expand_as(x_BLD), is_shared=True)
        if self.input_norm is not None:
            x_BLD = self.input_norm(x_BLD)
        # Dropout masks are drawn by the name of their place; this one is "encoder.input".
        return site.show("input", site.within("input").drop(x_BLD))

    def positions_of(self, start: int, end: int, *, like: Tensor) -> Tensor | None:
        """Get the vectors of positions ``start`` to ``end``: ``positions_LD``, or None."""
        # Those of `IN_ATTENTION` act where a query meets a key.
        if self.config.positions in ("none", *IN_ATTENTION):
            return None
        if self.config.positions == "learned":
            return self.positions.weight[start:end]
        kind = known_option(self.config, "positions", ("sinusoidal", "sinusoidal_halves"))
        halves = kind == "sinusoidal_halves"
        return position_rows(start, end, like=like, halves=halves)

    def leave(self, x_BLD: Tensor, site: Site) -> Tensor:
        """Apply the norm after the last layer, if there is one."""
        return x_BLD if self.norm is None else site.show("norm", self.norm(x_BLD))


class Transformer(EncoderDecoder):
    """An encoder, and a decoder whose every layer attends to the encoder's output.

    A decoder row reads one token and predicts the next: row t of the logits is about the token
    that follows ``target_BT[:, t]``.

    In the methods below sentences are token ids, padded on the right; masks are True for a token,
    False for padding, and None if nothing is padding; ``probe`` is handed every result (see
    `pellucid.attention.probe`); ``dropout`` is None outside training. A sentence longer than
    ``max_source_length`` or ``max_target_length`` raises `InputError`.

    Args:
        config: sizes and switches, with both vocabulary sizes.
        has_output_bias: True adds a bias to the logits.

    Raises:
        ConfigurationError: a vocabulary size is missing.

    Source:
        Vaswani et al. 2017, section 3; notes "Transformers", sections 2 to 4.
    """

    def __init__(self, config: ModelConfig, *, has_output_bias: bool = False) -> None:
        super().__init__(config)
        self.encoder = Stack(config, "encoder")
        self.decoder = Stack(config, "decoder")
        self.output = Output(config, has_output_bias)

    def encode(
        self,
        source_BS: Tensor,
        source_mask_BS: Tensor | None = None,
        *,
        probe: Probe | None = None,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Turn source sentences, which end in ``</s>``, into one vector a token: ``memory_BSD``."""
        site = Site("encoder", probe, dropout)
        x_BSD = self.encoder.enter(source_BS, self.embedding_of("source"), site)
        mask = None if source_mask_BS is None else padding_mask(source_mask_BS)
        for index, layer in number_layers(self.encoder.layers):
            x_BSD = layer(x_BSD, mask, site.within(index))
        return self.encoder.leave(x_BSD, site)

    def decode(
        self,
        target_BT: Tensor,
        memory_BSD: Tensor,
        source_mask_BS: Tensor | None = None,
        *,
        target_mask_BT: Tensor | None = None,
        cache: DecoderCache | None = None,
        probe: Probe | None = None,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Turn target tokens into states, from which `logits` predicts the next: ``states_BTD``.

        The target begins with the start token. With a ``cache``, ``target_BT`` holds only the new
        tokens: the cache keeps the earlier keys and values, and is extended. ``target_mask_BT``
        may be left out, since the look-ahead mask hides padding on the right from real rows; it
        cannot be combined with a cache.

        Raises:
            InputError: a sentence is too long, or a mask comes with a cache.
        """
        # A cache keeps no mask, so padding among the earlier tokens would be seen.
        if cache is not None and target_mask_BT is not None:
            raise InputError(
                "target_mask_BT cannot be combined with a cache. Leave one of them out."
            )
        site = Site("decoder", probe, dropout)
        offset = 0 if cache is None else cache.length
        x_BTD = self.decoder.enter(target_BT, self.embedding_of("target"), site, offset=offset)
        self_mask = self._self_mask(x_BTD, offset, target_mask_BT)
        cross_mask = None if source_mask_BS is None else padding_mask(source_mask_BS)
        for index, layer in number_layers(self.decoder.layers):
            past = None if cache is None else cache.layers[index]
            x_BTD = layer(x_BTD, memory_BSD, self_mask, cross_mask, past, site.within(index))
        return self.decoder.leave(x_BTD, site)

    def _self_mask(self, x_BTD: Tensor, offset: int, is_token_BT: Tensor | None) -> Tensor | None:
        """Combine look-ahead mask and padding; None if every row may see everything."""
        length = x_BTD.shape[1]
        mask = None if is_token_BT is None else padding_mask(is_token_BT)
        is_hidden = known_option(self.config, "look_ahead_mask", (True, False))
        if not is_hidden or length == 1:  # The newest row may see all before it.
            return mask
        look_ahead_11LM = causal_mask(length, offset + length, device=x_BTD.device)
        return look_ahead_11LM if mask is None else mask & look_ahead_11LM

    def new_cache(self) -> DecoderCache:
        """Make an empty cache for decoding with this model."""
        is_recurrent = self.config.decoder == "ssru"
        return DecoderCache(self.config.num_decoder_layers, is_recurrent=is_recurrent)
