"""A trained model whose vocabulary was extended: rows for new tokens, old rows as they are.

A new token's vector is the mean of the vectors of the tokens that spelled it before. Its logit is
then the mean of their logits, and with a bias of log(ε / M) for M new tokens it is at most
max(old logits) + log(ε / M). All new tokens together have a probability of at most ε, whatever the
text: the log-probability of an old text falls by no more than ε per token, and a greedy search
never prefers a new token before training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.model import make_model
from pellucid.model.unowned import NEVER
from pellucid.text.tokenizers.tokenizer import Tokenizer

SHARE = 1e-3
"""The most that all new tokens together can take of a softmax before training."""

Side = Literal["source", "target"]

_TABLES: dict[str, Side] = {
    "embedding.weight": "target",
    "source_embedding.weight": "source",
    "target_embedding.weight": "target",
    "output.weight": "target",
}
_MOST_SHOWN = 12


def extend_bundle(start: Bundle, tokenizer: Tokenizer) -> Bundle:
    """Give a model the rows that its extended vocabulary needs.

    Args:
        start: the model.
        tokenizer: its tokenizer, or one that `Tokenizer.extended` made of it.

    Returns:
        The same bundle if nothing was added.
    """
    spelled: dict[Side, list[list[int]]] = {
        "source": _spell_new(start.tokenizer, tokenizer, "source"),
        "target": _spell_new(start.tokenizer, tokenizer, "target"),
    }
    if not any(spelled.values()):
        return start
    sizes = {
        "source_vocabulary_size": tokenizer.source_vocabulary_size,
        "target_vocabulary_size": tokenizer.target_vocabulary_size,
    }
    config = start.config.model_copy(update={"model": start.config.model.model_copy(update=sizes)})
    weights = start.model.state_dict()
    for name, side in _TABLES.items():
        if name in weights and spelled[side]:
            rows_XD = [weights[name][ids].mean(0) for ids in spelled[side]]
            weights[name] = torch.cat([weights[name], torch.stack(rows_XD)])
    if new := spelled["target"]:
        bias_V = weights.get("output.bias")
        if bias_V is None:
            bias_V = torch.zeros(start.config.model.target_vocabulary_size)
        weights["output.bias"] = torch.cat([bias_V, _new_biases(bias_V, new)])
    model = make_model(config.model, has_output_bias="output.bias" in weights)
    model.load_state_dict(weights)
    model.train(start.model.training)
    return replace(start, config=config, given=model, tokenizer=tokenizer)


def describe_extension(before: Tokenizer, after: Tokenizer) -> str:
    """Describe in a sentence the tokens that were added."""
    is_joint = before.config.sharing == "joint"
    sides: tuple[Side, ...] = ("target",) if is_joint else ("source", "target")
    added = {side: after.vocabulary(side)[len(before.vocabulary(side)) :] for side in sides}
    num_added = sum(map(len, added.values()))
    if not num_added:
        return (
            "No tokens were added (start.new_tokens): the model's vocabulary lacks nothing of the "
            "new text."
        )
    parts = []
    for side, tokens in added.items():
        more = ", …" if len(tokens) > _MOST_SHOWN else ""
        of_side = "" if is_joint else f" to the {side} side"
        shown = ", ".join(tokens[:_MOST_SHOWN])
        parts.append(f"{len(tokens):,}{of_side}" + (f" ({shown}{more})" if tokens else ""))
    return f"Added tokens that the model's vocabulary lacks: {' and '.join(parts)}."


def _spell_new(before: Tokenizer, after: Tokenizer, side: Side) -> list[list[int]]:
    new = after.vocabulary(side)[len(before.vocabulary(side)) :]
    return [before.spell(token, side) or [before.config.unk_id] for token in new]


def _new_biases(bias_V: Tensor, spelled: Sequence[Sequence[int]]) -> Tensor:
    """Compute the biases of new logits, which make all of them improbable together."""
    means = []
    for ids in spelled:
        # A logit that the model never owned says nothing about the text.
        owned = bias_V[list(ids)]
        owned = owned[owned > NEVER / 2]
        means.append(owned.mean() if len(owned) else bias_V.new_zeros(()))
    return torch.stack(means) + math.log(SHARE / len(spelled))
