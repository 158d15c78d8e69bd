"""Every array that a model computes: names and axes, from its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pellucid.config import ModelConfig

WAY_IN = ("embedding", "positions", "input")

UNIT_STAGES = ("update", "reset", "candidate", "state")
"""The results of a gated recurrent unit at every position."""

RECURRENT_STAGES = (*UNIT_STAGES, "initial", "vector", "readout")
"""The stages that only recurrent models have."""


@dataclass(frozen=True)
class Wanted:
    """One array of a trace.

    Attributes:
        name: ``decoder.1.cross.weights``.
        axes: the letters of its axes, as in `pellucid.shapes`, with S or T for positions.
    """

    name: str
    axes: str


def arrays_of(model: ModelConfig) -> Iterator[Wanted]:
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
            if stage != "positions" or model.positions != "none":
                yield Wanted(f"{part}.{stage}", f"{length}D")
        for layer in range(depth):
            inner = {"inner": f"{length}F", "activated": f"{length}F", "output": f"{length}D"}
            sublayers = {"self": _attention(length, length)}
            if part == "decoder":
                sublayers["cross"] = _attention("T", "S")
            for kind, inside in (sublayers | {"feed_forward": inner}).items():
                yield from _around(model, f"{part}.{layer}.{kind}", length, inside)
        if model.norm == "pre":
            yield Wanted(f"{part}.norm", f"{length}D")
    yield Wanted("decoder.logits", "TV")


def _around(model: ModelConfig, site: str, length: str, inside: dict[str, str]) -> Iterator[Wanted]:
    """Yield the arrays of one sub-layer: those inside, with input, norm and residual around."""
    yield Wanted(f"{site}.input", f"{length}D")
    if model.norm == "pre":
        yield Wanted(f"{site}.norm", f"{length}D")
    for stage, axes in inside.items():
        yield Wanted(f"{site}.{stage}", axes)
    yield Wanted(f"{site}.residual", f"{length}D")
    if model.norm == "post":
        yield Wanted(f"{site}.norm", f"{length}D")


def _attention(queries: str, keys: str) -> dict[str, str]:
    square = dict.fromkeys(("scores", "scaled", "masked", "weights"), f"H{queries}{keys}")
    first = {"query": f"H{queries}K", "key": f"H{keys}K", "value": f"H{keys}E"}
    return first | square | {"context": f"H{queries}E", "output": f"{queries}D"}


def _recurrent_arrays(model: ModelConfig) -> Iterator[Wanted]:
    """Yield every array of a recurrent model."""
    yield Wanted("encoder.embedding", "SD")
    yield Wanted("encoder.input", "SD")
    for layer in range(model.num_encoder_layers):
        yield from _unit(f"encoder.{layer}.recurrent", "S")
    yield Wanted("encoder.vector", "1D")
    yield Wanted("decoder.embedding", "TD")
    yield Wanted("decoder.input", "TD")
    for layer in range(model.num_decoder_layers):
        yield Wanted(f"decoder.{layer}.recurrent.initial", "1D")
        if layer == 0 and model.has_attention:
            # Nothing is scaled, and the context enters the unit as it is: it has no output.
            for stage, axes in _attention("T", "S").items():
                if stage not in ("scaled", "output"):
                    yield Wanted(f"decoder.0.cross.{stage}", axes)
        yield from _unit(f"decoder.{layer}.recurrent", "T")
    yield Wanted("decoder.readout", "TD")
    yield Wanted("decoder.logits", "TV")


def _unit(site: str, length: str) -> Iterator[Wanted]:
    for stage in UNIT_STAGES:
        yield Wanted(f"{site}.{stage}", f"{length}D")
