"""Choosing what to go on with: vectorised over all sentences and hypotheses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pellucid.decode.logits import best_of_rows

__all__ = [
    "Choice",
    "choose_best",
    "choose_in_groups",
]


@dataclass(frozen=True)
class Choice:
    """What each place of a sentence goes on with.

    Attributes:
        parent_BW: the place whose hypothesis is continued.
        token_BW: with which token.
        is_taken_BW: False where there was nothing left to put.
        margin_B: how much better the last one taken is than the best one left; it can be chosen
            otherwise by rounding only where this is small.
    """

    parent_BW: Tensor
    token_BW: Tensor
    is_taken_BW: Tensor
    margin_B: Tensor

    @staticmethod
    def single(token_B: Tensor, is_taken_B1: Tensor) -> Choice:
        """Every hypothesis goes on by itself, with a token that was drawn for it."""
        token_B1 = token_B[:, None]
        nowhere_B = torch.full(token_B.shape, math.inf, dtype=torch.float64, device=token_B.device)
        return Choice(torch.zeros_like(token_B1), token_B1, is_taken_B1, nowhere_B)


def choose_best(value_AX: Tensor, id_AX: Tensor, total_BW: Tensor, num_places_B: Tensor) -> Choice:
    """Choose for each sentence its best continuations, as many as it has places.

    Args:
        value_AX: the best values of each row's next token, more than ``width`` where there are.
        id_AX: their tokens.
        total_BW: each hypothesis's sum so far, −∞ where there is none.
        num_places_B: how many may be chosen: the width less what is finished.
    """
    sentences, width = total_BW.shape
    per_row = value_AX.shape[1]
    candidate_BC = (total_BW.reshape(-1, 1) + value_AX).view(sentences, -1)
    best, places = torch.topk(candidate_BC, min(width + 1, candidate_BC.shape[1]), dim=-1)
    missing = width + 1 - best.shape[1]
    if missing > 0:
        best = torch.nn.functional.pad(best, (0, missing), value=-math.inf)
        places = torch.nn.functional.pad(places, (0, missing))
    last_B1 = (num_places_B - 1).clamp(min=0)[:, None]
    margin_B = (best.gather(1, last_B1) - best.gather(1, last_B1 + 1))[:, 0]
    # Where both are −∞ nothing had to be left out.
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
    """What `choose_best` does, for a beam of 1."""
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
    """Choose group by group: a token costs more for each time an earlier group just chose it.

    With one group this is `choose_best` alone.

    Args:
        values_AV: the values of every row's next token.
        total_BW: each hypothesis's sum so far; a group is a run of neighboring columns.
        num_places_BG: how many may be chosen in each group.
        normalizer_A: what is to be taken from the values of each row, if anything.
        diversity: what a token costs for each earlier choice of it in this step.
        extra: how many more than needed to look at in each row, for the margin.

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
        # The rows' values differ by it; here it costs a number a row, there one a token.
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
            cost = diversity * choice.is_taken_BW.to(penalty_BV.dtype)
            penalty_BV.scatter_add_(1, choice.token_BW, cost)
        choices.append(choice)
    if groups == 1:
        return choices[0]
    return Choice(
        torch.cat([choice.parent_BW + i * width for i, choice in enumerate(choices)], dim=1),
        torch.cat([choice.token_BW for choice in choices], dim=1),
        torch.cat([choice.is_taken_BW for choice in choices], dim=1),
        torch.stack([choice.margin_B for choice in choices]).amin(dim=0),
    )
