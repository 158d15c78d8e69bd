"""Greedy decoding by the replay, one line at a time, with a probe at every step."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from pellucid.attention.probe import Probe, only_observes
from pellucid.config import DecodingConfig, Precision
from pellucid.config.decoding import OF_GREEDY
from pellucid.decode.constraints.request import Request
from pellucid.decode.hypothesis import OVERFLOWED, Decided, Hypothesis
from pellucid.errors import InputError
from pellucid.inside.changes.change import Changes
from pellucid.inside.changes.what_if import decode_under
from pellucid.inside.pair import PairData
from pellucid.text.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pellucid.model import EncoderDecoder

SLOWLY = "a change other than cuts of whole heads runs through the replay, which is slow and greedy"

REPLACED_NOTHING = (
    "The probe replaced nothing: the model is unchanged. Compare its sites and stages with the "
    "names of a trace's arrays, and return the changed tensor."
)


class _Noting:
    """A probe that remembers whether the user's replaced anything."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self.has_replaced = False

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        found = self._probe.see(site, stage, tensor)
        self.has_replaced |= found is not None
        return found

    def __getattr__(self, name: str) -> Any:
        # A probe may say which sites it wants.
        return getattr(self._probe, name)


class ReplayDecoder:
    """Answers requests one by one, with a probe at every step; otherwise as `Decoder`.

    Args:
        model: the model, in float32.
        tokenizer: its tokenizer.
        probe: changes results on the way.
    """

    is_slow = True

    def __init__(self, model: EncoderDecoder, tokenizer: Tokenizer, probe: Probe) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._probe = probe
        # Changes from text are checked before, and a recurrent decoder shows its rows otherwise.
        is_checked = isinstance(probe, Changes) or model.config.is_recurrent
        if not (is_checked or only_observes(probe)):
            self._probe = _Noting(probe)

    def find_reason(self, config: DecodingConfig, requests: Sequence[Request] = ()) -> str | None:
        """Say why the engine in C does not answer requests."""
        return SLOWLY

    def find_obstacle(self, precision: Precision) -> str | None:
        """Say why the engine in C computes no step."""
        return SLOWLY

    def computes(self, precision: Precision) -> Precision:
        """Return what is asked for, which `decode` refuses if it is not the replay's float32."""
        return precision

    def find_engine(self, precision: Precision) -> None:
        """Give no engine: PyTorch computes every step."""

    def describe(self, config: DecodingConfig, rule: str | None = None) -> str:
        """Describe what answers requests."""
        return f"PyTorch, since {SLOWLY}"

    def decode(
        self, requests: Sequence[Request], config: DecodingConfig, *, batch_tokens: int = 0
    ) -> list[tuple[Hypothesis, ...]]:
        """Answer each request greedily.

        Raises:
            InputError: an option or a request needs more than a greedy search.
        """
        wrong = config.find_set((*OF_GREEDY, "strict"))
        if wrong is None and any(
            one.required or one.forbidden_texts or one.min_length for one in requests
        ):
            wrong = "constraints"
        if wrong is None and any(len(ids) > 1 for one in requests for ids in one.forbidden):
            wrong = "forbidden_tokens of several ids"
        if wrong is not None:
            raise InputError(
                f"{wrong} cannot be combined with this change: {SLOWLY}. Leave one of them out."
            )
        found: list[tuple[Hypothesis, ...]] = [(self._answer(one),) for one in requests]
        self._note_probe()
        return found

    def _answer(self, request: Request) -> Hypothesis:
        found = decode_under(
            self._pair(request.source_ids, ()),
            self._probe,
            prefix_ids=request.prefix_ids,
            max_length=request.max_length,
            # Single tokens: a longer phrase needs the search, which was refused above.
            never=[ids[0] for ids in request.forbidden],
        )
        if not all(map(math.isfinite, found.log_probabilities)):
            return OVERFLOWED
        is_finished = found.ids[-1] == self._tokenizer.config.eos_id
        given = request.num_given
        logs = (*[0.0] * given, *found.log_probabilities[given:])
        return Hypothesis(found.ids, logs, is_finished, sum(logs))

    def stream(self, request: Request, config: DecodingConfig) -> Iterator[Decided]:
        """Yield the whole answer to one request."""
        ((found,),) = self.decode([request], config)
        yield found.ids, (found,)

    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...]]:
        """Compute the log-probability of each target token, as `Decoder.score`."""
        found = [
            tuple(self._pair(*ids).log_probabilities(probe=self._probe).tolist())
            for ids in zip(sources, targets, strict=True)
        ]
        self._note_probe()
        return found

    def _note_probe(self) -> None:
        """Warn of a probe of the user's that may have misspelled a stage."""
        if isinstance(self._probe, _Noting) and not self._probe.has_replaced:
            warnings.warn(REPLACED_NOTHING, stacklevel=2)

    def _pair(self, source_ids: Sequence[int], target_ids: Sequence[int]) -> PairData:
        return PairData(self._model, self._tokenizer, tuple(source_ids), tuple(target_ids))
