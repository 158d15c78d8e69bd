"""The tokens that the rows of a search have so far, and rules for what may follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass
class TokenHistory:
    """The tokens of each row of a search.

    Attributes:
        tokens_AT: ids, without the start token; columns beyond the row's length mean nothing.
        length_A: the number of tokens of each row.
        request_A: the request of each row, an index into the list of requests.
    """

    tokens_AT: Tensor
    length_A: Tensor
    request_A: Tensor


class Rule(Protocol):
    """A pure function of the history, editing the values of the next token in place.

    It keeps no state, so rows may be reordered, dropped and replaced between two steps.
    """

    def __call__(self, values_AV: Tensor, history: TokenHistory) -> None:
        """Edit natural log-probabilities; a token that must not follow gets minus infinity."""


def last_tokens(history: TokenHistory, count: int) -> Tensor:
    """Read the last tokens of each row, the newest one last.

    Args:
        history: the rows.
        count: how many tokens.

    Returns:
        Ids of shape (rows, count); -1 before the beginning.
    """
    tokens_AT = history.tokens_AT
    length_A = history.length_A
    columns_AX = length_A[:, None] + torch.arange(-count, 0, device=length_A.device)
    last = tokens_AT.shape[1] - 1
    # Before the first token a history may have no column to gather from.
    if last < 0:
        return torch.full_like(columns_AX, -1)
    return tokens_AT.gather(1, columns_AX.clamp(0, last)).masked_fill(columns_AX < 0, -1)


def lower_values(
    values_AV: Tensor, ids_AX: Tensor, is_meant_AX: Tensor, value: Tensor | float
) -> None:
    """Lower the values of some tokens of each row, in place; no value is raised.

    Args:
        values_AV: the values of all tokens.
        ids_AX: tokens of each row, in any order, any number of times.
        is_meant_AX: True for those that count; the others may hold anything.
        value: their new values, of the same shape, or one number for all.
    """
    to_AX = values_AV.new_full(ids_AX.shape, torch.inf)
    if isinstance(value, Tensor):
        to_AX = value.where(is_meant_AX, to_AX)
    else:
        to_AX.masked_fill_(is_meant_AX, value)
    # The others lower token 0 to infinity, which changes nothing.
    values_AV.scatter_reduce_(1, ids_AX.where(is_meant_AX, 0), to_AX, "amin")


def pad_rows(rows: Sequence[Sequence[int]], fill: int, device: torch.device | str) -> Tensor:
    """Make a table of rows of different lengths, padded on the right."""
    width = max(map(len, rows), default=0)
    padded = [[*row, *[fill] * (width - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.long, device=device).view(len(rows), width)
