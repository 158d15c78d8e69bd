"""Phrases that must appear: how much of them each row has, and which hypotheses to keep.

Hypotheses are divided into banks by the number of required tokens that they have, and each bank
gets its share of the beam. So hypotheses in the middle of a phrase survive next to likelier ones
that have not begun it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid.decode.constraints.automata import BEGINS_IN_WORD, SILENT, match_tokens
from pellucid.decode.constraints.request import Request, check_ids
from pellucid.decode.constraints.token_history import pad_rows
from pellucid.decode.logits import best_of_rows


@dataclass(frozen=True)
class Progress:
    """The part of its request's phrases that each row has.

    Attributes:
        request_A: the request of each row.
        state_AQ: the state of each phrase's automaton.
        count_AQ: how often the row holds each phrase, without one that it ends with.
    """

    request_A: Tensor
    state_AQ: Tensor
    count_AQ: Tensor

    def reorder(self, rows_A: Tensor) -> Progress:
        """Take these rows, in this order; a row may come several times."""
        return Progress(self.request_A[rows_A], self.state_AQ[rows_A], self.count_AQ[rows_A])


@final
class RequiredPhrases:
    """The phrases that the translations of some requests must hold.

    A phrase counts by its text if its request has the vocabulary's spelling, so however it is cut
    and whatever signs it touches; otherwise by its tokens. Occurrences are counted from the left
    without overlap, as `str.count` does. A row must hold a phrase as often as all required
    phrases together do: a phrase that is given twice must appear twice, and one that is also part
    of another must also appear outside it. The end of a phrase may be the beginning of a
    different one.

    Source:
        Post and Vilar 2018, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation";
        Hu et al. 2019, "Improved Lexically Constrained Decoding".

    Differs:
        There a row has one phrase in progress, chosen greedily. Here each phrase has its own
        automaton, so only the text decides which phrases are met.
    """

    def __init__(
        self, requests: Sequence[Request], *, vocabulary_size: int, device: torch.device | str
    ) -> None:
        """Make the tables.

        Args:
            requests: what `start` points into.
            vocabulary_size: the number of tokens.
            device: the device of the rows.

        Raises:
            InputError: a phrase is empty, or holds an id that is not in the vocabulary.
        """
        spelling = next((request.spelling for request in requests if request.spelling), None)
        texts = spelling.automata if spelling else None
        places: dict[tuple[tuple[int, ...], bool], int] = {}
        for request in requests:
            for phrase in request.required:
                check_ids("required phrase", phrase, vocabulary_size)
                places.setdefault((phrase, request.spelling is not None), len(places))
        needs = [_count_needs(request) for request in requests]
        automata = [
            texts.match(phrase) if texts and is_text else match_tokens(phrase)
            for phrase, is_text in places
        ]
        # An empty phrase, needed 0 times, pads the lists of requests that have fewer phrases.
        empty = len(automata)
        automata.append(match_tokens(()))

        def table(values: Iterable[int]) -> Tensor:
            return torch.tensor(list(values), device=device)

        widths = [len(automaton.next[0]) for automaton in automata]
        heights = [len(automaton.next) for automaton in automata]
        self._phrase_RQ = pad_rows(
            [
                [places[phrase, request.spelling is not None] for phrase in need]
                for request, need in zip(requests, needs, strict=True)
            ],
            empty,
            device,
        )
        self._need_RQ = pad_rows([list(need.values()) for need in needs], 0, device)
        self._vocabulary_size = vocabulary_size
        self._kind_V = table(texts.kinds if texts else [0] * vocabulary_size)
        # The classes of tokens that have something of a phrase, sorted for binary search.
        classes = sorted(
            (place * vocabulary_size + token, symbol)
            for place, automaton in enumerate(automata)
            for token, symbol in automaton.classes.items()
        )
        self._key_Y = table(key for key, _ in [*classes, (empty * vocabulary_size, 0)])
        self._class_Y = table(symbol for _, symbol in [*classes, (0, 0)])
        # Each automaton has a block of cells: one for each state and class.
        self._width_U = table(widths)
        self._start_U = table(
            accumulate((a * b for a, b in zip(widths, heights, strict=True)), initial=0)
        )
        self._next = table(cell for one in automata for row in one.next for cell in row)
        self._gain = table(cell for one in automata for row in one.gain for cell in row)
        # And one row for each state.
        self._row_U = table(accumulate(heights, initial=0))
        self._wanted_X2 = torch.tensor(
            [pair for one in automata for pair in one.wanted], device=device
        )
        self._units_X = table(count for one in automata for count in one.units)
        self._last_U = table(height - 1 for height in heights)
        self._size_U = table(automaton.size for automaton in automata)
        self._ends_word_U = table(automaton.ends_word for automaton in automata)
        self._total_R = (self._need_RQ * self._size_U[self._phrase_RQ]).sum(1)
        begins_in_word_V = (self._kind_V >= BEGINS_IN_WORD) & (self._kind_V < SILENT)
        self._continues_word_V = begins_in_word_V if spelling else None

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
        key_AQ = phrase_AQ * self._vocabulary_size + tokens_A[:, None]
        found_AQ = torch.searchsorted(self._key_Y, key_AQ).clamp(max=len(self._key_Y) - 1)
        class_AQ = self._class_Y[found_AQ].where(
            self._key_Y[found_AQ] == key_AQ, self._kind_V[tokens_A][:, None]
        )
        cell_AQ = self._start_U[phrase_AQ] + progress.state_AQ * self._width_U[phrase_AQ] + class_AQ
        return Progress(
            progress.request_A, self._next[cell_AQ], progress.count_AQ + self._gain[cell_AQ]
        )

    def wanted(self, progress: Progress) -> Tensor:
        """Find the tokens that would advance each row in a phrase that it still needs.

        A phrase that has not begun may begin after a space, or glued to the text before it.

        Returns:
            Ids of shape (rows, phrases · 2), each token once, -1 elsewhere.
        """
        row_AQ = self._row_U[self._phrase_RQ[progress.request_A]] + progress.state_AQ
        next_AQ2 = self._wanted_X2[row_AQ].masked_fill(self._is_met_each(progress)[:, :, None], -1)
        next_AZ = next_AQ2.flatten(1)
        is_same_AZZ = next_AZ[:, :, None] == next_AZ[:, None, :]
        # Of equal tokens the first stays, so that no candidate comes twice.
        return next_AZ.masked_fill(is_same_AZZ.tril(-1).any(-1), -1)

    def banks(self, progress: Progress) -> Tensor:
        """Count the required tokens that each row has: ``bank_A``.

        These are the tokens of all phrases that are met, and those of the furthest one that is
        not. The number equals the request's `total` if and only if all phrases are met.
        """
        phrase_AQ = self._phrase_RQ[progress.request_A]
        met_A = (self._have(progress) * self._size_U[phrase_AQ]).sum(1)
        units_AQ = self._units_X[self._row_U[phrase_AQ] + progress.state_AQ]
        # A whole phrase counts as met already.
        is_over_AQ = self._is_met_each(progress) | self._is_whole(progress)
        units_AQ = units_AQ.masked_fill(is_over_AQ, 0)
        # A column for amax, which requests without phrases lack.
        nothing_A1 = units_AQ.new_zeros(len(units_AQ), 1)
        return met_A + torch.cat([units_AQ, nothing_A1], dim=1).amax(1)

    def end_words(self, values_AV: Tensor, progress: Progress) -> None:
        """Forbid, in place, to continue the last word of a phrase that a row needs.

        A row that could not continue in any other way may do so; then the phrase does not count.
        """
        if self._continues_word_V is None:
            return
        phrase_AQ = self._phrase_RQ[progress.request_A]
        is_needed_AQ = progress.count_AQ < self._need_RQ[progress.request_A]
        is_open_AQ = self._is_whole(progress) & self._ends_word_U[phrase_AQ] & is_needed_AQ
        rows_X = is_open_AQ.any(1).nonzero()[:, 0]
        if len(rows_X):
            ended_XV = values_AV[rows_X].masked_fill(self._continues_word_V, -torch.inf)
            can_end_X = (ended_XV > -torch.inf).any(1)
            values_AV[rows_X[can_end_X]] = ended_XV[can_end_X]

    def is_met(self, progress: Progress) -> Tensor:
        """Tell whether each row has all its phrases: ``is_met_A``."""
        return self._is_met_each(progress).all(1)

    def total(self, request_B: Tensor) -> Tensor:
        """Count the required tokens of each request: ``total_B``."""
        return self._total_R[request_B]

    def _is_whole(self, progress: Progress) -> Tensor:
        return progress.state_AQ == self._last_U[self._phrase_RQ[progress.request_A]]

    def _have(self, progress: Progress) -> Tensor:
        """Count each phrase, at most as often as it must appear."""
        count_AQ = progress.count_AQ + self._is_whole(progress).long()
        return count_AQ.minimum(self._need_RQ[progress.request_A])

    def _is_met_each(self, progress: Progress) -> Tensor:
        return self._have(progress) >= self._need_RQ[progress.request_A]


def _count_needs(request: Request) -> dict[tuple[int, ...], int]:
    """Count each phrase in all phrases together, from the left and without overlap."""
    if request.spelling:
        count = request.spelling.automata.count
        return {
            phrase: sum(count(phrase, other) for other in request.required)
            for phrase in request.required
        }
    # One character for each token, so that str.count does it.
    texts = ["".join(map(chr, phrase)) for phrase in request.required]
    return {
        phrase: sum(other.count(text) for other in texts)
        for phrase, text in zip(request.required, texts, strict=True)
    }


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
    # Filler must read from some place; its score is replaced at the end.
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
    index_BC = order_BC.gather(1, front_BC)
    is_filled_BC = is_chosen_BC.gather(1, front_BC)
    missing = max(0, width - index_BC.shape[1])
    return (
        F.pad(index_BC, (0, missing))[:, :width],
        F.pad(is_filled_BC, (0, missing))[:, :width],
    )


def _share(num_there_BX: Tensor, num_places_B: Tensor, num_banks_B: Tensor) -> Tensor:
    """Give each bank its places, never more than it has candidates."""
    bank_X = torch.arange(num_there_BX.shape[1], device=num_there_BX.device)
    num_banks_B1 = num_banks_B[:, None]
    num_places_B1 = num_places_B[:, None]
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
