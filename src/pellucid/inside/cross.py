"""Replay: what a decode chose goes through the model once more, with every stage explicit.

Decoding takes the fastest path and keeps nothing. To look inside one translation, its tokens are
fed back teacher-forced with a probe; the tokens are always the decode's, and the replay says how
far its log-probabilities are from the decode's.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.errors import InputError

__all__ = ["CrossAttention", "replay_cross_attention"]


@dataclass(frozen=True, eq=False)
class CrossAttention:
    """The cross-attention weights of one translation: every layer and head, none averaged.

    Row t *reads* ``read_tokens[t]`` and *predicts* ``predicted_tokens[t]``.

    Attributes:
        weights_NHTS: layers, heads, decoder rows, source tokens; each row sums to 1.
        source_tokens: the source's pieces, ``</s>`` included.
        read_tokens: what each row reads, from the start token on.
        predicted_tokens: what each row chose.
        largest_difference: between the replay's log-probabilities and the decode's.
    """

    weights_NHTS: Tensor
    source_tokens: tuple[str, ...]
    read_tokens: tuple[str, ...]
    predicted_tokens: tuple[str, ...]
    largest_difference: float


class _CrossWeights:
    """A probe that keeps the cross-attention weights of every decoder layer."""

    def __init__(self) -> None:
        self.weights_HTS: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        """Keep what is asked for."""
        if stage == "weights" and site.endswith(".cross"):
            self.weights_HTS[site] = tensor[0]


@torch.inference_mode()
def replay_cross_attention(
    bundle: Bundle,
    source: str,
    target_ids: tuple[int, ...],
    *,
    log_probabilities: tuple[float, ...],
) -> CrossAttention:
    """Look at what a translation attends to.

    Args:
        bundle: the model that made it.
        source: the source line.
        target_ids: the tokens it chose.
        log_probabilities: what it said of each.

    Raises:
        InputError: there are no tokens, as for an empty line.
    """
    if not target_ids:
        raise InputError("A translation must have tokens to look inside, but has none.")
    tokenizer = bundle.tokenizer
    source_ids = tokenizer.encode_source(source)
    read_ids = [tokenizer.config.target_start_id, *target_ids[:-1]]
    probe = _CrossWeights()
    logits_1TV = bundle.model(torch.tensor([source_ids]), torch.tensor([read_ids]), probe=probe)
    logs_1TV = logits_1TV.log_softmax(dim=-1)
    rows = torch.arange(len(target_ids))
    differences = logs_1TV[0, rows, list(target_ids)] - torch.tensor(log_probabilities)
    depth = bundle.config.model.num_decoder_layers
    return CrossAttention(
        torch.stack([probe.weights_HTS[f"decoder.{layer}.cross"] for layer in range(depth)]),
        tuple(tokenizer.source_tokens(source_ids)),
        tuple(tokenizer.target_tokens(read_ids)),
        tuple(tokenizer.target_tokens(list(target_ids))),
        float(differences.abs().max()),
    )
