"""Every way to decode with one model or several, by a search in Python with PyTorch's tensors.

The engine in C computes the steps if it can, and whole searches if one call answers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from typing import Any

import torch

from pellucid.config import DecodingConfig, Precision
from pellucid.decode.constraints.forbidden import ForbiddenText
from pellucid.decode.constraints.request import Request, SpecialIds
from pellucid.decode.constraints.required import RequiredPhrases
from pellucid.decode.hypothesis import OVERFLOW, Decided, Hypothesis
from pellucid.decode.native import NativePath, StoredModel
from pellucid.decode.probing.probed_steps import ProbedStepper
from pellucid.decode.probing.under_probe import UnderProbe
from pellucid.decode.recorded_steps import RecordedStepper, explain_unrecorded
from pellucid.decode.search.beams import LengthPenalty
from pellucid.decode.search.search_loop import Search, SearchAnswer
from pellucid.decode.search.uniforms import draw_many_samples, number_sample
from pellucid.decode.steppers import Ensemble, ModelStepper, NativeStepper, Stepper
from pellucid.errors import InputError
from pellucid.machine.graphs import make_graphs
from pellucid.machine.hardware import set_threads, some_threads
from pellucid.model import EncoderDecoder, Transformer

DOUBT = 1e-3
"""A lead, in natural logs, that rounding in float32 could overturn, with a factor to spare.

In another batch a sentence's log-probabilities differ by about 1e-6 a token
(docs/guides/translating.md).
"""

GROWTH = 1.5
"""The longest source of a batch is at most this many times as long as its shortest."""

SHORT = 8
"""Sources up to this length are one group."""

WEIGHTS_FOR_THREADS = 8_000_000
"""Rows of a step times weights of the models, from which several threads pay off.

