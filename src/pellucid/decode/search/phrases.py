"""Choosing the next tokens if phrases must appear."""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid.decode.constraints.required import Progress, RequiredPhrases, allocate, candidates
from pellucid.decode.search.selection import Choice


def choose_with_phrases(
    values_AV: Tensor,
    total_BW: Tensor,
    num_places_B: Tensor,
    phrases: RequiredPhrases,
    progress: Progress,
) -> Choice:
    """Choose so that hypotheses with few and with many required tokens all keep places.

    The margin is 0, because banks decide as well as sums.

    Args:
        values_AV: the values of every row's next token.
        total_BW: each hypothesis's sum so far, −∞ if it does not exist.
        num_places_B: how many to choose at most.
        phrases: the phrases that must appear.
        progress: how much of them each row has.

    Source:
        Post and Vilar 2018, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation";
        Hu et al. 2019, "Improved Lexically Constrained Decoding", for all sentences at once.
    """
    sentences, width = total_BW.shape
    score_BC, parent_BC, token_BC = candidates(values_AV, total_BW, phrases.wanted(progress))
    sentence_B1 = torch.arange(sentences, device=token_BC.device)[:, None]
    rows_of_candidates = (sentence_B1 * width + parent_BC).flatten()
    after = phrases.advance(progress.reorder(rows_of_candidates), token_BC.flatten())
    # Not the request now in the slot: an empty slot's progress is that of its last request.
    request_B = progress.request_A.view(sentences, width)[:, 0]
    place_BW, is_taken_BW = allocate(
        score_BC,
        phrases.banks(after).view_as(token_BC),
        num_places_B=num_places_B,
        width=width,
        num_banks_B=phrases.total(request_B) + 1,
    )
    zero_B = torch.zeros(sentences, dtype=torch.float64, device=token_BC.device)
    return Choice(parent_BC.gather(1, place_BW), token_BC.gather(1, place_BW), is_taken_BW, zero_B)
