"""Decoding with one model or several: in C in one call, or by a search in Python."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pellucid.config import DecodingConfig, Precision
from pellucid.decode.constraints.request import Request, SpecialIds
from pellucid.decode.hypothesis import OVERFLOW, Decided, Hypothesis
from pellucid.decode.native import NativePath, StoredModel
from pellucid.decode.scoring import mean_logs, score_in_c, score_on_pytorch
from pellucid.errors import InputError, need_library
from pellucid.native.engine import NativeEngine
from pellucid.text.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pellucid.decode.on_pytorch import PyTorchDecoder
    from pellucid.decode.probing.under_probe import UnderProbe
    from pellucid.model import EncoderDecoder


class Decoder:
    """Answers requests with a model, or with several whose softmaxes are averaged.

    The weights are prepared once for each precision, so they must not change afterwards.

    Args:
        models: at least one; all have the same target vocabulary. PyTorch is imported only for
            what one call of the engine in C does not answer, and a stored model loaded only for
            what the engine cannot compute.
        special: the ids with a meaning.
    """

    def __init__(self, models: Sequence[EncoderDecoder | StoredModel], special: SpecialIds) -> None:
        self._models = models
        self._special = special
        self._native = NativePath(models, special)
        self.change: UnderProbe | None = None
        """What changes the model on the way, if anything."""

    def under(self, probe: UnderProbe) -> Decoder:
        """Make a decoder of the same model under a probe, which reaches every search."""
        found = copy.copy(self)
        found.change = probe
        found._native = self._native.under(probe)
        # The steps in Python are other ones.
        found.__dict__.pop("on_pytorch", None)
        return found

    @cached_property
    def on_pytorch(self) -> PyTorchDecoder:
        """The searches in Python, whose tensors are PyTorch's."""
        # Importing PyTorch was 2 of the 2.5 seconds of a first translation: docs/decisions/0019.
        from pellucid.decode.on_pytorch import PyTorchDecoder

        return PyTorchDecoder(self._models, self._special, self._native, self.change)

    def find_reason(self, config: DecodingConfig, requests: Sequence[Request] = ()) -> str | None:
        """Say why one call of the engine in C does not answer requests; None if it does."""
        return self._native.find_reason(config, requests)

    def find_obstacle(self, precision: Precision) -> str | None:
        """Say why PyTorch computes every step in a precision; None if the engine in C does."""
        return self._native.find_obstacle(precision)

    def computes(self, precision: Precision) -> Precision:
        """Return the precision that is computed in where this one is asked for.

        A recurrent model, which is never stored in int8, refuses that when it decodes.
        """
        # A probe gets float32: in less, its effect could not be distinguished from rounding.
        if self.change is not None:
            return "float32"
        if self._models[0].config.is_recurrent:
            return precision
        is_unserved = precision == "int8" and self.find_obstacle(precision) is not None
        return "float32" if is_unserved else precision

    def find_engine(self, precision: Precision) -> NativeEngine | None:
        """Find the engine of the first model; None if PyTorch computes every step."""
        if self.find_obstacle(precision) is not None:
            return None
        return self._native.engines(precision)[0]

    def describe(self, config: DecodingConfig, rule: str | None = None) -> str:
        """Describe what answers requests; ``rule`` says what they ask for beyond the options."""
        said = self._native.describe(config, rule)
        first = self._models[0]
        if isinstance(first, StoredModel) or first.output_weight.device.type == "cpu":
            return said
        from pellucid.decode.recorded_steps import explain_unrecorded

        why = explain_unrecorded(first.config)
        return said if why is None else f"{said}; step by step, since {why}"

    def decode(
        self, requests: Sequence[Request], config: DecodingConfig, *, batch_tokens: int
    ) -> list[tuple[Hypothesis, ...]]:
        """Find the ``n_best`` hypotheses for each request, the best first.

        A request may get fewer, and gets none if nothing within its length obeys its rules. If
        logits on its way were not finite, it gets `OVERFLOWED` instead.

        Args:
            requests: in any order.
            config: how to search.
            batch_tokens: about how many positions to compute at once: hypotheses times the
                longest source. At least one sentence is computed.

        Returns:
            One answer for each request, in their order.
        """
        self._tell_texts(requests)
        reason = self.find_reason(config, requests)
        if reason is None:
            found = self._native.answer(requests, config, batch_tokens=batch_tokens)
        else:
            need_library("torch", f"This search ({reason})")
            found = self.on_pytorch.decode(requests, config, batch_tokens=batch_tokens)
        self._note_probe()
        return found

    def stream(self, request: Request, config: DecodingConfig) -> Iterator[Decided]:
        """Answer one request step by step; without PyTorch in one step, as C answers.

        Yields:
            The ids that are decided so far, each time there are more, and None; finally those of
            the best hypothesis, none if nothing obeys the rules, and the hypotheses.

        Raises:
            InputError: logits were not finite.
        """
        self._tell_texts([request])
        reason = self.find_reason(config, [request])
        if reason is not None:
            need_library("torch", f"This search ({reason})")
        try:
            search = self.on_pytorch
        except ModuleNotFoundError:
            (whole,) = self._native.answer([request], config, batch_tokens=1)
            if whole and whole[0].has_overflowed:
                raise InputError(OVERFLOW) from None
            yield whole[0].ids if whole else (), whole
            return
        yield from search.stream(request, config)
        self._note_probe()

    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[tuple[float, ...]]:
        """Compute the log-probability of each target token, in float32.

        Args:
            sources: token ids, ``</s>`` included.
            targets: one for each source, ``</s>`` included.

        Returns:
            Natural logs for each target; of several models those of the mean probability. A log is
            not a number if logits were not finite.
        """
        start = self._special.start
        under = self.change
        obstacle = self.find_obstacle("float32")
        if under is not None and obstacle is not None:
            found = under.score(sources, targets, start)
            self._note_probe()
            return found
        if obstacle is None:
            engines = self._native.engines("float32")
            given = None if under is None else under.vectors(sources)
            each = [score_in_c(engine, sources, targets, start, given) for engine in engines]
        else:
            need_library("torch", f"This score ({obstacle})")
            models = self.on_pytorch.load_models()
            each = [score_on_pytorch(model, sources, targets, start) for model in models]
        self._note_probe()
        return mean_logs(each, targets)

    def _tell_texts(self, requests: Sequence[Request]) -> None:
        if self.change is not None:
            self.change.know((one.source_ids, one.key) for one in requests)

    def _note_probe(self) -> None:
        if self.change is not None:
            self.change.probe.warn()


def make_decoder(models: Sequence[EncoderDecoder | StoredModel], tokenizer: Tokenizer) -> Decoder:
    """Make the search of one model, or of several whose softmaxes are averaged.

    Args:
        models: the weights.
        tokenizer: their tokenizer, which says which tokens a translation never has.
    """
    ids = tokenizer.config
    # Models of Marian have no `<s>`.
    never = {ids.pad_id, ids.target_start_id, ids.eos_id if ids.bos_id is None else ids.bos_id}
    # `</s>` stands in for a missing `<s>` above, but ends every translation.
    special = SpecialIds(ids.target_start_id, ids.eos_id, tuple(never - {ids.eos_id}))
    return Decoder(models, special)
