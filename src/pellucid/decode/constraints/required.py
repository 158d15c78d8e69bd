"""Phrases that must appear: how much of them each row has, and which hypotheses to keep.

Hypotheses are divided into banks by the number of required tokens that they have, and each bank
gets its share of the beam. So hypotheses in the middle of a phrase survive next to likelier ones
that have not begun it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid.decode.constraints.history import pad_rows
from pellucid.decode.constraints.request import Request, check_ids
from pellucid.decode.logits import best_of_rows

__all__ = [
    "Progress",
    "RequiredPhrases",
    "allocate",
    "candidates",
]


@dataclass(frozen=True)
class Progress:
    """The part of its request's phrases that each row has.

    Attributes:
        request_A: the request of each row.
        depth_AQ: for each phrase, the number of its first tokens that the row ends with.
        count_AQ: for each phrase, how often the row holds it, at most as often as it must.
    """

    request_A: Tensor
    depth_AQ: Tensor
    count_AQ: Tensor

    def reorder(self, rows_A: Tensor) -> Progress:
        """Take these rows, in this order; a row may come several times."""
        return Progress(self.request_A[rows_A], self.depth_AQ[rows_A], self.count_AQ[rows_A])


@final
class RequiredPhrases:
    """The phrases that the translations of some requests must hold.

    Occurrences of a phrase are counted from the left without overlap, as `str.count` does. A row
    must hold a phrase as often as all required phrases together do: a phrase that is given twice
    must appear twice, and one that is also part of another must also appear outside it. The end
    of a phrase may be the beginning of a different one.

    Source:
        Post and Vilar 2018, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation";
        Hu et al. 2019, "Improved Lexically Constrained Decoding".

    Differs:
        There a row has one phrase in progress, chosen greedily. Here each phrase has its own
        Knuth–Morris–Pratt automaton, so only the text decides which phrases are met.
    """

    def __init__(
        self,
        requests: Sequence[Request],
        *,
        vocabulary_size: int,
        device: torch.device | str,
    ) -> None:
        """Make the tables.

        Args:
            requests: what `start` points into.
            vocabulary_size: the number of tokens.
            device: the device of the rows.

        Raises:
            InputError: a phrase is empty, or holds an id that is not in the vocabulary.
        """
        places: dict[tuple[int, ...], int] = {}
        for phrase in (phrase for request in requests for phrase in request.required):
            check_ids("required phrase", phrase, vocabulary_size)
            places.setdefault(phrase, len(places))
        needs = [_count_needs(request.required) for request in requests]
        # An empty phrase, needed 0 times, pads the lists of requests that have fewer phrases.
        empty, tables = len(places), [*map(_make_automaton, places), [0]]
        starts = list(accumulate(map(len, tables), initial=0))
        self._phrase_RQ = pad_rows(
            [[places[phrase] for phrase in need] for need in needs], empty, device
        )
        self._need_RQ = pad_rows([list(need.values()) for need in needs], 0, device)
        self._tokens_UX = pad_rows([*places, (-1,)], -1, device)
        self._length_U = torch.tensor([*map(len, places), 0], device=device)
        self._start_U = torch.tensor(starts[:-1], device=device)
        self._next = torch.tensor([depth for table in tables for depth in table], device=device)
        self._total_R = (self._need_RQ * self._length_U[self._phrase_RQ]).sum(1)

    def start(self, request_A: Tensor) -> Progress:
        """Make the progress of rows without tokens."""
        zero_AQ = torch.zeros_like(self._phrase_RQ[request_A])
        return Progress(request_A, zero_AQ, zero_AQ)

    def advance(self, progress: Progress, tokens_A: Tensor) -> Progress:
        """Update the progress after each row got one more token.

        If a token does not continue a phrase, the part that still matches counts: with ``a a`` of
        ``a a b``, another ``a`` leaves two tokens matched.
        """
        phrase_AQ = self._phrase_RQ[progress.request_A]
        length_AQ = self._length_U[phrase_AQ]
        is_same_AQX = self._tokens_UX[phrase_AQ] == tokens_A[:, None, None]
        # The token's first place in the phrase, or the place after the last if it has none.
        is_same_AQX = F.pad(is_same_AQX, (0, 1), value=True)
        symbol_AQ = is_same_AQX.byte().argmax(-1).minimum(length_AQ)
        place_AQ = self._start_U[phrase_AQ] + progress.depth_AQ * (length_AQ + 1) + symbol_AQ
        depth_AQ = self._next[place_AQ]
        is_whole_AQ = depth_AQ == length_AQ
        count_AQ = (progress.count_AQ + is_whole_AQ.long()).minimum(
            self._need_RQ[progress.request_A]
        )
        # Occurrences do not overlap, so after a whole phrase none of its tokens counts again.
        return Progress(progress.request_A, depth_AQ.masked_fill(is_whole_AQ, 0), count_AQ)

    def wanted(self, progress: Progress) -> Tensor:
        """Find the tokens that would advance each row in a phrase that it still needs.

        Returns:
            Ids of shape (rows, phrases), each token once, -1 elsewhere.
        """
        phrase_AQ = self._phrase_RQ[progress.request_A]
        next_AQ = self._tokens_UX[phrase_AQ].gather(2, progress.depth_AQ[:, :, None])[:, :, 0]
        next_AQ = next_AQ.masked_fill(self._is_met_each(progress), -1)
        is_same_AQQ = next_AQ[:, :, None] == next_AQ[:, None, :]
        return next_AQ.masked_fill(is_same_AQQ.tril(-1).any(-1), -1)

    def banks(self, progress: Progress) -> Tensor:
        """Count the required tokens that each row has: ``bank_A``.

        These are the tokens of all phrases that are met, and those of the furthest one that is
        not. The number equals the request's `total` if and only if all phrases are met.
        """
        length_AQ = self._length_U[self._phrase_RQ[progress.request_A]]
        met_A = (progress.count_AQ * length_AQ).sum(1)
        depth_AQ = progress.depth_AQ.masked_fill(self._is_met_each(progress), 0)
        nothing_A1 = depth_AQ.new_zeros(len(depth_AQ), 1)
        return met_A + torch.cat([depth_AQ, nothing_A1], dim=1).amax(1)

    def is_met(self, progress: Progress) -> Tensor:
        """Tell whether each row has all its phrases: ``is_met_A``."""
        return self._is_met_each(progress).all(1)

    def total(self, request_B: Tensor) -> Tensor:
        """Count the required tokens of each request: ``total_B``."""
        return self._total_R[request_B]

    def _is_met_each(self, progress: Progress) -> Tensor:
        return progress.count_AQ >= self._need_RQ[progress.request_A]


def _count_needs(required: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    """Count each phrase in all phrases together, from the left and without overlap."""
    # One character for each token, so that str.count does it.
    texts = ["".join(map(chr, phrase)) for phrase in required]
    return {
        phrase: sum(other.count(text) for other in texts)
        for phrase, text in zip(required, texts, strict=True)
    }


def _make_automaton(phrase: tuple[int, ...]) -> list[int]:
    """Tabulate the depth after each token, for each depth before it.

    A token is given by its first place in the phrase, or the place after the last if it is not in
    the phrase.

    Source:
        Knuth, Morris and Pratt 1977, "Fast Pattern Matching in Strings".
    """
    width = len(phrase) + 1
    table: list[int] = []
    border = 0  # the depth after all tokens before this one except the first
    for depth, token in enumerate(phrase):
        place = phrase.index(token)
        row = table[border * width :][:width] if depth else [0] * width
        border = row[place]
        row[place] = depth + 1
        table += row
    return table


def candidates(
    values_AV: Tensor, total_BW: Tensor, wanted_AQ: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Collect the possible continuations of each sentence, each one once.

    These are its best continuations, as many as the beam is wide; the best one of each
    hypothesis; and every token that a hypothesis wants.

    Args:
        values_AV: the values of the next token; row b · width + w is hypothesis w of sentence b.
        total_BW: each hypothesis's sum so far, minus infinity if it does not exist.
        wanted_AQ: `RequiredPhrases.wanted`.

    Returns:
        ``score_BC``, ``parent_BC``, ``token_BC``: the sum, minus infinity for filler; the
        hypothesis that is continued; the token.

    Source:
        Post and Vilar 2018, section 3.
    """
    sentences, width = total_BW.shape
    vocabulary_size = values_AV.shape[1]
    row_W1 = torch.arange(width, device=total_BW.device)[:, None] * vocabulary_size
    # A place is parent · vocabulary + token, so sorting places brings equal ones together.
    nowhere = width * vocabulary_size
    value_AX, id_AX = best_of_rows(values_AV, min(width, vocabulary_size))
    best_BWX = row_W1 + id_AX.view(sentences, width, -1)
    score_BWX = total_BW[:, :, None] + value_AX.view(sentences, width, -1)
    _, top_BW = score_BWX.flatten(1).topk(width)
    wanted_BWQ = wanted_AQ.view(sentences, width, -1)
    wanted_BWQ = (row_W1 + wanted_BWQ).where(wanted_BWQ >= 0, nowhere)
    place_BC, _ = torch.cat(
        [best_BWX.flatten(1).gather(1, top_BW), best_BWX[:, :, 0], wanted_BWQ.flatten(1)], dim=1
    ).sort()
    is_new_BC = place_BC < nowhere
    is_new_BC[:, 1:] &= place_BC[:, 1:] > place_BC[:, :-1]
    place_BC = place_BC.clamp(max=nowhere - 1)
    parent_BC = place_BC // vocabulary_size
    score_BC = total_BW.gather(1, parent_BC) + values_AV.reshape(sentences, -1).gather(1, place_BC)
    return score_BC.where(is_new_BC, -torch.inf), parent_BC, place_BC % vocabulary_size


