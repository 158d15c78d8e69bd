"""A source and a target side by side, run through the model with the target given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from pellucid.attention.probe import Probe
from pellucid.bundle import Bundle
from pellucid.errors import InputError
from pellucid.model import Transformer
from pellucid.model.layers import MultiHeadAttention
from pellucid.text import Tokenizer

__all__ = ["Pair", "attention_at", "make_pair"]


@dataclass(frozen=True, eq=False)
class Pair:
    """A source and the target to look at, as ids, with the model that reads them.

    Attributes:
        model: in float32, or in float64 where that was asked for.
        tokenizer: its tokenizer.
        source_ids: the source, ``</s>`` at the end.
        target_ids: what the decoder's rows predict, row by row; normally ``</s>`` at the end.
    """

    model: Transformer
    tokenizer: Tokenizer
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]

    @property
    def read_ids(self) -> tuple[int, ...]:
        """What the decoder's rows read: the start token, then the target without its last."""
        return (self.tokenizer.config.target_start_id, *self.target_ids[:-1])

    @property
    def source_tokens(self) -> tuple[str, ...]:
        """The source's pieces."""
        return tuple(self.tokenizer.source_tokens(self.source_ids))

    @property
    def read_tokens(self) -> tuple[str, ...]:
        """The pieces that the rows read."""
        return tuple(self.tokenizer.target_tokens(self.read_ids))

    @property
    def predicted_tokens(self) -> tuple[str, ...]:
        """The pieces that the rows predict."""
        return tuple(self.tokenizer.target_tokens(self.target_ids))

    def logits(
        self, *, probe: Probe | None = None, source_ids: Sequence[int] | None = None
    ) -> Tensor:
        """Run both halves once, the target given: ``logits_TV``.

        Args:
            probe: is handed every result, and may replace it.
            source_ids: another source to read instead.
        """
        source_1S = torch.tensor([list(self.source_ids if source_ids is None else source_ids)])
        logits_1TV: Tensor = self.model(source_1S, torch.tensor([self.read_ids]), probe=probe)
        return logits_1TV[0]

    def log_probabilities(
        self, *, probe: Probe | None = None, source_ids: Sequence[int] | None = None
    ) -> Tensor:
        """What the model says of each target token: ``logs_T``, natural logs."""
        logs_TV = self.logits(probe=probe, source_ids=source_ids).log_softmax(dim=-1)
        return logs_TV.gather(1, torch.tensor(self.target_ids)[:, None])[:, 0]


def make_pair(
    bundle: Bundle, source: str, target: str | Sequence[int], *, float64: bool = False
) -> Pair:
    """Put a source and a target beside each other.

    Args:
        bundle: the model.
        source: the source line.
        target: a line of text, or the ids that a decode chose.
        float64: compute in double precision.

    Raises:
        InputError: the source is empty, a side is too long for the model, or the target holds
            what the vocabulary cannot write.
    """
    tokenizer, model = bundle.tokenizer, bundle.model
    if not source.strip():
        raise InputError("There must be a text to look inside, but the line is empty.")
    target_ids = tokenizer.encode_target(target) if isinstance(target, str) else list(target)
    if not target_ids:
        raise InputError("A translation must have tokens to look inside, but has none.")
    if isinstance(target, str) and tokenizer.config.unk_id in target_ids:
        raise InputError(
            f"A target must be written with the model's vocabulary, but {target!r} has letters or "
            f"words that are not in it ({_unknown(tokenizer, target)}). Write it differently."
        )
    source_ids = tokenizer.encode_source(source)
    for side, ids, limit in (
        ("source", source_ids, model.config.max_source_length),
        ("target", target_ids, model.config.max_target_length),
    ):
        if len(ids) > limit:
            raise InputError(
                f"A {side} must have at most {limit} tokens for this model, but has {len(ids)}. "
                "Look at one sentence at a time."
            )
    chosen = bundle.exact_model if float64 else model
    return Pair(chosen, tokenizer, tuple(source_ids), tuple(target_ids))


def _unknown(tokenizer: Tokenizer, text: str) -> str:
    unknown = [
        word for word in text.split() if tokenizer.config.unk_id in tokenizer.encode_target(word)
    ]
    return ", ".join(unknown) or text


def attention_at(model: Transformer, site: str) -> MultiHeadAttention:
    """The module at a site such as ``decoder.1.cross``."""
    part, layer, kind = site.split(".")
    return cast(MultiHeadAttention, model.get_submodule(f"{part}.layers.{layer}.{kind}_attention"))
