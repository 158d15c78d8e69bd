"""The search: one loop for greedy, beam and sampling, over sentences that come and go.

Each step reads one token of every hypothesis of every sentence, as one batch, and chooses what to
go on with. A finished hypothesis keeps its place in the beam, and the best continuations for the
places that are left are chosen with ``</s>`` among them; so a beam of 1 is greedy. A sentence that
is done makes way at once for one that waits.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any, Protocol

import torch
from torch import Tensor

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.request import Request
from pellucid.decode.constraints.required import RequiredPhrases
from pellucid.decode.constraints.rules import make_rules
from pellucid.decode.hypothesis import Hypothesis
from pellucid.decode.logits import log_normalizer
from pellucid.decode.search.beams import NO_REQUEST, Beams
from pellucid.decode.search.phrases import choose_with_phrases
from pellucid.decode.search.sampling import draw, uniforms
from pellucid.decode.search.selection import Choice, choose_in_groups

__all__ = ["Found", "Search", "SpecialIds", "Stepper"]


class Stepper(Protocol):
    """What a search needs of a model, or of several together."""

    device: torch.device

    @property
    def vocabulary_size(self) -> int:
        """How many tokens each row of logits has."""

    def encode(self, sources: Sequence[Sequence[int]]) -> Any:
        """Read sentences; what comes back is for the state's ``insert``."""

    def open(self, sentences: int, width: int) -> Any:
        """Room for sentences with ``width`` hypotheses each, as `DecoderState` makes it."""

    def step(self, state: Any, newest_A: Tensor) -> Tensor:
        """Read a token of every row; ``logits_AV``."""


@dataclass(frozen=True)
class SpecialIds:
    """Ids with a meaning: what a target starts from, what ends it, what it never holds."""

    start: int
    eos: int
    never: tuple[int, ...] = ()


@dataclass(frozen=True)
class Found:
    """The answer to one request.

    Attributes:
        hypotheses: finished ones first, each part by score; empty where nothing fits the rules.
        margin: the smallest lead, in natural logs, by which any of its decisions was taken.
    """

    hypotheses: tuple[Hypothesis, ...]
    margin: float


