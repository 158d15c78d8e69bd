"""Every measure by its name, with its paper and what it means, behind one function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch

from pellucid.errors import InputError, suggestion
from pellucid.inside.measures.alti import alti
from pellucid.inside.measures.contributions import see
from pellucid.inside.measures.gradients import gradients
from pellucid.inside.measures.maps import Kind, Map, Part, last_layer, make_map
from pellucid.inside.measures.norms import norms, residual_norms
from pellucid.inside.measures.occlusion import occlusion
from pellucid.inside.measures.rollout import rollout
from pellucid.inside.measures.zeroing import value_zeroing
from pellucid.inside.pair import Pair

__all__ = ["MEASURES", "Measure", "measure", "weights"]


@dataclass(frozen=True)
class Measure:
    """A measure, for lists and captions.

    Attributes:
        name: what it is called by.
        paper: where it is from.
        meaning: what one number of it is, in a line.
        kinds: what it can be asked of, ``part.kind``; the first of a part is taken unless told.
        has_heads: whether it can be asked of one head.
        has_layers: whether it can be asked of one layer, or up to one.
        is_signed: whether numbers below 0 have a meaning.
        sums_to_one: whether rows do.
        make: computes it.
    """

    name: str
    paper: str
    meaning: str
    kinds: tuple[str, ...]
    make: Callable[[Pair, Part, Kind, int | None, int | None], Map]
    has_heads: bool = False
    has_layers: bool = True
    is_signed: bool = False
    sums_to_one: bool = False


def measure(
    pair: Pair,
    name: str,
    *,
    part: Part = "decoder",
    kind: Kind | None = None,
    layer: int | None = None,
    head: int | None = None,
) -> Map:
    """Measure a sentence.

    Args:
        pair: the sentence.
        name: one of `MEASURES`.
        part: ``decoder`` or ``encoder``.
        kind: ``cross``, ``self`` or ``whole``; the measure's first unless given: from the tokens
            on where it can, otherwise cross-attention.
        layer: from 0; the last unless given. With ``whole`` everything up to its end.
        head: from 0; all heads together unless given.

    Raises:
        InputError: there is no such measure, part, kind, layer or head, or the measure is not
            made for it (with what it is made for).
    """
    if name not in MEASURES:
        raise InputError(
            f"A measure must be one of {', '.join(MEASURES)}, but is {name!r} (measure). "
            f"{suggestion(name, tuple(MEASURES))}"
        )
    asked = MEASURES[name]
    if kind is None:
        kinds = [one.partition(".")[2] for one in asked.kinds if one.startswith(f"{part}.")]
        kind = cast(Kind, kinds[0]) if kinds else "self"
    if f"{part}.{kind}" not in asked.kinds:
        raise InputError(
            f"{name} must be asked of {' or '.join(asked.kinds)}, but is asked of {part}.{kind} "
            "(part, kind). Name one of them, or another measure."
        )
    for what, number, has_it in (
        ("head", head, asked.has_heads),
        ("layer", layer, asked.has_layers),
    ):
        if number is not None and not has_it:
            raise InputError(
                f"{name} must be asked without a {what}, but is asked of {what} {number} "
                f"({what}): it is of the whole. Leave the {what} out."
            )
    count = pair.model.config.num_heads
    if head is not None and not 0 <= head < count:
        raise InputError(
            f"A head must be from 0 to {count - 1} for this model, but is {head} (head). "
            "`pellucid inspect` says what a model has."
        )
    return asked.make(pair, part, kind, layer, head)


@torch.inference_mode()
def weights(
    pair: Pair, *, part: Part, kind: Kind, layer: int | None = None, head: int | None = None
) -> Map:
    """The weights of a head, or the average over a layer's heads, called so.

    Source:
        Vaswani et al. 2017, equation 1.
    """
    layer = last_layer(pair, part, layer)
    site = f"{part}.{layer}.{kind}"
    weights_HLM = see(pair, ("weights",), sites=[site])[f"{site}.weights"].double()
    return make_map(
        pair,
        "weights",
        "Vaswani et al. 2017, equation 1",
        (weights_HLM.mean(dim=0) if head is None else weights_HLM[head]).numpy(),
        part=part,
        kind=kind,
        layer=layer,
        head=head,
        sums_to_one=True,
        note="mean of heads" if head is None else "",
    )


_ATTENTIONS = ("decoder.cross", "decoder.self", "encoder.self")

_ALL = (
    Measure(
        "weights",
        "Vaswani et al. 2017",
        "with what factor a head adds a position's value",
        _ATTENTIONS,
        lambda pair, part, kind, layer, head: weights(
            pair, part=part, kind=kind, layer=layer, head=head
        ),
        has_heads=True,
        sums_to_one=True,
    ),
    Measure(
        "norms",
        "Kobayashi et al. 2020",
        "how long the vector is that an attention adds from a position",
        _ATTENTIONS,
        lambda pair, part, kind, layer, head: norms(
            pair, part=part, kind=kind, layer=layer, head=head
        ),
        has_heads=True,
    ),
    Measure(
        "residual-norms",
        "Kobayashi et al. 2021",
        "the same with the residual connection, after the norm",
        _ATTENTIONS,
        lambda pair, part, kind, layer, _: residual_norms(pair, part=part, kind=kind, layer=layer),
    ),
    Measure(
        "alti",
        "Ferrando et al. 2022 (ALTI, ALTI+)",
        "what share of a vector comes from each token",
        ("decoder.whole", "encoder.whole", *_ATTENTIONS),
        lambda pair, part, kind, layer, _: alti(pair, part=part, kind=kind, layer=layer),
        sums_to_one=True,
    ),
    Measure(
        "rollout",
        "Abnar and Zuidema 2020",
        "weights multiplied through the layers, half of each taken to pass by",
        ("decoder.whole", "encoder.whole"),
        lambda pair, part, _, layer, __: rollout(pair, part=part, layer=layer),
        sums_to_one=True,
    ),
    Measure(
        "gradients",
        "Chefer et al. 2021",
        "weights that the predicted word's logit grows with, carried through the layers",
        ("decoder.whole", "decoder.cross", "decoder.self"),
        lambda pair, _, kind, layer, __: gradients(pair, kind=kind, layer=layer),
    ),
    Measure(
        "value-zeroing",
        "Mohebbi et al. 2023",
        "how far a layer's result turns when a position's values are 0",
        ("decoder.cross", "decoder.self", "encoder.whole", "encoder.self"),
        lambda pair, part, kind, layer, _: value_zeroing(pair, part=part, kind=kind, layer=layer),
        sums_to_one=True,
    ),
    Measure(
        "occlusion",
        "Li et al. 2016",
        "by how much a token's log-probability falls when a source word is taken away",
        ("decoder.whole",),
        lambda pair, *_: occlusion(pair),
        has_layers=False,
        is_signed=True,
    ),
)

MEASURES: dict[str, Measure] = {one.name: one for one in _ALL}
"""Every measure that gives a map, by name."""