def allocate(
    scores_BC: Tensor,
    banks_BC: Tensor,
    *,
    num_places_B: Tensor,
    width: int,
    num_banks_B: Tensor,
) -> tuple[Tensor, Tensor]:
    """Choose the candidates to keep: each bank gets its share of the places.

    All banks get equally many places; the remainder of the division goes to the banks with the
    most tokens met, one place each. Places that a bank cannot fill go to the next higher bank
    that can, or else to the highest lower one that can. Within a bank the highest score wins, of
    equal ones the first.

    Args:
        scores_BC: the candidates' scores; minus infinity is never chosen.
        banks_BC: the number of required tokens of each.
        num_places_B: how many to choose at most, no more than ``width``.
        width: the number of columns of the answer.
        num_banks_B: the number of banks of each sentence: its required tokens plus one.

    Returns:
        ``index_BW``, the chosen candidates, highest score first; and ``is_filled_BW``, False if
        nothing was left to choose.

    Source:
        Post and Vilar 2018, section 3.
    """
    score_BC, order_BC = scores_BC.sort(dim=1, descending=True, stable=True)
    bank_BC = banks_BC.gather(1, order_BC)
    is_there_BC = score_BC > -torch.inf
    bank_X = torch.arange(int(num_banks_B.max()), device=bank_BC.device)
    is_in_bank_BCX = bank_BC[:, :, None] == bank_X
    num_there_BX = (is_in_bank_BCX & is_there_BC[:, :, None]).sum(1)
    room_BX = _share(num_there_BX, num_places_B, num_banks_B)
    # The place of each in its bank, from 1. Filler, sorted to the end, is beyond the bank's room.
    rank_BC = is_in_bank_BCX.cumsum(1).gather(2, bank_BC[:, :, None])[:, :, 0]
    is_chosen_BC = rank_BC <= room_BX.gather(1, bank_BC)
    # Move the chosen ones to the front, still by score.
    front_BC = is_chosen_BC.long().argsort(dim=1, descending=True, stable=True)
    index_BC, is_filled_BC = order_BC.gather(1, front_BC), is_chosen_BC.gather(1, front_BC)
    missing = max(0, width - index_BC.shape[1])
    return (
        F.pad(index_BC, (0, missing))[:, :width],
        F.pad(is_filled_BC, (0, missing))[:, :width],
    )


def _share(num_there_BX: Tensor, num_places_B: Tensor, num_banks_B: Tensor) -> Tensor:
    """Give each bank its places, never more than it has candidates."""
    bank_X = torch.arange(num_there_BX.shape[1], device=num_there_BX.device)
    num_banks_B1, num_places_B1 = num_banks_B[:, None], num_places_B[:, None]
    share_BX = num_places_B1 // num_banks_B1 + (
        bank_X >= num_banks_B1 - num_places_B1 % num_banks_B1
    )
    share_BX = share_BX.where(bank_X < num_banks_B1, 0)
    # Surplus places move up until they meet candidates: carry[b] places leave bank b.
    surplus_BX = (share_BX - num_there_BX).cumsum(1)
    carry_BX = surplus_BX - surplus_BX.cummin(1).values.clamp(max=0)
    arriving_BX = F.pad(carry_BX[:, :-1], (1, 0))
    filled_BX = share_BX + arriving_BX - carry_BX
    # Places that no higher bank could use come down again.
    left_BX = num_there_BX - filled_BX
    left_above_BX = left_BX.flip(1).cumsum(1).flip(1) - left_BX
    return filled_BX + (carry_BX[:, -1:] - left_above_BX).clamp(min=0).minimum(left_BX)