class Search:
    """Answers requests; `answers` runs it to the end, `step` goes one token further.

    Args:
        stepper: the model.
        requests: what is asked for, in the order of being taken up.
        config: how.
        special: the ids with a meaning.
        sentences: how many are searched side by side.
    """

    def __init__(
        self,
        stepper: Stepper,
        requests: Sequence[Request],
        config: DecodingConfig,
        special: SpecialIds,
        *,
        sentences: int,
    ) -> None:
        self._stepper = stepper
        self._requests = requests
        self._config = config
        self._special = special
        self._size = min(sentences, len(requests))
        self._device = stepper.device
        self._rules = make_rules(
            requests,
            config,
            eos_id=special.eos,
            vocabulary_size=stepper.vocabulary_size,
            never=special.never,
            device=self._device,
        )
        self._phrases = None
        if any(request.required for request in requests):
            self._phrases = RequiredPhrases(
                requests, vocabulary_size=stepper.vocabulary_size, device=self._device
            )
        self._uniform_RT = None
        if config.sample:
            longest = max(request.max_length for request in requests)
            table = uniforms([request.key for request in requests], config.seed, longest)
            self._uniform_RT = torch.from_numpy(table).to(self._device)
        self._progress: Any = None
        self._next_request = 0
        self._memory: Any = None
        self._encoded: range = range(0)
        self._found: defaultdict[int, list[Hypothesis]] = defaultdict(list)
        with torch.inference_mode():
            self.beams = Beams(requests, config, self._size, self._device)
            self._state = stepper.open(self._size, config.beam)
            self._newest_A = torch.full((self._size * config.beam,), special.start)
            self._newest_A = self._newest_A.to(self._device)
            self._fill(torch.arange(self._size, device=self._device))

    def answers(self) -> Iterator[tuple[int, Found]]:
        """Search to the end; each answer comes with the index of its request, when it is there."""
        while not self.is_over:
            yield from self.step()

    @property
    def is_over(self) -> bool:
        """Whether every request has been answered."""
        return self._size == 0

    @torch.inference_mode()
    def step(self) -> list[tuple[int, Found]]:
        """Read one token of every hypothesis and choose; hands out the answers that are ready."""
        beams = self.beams
        logits_AV = self._stepper.step(self._state, self._newest_A)
        normalizer_A = log_normalizer(logits_AV)
        values_AV, logs_AV = self._apply_rules(logits_AV, normalizer_A)
        choice = self._choose(values_AV, normalizer_A)
        beams.margin_B = torch.minimum(beams.margin_B, choice.margin_B)

        sentences_B1 = torch.arange(self._size, device=self._device)[:, None]
        parents_A = (sentences_B1 * beams.width + choice.parent_BW).flatten()
        tokens_A = choice.token_BW.flatten()
        value_A = values_AV[parents_A, tokens_A]
        log_A = value_A if logs_AV is None else logs_AV[parents_A, tokens_A]
        if not self._is_normalized:
            value_A = log_A = (value_A - normalizer_A[parents_A]).clamp_(max=0)
        total_BW = beams.total_BW.gather(1, choice.parent_BW) + value_A.view_as(choice.parent_BW)
        total_BW = total_BW.masked_fill(~choice.is_taken_BW, -math.inf)

        if beams.width > 1:
            self._state.reorder(choice.parent_BW)
        beams.write(parents_A, tokens_A, log_A)
        if self._phrases is not None:
            self._progress = self._phrases.advance(self._progress.reorder(parents_A), tokens_A)
            is_met_BW = self._phrases.is_met(self._progress).view_as(total_BW)
            is_last_B1 = (beams.length_B >= beams.limit_B)[:, None]
            total_BW = total_BW.masked_fill(is_last_B1 & ~is_met_BW, -math.inf)
        self._newest_A = tokens_A
        return self._settle(total_BW, choice.token_BW == self._special.eos)

    def agreed_ids(self) -> tuple[int, ...]:
        """The tokens on which all hypotheses agree, growing or finished, of a search for one."""
        if self.is_over:
            return ()
        length = int(self.beams.length_B[0])
        growing_X = (self.beams.total_BW[0] > -math.inf).nonzero()[:, 0]
        texts = [hypothesis.ids for hypothesis in self._found[0]]
        texts += [tuple(ids) for ids in self.beams.tokens_AT[growing_X, :length].tolist()]
        columns = zip(*texts, strict=False)
        return tuple(column[0] for column in takewhile(lambda ids: len(set(ids)) == 1, columns))

    @property
    def _is_normalized(self) -> bool:
        """Whether the values of a step must be log-probabilities, and not just logits."""
        return (
            self._config.sample or self._config.repetition_penalty > 1 or self._phrases is not None
        )

    def _apply_rules(self, logits_AV: Tensor, normalizer_A: Tensor) -> tuple[Tensor, Tensor | None]:
        """The values to choose by, and the model's own where the rules may change them."""
        values_AV, logs_AV = logits_AV, None
        if self._is_normalized:
            values_AV = logits_AV.sub_(normalizer_A[:, None]).clamp_(max=0)
            logs_AV = values_AV.clone() if self._config.repetition_penalty > 1 else None
        if self._rules:
            history = self.beams.history
            for rule in self._rules:
                rule(values_AV, history)
        if self._phrases is not None:
            unmet_A = ~self._phrases.is_met(self._progress)
            values_AV[:, self._special.eos].masked_fill_(unmet_A, -math.inf)
        return values_AV, logs_AV

    def _choose(self, values_AV: Tensor, normalizer_A: Tensor) -> Choice:
        beams, config = self.beams, self._config
        if self._uniform_RT is not None:
            uniform_A = self._uniform_RT[
                beams.request_B, beams.length_B % self._uniform_RT.shape[1]
            ]
            token_A = draw(
                values_AV,
                uniform_A,
                temperature=config.temperature,
                top_k=config.top_k,
                top_p=config.top_p,
                epsilon=config.epsilon,
            )
            return Choice.single(token_A, is_taken_B1=beams.total_BW > -math.inf)
        if self._phrases is not None:
            return choose_with_phrases(
                values_AV,
                beams.total_BW,
                beams.count_places()[:, 0],
                self._phrases,
                self._progress,
            )
        return choose_in_groups(
            values_AV,
            beams.total_BW,
            beams.count_places(),
            normalizer_A=None if self._is_normalized else normalizer_A,
            diversity=config.diversity,
            extra=int(config.strict),
        )

    def _settle(self, total_BW: Tensor, is_end_BW: Tensor) -> list[tuple[int, Found]]:
        """Collect what is finished, answer what is done, and go on with those that wait."""
        beams = self.beams
        is_finished_BW, is_cut_BW = beams.settle(total_BW, is_end_BW)
        leaving_A = (is_finished_BW | is_cut_BW).flatten().nonzero()[:, 0]
        if len(leaving_A):
            score_BW = beams.note_scores(total_BW, is_finished_BW)
            for request, hypothesis in beams.hypotheses(leaving_A, score_BW, is_finished_BW):
                self._found[request].append(hypothesis)
        done_X = beams.is_done().nonzero()[:, 0]
        if not len(done_X):
            return []
        answers = [
            (request, self._answer(request, margin))
            for request, margin in zip(
                beams.request_B[done_X].tolist(), beams.margin_B[done_X].tolist(), strict=True
            )
        ]
        beams.leave(done_X)
        self._state.retire(done_X)
        self._fill((beams.request_B == NO_REQUEST).nonzero()[:, 0])
        return answers

    def _answer(self, request: int, margin: float) -> Found:
        found = self._found.pop(request, [])
        # Python's sort keeps the order of equals: what was found first stays first.
        found.sort(key=lambda hypothesis: (not hypothesis.is_finished, -hypothesis.score))
        ranked = pairwise(found[: self._config.n_best + 1])
        leads = (a.score - b.score for a, b in ranked if a.is_finished == b.is_finished)
        return Found(tuple(found[: self._config.n_best]), min(margin, *leads, math.inf))

    def _fill(self, free: Tensor) -> None:
        """Give free places to those that wait; without any, go on with fewer places."""
        # Phrases are followed from one start for all.
        must_be_empty = self._phrases is not None and len(free) < self._size
        while len(free) and self._num_waiting and not must_be_empty:
            if not self._encoded:
                self._encode()
            taken = min(len(free), len(self._encoded))
            chosen_X = torch.arange(taken, device=self._device) + (
                self._num_encoded - len(self._encoded)
            )
            requests_X = torch.tensor(list(self._encoded[:taken]), device=self._device)
            self._state.insert(free[:taken], self._memory, chosen_X)
            self.beams.begin(free[:taken], requests_X)
            self._newest_A[self.beams.rows_of(free[:taken])] = self._special.start
            self._encoded, free = self._encoded[taken:], free[taken:]
        if self._phrases is not None and not must_be_empty and self._size:
            request_A = self.beams.request_B.clamp(min=0).repeat_interleave(self.beams.width)
            self._progress = self._phrases.start(request_A)
        if not self._num_waiting and 4 * len(free) >= self._size:
            self._shrink()

    @property
    def _num_waiting(self) -> int:
        return len(self._encoded) + len(self._requests) - self._next_request

    def _encode(self) -> None:
        """Read as many of the waiting sentences as there are places, as one batch."""
        end = min(self._next_request + max(1, self._size), len(self._requests))
        self._encoded = range(self._next_request, end)
        self._num_encoded = len(self._encoded)
        self._memory = self._stepper.encode(
            [self._requests[index].source_ids for index in self._encoded]
        )
        self._next_request = end

    def _shrink(self) -> None:
        """Go on with the places where somebody is, so that nothing is computed for nobody."""
        kept_B = (self.beams.request_B != NO_REQUEST).nonzero()[:, 0]
        if len(kept_B) == self._size:
            return
        rows_A = self.beams.rows_of(kept_B)
        self._size = len(kept_B)
        if self._size:
            self._newest_A = self._newest_A[rows_A]
            self.beams.keep(kept_B)
            self._state.keep(kept_B)
            if self._phrases is not None:
                self._progress = self._progress.reorder(rows_A)
