"""Phrases that must appear: who has written how much of them, and which hypotheses to keep.

Hypotheses are divided into banks by how many required tokens they have, and each bank gets its
share of the beam. So those that are on their way to a phrase survive beside likelier ones that
have not begun with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import final

import torch
from torch import Tensor

from pellucid.decode.constraints.history import pad_rows
from pellucid.decode.constraints.request import Request
from pellucid.decode.logits import best_of_rows
from pellucid.errors import InputError
from pellucid.text import Tokenizer

__all__ = [
    "Progress",
    "RequiredPhrases",
    "allocate",
    "candidates",
    "prefix_ids",
    "required_ids",
]


@dataclass(frozen=True)
class Progress:
    """How far each row has come with the phrases of its request.

    Attributes:
        request_A: which request each row belongs to.
        depth_AQ: for each phrase, how many of its tokens the row ends in.
        count_AQ: for each phrase, how often the row holds it, up to as often as it must.
    """

    request_A: Tensor
    depth_AQ: Tensor
    count_AQ: Tensor

    def reorder(self, rows_A: Tensor) -> Progress:
        """The progress of these rows, in this order; a row may come several times."""
        return Progress(self.request_A[rows_A], self.depth_AQ[rows_A], self.count_AQ[rows_A])


@final
class RequiredPhrases:
    """The phrases that the translations of some requests must hold.

    A row holds a phrase as often as its tokens stand there side by side, counted from the left
    without overlap (as `str.count` does). It must do so as often as the phrase stands in all
    that was asked for: a phrase that is given twice must stand there twice, and one that is also
    part of another must stand there once more outside it. Different phrases may share tokens
    where one ends and the other begins.

    Source:
        Post and Vilar 2018, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation";
        Hu et al. 2019, "Improved Lexically Constrained Decoding".

    Differs:
        There a row has one phrase in progress, chosen greedily. Here each phrase has its own
        place in the Knuth–Morris–Pratt automaton, so what counts as met depends on the text
        alone.
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
            vocabulary_size: how many tokens there are.
            device: where the rows are.

        Raises:
            InputError: a phrase is empty, or a token is none.
        """
        places: dict[tuple[int, ...], int] = {}
        for phrase in (phrase for request in requests for phrase in request.required):
            _check_phrase(phrase, vocabulary_size)
            places.setdefault(phrase, len(places))
        needs = [_count_needs(request.required) for request in requests]
        # An empty phrase, needed no times, fills up the lists of requests that have fewer.
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
        """The progress of rows that have written nothing yet."""
        none_AQ = torch.zeros_like(self._phrase_RQ[request_A])
        return Progress(request_A, none_AQ, none_AQ)

    def advance(self, progress: Progress, tokens_A: Tensor) -> Progress:
        """The progress after each row wrote one more token.

        Of a phrase that is broken off, what still fits is kept: after ``a a``, another ``a``
        leaves two tokens of ``a a b``.
        """
        phrase_AQ = self._phrase_RQ[progress.request_A]
        length_AQ = self._length_U[phrase_AQ]
        is_same_AQX = self._tokens_UX[phrase_AQ] == tokens_A[:, None, None]
        symbol_AQ = _first_true(is_same_AQX).minimum(length_AQ)
        place_AQ = self._start_U[phrase_AQ] + progress.depth_AQ * (length_AQ + 1) + symbol_AQ
        depth_AQ = self._next[place_AQ]
        is_whole_AQ = depth_AQ == length_AQ
        count_AQ = (progress.count_AQ + is_whole_AQ.long()).minimum(
            self._need_RQ[progress.request_A]
        )
        return Progress(progress.request_A, depth_AQ.masked_fill(is_whole_AQ, 0), count_AQ)

    def wanted(self, progress: Progress) -> Tensor:
        """The tokens that would bring each row further with a phrase that it still needs.

        Returns:
            Ids of shape (rows, phrases), each token once, -1 elsewhere.
        """
        phrase_AQ = self._phrase_RQ[progress.request_A]
        next_AQ = self._tokens_UX[phrase_AQ].gather(2, progress.depth_AQ[:, :, None])[:, :, 0]
        next_AQ = next_AQ.masked_fill(self._is_met_each(progress), -1)
        is_same_AQQ = next_AQ[:, :, None] == next_AQ[:, None, :]
        return next_AQ.masked_fill(is_same_AQQ.tril(-1).any(-1), -1)

    def banks(self, progress: Progress) -> Tensor:
        """How many required tokens each row has: ``bank_A``.

        All those of phrases as often as they are met, and those of the one that has come
        furthest among the others. It equals the request's `total` where all are met, and nowhere
        else.
        """
        length_AQ = self._length_U[self._phrase_RQ[progress.request_A]]
        met_A = (progress.count_AQ * length_AQ).sum(1)
        depth_AQ = progress.depth_AQ.masked_fill(self._is_met_each(progress), 0)
        nothing_A1 = depth_AQ.new_zeros(len(depth_AQ), 1)
        return met_A + torch.cat([depth_AQ, nothing_A1], dim=1).amax(1)

    def is_met(self, progress: Progress) -> Tensor:
        """Whether each row has all its phrases: ``is_met_A``."""
        return self._is_met_each(progress).all(1)

    def total(self, request_B: Tensor) -> Tensor:
        """How many required tokens each request has: ``total_B``."""
        return self._total_R[request_B]

    def _is_met_each(self, progress: Progress) -> Tensor:
        return progress.count_AQ >= self._need_RQ[progress.request_A]


def _first_true(is_there_AQX: Tensor) -> Tensor:
    """The first place that is true along the last axis, its size where none is."""
    places_X = torch.arange(is_there_AQX.shape[-1], device=is_there_AQX.device)
    return places_X.where(is_there_AQX, is_there_AQX.shape[-1]).amin(-1)


def _count_needs(required: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    """How often each phrase stands in all phrases that were asked for."""
    return {phrase: sum(_count(phrase, other) for other in required) for phrase in required}


def _count(phrase: tuple[int, ...], ids: tuple[int, ...]) -> int:
    """How often a phrase stands in some tokens, from the left and without overlap."""
    count = place = 0
    while place + len(phrase) <= len(ids):
        is_there = ids[place : place + len(phrase)] == phrase
        count += is_there
        place += len(phrase) if is_there else 1
    return count


def _check_phrase(phrase: tuple[int, ...], vocabulary_size: int) -> None:
    """Check the tokens of a phrase."""
    if not phrase:
        raise InputError("A required phrase must hold a token, but one is empty. Leave it out.")
    if wrong := [id_ for id_ in phrase if not 0 <= id_ < vocabulary_size]:
        raise InputError(
            f"The tokens of a required phrase must be from 0 to {vocabulary_size - 1}, but one is "
            f"{wrong[0]}. Take the ids from this model's target vocabulary."
        )


def _make_automaton(phrase: tuple[int, ...]) -> list[int]:
    """For each depth and each place of a token in the phrase: the depth after that token.

    The place is the token's first; one that is not in the phrase has the place after the last.

    Source:
        Knuth, Morris and Pratt 1977, "Fast Pattern Matching in Strings".
    """
    width = len(phrase) + 1
    table: list[int] = []
    border = 0  # the depth after all tokens before this one but the first
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
    """Collect what each sentence could go on with, each continuation once.

    These are its best continuations, as many as the beam is wide; the best one of each
    hypothesis; and every token that a hypothesis wants.

    Args:
        values_AV: the values of the next token; row b · width + w is hypothesis w of sentence b.
        total_BW: each hypothesis's sum so far, minus infinity where there is none.
        wanted_AQ: `RequiredPhrases.wanted`.

    Returns:
        ``score_BC``, ``parent_BC``, ``token_BC``: the sum, minus infinity where nothing is; the
        hypothesis that is continued; with which token.

    Source:
        Post and Vilar 2018, section 3.
    """
    sentences, width = total_BW.shape
    vocabulary_size = values_AV.shape[1]
    row_W1 = torch.arange(width, device=total_BW.device)[:, None] * vocabulary_size
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
    """Choose which candidates go on: each bank gets its share of the places.

    All banks get equally many places; what is left over by the division goes to those with the
    most tokens met, one each. Places that a bank cannot fill go to the next higher bank that
    can, or where there is none, to the highest that can. Within a bank the highest score wins,
    of equal ones the first.

    Args:
        scores_BC: the candidates' scores; minus infinity is never chosen.
        banks_BC: how many required tokens each has.
        num_places_B: how many may be chosen in each row, at most ``width``.
        width: how many columns the answer has.
        num_banks_B: how many banks each row has: its required tokens and one more.

    Returns:
        ``index_BW``, the chosen candidates, highest score first; and ``is_filled_BW``: False
        where there was nothing left to choose.

    Source:
        Post and Vilar 2018, section 3.
    """
    score_BC, order_BC = scores_BC.sort(dim=1, descending=True, stable=True)
    bank_BC = banks_BC.gather(1, order_BC)
    is_there_BC = score_BC > -torch.inf
    num_there_BX = torch.zeros_like(bank_BC[:, :1]).expand(-1, int(num_banks_B.max())).clone()
    num_there_BX.scatter_add_(1, bank_BC, is_there_BC.long())
    room_BX = _share(num_there_BX, num_places_B, num_banks_B)
    # Candidates that are not there come last in their bank, beyond its room.
    by_bank_BC = bank_BC.argsort(dim=1, stable=True)
    bank_size_BX = torch.zeros_like(num_there_BX).scatter_add_(1, bank_BC, torch.ones_like(bank_BC))
    first_BX = bank_size_BX.cumsum(1) - bank_size_BX
    sorted_bank_BC = bank_BC.gather(1, by_bank_BC)
    rank_BC = torch.arange(bank_BC.shape[1], device=bank_BC.device) - first_BX.gather(
        1, sorted_bank_BC
    )
    is_chosen_BC = torch.empty_like(is_there_BC).scatter_(
        1, by_bank_BC, rank_BC < room_BX.gather(1, sorted_bank_BC)
    )
    # The chosen ones to the front, still by score.
    front_BC = is_chosen_BC.long().argsort(dim=1, descending=True, stable=True)
    index_BC, is_filled_BC = order_BC.gather(1, front_BC), is_chosen_BC.gather(1, front_BC)
    missing = max(0, width - index_BC.shape[1])
    return (
        torch.nn.functional.pad(index_BC, (0, missing))[:, :width],
        torch.nn.functional.pad(is_filled_BC, (0, missing))[:, :width],
    )


def _share(num_there_BX: Tensor, num_places_B: Tensor, num_banks_B: Tensor) -> Tensor:
    """How many places each bank gets, never more than it has candidates."""
    bank_X = torch.arange(num_there_BX.shape[1], device=num_there_BX.device)
    num_banks_B1, num_places_B1 = num_banks_B[:, None], num_places_B[:, None]
    share_BX = num_places_B1 // num_banks_B1 + (
        bank_X >= num_banks_B1 - num_places_B1 % num_banks_B1
    )
    share_BX = share_BX.where(bank_X < num_banks_B1, 0)
    # Upward, what is left over queues until it meets candidates: carry[b] is what leaves bank b.
    surplus_BX = (share_BX - num_there_BX).cumsum(1)
    carry_BX = surplus_BX - surplus_BX.cummin(1).values.clamp(max=0)
    arriving_BX = torch.nn.functional.pad(carry_BX[:, :-1], (1, 0))
    filled_BX = share_BX + arriving_BX - carry_BX
    # What nobody above could use comes down.
    left_BX = num_there_BX - filled_BX
    left_above_BX = left_BX.flip(1).cumsum(1).flip(1) - left_BX
    return filled_BX + (carry_BX[:, -1:] - left_above_BX).clamp(min=0).minimum(left_BX)


def required_ids(tokenizer: Tokenizer, phrase: str) -> tuple[int, ...]:
    """Cut a phrase that must appear into tokens.

    Args:
        tokenizer: the translation's.
        phrase: the phrase, of whole words; spaces around it say nothing.

    Returns:
        Its ids, as in the middle of a sentence, without ``</s>``.

    Raises:
        InputError: it is empty, or the vocabulary lacks a part of it.
    """
    ids = _encode(tokenizer, phrase, "required phrase")
    if not ids:
        raise InputError(f"A required phrase must hold text, but is {phrase!r}. Leave it out.")
    return ids


def prefix_ids(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """Cut the beginning of a translation into tokens.

    Args:
        tokenizer: the translation's.
        text: the beginning; its last word may be unfinished. Spaces around it say nothing.

    Returns:
        Its ids, without ``</s>``; none for an empty text.

    Raises:
        InputError: the vocabulary lacks a part of it.
    """
    return _encode(tokenizer, text, "prefix")


def _encode(tokenizer: Tokenizer, text: str, what: str) -> tuple[int, ...]:
    """Cut a text, refusing what is unknown."""
    text = text.strip()
    unknown = tokenizer.config.unk_id
    ids = tuple(tokenizer.encode_target(text)[:-1])
    if unknown in ids:
        parts = text.split() if tokenizer.config.kind == "words" else text
        missing = [part for part in parts if unknown in tokenizer.encode_target(part)]
        raise InputError(
            f"A {what} must be written in the model's target vocabulary, but {text!r} holds "
            f"{', '.join(map(repr, dict.fromkeys(missing)))}, which it lacks. Use other words."
        )
    return ids
