"""How likely the model finds a given translation."""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid.model import Transformer

__all__ = ["score_tokens"]


@torch.inference_mode()
def score_tokens(
    model: Transformer,
    source_BS: Tensor,
    source_mask_BS: Tensor,
    target_in_BT: Tensor,
    target_out_BT: Tensor,
    target_mask_BT: Tensor | None = None,
) -> Tensor:
    """Log-probability of each target token, given the source and the tokens before it.

    Args:
        model: the model.
        source_BS: token ids.
        source_mask_BS: True where the source has a token.
        target_in_BT: what the decoder reads, from the start token on.
        target_out_BT: what it should say: the same, shifted by one, ending in ``</s>``.
        target_mask_BT: True where the target has a token; without a look-ahead mask padding is
            seen unless it is given.

    Returns:
        ``log_probabilities_BT``, natural logs; columns of padding mean nothing.
    """
    memory_BSD = model.encode(source_BS, source_mask_BS)
    own_mask_BT = None if model.config.look_ahead_mask else target_mask_BT
    states_BTD = model.decode(target_in_BT, memory_BSD, source_mask_BS, target_mask_BT=own_mask_BT)
    # Row by row, so that one sentence's logits are held at a time and not the batch's.
    rows = [
        _log_probabilities(model, states_BTD[row, None], target_out_BT[row, None])
        for row in range(len(states_BTD))
    ]
    return torch.cat(rows)


def _log_probabilities(model: Transformer, states_1TD: Tensor, target_1T: Tensor) -> Tensor:
    logits_1TV = model.logits(states_1TD)
    true_1T = logits_1TV.gather(2, target_1T[:, :, None])[:, :, 0]
    return true_1T - logits_1TV.logsumexp(dim=-1)
