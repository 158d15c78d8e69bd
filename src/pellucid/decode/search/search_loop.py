"""The search: one loop for greedy, beam and sampling, over sentences that come and go.

Each step reads one token of every hypothesis of every sentence, as one batch, and chooses the next
tokens. A finished hypothesis keeps its place in the beam, and the best continuations for the
places that are left are chosen with ``</s>`` among them; so a beam of 1 is greedy. As soon as a
sentence is done, a waiting one takes its slot.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

import torch
from torch import Tensor

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.request import Request, SpecialIds
from pellucid.decode.constraints.required import RequiredPhrases
from pellucid.decode.constraints.rules import leave_only_given, make_rules
from pellucid.decode.hypothesis import OVERFLOWED, Hypothesis
from pellucid.decode.logits import log_normalizer
from pellucid.decode.search.beams import NO_REQUEST, Beams
from pellucid.decode.search.sampling import draw
from pellucid.decode.search.selection import Choice, choose_in_groups, choose_with_phrases
from pellucid.decode.search.uniforms import uniforms
from pellucid.decode.steppers import Stepper


@dataclass(frozen=True)
class SearchAnswer:
    """The answer to one request.

    Attributes:
        hypotheses: finished ones first, each part by score; empty if nothing obeys the rules, and
            `OVERFLOWED` if logits were not finite.
        margin: the smallest lead, in natural logs, by which any decision was taken.
    """

    hypotheses: tuple[Hypothesis, ...]
    margin: float


class Search:
    """Answers requests: `answers` runs to the end, `step` takes one step.

    Args:
        stepper: the model.
        requests: what to search for, in the order in which they get slots.
        config: the options of the search.
        special: the ids with a meaning.
        sentences: how many to search in one batch.
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
        self._sentences = sentences
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
        # Progress with phrases can only start for all slots at once, too.
        self._starts_together = stepper.starts_together or self._phrases is not None
        self._progress: Any = None
        self._uniform_RT = None
        if config.sample:
            longest = max(request.max_length for request in requests)
            table = uniforms([request.key for request in requests], config.seed, longest)
            self._uniform_RT = torch.from_numpy(table).to(self._device)
        # These need log-probabilities to choose by; for the others logits do.
        self._is_normalized = (
            config.sample or config.repetition_penalty > 1 or self._phrases is not None
        )
        # Requests stand in line twice: until they are encoded, and then until a slot is free.
        self._has_given = any(request.num_given for request in requests)
        self._waiting = range(len(requests))
        self._encoded = range(0)
        self._memory: Any = None
        self._memory_start = 0
        self._found: defaultdict[int, list[Hypothesis]] = defaultdict(list)
        # Every answer of a device takes longer than what it would save to compute.
        self._asks = self._device.type == "cpu"
        with torch.inference_mode():
            self._open()

    def _open(self) -> None:
        """Make slots for sentences that wait, and start these."""
        width = self._config.beam
        self._size = min(self._sentences, len(self._waiting))
        self.beams = Beams(self._requests, self._config, self._size, self._device)
        self._state = self._stepper.new_state(self._size, width)
        self._newest_A = torch.full((self._size * width,), self._special.start, device=self._device)
        self._fill(torch.arange(self._size, device=self._device))

    def answers(self) -> Iterator[tuple[int, SearchAnswer]]:
        """Search to the end, and yield each answer with its request's index once it is found."""
        while not self.is_over:
            yield from self.step()

    @property
    def is_over(self) -> bool:
        """True if every request has been answered."""
        return self._size == 0

    @torch.inference_mode()
    def step(self) -> list[tuple[int, SearchAnswer]]:
        """Extend every hypothesis by one token, and return the answers that are complete."""
        beams = self.beams
        is_growing_A = beams.total_BW.flatten() > -math.inf
        logits_AV = self._stepper.step(self._state, self._newest_A, is_growing_A)
        if self._has_given:
            leave_only_given(logits_AV, self._requests, beams.history)
        normalizer_A = log_normalizer(logits_AV)
        # One number to look at, which is not finite if any of them is not. A device is not asked.
        if not self._asks or not math.isfinite(normalizer_A.sum()):
            self._give_up_overflowed(logits_AV, normalizer_A)
        values_AV, logs_AV = self._apply_rules(logits_AV, normalizer_A)
        choice = self._choose(values_AV, normalizer_A)
        beams.margin_B = torch.minimum(beams.margin_B, choice.margin_B)

        # From columns of a sentence's beam to rows of the batch.
        sentences_B1 = torch.arange(self._size, device=self._device)[:, None]
        parents_A = (sentences_B1 * beams.width + choice.parent_BW).flatten()
        tokens_A = choice.token_BW.flatten()
        value_A = values_AV[parents_A, tokens_A]
        log_A = value_A if logs_AV is None else logs_AV[parents_A, tokens_A]
        if not self._is_normalized:
            # Only the chosen values, since to normalize all of them reads the whole vocabulary.
            value_A = log_A = (value_A - normalizer_A[parents_A]).clamp_(max=0)
        total_BW = beams.total_BW.gather(1, choice.parent_BW) + value_A.view_as(choice.parent_BW)
        total_BW = total_BW.masked_fill(~choice.is_taken_BW, -math.inf)

        if beams.width > 1:
            self._state.reorder(choice.parent_BW)
        beams.append(parents_A, tokens_A, log_A)
        if self._phrases is not None:
            self._progress = self._phrases.advance(self._progress.reorder(parents_A), tokens_A)
            # At the length limit there is no step left for what is missing.
            is_met_BW = self._phrases.is_met(self._progress).view_as(total_BW)
            is_last_B1 = (beams.length_B >= beams.limit_B)[:, None]
            total_BW = total_BW.masked_fill(is_last_B1 & ~is_met_BW, -math.inf)
        self._newest_A = tokens_A
        return self._collect(total_BW, choice.token_BW == self._special.eos)

    def _give_up_overflowed(self, logits_AV: Tensor, normalizer_A: Tensor) -> None:
        """End the search of sentences whose logits are not finite, and make them finite."""
        beams = self.beams
        is_finite_A = normalizer_A.isfinite()
        is_over_BW = ~is_finite_A.view_as(beams.total_BW) & (beams.total_BW > -math.inf)
        is_over_B = is_over_BW.any(dim=1)
        beams.has_overflowed_B |= is_over_B
        beams.total_BW.masked_fill_(is_over_B[:, None], -math.inf)
        # Their rows stay in the batch until they are collected; with equal logits nothing fails.
        logits_AV.masked_fill_(~is_finite_A[:, None], 0.0)
        normalizer_A.masked_fill_(~is_finite_A, math.log(logits_AV.shape[1]))

    def agreed_ids(self) -> tuple[int, ...]:
        """Find the first tokens that all hypotheses share, in a search for one request."""
        if self.is_over:
            return ()
        length = int(self.beams.length_B[0])
        growing_X = (self.beams.total_BW[0] > -math.inf).nonzero()[:, 0]
        # A finished hypothesis may still win, so it has a say as well.
        texts = [hypothesis.ids for hypothesis in self._found[0]]
        texts += [tuple(ids) for ids in self.beams.tokens_AT[growing_X, :length].tolist()]
        columns = zip(*texts, strict=False)
        return tuple(column[0] for column in takewhile(lambda ids: len(set(ids)) == 1, columns))

    def _apply_rules(self, logits_AV: Tensor, normalizer_A: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the values to choose by, and the model's own if the rules may change them."""
        values_AV = logits_AV
        logs_AV = None
        if self._is_normalized:
            # Rounding may leave a log-probability a little above 0.
            values_AV = logits_AV.sub_(normalizer_A[:, None]).clamp_(max=0)
            # Of the rules only the penalty changes the value of a token that may be chosen.
            logs_AV = values_AV.clone() if self._config.repetition_penalty > 1 else None
        if self._rules:
            history = self.beams.history
            for rule in self._rules:
                rule(values_AV, history)
        if self._phrases is not None:
            unmet_A = ~self._phrases.is_met(self._progress)
            values_AV[:, self._special.eos].masked_fill_(unmet_A, -math.inf)
            self._phrases.end_words(values_AV, self._progress)
        return values_AV, logs_AV

    def _choose(self, values_AV: Tensor, normalizer_A: Tensor) -> Choice:
        beams = self.beams
        config = self._config
        if self._uniform_RT is not None:
            # The length of an empty slot grows past the end, so it wraps around.
            column_B = beams.length_B % self._uniform_RT.shape[1]
            token_A = draw(
                values_AV,
                self._uniform_RT[beams.request_B, column_B],
                temperature=config.temperature,
                top_k=config.top_k or 0,
                top_p=config.top_p,
                epsilon=config.epsilon,
            )
            return Choice.single(token_A, is_taken_B1=beams.total_BW > -math.inf)
        if self._phrases is not None:
            return choose_with_phrases(
                values_AV,
                beams.total_BW,
                beams.num_places_BG[:, 0],
                self._phrases,
                self._progress,
            )
        return choose_in_groups(
            values_AV,
            beams.total_BW,
            beams.num_places_BG,
            normalizer_A=None if self._is_normalized else normalizer_A,
            diversity=config.diversity,
            extra=int(config.strict),
        )

    def _collect(self, total_BW: Tensor, is_end_BW: Tensor) -> list[tuple[int, SearchAnswer]]:
        """Collect finished hypotheses, answer sentences that are done, and refill their slots."""
        beams = self.beams
        is_finished_BW, is_cut_BW = beams.settle(total_BW, is_end_BW)
        is_leaving_A = (is_finished_BW | is_cut_BW).flatten()
        are_leaving = bool(is_leaving_A.any()) if self._asks else True
        if are_leaving:
            score_BW = beams.note_scores(total_BW, is_finished_BW)
        is_done_B = beams.is_done()
        are_done = True
        if not self._asks:
            # The one question of a step.
            are_leaving, are_done = torch.stack((is_leaving_A.any(), is_done_B.any())).tolist()
        if are_leaving:
            leaving_Y = is_leaving_A.nonzero()[:, 0]
            for request, hypothesis in beams.hypotheses(leaving_Y, score_BW, is_finished_BW):
                self._found[request].append(hypothesis)
        done_X = is_done_B.nonzero()[:, 0] if are_done else is_done_B[:0]
        if not len(done_X):
            return []
        done = zip(
            beams.request_B[done_X].tolist(),
            beams.margin_B[done_X].tolist(),
            beams.has_overflowed_B[done_X].tolist(),
            strict=True,
        )
        answers = [(request, self._answer(request, *how)) for request, *how in done]
        beams.clear(done_X)
        self._state.retire(done_X)
        free = (beams.request_B == NO_REQUEST).nonzero()[:, 0]
        if self._starts_together and self._waiting and len(free) == self._size:
            self._open()
        else:
            self._fill(free)
        return answers

    def _answer(self, request: int, margin: float, has_overflowed: bool) -> SearchAnswer:
        found = self._found.pop(request, [])
        if has_overflowed:
            return SearchAnswer((OVERFLOWED,), math.inf)
        # Python's sort keeps the order of equals: what was found first stays first.
        found.sort(key=lambda hypothesis: (not hypothesis.is_finished, -hypothesis.score))
        ranked = pairwise(found[: self._config.n_best + 1])
        leads = (a.score - b.score for a, b in ranked if a.is_finished == b.is_finished)
        return SearchAnswer(tuple(found[: self._config.n_best]), min(margin, *leads, math.inf))

    def _fill(self, free: Tensor) -> None:
        """Give free slots to waiting requests; drop the slots if none waits for them."""
        must_wait = self._starts_together and len(free) < self._size
        while len(free) and (self._encoded or self._waiting) and not must_wait:
            if not self._encoded:
                self._encode()
            begun = self._encoded[: len(free)]
            slots_X = free[: len(begun)]
            free = free[len(begun) :]
            requests_X = torch.tensor(list(begun), device=self._device)
            # The memory holds only the sentences that were encoded last.
            self._state.insert(slots_X, self._memory, requests_X - self._memory_start)
            self.beams.begin(slots_X, requests_X)
            self._newest_A[self.beams.rows_of(slots_X)] = self._special.start
            self._encoded = self._encoded[len(begun) :]
        if self._phrases is not None and not must_wait and self._size:
            request_A = self.beams.request_B.clamp(min=0).repeat_interleave(self.beams.width)
            self._progress = self._phrases.start(request_A)
        # To drop slots copies the keys and values, so a few empty ones stay.
        is_wanted = not must_wait and bool(self._encoded or self._waiting)
        if not is_wanted and 4 * len(free) >= self._size:
            self._drop_empty_slots()

    def _encode(self) -> None:
        """Read as many of the waiting sentences as there are slots, as one batch."""
        self._encoded = self._waiting[: self._size]
        self._waiting = self._waiting[self._size :]
        self._memory_start = self._encoded.start
        self._memory = self._stepper.encode(
            [self._requests[index].source_ids for index in self._encoded]
        )

    def _drop_empty_slots(self) -> None:
        """Drop empty slots, so that nothing is computed for them."""
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
