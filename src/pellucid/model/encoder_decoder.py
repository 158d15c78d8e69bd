"""The common part of all models: embeddings, output, and the two calls that training makes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pellucid.attention.probe import Probe
from pellucid.config import ModelConfig, known_option
from pellucid.errors import ConfigurationError, InputError
from pellucid.machine.turns import give_way
from pellucid.model.dropout import Dropout
from pellucid.model.site import Site


def make_embedding(rows: int, d_model: int) -> nn.Embedding:
    """Make a table of zeros, whose weights come from `initialize` or from a file.

    PyTorch's own initialization would take seconds on the meta device, since it loads the compiler
    there.
    """
    return nn.Embedding(rows, d_model, _weight=torch.zeros(rows, d_model))


def embed(
    ids_BL: Tensor, embedding: nn.Embedding, config: ModelConfig, site: Site, *, end: int
) -> Tensor:
    """Look up the vectors of tokens, the last of which has the position ``end - 1``: ``x_BLD``.

    Raises:
        InputError: the sentence is longer than the model allows.
    """
    side = "source" if site.name == "encoder" else "target"
    limit = getattr(config, f"max_{side}_length")
    if end > limit:
        raise InputError(
            f"A sentence must have at most {limit} tokens for this {site.name}, "
            f"but has {end}. Split it, or train with a larger model.max_{side}_length."
        )
    x_BLD = embedding(ids_BL)
    if known_option(config, "embedding_scale", ("sqrt", "none")) == "sqrt":
        # Embeddings start with deviation 1/√d (`initialize`); positions are numbers up to 1.
        x_BLD = x_BLD * math.sqrt(config.d_model)
    return site.show("embedding", site.drop_tokens(x_BLD))


def number_layers(layers: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Number layers, giving way before each."""
    for index, layer in enumerate(layers):
        give_way()
        yield index, layer


class Output(nn.Module):
    """The parameters of the output projection: a weight unless tied, and an optional bias."""

    def __init__(self, config: ModelConfig, has_bias: bool) -> None:
        super().__init__()
        size = config.target_vocabulary_size
        # A tied weight is left out, so that files hold its table once.
        if config.tied_embeddings == "none":
            self.weight = nn.Parameter(torch.empty(size, config.d_model))
        if has_bias:
            self.bias = nn.Parameter(torch.zeros(size))


class EncoderDecoder(nn.Module, ABC):
    """A model that reads a source, and predicts a target token by token.

    Args:
        config: sizes and switches, with both vocabulary sizes.

    Raises:
        ConfigurationError: a vocabulary size is missing.
    """

    output: Output

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if not config.source_vocabulary_size or not config.target_vocabulary_size:
            raise ConfigurationError(
                "The vocabulary sizes must be known before a model can be made, but are "
                f"{config.source_vocabulary_size} and {config.target_vocabulary_size} "
                "(model.source_vocabulary_size, model.target_vocabulary_size)."
            )
        self.config = config
        if known_option(config, "tied_embeddings", ("all", "decoder", "none")) == "all":
            self.embedding = make_embedding(config.source_vocabulary_size, config.d_model)
        else:
            self.source_embedding = make_embedding(config.source_vocabulary_size, config.d_model)
            self.target_embedding = make_embedding(config.target_vocabulary_size, config.d_model)

    @abstractmethod
    def encode(
        self,
        source_BS: Tensor,
        source_mask_BS: Tensor | None = None,
        *,
        probe: Probe | None = None,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Turn source sentences, which end in ``</s>``, into one vector a token: ``memory_BSD``."""

    @abstractmethod
    def decode(
        self,
        target_BT: Tensor,
        memory_BSD: Tensor,
        source_mask_BS: Tensor | None = None,
        *,
        target_mask_BT: Tensor | None = None,
        cache: Any = None,
        probe: Probe | None = None,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Turn target tokens into states, from which `logits` predicts the next: ``states_BTD``."""

    @abstractmethod
    def new_cache(self) -> Any:
        """Make an empty cache for decoding with this model; it has ``length`` and ``reorder``."""

    def embedding_of(self, side: Literal["source", "target"]) -> nn.Embedding:
        """Get the table of one side's tokens."""
        if self.config.tied_embeddings == "all":
            return self.embedding
        return self.source_embedding if side == "source" else self.target_embedding

    @property
    def output_weight(self) -> Tensor:
        """The matrix that turns states into logits, (V, D): the embeddings if tied."""
        if self.config.tied_embeddings == "none":
            return self.output.weight
        return self.embedding_of("target").weight

    @property
    def output_bias(self) -> Tensor | None:
        """The bias of the logits, (V), or None."""
        # Imported models may have one, and those with new tokens: docs/decisions/0018.
        return getattr(self.output, "bias", None)

    def logits(self, states_BTD: Tensor, *, probe: Probe | None = None) -> Tensor:
        """Turn decoder states into an unnormalized score for every token: ``logits_BTV``."""
        logits_BTV = F.linear(states_BTD, self.output_weight, self.output_bias)
        return Site("decoder", probe).show("logits", logits_BTV)

    def forward(
        self,
        source_BS: Tensor,
        target_BT: Tensor,
        source_mask_BS: Tensor | None = None,
        *,
        target_mask_BT: Tensor | None = None,
        probe: Probe | None = None,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Run both halves with the target given (teacher forcing): ``logits_BTV``."""
        memory_BSD = self.encode(source_BS, source_mask_BS, probe=probe, dropout=dropout)
        states_BTD = self.decode(
            target_BT,
            memory_BSD,
            source_mask_BS,
            target_mask_BT=target_mask_BT,
            probe=probe,
            dropout=dropout,
        )
        return self.logits(states_BTD, probe=probe)
