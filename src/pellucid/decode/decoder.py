"""One model or several, and every way to decode with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import torch

from pellucid.config import DecodingConfig, Precision
from pellucid.decode.constraints.forbidden import ForbiddenText
from pellucid.decode.constraints.request import Request
from pellucid.decode.constraints.required import RequiredPhrases
from pellucid.decode.fast.engine import Engine
from pellucid.decode.fast.ensemble import Ensemble
from pellucid.decode.hypothesis import Hypothesis
from pellucid.decode.search.batching import decode_requests, decode_strictly
from pellucid.decode.search.loop import Search, SpecialIds, Stepper
from pellucid.decode.search.penalty import LengthPenalty
from pellucid.model import Transformer

__all__ = ["Decoder"]


class Decoder:
    """Answers requests with a model, or with several whose softmaxes are averaged.

    What is prepared for a precision is kept for the next call, so the models' weights must not
    change.
    """

    def __init__(self, models: Sequence[Transformer], special: SpecialIds) -> None:
        self._models = models
        self._special = special
        self._steppers: dict[tuple[Precision, torch.dtype | None], Stepper] = {}

    def decode(
        self, requests: Sequence[Request], config: DecodingConfig, *, batch_tokens: int
    ) -> list[tuple[Hypothesis, ...]]:
        """Answer requests: for each its ``n_best`` hypotheses, the best first.

        Fewer where there are fewer; none where nothing fits the rules within the length.
        """
        if config.alternatives:
            return self._decode_alternatives(requests, config, batch_tokens=batch_tokens)
        if config.sample:
            return self._draw(requests, config, batch_tokens=batch_tokens)
        return self._search(requests, config, batch_tokens=batch_tokens)

    def stream(self, request: Request, config: DecodingConfig) -> Iterator[tuple[int, ...]]:
        """Answer one request step by step.

        Yields:
            The ids that are decided so far, each time there are more; at last the whole answer,
            which is empty where nothing fits the rules.
        """
        search = Search(
            self._exact() if config.strict else self._stepper(config),
            [_number(request, 0)],
            config,
            self._special,
            sentences=1,
        )
        num_decided = 0
        while True:
            answers = search.step()
            if answers:
                hypotheses = answers[0][1].hypotheses
                yield hypotheses[0].ids if hypotheses else ()
                return
            agreed = search.agreed_ids()
            if len(agreed) > num_decided:
                num_decided = len(agreed)
                yield agreed

    def _search(
        self, requests: Sequence[Request], config: DecodingConfig, *, batch_tokens: int
    ) -> list[tuple[Hypothesis, ...]]:
        stepper = self._stepper(config)
        if config.strict:
            found = decode_strictly(
                stepper, self._exact, requests, config, self._special, batch_tokens=batch_tokens
            )
        else:
            found = decode_requests(
                stepper, requests, config, self._special, batch_tokens=batch_tokens
            )
        return [answer.hypotheses for answer in found]

    def _draw(
        self, requests: Sequence[Request], config: DecodingConfig, *, batch_tokens: int
    ) -> list[tuple[Hypothesis, ...]]:
        """Every sample is a request of its own, with random numbers of its own."""
        count = config.n_best
        drawn = self._search(
            [_number(request, i) for request in requests for i in range(count)],
            config.model_copy(update={"n_best": 1}),
            batch_tokens=batch_tokens,
        )
        return [
            tuple(hypothesis for one in drawn[i : i + count] for hypothesis in one)
            for i in range(0, len(drawn), count)
        ]

    def _decode_alternatives(
        self, requests: Sequence[Request], config: DecodingConfig, *, batch_tokens: int
    ) -> list[tuple[Hypothesis, ...]]:
        """Find the likeliest tokens after each prefix, then continue each to the end."""
        one_step = {"alternatives": False, "beam": config.n_best, "diverse_groups": 1}
        go_on = cache(_without_end)  # the requests of a search share their phrases
        firsts = self._search(
            [_ask_one_token(request, go_on) for request in requests],
            config.model_copy(update={**one_step, "length_penalty": "none", "stopping": "never"}),
            batch_tokens=batch_tokens,
        )
        asked = [
            replace(request, prefix_ids=hypothesis.ids)
            for request, alternatives in zip(requests, firsts, strict=True)
            for hypothesis in sorted(alternatives, key=lambda one: -one.log_probability)
            if not hypothesis.is_finished
        ]
        rest = config.model_copy(update={"alternatives": False, "n_best": 1})
        ends = iter(self._search(asked, rest, batch_tokens=batch_tokens))
        return [
            tuple(
                end
                for hypothesis in sorted(alternatives, key=lambda one: -one.log_probability)
                for end in (
                    self._as_answer(hypothesis, request, config)
                    if hypothesis.is_finished
                    else next(ends)
                )
            )
            for request, alternatives in zip(requests, firsts, strict=True)
        ]

    def _as_answer(
        self, ended: Hypothesis, request: Request, config: DecodingConfig
    ) -> tuple[Hypothesis, ...]:
        """A hypothesis that ends right after the prefix, if that meets the request."""
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

    def _stepper(self, config: DecodingConfig) -> Stepper:
        return self._prepared(config.precision, None)

    def _exact(self) -> Stepper:
        return self._prepared("float32", torch.float64)

    def _prepared(self, precision: Precision, dtype: torch.dtype | None) -> Stepper:
        key = (precision, dtype)
        if key not in self._steppers:
            engines = [Engine(model, precision, dtype=dtype) for model in self._models]
            self._steppers[key] = engines[0] if len(engines) == 1 else Ensemble(engines)
        return self._steppers[key]


def _ask_one_token(request: Request, go_on: Callable[[ForbiddenText], ForbiddenText]) -> Request:
    """The request of the token after the prefix, behind which more may come."""
    length = len(request.prefix_ids) + 1
    forbidden = request.forbidden_texts
    if length < request.max_length:
        forbidden = tuple(map(go_on, forbidden))
    return replace(request, max_length=length, required=(), forbidden_texts=forbidden)


def _without_end(phrase: ForbiddenText) -> ForbiddenText:
    """The phrase where the last token of a search is not the text's last.

    A token that ends just where the phrase does is then no harm: its word may still go on.
    """
    return replace(phrase, bans=tuple(ban for ban in phrase.bans if not ban.is_exact))


def _number(request: Request, index: int) -> Request:
    """The request of one of several samples, which has random numbers of its own."""
    return replace(request, key=f"{index}\x1f{request.key}")
