"""The beams of a search: the tokens, sums and finished scores of every sentence's hypotheses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.request import Request
from pellucid.decode.constraints.token_history import TokenHistory
from pellucid.decode.hypothesis import Hypothesis
from pellucid.native.call import length_penalties

NO_REQUEST = -1
"""The request of an empty slot."""


class LengthPenalty:
    """The score of a hypothesis, by `pellucid.native.call.length_penalties`.

    Args:
        config: which penalty, and its α.
        longest: the greatest length that will be scored.
        device: the device of the table.
    """

    def __init__(self, config: DecodingConfig, longest: int, device: torch.device) -> None:
        table_T = length_penalties(config.length_penalty, config.alpha, longest)
        self._table_T = torch.from_numpy(table_T).to(device)

    def score(self, total: Tensor, length: Tensor) -> Tensor:
        """Divide log-probabilities by the penalty of their lengths; shapes broadcast."""
        return total / self._table_T[length]


class Beams:
    """The hypotheses of the sentences that are searched in one batch.

    Each sentence has a slot b with ``width`` hypotheses; row b · width + w is hypothesis w of
    slot b. A hypothesis that does not exist, or is finished, has the sum −∞.

    Args:
        requests: everything that the search will be asked for.
        config: the options of the search.
        slots: how many sentences to search in one batch.
        device: the device of the tensors.
    """

    def __init__(
        self,
        requests: Sequence[Request],
        config: DecodingConfig,
        slots: int,
        device: torch.device,
    ) -> None:
        self.width = config.beam
        self.groups = config.diverse_groups
        self.stopping = config.stopping
        longest = max(request.max_length for request in requests)
        self.penalty = LengthPenalty(config, longest, device)
        self._limit_R = torch.tensor([r.max_length for r in requests], device=device)
        count = partial(torch.zeros, dtype=torch.long, device=device)
        # Sums are in float64, so that those of many tokens lose nothing.
        fill = partial(torch.full, dtype=torch.float64, device=device)
        rows = slots * self.width
        self.request_B = torch.full((slots,), NO_REQUEST, device=device)
        self.length_B = count(slots)
        self.total_BW = fill((slots, self.width), -math.inf)
        self.num_finished_BG = count(slots, self.groups)
        self.best_BN = fill((slots, min(config.n_best, self.width)), -math.inf)
        self.margin_B = fill((slots,), math.inf)
        self.has_overflowed_B = torch.zeros(slots, dtype=torch.bool, device=device)
        self.tokens_AT = count(rows, longest)
        self.logs_AT = torch.zeros(rows, longest, device=device)

    def begin(self, slots_X: Tensor, requests_X: Tensor) -> None:
        """Start sentences in some slots, with one empty hypothesis in each group."""
        self.request_B[slots_X] = requests_X
        self.length_B[slots_X] = 0
        self.total_BW[slots_X] = -math.inf
        # One only: equal hypotheses would fill the beam with copies of one continuation.
        firsts_G = torch.arange(0, self.width, self.width // self.groups, device=slots_X.device)
        self.total_BW[slots_X[:, None], firsts_G] = 0.0
        self.num_finished_BG[slots_X] = 0
        self.best_BN[slots_X] = -math.inf
        self.margin_B[slots_X] = math.inf
        self.has_overflowed_B[slots_X] = False

    def clear(self, slots_X: Tensor) -> None:
        """Empty the slots of sentences that are done."""
        self.request_B[slots_X] = NO_REQUEST
        self.total_BW[slots_X] = -math.inf

    def keep(self, slots_B: Tensor) -> None:
        """Keep only these slots."""
        rows_A = self.rows_of(slots_B)
        by_slot = ("request_B", "length_B", "total_BW", "num_finished_BG", "best_BN", "margin_B")
        for name in (*by_slot, "has_overflowed_B"):
            setattr(self, name, getattr(self, name)[slots_B])
        self.tokens_AT = self.tokens_AT[rows_A]
        self.logs_AT = self.logs_AT[rows_A]

    def rows_of(self, slots_B: Tensor) -> Tensor:
        """The rows of some slots: ``rows_A``."""
        columns_W = torch.arange(self.width, device=slots_B.device)
        return (slots_B[:, None] * self.width + columns_W).flatten()

    @property
    def num_places_BG(self) -> Tensor:  # noqa: N802
        """The number of hypotheses that may still grow in each group of each sentence."""
        return self.width // self.groups - self.num_finished_BG

    @property
    def limit_B(self) -> Tensor:  # noqa: N802
        """The maximum number of tokens of each sentence."""
        return self._limit_R[self.request_B]

    @property
    def history(self) -> TokenHistory:
        """The tokens of each row, for the rules."""
        longest = max(1, int(self.length_B.max()))
        # Empty slots must point somewhere; what the rules make of their rows is not used.
        return TokenHistory(
            self.tokens_AT[:, :longest],
            self.length_B.repeat_interleave(self.width),
            self.request_B.clamp(min=0).repeat_interleave(self.width),
        )

    def append(self, parents_A: Tensor, tokens_A: Tensor, logs_A: Tensor) -> None:
        """Make every row a copy of its parent row with one more token."""
        # A single hypothesis is its own parent.
        if self.width > 1:
            longest = self.tokens_AT.shape[1]
            if self.length_B.device.type == "cpu":  # To ask a device takes longer than to copy.
                longest = int(self.length_B.max()) + 1
            self.tokens_AT[:, :longest] = self.tokens_AT[parents_A, :longest]
            self.logs_AT[:, :longest] = self.logs_AT[parents_A, :longest]
        length_A1 = self.length_B.repeat_interleave(self.width)[:, None]
        # The length of an empty slot may grow past the end; its tokens are never read.
        length_A1 = length_A1.clamp(max=self.tokens_AT.shape[1] - 1)
        self.tokens_AT.scatter_(1, length_A1, tokens_A[:, None])
        self.logs_AT.scatter_(1, length_A1, logs_A[:, None].to(self.logs_AT.dtype))
        self.length_B += 1

    def settle(self, total_BW: Tensor, is_end_BW: Tensor) -> tuple[Tensor, Tensor]:
        """Take over the sums of a step; find who finished and who reached the length limit.

        Args:
            total_BW: the sums with the newest tokens, −∞ if nothing was chosen.
            is_end_BW: True if the newest token is ``</s>``.

        Returns:
            ``is_finished_BW``, ``is_cut_BW``: the hypotheses that stop growing.
        """
        is_there_BW = total_BW > -math.inf
        at_limit_B1 = (self.length_B >= self.limit_B)[:, None]
        is_finished_BW = is_there_BW & is_end_BW
        is_cut_BW = is_there_BW & ~is_end_BW & at_limit_B1
        self.total_BW = total_BW.masked_fill(is_end_BW | at_limit_B1, -math.inf)
        by_group = is_finished_BW.view(len(total_BW), self.groups, -1)
        self.num_finished_BG += by_group.sum(dim=-1)
        return is_finished_BW, is_cut_BW

    def note_scores(self, total_BW: Tensor, is_finished_BW: Tensor) -> Tensor:
        """Keep the best finished scores, and return all scores: ``score_BW``."""
        score_BW = self.penalty.score(total_BW, self._length_in_table()[:, None])
        newest_BW = score_BW.masked_fill(~is_finished_BW, -math.inf)
        kept = self.best_BN.shape[1]
        self.best_BN = torch.cat([self.best_BN, newest_BW], dim=1).topk(kept, dim=1).values
        return score_BW

    def is_done(self) -> Tensor:
        """Tell which sentences have their answer, because nothing that grows can change it."""
        leader_B = self.total_BW.amax(dim=1)
        is_done_B: Tensor = leader_B == -math.inf
        if self.stopping != "never":
            # At the longest length a sum so far has its best possible score: docs/decisions/0009.
            longest_B = self.limit_B if self.stopping == "safe" else self._length_in_table()
            bound_B = self.penalty.score(leader_B, longest_B)
            is_done_B |= self.best_BN[:, -1] >= bound_B
            if self.stopping == "heuristic":
                # To stop or not is a decision that rounding could overturn, too.
                gap_B = (self.best_BN[:, -1] - bound_B).abs().nan_to_num(nan=math.inf)
                self.margin_B = torch.minimum(self.margin_B, gap_B)
        return is_done_B & (self.request_B != NO_REQUEST)

    def hypotheses(
        self, rows_A: Tensor, score_BW: Tensor, is_finished_BW: Tensor
    ) -> list[tuple[int, Hypothesis]]:
        """Read out rows, each with the index of its request."""
        slot_A = rows_A // self.width
        lengths = self.length_B[slot_A].tolist()
        longest = max(lengths, default=0)  # The tables are as wide as the limit.
        columns = zip(
            self.request_B[slot_A].tolist(),
            lengths,
            self.tokens_AT[rows_A, :longest].tolist(),
            self.logs_AT[rows_A, :longest].tolist(),
            is_finished_BW.flatten()[rows_A].tolist(),
            score_BW.flatten()[rows_A].tolist(),
            strict=True,
        )
        return [
            (request, Hypothesis(tuple(ids[:length]), tuple(logs[:length]), is_finished, score))
            for request, length, ids, logs, is_finished, score in columns
        ]

    def _length_in_table(self) -> Tensor:
        """The lengths, with those of empty slots cut down to the penalty's table."""
        return self.length_B.clamp(max=self.tokens_AT.shape[1])
