"""The state of play: what every hypothesis of every sentence in a search has written so far."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.request import Request
from pellucid.decode.constraints.rules import History
from pellucid.decode.hypothesis import Hypothesis
from pellucid.decode.search.penalty import LengthPenalty

__all__ = ["NO_REQUEST", "Beams"]

NO_REQUEST = -1
"""The request of a place where nothing is translated."""


class Beams:
    """Texts, sums and finished hypotheses of the sentences that are searched side by side.

    Row b · width + w is hypothesis w of sentence b. A hypothesis that does not exist, or is
    finished, has the sum −∞.

    Args:
        requests: all that the search will be asked for.
        config: the options of the search.
        sentences: how many are searched side by side.
        device: where the tensors are.
    """

    def __init__(
        self,
        requests: Sequence[Request],
        config: DecodingConfig,
        sentences: int,
        device: torch.device,
    ) -> None:
        self.width = config.beam
        self.groups = config.diverse_groups
        self.stopping = config.stopping
        longest = max(request.max_length for request in requests)
        self.penalty = LengthPenalty(config, longest, device)
        self._limit_R = torch.tensor([r.max_length for r in requests], device=device)
        rows, kept = sentences * self.width, min(config.n_best, self.width)
        self.request_B = torch.full((sentences,), NO_REQUEST, device=device)
        self.length_B = torch.zeros(sentences, dtype=torch.long, device=device)
        self.total_BW = _nothing(sentences, self.width, device)
        self.num_finished_BG = torch.zeros(sentences, self.groups, dtype=torch.long, device=device)
        self.best_BN = _nothing(sentences, kept, device)
        self.margin_B = -_nothing(sentences, 1, device)[:, 0]
        self.tokens_AT = torch.zeros(rows, longest, dtype=torch.long, device=device)
        self.logs_AT = torch.zeros(rows, longest, device=device)

    def begin(self, places_X: Tensor, requests_X: Tensor) -> None:
        """Start sentences afresh, one hypothesis in each group."""
        self.request_B[places_X] = requests_X
        self.length_B[places_X] = 0
        self.total_BW[places_X] = -math.inf
        self.total_BW[places_X[:, None], self._first_of_groups()] = 0.0
        self.num_finished_BG[places_X] = 0
        self.best_BN[places_X] = -math.inf
        self.margin_B[places_X] = math.inf

    def leave(self, places_X: Tensor) -> None:
        """Take sentences that are done off the beams."""
        self.request_B[places_X] = NO_REQUEST
        self.total_BW[places_X] = -math.inf

    def keep(self, places_B: Tensor) -> None:
        """Go on with these sentences alone."""
        rows_A = self.rows_of(places_B)
        for name in ("request_B", "length_B", "total_BW", "num_finished_BG", "best_BN", "margin_B"):
            setattr(self, name, getattr(self, name)[places_B])
        self.tokens_AT, self.logs_AT = self.tokens_AT[rows_A], self.logs_AT[rows_A]

    def rows_of(self, places_B: Tensor) -> Tensor:
        """The rows of some sentences: ``rows_A``."""
        return (places_B[:, None] * self.width + self._range(self.width)).flatten()

    def count_places(self) -> Tensor:
        """How many hypotheses may go on, in each group of each sentence: ``num_places_BG``."""
        return self.width // self.groups - self.num_finished_BG

    @property
    def limit_B(self) -> Tensor:  # noqa: N802
        """The most tokens that each sentence may get."""
        return self._limit_R[self.request_B]

    @property
    def history(self) -> History:
        """What the rows have written, for the rules."""
        longest = max(1, int(self.length_B.max()))
        return History(
            self.tokens_AT[:, :longest],
            self.length_B.repeat_interleave(self.width),
            self.request_B.clamp(min=0).repeat_interleave(self.width),
        )

    def write(self, parents_A: Tensor, tokens_A: Tensor, logs_A: Tensor) -> None:
        """Let every row go on from its parent with one more token."""
        if self.width > 1:
            longest = int(self.length_B.max()) + 1
            self.tokens_AT[:, :longest] = self.tokens_AT[parents_A, :longest]
            self.logs_AT[:, :longest] = self.logs_AT[parents_A, :longest]
        length_A1 = self.length_B.repeat_interleave(self.width)[:, None]
        # Rows of nobody may count on beyond the end; what they write is never read.
        length_A1 = length_A1.clamp(max=self.tokens_AT.shape[1] - 1)
        self.tokens_AT.scatter_(1, length_A1, tokens_A[:, None])
        self.logs_AT.scatter_(1, length_A1, logs_A[:, None].to(self.logs_AT.dtype))
        self.length_B += 1

    def settle(self, total_BW: Tensor, is_end_BW: Tensor) -> tuple[Tensor, Tensor]:
        """After a step: note who finished, and who was cut off at the length limit.

        Args:
            total_BW: the sums with the newest tokens, −∞ where nothing was chosen.
            is_end_BW: where the newest token is ``</s>``.

        Returns:
            ``is_finished_BW``, ``is_cut_BW``: those who leave with a result.
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
        """Keep the best finished scores, and hand out all hypotheses' scores: ``score_BW``."""
        score_BW = self.penalty.score(total_BW, self._length_in_table()[:, None])
        newest_BW = score_BW.masked_fill(~is_finished_BW, -math.inf)
        kept = self.best_BN.shape[1]
        self.best_BN = torch.cat([self.best_BN, newest_BW], dim=1).topk(kept, dim=1).values
        return score_BW

    def is_done(self) -> Tensor:
        """Which sentences have their answer: nothing grows, or nothing that grows can matter."""
        leader_B = self.total_BW.amax(dim=1)
        is_done_B: Tensor = leader_B == -math.inf
        if self.stopping != "never":
            longest_B = self._length_in_table()
            if self.stopping == "safe":
                longest_B = self.limit_B
            bound_B = self.penalty.bound(leader_B, longest_B)
            is_done_B |= self.best_BN[:, -1] >= bound_B
            if self.stopping == "heuristic":  # What could still come may be better, or not.
                gap_B = (self.best_BN[:, -1] - bound_B).abs().nan_to_num(nan=math.inf)
                self.margin_B = torch.minimum(self.margin_B, gap_B)
        return is_done_B & (self.request_B != NO_REQUEST)

    def hypotheses(
        self, rows_A: Tensor, score_BW: Tensor, is_finished_BW: Tensor
    ) -> list[tuple[int, Hypothesis]]:
        """Read out rows: each with the request that it answers."""
        sentence_A = rows_A // self.width
        columns = zip(
            self.request_B[sentence_A].tolist(),
            self.length_B[sentence_A].tolist(),
            self.tokens_AT[rows_A].tolist(),
            self.logs_AT[rows_A].tolist(),
            is_finished_BW.flatten()[rows_A].tolist(),
            score_BW.flatten()[rows_A].tolist(),
            strict=True,
        )
        return [
            (request, Hypothesis(tuple(ids[:length]), tuple(logs[:length]), is_finished, score))
            for request, length, ids, logs, is_finished, score in columns
        ]

    def _length_in_table(self) -> Tensor:
        return self.length_B.clamp(max=self.tokens_AT.shape[1])

    def _first_of_groups(self) -> Tensor:
        return self._range(self.groups) * (self.width // self.groups)

    def _range(self, length: int) -> Tensor:
        return torch.arange(length, device=self.length_B.device)


def _nothing(rows: int, columns: int, device: torch.device) -> Tensor:
    return torch.full((rows, columns), -math.inf, dtype=torch.float64, device=device)
