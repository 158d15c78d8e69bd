"""A source and a target that run through a model together, with teacher forcing."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from pellucid.arguments import check_fields, checked
from pellucid.attention.probe import Probe
from pellucid.bundle import Bundle
from pellucid.config import known_option
from pellucid.config.head_address import Part
from pellucid.decode.hypothesis import OVERFLOW
from pellucid.decode.probing.under_probe import HasPieces, Noting
from pellucid.errors import InputError
from pellucid.inside.changes.change import Changes
from pellucid.inside.changes.given_changes import (
    ChangedSentence,
    GivenChanges,
    check_probe,
    describe_probe,
    join_probes,
    read_changes,
)
from pellucid.machine.hardware import available_memory
from pellucid.model import EncoderDecoder
from pellucid.model.cross_attention import AdditiveAttention, DotAttention
from pellucid.model.layers import MultiHeadAttention
from pellucid.text.language_tokens import code_problem
from pellucid.text.token_words import mark_unknown
from pellucid.text.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False, repr=False)
class PairData(HasPieces):
    """A source and the target to look at, as ids, with the model that reads them.

    Attributes:
        model: in float32, or in float64 if that was asked for.
        tokenizer: its tokenizer.
        source_ids: the source, with ``</s>`` at the end.
        target_ids: the token that each decoder row predicts; normally the last is ``</s>``.
        source_text: the source; empty if only its tokens are known.
        changes: a probe that changes every run of the pair; None for the model as it is.
    """

    model: EncoderDecoder
    tokenizer: Tokenizer
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]
    source_text: str = ""
    changes: Probe | None = None

    def __post_init__(self) -> None:
        for name in ("source_ids", "target_ids"):
            ids = getattr(self, name)
            if isinstance(ids, list):
                object.__setattr__(self, name, tuple(ids))
        check_fields(self)

    def __repr__(self) -> str:
        """Name the sentence and its translation, in one line."""
        source, target = (
            textwrap.shorten(" ".join(tokens), 40, placeholder=" …")
            for tokens in (self.source_tokens, self.predicted_tokens)
        )
        changes = "" if self.changes is None else f"; {describe_probe(self.changes)}"
        return f"<Pair: {source} → {target}{changes}>"

    @property
    def device(self) -> torch.device:
        """The device that the model computes on."""
        return self.model.output_weight.device

    def to_tensor(self, values: Any, dtype: torch.dtype | None = None) -> Tensor:
        """Make a tensor on the device of the model."""
        if isinstance(values, np.ndarray) and not values.flags.writeable:
            # Arrays of a trace are read-only, which PyTorch does not take.
            values = values.copy()
        return torch.as_tensor(values, dtype=dtype, device=self.device)

    def read(self, given: GivenChanges | None) -> Probe | None:
        """Turn changes of this pair into one probe, after those that it has.

        Raises:
            InputError: a change cannot be read, or names what the pair does not have.
        """
        if given is None:
            return self.changes
        sentence = ChangedSentence(
            self.tokenizer, self.source_text, self.source_ids, len(self.target_ids)
        )
        return join_probes(self.changes, read_changes(given, self.model.config, sentence))

    @property
    def read_ids(self) -> tuple[int, ...]:  # type: ignore[override]
        """The ids that the decoder reads: the start token, then the target without its last."""
        return (self.tokenizer.config.target_start_id, *self.target_ids[:-1])

    @property
    def predicted_tokens(self) -> tuple[str, ...]:
        """The pieces that the decoder's rows predict."""
        return tuple(self.tokenizer.target_tokens(self.target_ids))

    def logits(
        self, *, probe: GivenChanges | None = None, source_ids: Sequence[int] | None = None
    ) -> Tensor:
        """Run encoder and decoder once with teacher forcing: ``logits_TV``.

        Args:
            probe: sees every result, and may replace it; also changes as text. A warning says if it
                could replace something and did not.
            source_ids: another source to read instead.

        Raises:
            InputError: they are not finite, or a change cannot be read.
        """
        if isinstance(probe, Changes) and self.changes is None:
            # Measures make thousands of such runs; whoever made the changes has checked them.
            check_probe(probe, self.model.config)
        else:
            probe = self.read(probe)
        pair = self if source_ids is None else replace(self, source_ids=tuple(source_ids))
        noting = None if probe is None else Noting(probe)
        if noting is not None:
            noting.begin(pair)
        logits_TV = pair._run(noting)[0]
        if noting is not None:
            noting.warn()
        return logits_TV

    def logits_of_copies(self, probe: Probe, count: int) -> Tensor:
        """Run copies of the pair as one batch: ``logits_NTV``.

        Args:
            probe: sees the results of all N copies along the first axis, and may change each in
                another way. It takes the place of changes that the pair has.
            count: N.

        Raises:
            InputError: they are not finite.
        """
        return self._run(probe, count)

    def _run(self, probe: Probe | None, count: int = 1) -> Tensor:
        source_NS = self.to_tensor([self.source_ids] * count)
        target_NT = self.to_tensor([self.read_ids] * count)
        logits_NTV: Tensor = self.model(source_NS, target_NT, probe=probe)
        # One number that is not finite makes this sum so, which is cheaper than a test of each.
        if not math.isfinite(logits_NTV.detach().logsumexp(dim=-1).sum()):
            if probe is None:
                raise InputError(OVERFLOW)
            # Without the changes: if the model itself overflows, that error is the right one.
            self._run(None)
            raise InputError(
                "The logits must be finite numbers, but with these changes they are not. Change "
                "less."
            )
        return logits_NTV

    def log_probabilities(
        self, *, probe: GivenChanges | None = None, source_ids: Sequence[int] | None = None
    ) -> Tensor:
        """Score each target token: ``logs_T``, natural logs."""
        logs_TV = self.logits(probe=probe, source_ids=source_ids).log_softmax(dim=-1)
        return logs_TV.gather(1, self.to_tensor(self.target_ids)[:, None])[:, 0]

    def see(
        self, stages: Collection[str], *, sites: Collection[str] | None = None
    ) -> dict[str, Tensor]:
        """Run the pair once and keep some results, by names such as ``decoder.1.cross.weights``.

        Args:
            stages: which stages.
            sites: such as ``decoder.1.cross``; all unless given.
        """
        keeper = Keeper(stages, sites)
        self.logits(probe=keeper)
        return {name: tensor[0] for name, tensor in keeper.found.items()}


