"""Greedy search: at every step the likeliest token.

This is decoding written to be read, on the model itself. Commands decode with
`pellucid.decode.search`, whose beam of 1 does the same faster; tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid.decode.hypothesis import Hypothesis
from pellucid.model import EncoderDecoder


@torch.inference_mode()
def decode_greedily(
    model: EncoderDecoder,
    source_BS: Tensor,
    source_mask_BS: Tensor,
    *,
    start_id: int,
    eos_id: int,
    max_lengths: Sequence[int],
) -> list[Hypothesis]:
    """Translate a batch: choose the likeliest token, feed it back, until ``</s>``.

    The decoder reads ``start_id`` first, and ``eos_id`` ends a sentence. A sentence gets at most
    as many tokens as ``max_lengths`` says for its row, ``</s>`` included. Source sentences are
    padded on the right, and their mask is True for a token. The notes "Transformers" describe this
    in section 4.1.

    Returns:
        One hypothesis for each row, in the order of the rows.
    """
    memory_ASD = model.encode(source_BS, source_mask_BS)
    mask_AS = source_mask_BS
    cache = model.new_cache()
    rows = list(range(source_BS.shape[0]))  # The axis A: sentences still growing, at first all.
    ids: list[list[int]] = [[] for _ in rows]
    log_probabilities: list[list[float]] = [[] for _ in rows]
    newest_A = source_BS.new_full((len(rows),), start_id)
    while rows:
        states = model.decode(newest_A[:, None], memory_ASD, mask_AS, cache=cache)
        newest_A, logs = choose_likeliest(model.logits(states)[:, -1])
        chosen = zip(rows, newest_A.tolist(), logs.tolist(), strict=True)
        growing = []
        for place, (row, token, log) in enumerate(chosen):
            ids[row].append(token)
            log_probabilities[row].append(log)
            if token != eos_id and len(ids[row]) < max_lengths[row]:
                growing.append(place)
        if len(growing) < len(rows):
            # Finished sentences leave the batch, so that nothing more is computed for them.
            rows = [rows[place] for place in growing]
            kept_A = torch.tensor(growing, dtype=torch.long, device=source_BS.device)
            cache.reorder(kept_A)
            memory_ASD = memory_ASD[kept_A]
            mask_AS = mask_AS[kept_A]
            newest_A = newest_A[kept_A]
    return [  # Without a length penalty the score is the log-probability.
        Hypothesis(tuple(tokens), tuple(logs), tokens[-1] == eos_id, score=sum(logs))
        for tokens, logs in zip(ids, log_probabilities, strict=True)
    ]


def choose_likeliest(logits_BV: Tensor) -> tuple[Tensor, Tensor]:
    """Choose the highest token of each row, of equal ones the first; with its log-probability."""
    chosen_B = logits_BV.argmax(dim=-1)
    chosen_log_B = logits_BV.gather(1, chosen_B[:, None])[:, 0] - logits_BV.logsumexp(dim=-1)
    return chosen_B, chosen_log_B
