"""The probability that the model gives to a given translation."""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid.model import EncoderDecoder


@torch.inference_mode()
def score_tokens(
    model: EncoderDecoder,
    source_BS: Tensor,
    source_mask_BS: Tensor,
    target_in_BT: Tensor,
    target_out_BT: Tensor,
    target_mask_BT: Tensor | None = None,
) -> Tensor:
    """Compute the log-probability of each target token, given the source and earlier tokens.

    Args:
        model: the model.
        source_BS: token ids.
        source_mask_BS: True for tokens, False for padding.
        target_in_BT: the decoder's input, from the start token on.
        target_out_BT: its desired output: the same shifted by one, ending in ``</s>``.
        target_mask_BT: True for tokens, False for padding; only needed for a model without a
            look-ahead mask, which would see the padding.

    Returns:
        ``log_probabilities_BT``, natural logs; columns of padding mean nothing. If the logits of a
        position are not finite, it is not a number.
    """
    memory_BSD = model.encode(source_BS, source_mask_BS)
    own_mask_BT = None if model.config.look_ahead_mask else target_mask_BT
    states_BTD = model.decode(target_in_BT, memory_BSD, source_mask_BS, target_mask_BT=own_mask_BT)
    # Row by row, so that memory holds the logits of one sentence and not of the batch.
    rows = []
    for states_TD, target_T in zip(states_BTD, target_out_BT, strict=True):
        logits_1TV = model.logits(states_TD[None])
        true_1T = logits_1TV.gather(2, target_T[None, :, None])[:, :, 0]
        normalizer_1T = logits_1TV.logsumexp(dim=-1)
        log_1T = true_1T - normalizer_1T
        # Less an infinite normalizer, any finite logit would look like an impossible token.
        rows.append(log_1T.masked_fill_(~normalizer_1T.isfinite(), torch.nan))
    return torch.cat(rows)