``benchmarks/busy.py`` measures it: with the packaged model a sentence by itself takes a third
longer on two threads than on one, and much longer while other programs use the processor.
"""


class PyTorchDecoder:
    """Answers requests with a model, or with several whose softmaxes are averaged.

    The weights are prepared once for each precision, so they must not change afterwards.

    Args:
        models: at least one; all have the same target vocabulary. Stored ones are loaded only for
            steps that the engine in C does not compute.
        special: the ids with a meaning.
        native: the engine in C for these models.
        under: a probe that changes them.
    """

    def __init__(
        self,
        models: Sequence[EncoderDecoder | StoredModel],
        special: SpecialIds,
        native: NativePath,
        under: UnderProbe | None = None,
    ) -> None:
        set_threads(None)
        self._models = models
        self._special = special
        self._num_weights = sum(map(_count_weights, models))
        self._native = native
        self._under = under
        self._steppers: dict[tuple[Precision, torch.dtype | None], Stepper] = {}

    def decode(
        self, requests: Sequence[Request], config: DecodingConfig, *, batch_tokens: int
    ) -> list[tuple[Hypothesis, ...]]:
        """Find the ``n_best`` hypotheses for each request, as `Decoder.decode` describes."""
        if config.alternatives:
            return self._decode_alternatives(requests, config, batch_tokens=batch_tokens)
        if config.sample:
            search = partial(self._search, batch_tokens=batch_tokens)
            return draw_many_samples(requests, config, search)
        return self._search(requests, config, batch_tokens=batch_tokens)

    def stream(self, request: Request, config: DecodingConfig) -> Iterator[Decided]:
        """Answer one request step by step, as `Decoder.stream` describes."""
        stepper = self._stepper(config, torch.float64 if config.strict else None)
        # Numbered as in `draw_many_samples`, so that a stream draws what `decode` would draw.
        request = number_sample(request, 0)
        search = Search(stepper, [request], config, self._special, sentences=1)
        num_decided = 0
        while True:
            answers = search.step()
            if answers:
                hypotheses = answers[0][1].hypotheses
                if hypotheses and hypotheses[0].has_overflowed:
                    raise InputError(OVERFLOW)
                yield hypotheses[0].ids if hypotheses else (), hypotheses
                return
            agreed = search.agreed_ids()
            if len(agreed) > num_decided:
                num_decided = len(agreed)
                yield agreed, None

    def _search(
        self, requests: Sequence[Request], config: DecodingConfig, *, batch_tokens: int
    ) -> list[tuple[Hypothesis, ...]]:
        """Search; with ``strict`` so that no answer depends on the rest of the batch.

        A batch changes only how sums are rounded. So an answer whose decisions all had a lead
        above `DOUBT` is the same in any batch; every other request is searched again by itself,
        in float64.
        """
        if self._native.find_reason(config, requests) is None:
            return self._native.answer(requests, config, batch_tokens=batch_tokens)
        found = self._run(self._stepper(config), requests, config, batch_tokens=batch_tokens)
        if config.strict:
            for index, answer in enumerate(found):
                if answer.margin < DOUBT:
                    # Made only now, since it is a copy of all weights in float64.
                    exact = self._stepper(config, torch.float64)
                    request = requests[index]
                    (found[index],) = self._run(exact, [request], config, batch_tokens=1)
        return [answer.hypotheses for answer in found]

    def _run(
        self,
        stepper: Stepper,
        requests: Sequence[Request],
        config: DecodingConfig,
        *,
        batch_tokens: int,
    ) -> list[SearchAnswer]:
        """Search, with sources of about one length in one batch."""
        answers: dict[int, SearchAnswer] = {}
        lengths = [len(request.source_ids) for request in requests]
        # A probe must see no padding, so that what it does depends on no other sentence.
        for group in _group_by_length(lengths, GROWTH if self._under is None else None):
            # The first of a group is the longest, to whose length the others are padded.
            sentences = max(1, batch_tokens // (lengths[group[0]] * config.beam))
            asked = [requests[index] for index in group]
            found = self._search_together(stepper, asked, config, min(len(asked), sentences))
            answers.update((group[place], answer) for place, answer in found)
        return [answers[index] for index in range(len(requests))]

    def _search_together(
        self, stepper: Stepper, asked: Sequence[Request], config: DecodingConfig, sentences: int
    ) -> list[tuple[int, SearchAnswer]]:
        """Search with so many sentences at once, or fewer if a GPU's memory takes no more."""
        search: Search | None = None
        while True:
            try:
                with some_threads(self._threads_for(sentences * config.beam)):
                    search = Search(stepper, asked, config, self._special, sentences=sentences)
                    return list(search.answers())
            except torch.cuda.OutOfMemoryError:
                if sentences == 1:
                    raise
                search = None
            # Only here, since an error that is being handled keeps its tensors.
            sentences = (sentences + 1) // 2
            torch.cuda.empty_cache()

    def _threads_for(self, rows: int) -> int:
        """Choose one thread for small steps, in which threads would mostly wait for each other."""
        is_small = rows * self._num_weights < WEIGHTS_FOR_THREADS
        return 1 if is_small else torch.get_num_threads()

    def _decode_alternatives(
        self, requests: Sequence[Request], config: DecodingConfig, *, batch_tokens: int
    ) -> list[tuple[Hypothesis, ...]]:
        """Find the likeliest tokens after each prefix, then continue each to the end."""
        one_step: dict[str, Any] = {"beam": config.n_best, "diverse_groups": 1}
        # A penalty would reorder the tokens, and an early stop leave some out.
        one_step |= {"alternatives": False, "length_penalty": "none", "stopping": "never"}
        allow_growth = cache(_allow_growth)  # the requests of a search share their phrases
        found = self._search(
            [_limit_to_one_token(request, allow_growth) for request in requests],
            config.model_copy(update=one_step),
            batch_tokens=batch_tokens,
        )
        # A search puts finished ones first, and a repetition penalty changes its scores.
        firsts = [sorted(answer, key=lambda one: -one.log_probability) for answer in found]
        continued = [
            replace(request, prefix_ids=first.ids)
            for request, answer in zip(requests, firsts, strict=True)
            for first in answer
            if not (first.is_finished or first.has_overflowed)
        ]
        # All of them are continued in one search, so that they fill its batches.
        rest = config.model_copy(update={"alternatives": False, "n_best": 1})
        ends = iter(self._search(continued, rest, batch_tokens=batch_tokens))
        return [
            tuple(
                chain.from_iterable(
                    self._as_answer(first, request, config)
                    if first.is_finished or first.has_overflowed
                    else next(ends)
                    for first in answer
                )
            )
            for request, answer in zip(requests, firsts, strict=True)
        ]

    def _as_answer(
        self, ended: Hypothesis, request: Request, config: DecodingConfig
    ) -> tuple[Hypothesis, ...]:
        """Score a hypothesis that ends right after the prefix, if it has all required phrases."""
        if ended.has_overflowed:
            return (ended,)
        # The search for one token ran without the phrases (`_limit_to_one_token`).
        vocabulary = self._models[0].config.target_vocabulary_size
        phrases = RequiredPhrases([request], vocabulary_size=vocabulary, device="cpu")
        progress = phrases.start(torch.zeros(1, dtype=torch.long))
        for token in ended.ids:
            progress = phrases.advance(progress, torch.tensor([token]))
        if not phrases.is_met(progress):
            return ()
        length = len(ended.ids)
        penalty = LengthPenalty(config, length, torch.device("cpu"))
        total = torch.tensor(ended.log_probability, dtype=torch.float64)
        return (replace(ended, score=penalty.score(total, torch.tensor(length)).item()),)

    def _stepper(self, config: DecodingConfig, dtype: torch.dtype | None = None) -> Stepper:
        """Prepare the models for a precision, once; `ModelStepper` says what the dtype is for."""
        key = (config.precision, dtype)
        if key not in self._steppers:
            steppers = self._make_steppers(config.precision, dtype)
            self._steppers[key] = steppers[0] if len(steppers) == 1 else Ensemble(steppers)
        return self._steppers[key]

    def _make_steppers(self, precision: Precision, dtype: torch.dtype | None) -> list[Stepper]:
        # The engine has no products in float64.
        if dtype is None and self._native.find_obstacle(precision) is None:
            engines = self._native.engines(precision)
            return [NativeStepper(engine, self._under) for engine in engines]
        return [self._on_pytorch(model, precision, dtype) for model in self.load_models()]

    def _on_pytorch(
        self, model: EncoderDecoder, precision: Precision, dtype: torch.dtype | None
    ) -> Stepper:
        if self._under is not None:
            return ProbedStepper(model, precision, self._under, dtype=dtype)
        graphs = make_graphs(model.output_weight.device)
        is_recorded = explain_unrecorded(model.config) is None and dtype is None
        if graphs is not None and is_recorded and isinstance(model, Transformer):
            return RecordedStepper(model, precision, graphs)
        return ModelStepper(model, precision, dtype=dtype)

    def load_models(self) -> list[EncoderDecoder]:
        """Give the models, loading stored ones."""
        return [one.load() if isinstance(one, StoredModel) else one for one in self._models]


