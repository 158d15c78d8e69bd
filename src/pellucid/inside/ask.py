"""A request for arrays: every array that a model computes, and those that are asked for."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pellucid.config import ModelConfig
from pellucid.config.head_address import ATTENTION_KINDS, HeadAddress, parse_address
from pellucid.errors import InputError, suggestion

WAY_IN = ("embedding", "positions", "input")

UNIT_STAGES = ("update", "reset", "candidate", "state")
"""The results of a gated recurrent unit at every position."""

SIMPLE_UNIT_STAGES = ("candidate", "forget", "state", "output")
"""The results of a decoder's simpler simple recurrent unit at every position."""

RECURRENT_STAGES = (*UNIT_STAGES, "forget", "initial", "vector", "readout")
"""The stages that only recurrent units have, and what surrounds them in recurrent models."""


@dataclass(frozen=True)
class WantedArray:
    """One array of a trace.

    Attributes:
        name: ``decoder.1.cross.weights``.
        axes: the letters of its axes, as in `pellucid.shapes`, with S or T for positions.
    """

    name: str
    axes: str


def arrays_of(model: ModelConfig) -> Iterator[WantedArray]:
    """Yield every array that a model computes, in the order in which it does.

    Args:
        model: sizes and switches.
    """
    if model.is_recurrent:
        yield from _recurrent_arrays(model)
        return
    for part, length, depth in (
        ("encoder", "S", model.num_encoder_layers),
        ("decoder", "T", model.num_decoder_layers),
    ):
        for stage in WAY_IN:
            # Positions inside attention add no vector.
            if stage != "positions" or model.adds_positions:
                yield WantedArray(f"{part}.{stage}", f"{length}D")
        for layer in range(depth):
            stages = ("inner", *(["gate"] if model.gated_feed_forward else []), "activated")
            inner = {**dict.fromkeys(stages, f"{length}F"), "output": f"{length}D"}
            sublayers = {"self": _attention(length, length)}
            if part == "decoder" and model.decoder == "ssru":
                sublayers = {"recurrent": dict.fromkeys(SIMPLE_UNIT_STAGES, "TD")}
            if part == "decoder":
                sublayers["cross"] = _attention("T", "S")
            for kind, inside in (sublayers | {"feed_forward": inner}).items():
                yield from _around(model, f"{part}.{layer}.{kind}", length, inside)
        if model.ends_in_norm:
            yield WantedArray(f"{part}.norm", f"{length}D")
    yield WantedArray("decoder.logits", "TV")


def _around(
    model: ModelConfig, site: str, length: str, inside: dict[str, str]
) -> Iterator[WantedArray]:
    """Yield the arrays of one sub-layer: those inside, with input, norm and residual around."""
    yield WantedArray(f"{site}.input", f"{length}D")
    if model.norm == "pre":
        yield WantedArray(f"{site}.norm", f"{length}D")
    for stage, axes in inside.items():
        yield WantedArray(f"{site}.{stage}", axes)
    yield WantedArray(f"{site}.residual", f"{length}D")
    if model.norm == "post":
        yield WantedArray(f"{site}.norm", f"{length}D")


def _attention(queries: str, keys: str) -> dict[str, str]:
    square = dict.fromkeys(("scores", "scaled", "masked", "weights"), f"H{queries}{keys}")
    first = {"query": f"H{queries}K", "key": f"H{keys}K", "value": f"H{keys}E"}
    return first | square | {"context": f"H{queries}E", "output": f"{queries}D"}


def _recurrent_arrays(model: ModelConfig) -> Iterator[WantedArray]:
    yield WantedArray("encoder.embedding", "SD")
    yield WantedArray("encoder.input", "SD")
    for layer in range(model.num_encoder_layers):
        yield from _unit(f"encoder.{layer}.recurrent", "S")
    # All that a decoder without attention ever reads of the source.
    yield WantedArray("encoder.vector", "1D")
    yield WantedArray("decoder.embedding", "TD")
    yield WantedArray("decoder.input", "TD")
    for layer in range(model.num_decoder_layers):
        yield WantedArray(f"decoder.{layer}.recurrent.initial", "1D")
        if layer == 0 and model.has_attention:
            # Nothing is scaled, and the context enters the unit as it is: it has no output.
            for stage, axes in _attention("T", "S").items():
                if stage not in ("scaled", "output"):
                    yield WantedArray(f"decoder.0.cross.{stage}", axes)
        yield from _unit(f"decoder.{layer}.recurrent", "T")
    yield WantedArray("decoder.readout", "TD")
    yield WantedArray("decoder.logits", "TV")


def _unit(site: str, length: str) -> Iterator[WantedArray]:
    for stage in UNIT_STAGES:
        yield WantedArray(f"{site}.{stage}", f"{length}D")


MAP_STAGES = ("scores", "scaled", "masked", "weights")
"""The stages whose arrays are queries by keys."""

HEAD_STAGES = ("query", "key", "value", *MAP_STAGES, "context")
"""The stages whose arrays have an axis of heads."""

ATTENTION_STAGES = (*HEAD_STAGES, "output")

AROUND = ("input", "residual", "norm")
STAGES = (
    *(*ATTENTION_STAGES, *AROUND, "inner", "gate", "activated", "embedding", "positions", "logits"),
    *RECURRENT_STAGES,
)