class Keeper:
    """A probe that keeps the results of some stages.

    Args:
        stages: which stages.
        sites: such as ``decoder.1.cross``; all unless given.
    """

    def __init__(self, stages: Collection[str], sites: Collection[str] | None = None) -> None:
        self._stages = stages
        self._sites = sites
        self.found: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        """Keep one result if it is wanted."""
        if stage in self._stages and (self._sites is None or site in self._sites):
            self.found[f"{site}.{stage}"] = tensor


class Replace:
    """A probe that replaces results by name, and refuses names that the model does not have.

    Args:
        functions: by name, such as ``encoder.0.self.weights``, a function that is handed the result
            and returns what takes its place; one of two parameters is handed the sentence, too
            (`pellucid.inside.Probe`).
        takes_batches: True if the functions also take several sentences of one length, along the
            first axis, which is faster.
    """

    @checked
    def __init__(
        self, functions: Mapping[str, Callable[..., Tensor]], *, takes_batches: bool = False
    ) -> None:
        self.takes_batches = takes_batches
        self.pair: Any = None
        self.names = {name: _with_pair(one) for name, one in functions.items()}
        self.sites = {name.rpartition(".")[0] for name in functions}

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Replace one result if a function has its name."""
        function = self.names.get(f"{site}.{stage}")
        # A copy, so that a function that writes into its argument does not change the model.
        return None if function is None else function(tensor.clone(), self.pair)

    def begin(self, pair: Any) -> None:
        """Note which sentence comes next."""
        self.pair = pair


def _with_pair(function: Callable[..., Tensor]) -> Callable[[Tensor, Any], Tensor]:
    """Give a function of a result a second parameter, unless it has one."""
    try:
        parameters = tuple(signature(function).parameters.values())
    except ValueError:
        # Functions in C, such as `Tensor.clone`, name none.
        parameters = ()
    # One with a default is the function's own: `lambda tensor, vector=vector: …`.
    needed = [one for one in parameters if one.default is one.empty and one.kind in _BY_PLACE]
    return function if len(needed) == 2 else lambda tensor, pair: function(tensor)


_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def make_pair(
    bundle: Bundle, source: str, target: str | Sequence[int], *, float64: bool = False
) -> PairData:
    """Pair a source with a target.

    Args:
        bundle: the model.
        source: the source line.
        target: a line of text, or the ids that a decode chose. What the vocabulary cannot write
            is ``<unk>``.
        float64: compute in double precision.

    Raises:
        InputError: a side is empty or too long for the model.
    """
    tokenizer = bundle.tokenizer
    model = bundle.model
    if not source.strip():
        raise InputError("No text was given: the line is empty. Write a sentence in it.")
    if isinstance(target, str):
        source, target = tokenizer.masked_pair(source, target)
        target = tokenizer.encode_translation(source, mark_unknown(tokenizer, target))
    target_ids = list(target)
    if not target_ids:
        raise InputError("No translation was given: the target has no tokens. Write one in it.")
    source_ids = tokenizer.encode_source(tokenizer.masked(source))
    problem = code_problem(tokenizer, source) or problem_of(model, source_ids, target_ids)
    if problem is not None:
        raise InputError(problem)
    # A copy of the weights in double precision, made once for a bundle.
    chosen = bundle.exact_model if float64 else model
    return PairData(chosen, tokenizer, tuple(source_ids), tuple(target_ids), source)


def problem_of(
    model: EncoderDecoder, source_ids: Sequence[int], target_ids: Sequence[int]
) -> str | None:
    """Say why a pair cannot go through a model, if it cannot.

    Args:
        model: the model.
        source_ids: of the source.
        target_ids: of the target.
    """
    for side, ids, limit in (
        ("source", source_ids, model.config.max_source_length),
        ("target", target_ids, model.config.max_target_length),
    ):
        if len(ids) > limit:
            return (
                f"A {side} must have at most {limit} tokens for this model, but has {len(ids)}. "
                "Give one sentence at a time."
            )
    return None


def output_by_head(attention: MultiHeadAttention) -> Tensor:
    """Cut the output projection into the block of each head: ``projection_HED``."""
    # The projection reads the heads one after the other, so its columns fall into blocks.
    weight = attention.output.weight
    return weight.T.reshape(attention.num_heads, -1, len(weight))


def states_of(model: EncoderDecoder, part: Part) -> list[str]:
    """Name the arrays between the layers of one part: the first input, then each layer's result."""
    depth = getattr(model.config, f"num_{part}_layers")
    if model.config.is_recurrent:
        return [f"{part}.input", *(f"{part}.{layer}.recurrent.state" for layer in range(depth))]
    place = known_option(model.config, "norm", ("post", "pre", "none"))
    # With post-norm the norm ends a layer; with pre-norm it begins the next one.
    last = "norm" if place == "post" else "residual"
    return [f"{part}.input", *(f"{part}.{layer}.feed_forward.{last}" for layer in range(depth))]


def check_memory(what: str, num_bytes: int, advice: str) -> None:
    """Make sure that something fits into the free memory.

    Raises:
        InputError: it does not.
    """
    available = available_memory(torch.device("cpu"))
    if available is not None and num_bytes > available:
        raise InputError(
            f"{what} must fit into the {available / 2**30:.1f} GiB of free memory, but takes "
            f"{num_bytes / 2**30:.1f} GiB. {advice}"
        )


def attention_at(model: EncoderDecoder, site: str) -> MultiHeadAttention:
    """Return a Transformer's module at a site such as ``decoder.1.cross``."""
    return cast(MultiHeadAttention, _module_at(model, site))


def recurrent_attention_at(model: EncoderDecoder, site: str) -> AdditiveAttention | DotAttention:
    """Return a recurrent model's module at ``decoder.0.cross``."""
    return cast(AdditiveAttention | DotAttention, _module_at(model, site))


def _module_at(model: EncoderDecoder, site: str) -> nn.Module:
    part, layer, kind = site.split(".")
    return model.get_submodule(f"{part}.layers.{layer}.{kind}_attention")
