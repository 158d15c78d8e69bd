"""Greedy search: at every step the token with the highest value."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid.decode.hypothesis import Hypothesis
from pellucid.model import Transformer

__all__ = ["choose_likeliest", "decode_greedily"]


@torch.inference_mode()
def decode_greedily(
    model: Transformer,
    source_BS: Tensor,
    source_mask_BS: Tensor,
    *,
    start_id: int,
    eos_id: int,
    max_lengths: Sequence[int],
) -> list[Hypothesis]:
    """Translate a batch: choose the likeliest token, feed it back, until ``</s>``.

    Each step computes one row per sentence, from cached keys and values. Sentences that are
    finished leave the batch at once. Between equally likely tokens the lowest index wins.

    Args:
        model: the model, on the same device as the batch.
        source_BS: token ids, padded on the right.
        source_mask_BS: True where there is a token.
        start_id: what the decoder reads first.
        eos_id: what ends a sentence.
        max_lengths: for each sentence the most tokens it may get, ``</s>`` included.

    Returns:
        One hypothesis for each row, in the order of the rows.

    Source:
        Notes "Transformers", section 4.1.
    """
    memory_BSD = model.encode(source_BS, source_mask_BS)
    cache = model.new_cache()
    rows = list(range(source_BS.shape[0]))
    ids: list[list[int]] = [[] for _ in rows]
    log_probabilities: list[list[float]] = [[] for _ in rows]
    newest_B1 = source_BS.new_full((len(rows), 1), start_id)
    while rows:
        states_B1D = model.decode(newest_B1, memory_BSD, source_mask_BS, cache=cache)
        chosen_B, chosen_log_B = choose_likeliest(model.logits(states_B1D)[:, -1])
        keep = []
        for index, (row, token, log_probability) in enumerate(
            zip(rows, chosen_B.tolist(), chosen_log_B.tolist(), strict=True)
        ):
            ids[row].append(token)
            log_probabilities[row].append(log_probability)
            if token != eos_id and len(ids[row]) < max_lengths[row]:
                keep.append(index)
        if len(keep) < len(rows):
            keep_B = torch.tensor(keep, dtype=torch.long, device=source_BS.device)
            cache.reorder(keep_B)
            memory_BSD, source_mask_BS = memory_BSD[keep_B], source_mask_BS[keep_B]
            chosen_B = chosen_B[keep_B]
            rows = [rows[index] for index in keep]
        newest_B1 = chosen_B[:, None]
    return [
        Hypothesis(tuple(tokens), tuple(logs), tokens[-1] == eos_id)
        for tokens, logs in zip(ids, log_probabilities, strict=True)
    ]


def choose_likeliest(logits_BV: Tensor) -> tuple[Tensor, Tensor]:
    """The highest token of each row, ties to the lowest index, and its log-probability."""
    chosen_B = logits_BV.argmax(dim=-1)
    chosen_B1 = chosen_B[:, None]
    chosen_log_B = logits_BV.gather(1, chosen_B1)[:, 0] - logits_BV.logsumexp(dim=-1)
    return chosen_B, chosen_log_B
