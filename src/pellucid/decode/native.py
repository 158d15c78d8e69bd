"""The searches that the engine in C answers in one call, and those for which it computes steps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pellucid.config import DecodingConfig, ModelConfig, Precision
from pellucid.decode.constraints.request import Request, SpecialIds, check_requests
from pellucid.decode.hypothesis import OVERFLOWED, Hypothesis
from pellucid.decode.search.uniforms import draw_many_samples, uniforms
from pellucid.machine.hardware import threads_in_use
from pellucid.native.call import LengthLimits, SearchOptions
from pellucid.native.engine import NativeEngine
from pellucid.native.weight_shapes import find_obstacle

if TYPE_CHECKING:
    from pellucid.decode.probing.under_probe import UnderProbe
    from pellucid.model import EncoderDecoder

_SERVED = {
    *("beam", "n_best", "length_penalty", "alpha", "stopping", "diversity", "precision"),
    *("sample", "temperature", "top_k", "top_p", "epsilon", "seed", "forbidden_tokens"),
    *("max_length_ratio", "max_length_offset", "max_length", "min_length", "min_length_ratio"),
}
"""The options that one call of the engine serves; all others must have their default."""

Weights = Mapping[str, Any]
"""NumPy arrays by the names of a bundle."""


@dataclass(frozen=True)
class StoredModel:
    """A model on disk, which the engine reads without PyTorch.

    Attributes:
        config: the model's.
        weights: its weights.
        load: loads it for PyTorch; the same model every time.
    """

    config: ModelConfig
    weights: Weights
    load: Callable[[], EncoderDecoder]


class NativePath:
    """The engine for some models, if it can serve them; the weights are packed when first needed.

    It answers the common requests in one call. For the others it computes the steps of a search in
    Python.

    Args:
        models: one model, or several, which translate together.
        special: the ids with a meaning.
    """

    def __init__(self, models: Sequence[EncoderDecoder | StoredModel], special: SpecialIds) -> None:
        self._models = models
        self._special = special
        self._engines: dict[tuple[int, Precision], NativeEngine] = {}
        self._under: UnderProbe | None = None

    def under(self, probe: UnderProbe) -> NativePath:
        """Do the same under a probe, with the weights that are packed already."""
        found = copy.copy(self)
        found._under = probe
        return found

    def find_reason(self, config: DecodingConfig, requests: Sequence[Request] = ()) -> str | None:
        """Say why one call cannot answer requests; None if it can."""
        unserved = config.find_set(_SERVED)
        for is_other, reason in (
            (len(self._models) > 1, "several models translate together"),
            (unserved is not None, f"decoding.{unserved} is {getattr(config, str(unserved), '')}"),
            (any(one.required for one in requests), "phrases are required"),
            (any(one.forbidden_texts for one in requests), "phrases are forbidden"),
            (_forbidden_ids(requests) is None, "sequences of tokens are forbidden"),
        ):
            if is_other:
                return reason
        return self.find_obstacle(config.precision)

    def find_obstacle(self, precision: Precision) -> str | None:
        """Say why PyTorch must compute the steps of any search; None if the engine can."""
        if self._under is not None and self._under.reaches_decoder:
            return "a change of the decoder is made there"
        obstacles = (self._obstacle(index, precision) for index in range(len(self._models)))
        return next((one for one in obstacles if one is not None), None)

    def _obstacle(self, index: int, precision: Precision) -> str | None:
        model = self._models[index]
        known = self._engines.get((index, precision))
        if isinstance(model, StoredModel):
            if known is not None:  # nothing about it can change
                return known.obstacle
        else:
            # Looked at each time, since the caller may have moved or converted the model.
            weight = next(model.parameters())
            if weight.device.type != "cpu":
                return f"the model is on the device {weight.device.type}"
            if str(weight.dtype) != "torch.float32":
                return f"the weights are {weight.dtype}"
        # This comes first, because to make an engine packs all weights.
        if (obstacle := find_obstacle(model.config, precision)) is not None:
            return obstacle
        return self._engine(index, precision).obstacle

    def describe(self, config: DecodingConfig, rule: str | None = None) -> str:
        """Name what computes requests, with the engine's instructions.

        Args:
            config: the options.
            rule: a reason against one call that lies in the requests.
        """
        if (obstacle := self.find_obstacle(config.precision)) is not None:
            if config.precision == "int8":
                return f"PyTorch in float32, since {obstacle}: int8 needs the engine in C"
            return f"PyTorch, since {obstacle}"
        name = f"the engine in C ({self._engine(0, config.precision).instructions})"
        reason = self.find_reason(config) or rule
        return name if reason is None else f"{name}, step by step, since {reason}"

    def engines(self, precision: Precision) -> list[NativeEngine]:
        """Give the engine of each model, if `find_obstacle` found nothing against them."""
        return [self._engine(index, precision) for index in range(len(self._models))]

    def answer(
        self,
        requests: Sequence[Request],
        config: DecodingConfig,
        *,
        batch_tokens: int,
    ) -> list[tuple[Hypothesis, ...]]:
        """Answer requests that `find_reason` found no reason against, or draw ``n_best`` samples.

        No answer depends on the other requests or on the number of threads, to the last bit.

        Args:
            requests: in any order.
            config: how to search.
            batch_tokens: about how many positions to compute at once in each thread.

        Raises:
            InputError: a prefix or a forbidden token is wrong.
        """
        translate = partial(self._translate, batch_tokens=batch_tokens)
        if config.sample:
            return draw_many_samples(requests, config, translate)
        return translate(requests, config)

    def _translate(
        self, requests: Sequence[Request], config: DecodingConfig, *, batch_tokens: int
    ) -> list[tuple[Hypothesis, ...]]:
        special = self._special
        size = self._models[0].config.target_vocabulary_size
        # The engine knows only whether ids exist; a prefix that holds `</s>` is refused here.
        if any(one.prefix_ids or one.forbidden for one in requests):
            check_requests(requests, special.eos, size)
        longest = max((len(request.source_ids) for request in requests), default=1)
        forbidden = _forbidden_ids(requests) or ()
        found = self._engine(0, config.precision).translate(
            [request.source_ids for request in requests],
            [
                LengthLimits(one.max_length, one.min_length, one.prefix_ids, one.num_given)
                for one in requests
            ],
            SearchOptions(config, special.start, special.eos, (*special.never, *forbidden)),
            sentences=max(1, batch_tokens // (longest * config.beam)),
            threads=threads_in_use(),
            given=None
            if self._under is None
            else self._under.vectors([one.source_ids for one in requests]),
            uniforms=[uniforms([one.key], config.seed, one.max_length)[0] for one in requests]
            if config.sample
            else (),
        )
        return [
            (OVERFLOWED,) if isinstance(answer, str) else tuple(Hypothesis(*one) for one in answer)
            for answer in found
        ]

    def _engine(self, index: int, precision: Precision) -> NativeEngine:
        key = (index, precision)
        if key not in self._engines:
            model = self._models[index]
            if isinstance(model, StoredModel):
                weights = model.weights
            else:
                state = model.state_dict()
                # Views, not copies: the engine keeps reading the embeddings from them.
                weights = {name: tensor.detach().numpy() for name, tensor in state.items()}
            self._engines[key] = NativeEngine(model.config, weights, precision)
        return self._engines[key]


def _forbidden_ids(requests: Sequence[Request]) -> tuple[int, ...] | None:
    """List the tokens that all requests forbid, or None if they forbid longer sequences."""
    if not requests:
        return ()
    forbidden = requests[0].forbidden
    # A call of the engine has one list of forbidden tokens for all of its requests.
    is_common = all(request.forbidden == forbidden for request in requests)
    if not is_common or any(len(sequence) != 1 for sequence in forbidden):
        return None
    return tuple(sequence[0] for sequence in forbidden)
