"""Choosing the next tokens: vectorized over all sentences and hypotheses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid.decode.constraints.required import Progress, RequiredPhrases, allocate, candidates
from pellucid.decode.logits import best_of_rows


@dataclass(frozen=True)
class Choice:
    """The hypotheses of a sentence after a step.

    Attributes:
        parent_BW: the column of the hypothesis that is continued.
        token_BW: the token that continues it.
        is_taken_BW: False if nothing was left to choose for this place.
        margin_B: the lead of the last one taken over the best one left. Only if it is small can
            rounding change the choice.
    """

    parent_BW: Tensor
    token_BW: Tensor
    is_taken_BW: Tensor
    margin_B: Tensor

    @staticmethod
    def single(token_B: Tensor, is_taken_B1: Tensor) -> Choice:
        """Make the choice of beams of 1, whose tokens are given."""
        token_B1 = token_B[:, None]
        margin_B = torch.full(token_B.shape, math.inf, dtype=torch.float64, device=token_B.device)
        return Choice(torch.zeros_like(token_B1), token_B1, is_taken_B1, margin_B)


def choose_best(value_AX: Tensor, id_AX: Tensor, total_BW: Tensor, num_places_B: Tensor) -> Choice:
    """Choose the best continuations of each sentence, as many as it has places.

    Args:
        value_AX: the best values of each row's next token, more than ``width`` if there are more.
        id_AX: their tokens.
        total_BW: each hypothesis's sum so far, −∞ if it does not exist.
        num_places_B: how many to choose at most: the width less the finished ones.
    """
    sentences, width = total_BW.shape
    per_row = value_AX.shape[1]
    candidate_BC = (total_BW.reshape(-1, 1) + value_AX).view(sentences, -1)
    # One more than the beam holds: the best one left gives the margin.
    best, places = torch.topk(candidate_BC, min(width + 1, candidate_BC.shape[1]), dim=-1)
    missing = width + 1 - best.shape[1]
    if missing > 0:
        best = F.pad(best, (0, missing), value=-math.inf)
        places = F.pad(places, (0, missing))
    last_B1 = (num_places_B - 1).clamp(min=0)[:, None]
    margin_B = (best.gather(1, last_B1) - best.gather(1, last_B1 + 1))[:, 0]
    # −∞ less −∞ is not a number: nothing was left to choose between.
    margin_B = margin_B.nan_to_num(nan=math.inf).masked_fill_(num_places_B == 0, math.inf)
    place_BW = places[:, :width]
    ranks_W = torch.arange(width, device=total_BW.device)
    return Choice(
        place_BW // per_row,
        id_AX.view(sentences, -1).gather(1, place_BW),
        (ranks_W < num_places_B[:, None]) & (best[:, :width] > -math.inf),
        margin_B,
    )


def _choose_single(value_AX: Tensor, id_AX: Tensor, total_B1: Tensor) -> Choice:
    """Do what `choose_best` does, for a beam of 1 in fewer calls."""
    choice = Choice.single(id_AX[:, 0], total_B1 > -math.inf)
    if value_AX.shape[1] > 1:
        lead_A = (value_AX[:, 0] - value_AX[:, 1]).to(choice.margin_B.dtype)
        choice = replace(choice, margin_B=lead_A.nan_to_num(nan=math.inf))
    return choice


def choose_in_groups(
    values_AV: Tensor,
    total_BW: Tensor,
    num_places_BG: Tensor,
    *,
    normalizer_A: Tensor | None,
    diversity: float,
    extra: int,
) -> Choice:
    """Choose group by group: a token costs more for each earlier group that just chose it.

    With one group this is `choose_best`.

    Args:
        values_AV: the values of every row's next token.
        total_BW: each hypothesis's sum so far; a group is a run of neighboring columns.
        num_places_BG: how many to choose at most in each group.
        normalizer_A: what to subtract from each row's values, if anything.
        diversity: the cost of a token for each time it was chosen in this step.
        extra: how many more of each row's values to read than needed, for the margin.

    Source:
        Vijayakumar et al. 2018, "Diverse Beam Search", with Hamming diversity.
    """
    sentences, groups = num_places_BG.shape
    width = total_BW.shape[1] // groups
    count = min(width + extra, values_AV.shape[1])
    if width == groups == 1:
        return _choose_single(*best_of_rows(values_AV, count), total_BW)
    values_BWV = values_AV.view(sentences, -1, values_AV.shape[1])
    penalty_BV = torch.zeros_like(values_BWV[:, 0]) if groups > 1 else None
    if normalizer_A is not None:
        # Subtracting it here takes one operation for each row; from the values, one for each token.
        total_BW = total_BW - normalizer_A.view_as(total_BW)
    choices = []
    for group in range(groups):
        own = slice(group * width, (group + 1) * width)
        own_values = values_BWV[:, own]
        if penalty_BV is not None:
            own_values = own_values - penalty_BV[:, None]
        best = best_of_rows(own_values.flatten(0, 1), count)
        choice = choose_best(*best, total_BW[:, own], num_places_BG[:, group])
        if penalty_BV is not None:
            # A place that nothing was left for holds any token, which must cost nothing.
            cost = diversity * choice.is_taken_BW.to(penalty_BV.dtype)
            penalty_BV.scatter_add_(1, choice.token_BW, cost)
        choices.append(choice)
    if groups == 1:
        return choices[0]
    # Groups count parents among their own columns, the answer among those of the sentence.
    return Choice(
        torch.cat([choice.parent_BW + i * width for i, choice in enumerate(choices)], dim=1),
        torch.cat([choice.token_BW for choice in choices], dim=1),
        torch.cat([choice.is_taken_BW for choice in choices], dim=1),
        torch.stack([choice.margin_B for choice in choices]).amin(dim=0),
    )


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