def _count_weights(model: EncoderDecoder | StoredModel) -> int:
    if isinstance(model, StoredModel):
        return sum(weight.size for weight in model.weights.values())
    return sum(parameter.numel() for parameter in model.parameters())


def _limit_to_one_token(
    request: Request, allow_growth: Callable[[ForbiddenText], ForbiddenText]
) -> Request:
    """Ask only for the token after the prefix, which more tokens may follow."""
    length = len(request.prefix_ids) + 1
    forbidden = request.forbidden_texts
    if length < request.max_length:
        forbidden = tuple(map(allow_growth, forbidden))
    # Required phrases may still come with the tokens that follow.
    return replace(request, max_length=length, required=(), forbidden_texts=forbidden)


def _allow_growth(phrase: ForbiddenText) -> ForbiddenText:
    """Allow tokens that end exactly where the phrase does: their last word may still grow.

    For a search whose last token is not the text's last.
    """
    return replace(phrase, may_grow=True)


def _group_by_length(lengths: Sequence[int], growth: float | None) -> Iterator[list[int]]:
    """Group sources that differ little in length, so that a batch holds little padding.

    Args:
        lengths: the number of tokens of each source.
        growth: how many times as long as its shortest source the longest of a group may be; None
            groups equal lengths only.

    Yields:
        Indices into ``lengths``, the longest source first.
    """
    group: list[int] = []
    # Equal lengths keep their order, because Python's sort is stable.
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        longest = lengths[group[0]] if group else 0
        if growth is None:
            is_apart = lengths[index] < longest
        else:
            # Short sources may differ by a large ratio and still hold little padding.
            is_apart = lengths[index] * growth < longest and longest > SHORT
        if is_apart:
            yield group
            group = []
        group.append(index)
    if group:
        yield group