@dataclass(frozen=True)
class Ask:
    """The arrays that a trace shall hold: by default the weights of every attention.

    Attributes:
        heads: addresses such as ``decoder.1.cross.0``, ``*.*.self`` or ``decoder.1``; all unless
            given. Arrays with heads hold the heads that any address names, by their number.
        stages: names as in a trace: the stages of attention, and the arrays around them. Arrays
            outside of the layers come with addresses that name no layer.
        everything: take every stage, so that nothing is missing from token to token.

    Raises:
        InputError: an address or a stage cannot be read.
    """

    heads: str | Collection[str] = ()
    stages: str | Collection[str] = ("weights",)
    everything: bool = False

    def __post_init__(self) -> None:
        for what, example in (("heads", "decoder.1.cross.0"), ("stages", "weights")):
            given = getattr(self, what)
            names = (given,) if isinstance(given, str) else given
            is_several = isinstance(names, Collection) and not isinstance(names, bytes | Mapping)
            if not is_several or not all(isinstance(one, str) for one in names):
                raise InputError(
                    f"{what} must be a text such as {example!r} or several, but is {given!r}. "
                    "Write it so."
                )
            # As a tuple, so that equal requests are equal, however they were written.
            object.__setattr__(self, what, tuple(names))
        for name in self.stages:
            if name not in STAGES:
                raise InputError(f"The stage {name!r} does not exist. {suggestion(name, STAGES)}")
        # Reading them refuses what is no address.
        _ = self.addresses

    @property
    def addresses(self) -> tuple[HeadAddress, ...]:
        """The addresses, read; one that means everything if none was given."""
        return tuple(parse_address(head) for head in self.heads) or (HeadAddress(depth=1),)

    def level(self, name: str) -> tuple[Any, ...] | None:
        """List what the addresses name at a level.

        Args:
            name: ``part``, ``layer``, ``kind`` or ``head``.

        Returns:
            Each once, in the order given; None if an address leaves the level open.
        """
        found = dict.fromkeys(getattr(address, name) for address in self.addresses)
        return None if None in found else tuple(found)

    def check(self, model: ModelConfig) -> None:
        """Make sure that a model has everything that is asked for.

        Raises:
            InputError: an address names what the model does not have, or no array fits.
        """
        self.check_places(model)
        if not any(self.arrays(model)):
            raise InputError(_explain_nothing(self, model))

    def check_places(self, model: ModelConfig) -> None:
        """Make sure that a model has the places that are named, whatever arrays they have.

        Raises:
            InputError: an address names what the model does not have.
        """
        for address in self.addresses:
            address.check_in(model)

    def chosen_heads(self, model: ModelConfig) -> tuple[int, ...]:
        """Return the numbers of the heads that arrays with heads hold."""
        everything = tuple(range(model.num_heads))
        # Sub-layers without heads say nothing of the heads of others.
        asked = [one for one in self.addresses if one.kind in (None, *ATTENTION_KINDS)]
        numbers = {one.head for one in asked}
        if not asked or None in numbers:
            return everything
        return tuple(head for head in everything if head in numbers)

    def arrays(self, model: ModelConfig) -> Iterator[WantedArray]:
        """Yield every array asked for, in the order in which the model computes them."""
        for wanted in arrays_of(model):
            site, _, stage = wanted.name.rpartition(".")
            if not self.everything and stage not in self.stages:
                continue
            if any(one.is_at(site) or one.is_around(site) for one in self.addresses):
                yield wanted

    def num_bytes(
        self, model: ModelConfig, source_length: int, target_length: int, *, item_bytes: int = 4
    ) -> int:
        """Return the exact size of a trace of these lengths."""
        sizes = {
            "H": len(self.chosen_heads(model)),
            "S": source_length,
            "T": target_length,
            "K": model.d_key,
            "E": model.d_value,
            "D": model.d_model,
            "F": model.d_ff,
            "V": model.target_vocabulary_size,
            "1": 1,
        }
        return item_bytes * sum(
            math.prod(sizes[letter] for letter in wanted.axes) for wanted in self.arrays(model)
        )


def check_number(
    what: str,
    number: int,
    count: int,
    of: str = "this model",
    *,
    where: str = "",
    advice: str = "`pellucid inspect` says what a model has.",
) -> None:
    """Make sure that a layer, a head or a position exists.

    Raises:
        InputError: it does not (with the range).
    """
    if not 0 <= number < count:
        raise InputError(
            f"A {what} must be from 0 to {count - 1} for {of}, but is {number}{where}. {advice}"
        )


def require_attention(model: ModelConfig) -> None:
    """Make sure that a model's decoder attends to the source.

    Raises:
        InputError: it is recurrent, and reads one vector of fixed length instead.
    """
    if not model.has_attention:
        raise InputError(
            "This needs attention, but the decoder of this recurrent model reads one vector of "
            "fixed length instead (model.recurrent_attention = 'none'). Name a model with "
            "attention, or look at the vector with --stage vector."
        )


def require_transformer(model: ModelConfig, what: str, instead: str) -> None:
    """Make sure that a model has a Transformer's layers.

    Args:
        model: sizes and switches.
        what: needs them.
        instead: the sentence that says what to do otherwise.

    Raises:
        InputError: it is recurrent.
    """
    if model.is_recurrent:
        raise InputError(
            f"{what} needs the layers of a Transformer, but this model is recurrent. {instead}"
        )


def _explain_nothing(ask: Ask, model: ModelConfig) -> str:
    """Say why a model has no array that was asked for."""
    if not model.is_recurrent:
        there = Ask(ask.heads, everything=True).arrays(model)
        stages = dict.fromkeys(one.name.rpartition(".")[2] for one in there)
        return (
            f"No array fits: {' and '.join(ask.heads) or 'this model'} has no stage "
            f"{' or '.join(ask.stages)}. Name one of its stages: {', '.join(stages)}."
        )
    has = (
        "decoder.0.cross, one head in the decoder's first layer"
        if model.has_attention
        else "none: its decoder reads one vector of fixed length, encoder.vector"
    )
    return (
        f"No array fits: the attention of this recurrent model is {has}. Leave the heads out, or "
        "name a stage of its units such as state at decoder.0.recurrent."
    )
