"""Every measure by its name, with its paper and its meaning, behind one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import torch

from pellucid.arguments import checked
from pellucid.config.head_address import HeadAddress, Part, parse_address
from pellucid.errors import InputError, suggestion
from pellucid.inside.ask import check_number, require_attention, require_transformer
from pellucid.inside.changes.cutting import cut_model, heads_to_cut
from pellucid.inside.changes.given_changes import GivenChanges, describe_probe
from pellucid.inside.measures.alti import alti
from pellucid.inside.measures.gradient_attention import gradients
from pellucid.inside.measures.integrated import Baseline, integrated_gradients
from pellucid.inside.measures.maps import Map, MapKind, last_layer, make_map
from pellucid.inside.measures.norms import norms, residual_norms
from pellucid.inside.measures.occlusion import occlusion
from pellucid.inside.measures.rollout import rollout
from pellucid.inside.measures.zeroing import value_zeroing
from pellucid.inside.pair import PairData
from pellucid.inside.parts.composition import Side, composition
from pellucid.inside.parts.head_gradients import head_gradients
from pellucid.inside.parts.logit_parts import logit_attribution
from pellucid.inside.parts.part_maps import choose_parts


@dataclass(frozen=True)
class Measure:
    """A measure, for lists and captions.

    Attributes:
        name: of the measure.
        paper: that introduced it.
        meaning: of one of its numbers, in a line.
        kinds: the attentions that it can measure, as ``part.kind``; the first of a part is the
            default.
        make: computes it for a pair.
        takes: the other arguments of `make`, of part, kind, layer, head, steps and baseline.
        is_signed: True if negative numbers have a meaning.
        sums_to_one: True if each row sums to 1.
        is_for_recurrent: True if it needs no layers of a Transformer.
        takes_changes: True if it takes every change; the others take cuts of whole heads.
        is_of_parts: True if its rows are parts of the model; see `PART_MEASURES`.
        is_of_word: True if it is of the word that a row predicts, False if it is of the vectors
            that the row works with, whatever it predicts.
    """

    name: str
    paper: str
    meaning: str
    kinds: tuple[str, ...]
    make: Callable[..., Map]
    takes: tuple[str, ...] = ()
    is_signed: bool = False
    sums_to_one: bool = False
    is_of_word: bool = False
    is_for_recurrent: bool = False
    takes_changes: bool = False
    is_of_parts: bool = False


@checked
def measure(
    pair: PairData,
    name: str,
    head: str | None = None,
    *,
    steps: int | None = None,
    baseline: Baseline | None = None,
    changes: GivenChanges | None = None,
) -> Map:
    """Measure a sentence.

    Args:
        pair: the sentence.
        name: one of `MEASURES` or of `PART_MEASURES`.
        head: what to measure, as an address: ``decoder.1.cross.0`` is one head,
            ``decoder.1.cross`` all heads of it together, ``encoder`` the encoder. By default the
            decoder. What an address leaves open is the last layer, and the first kind of the
            measure: the whole from the tokens to the layer's end if it has that, otherwise
            cross-attention. Of a measure of parts it chooses the parts.
        steps: of an integral; measures without one take none.
        baseline: where an integral begins; measures without one take none.
        changes: of the model, as for `what_if`, after those of the pair. Measures that take a
            layer apart, or leave words out, take cuts of whole heads only.

    Raises:
        InputError: the measure or the head does not exist, or the measure does not take it (with
            what it takes).
    """
    asked = find_measure(name)
    pair = _changed(pair, asked, changes)
    place = parse_address("decoder" if head is None else head)
    given: dict[str, str | int | None] = {"steps": steps, "baseline": baseline}
    if asked.is_of_parts:
        _refuse(asked, given)
        return measure_parts(pair, asked, None if head is None else place)
    part = place.part or "decoder"
    if place.kind in ("feed_forward", "recurrent"):
        raise InputError(f"A measure is of attention, but {head} has none. Name another place.")
    kind = cast("MapKind | None", place.kind)
    if kind is None:
        kinds = [one.partition(".")[2] for one in asked.kinds if one.startswith(f"{part}.")]
        # A kind that the measure does not have, so that the sentence below names those it has.
        kind = cast(MapKind, kinds[0]) if kinds else "self"
    if f"{part}.{kind}" not in asked.kinds:
        raise InputError(
            f"The part and kind for {name} must be {' or '.join(asked.kinds)}, but are "
            f"{part}.{kind}. Name one of these, or another measure."
        )
    given = {"part": part, "kind": kind, "layer": place.layer, "head": place.head, **given}
    _refuse(asked, given)
    if pair.model.config.is_recurrent:
        _check_recurrent(pair, asked, part, kind)
    needs_self = kind == "self" or (kind == "whole" and not asked.is_for_recurrent)
    if pair.model.config.decoder == "ssru" and part == "decoder" and needs_self:
        raise InputError(
            f"{name} of {part}.{kind} needs self-attention in the decoder, but recurrent units "
            "read its earlier words (model.decoder = 'ssru'). Name decoder.*.cross or encoder, "
            "or use occlusion or integrated-gradients."
        )
    if place.head is not None:
        check_number("head", place.head, pair.model.config.num_heads)
    return asked.make(pair, **{what: given[what] for what in asked.takes})


def find_measure(name: str) -> Measure:
    """Return a measure of words or of parts.

    Raises:
        InputError: it does not exist (with the nearest name).
    """
    known = MEASURES | PART_MEASURES
    if name not in known:
        raise InputError(f"The measure {name!r} does not exist. {suggestion(name, tuple(known))}")
    return known[name]


def measure_parts(
    pair: PairData, asked: Measure, place: HeadAddress | None, *, row: int | None = None
) -> Map:
    """Measure parts of a model.

    Args:
        pair: the sentence.
        asked: the measure.
        place: the parts; None for all.
        row: only this decoder row, for measures of words.

    Raises:
        InputError: the place does not exist, or the model has no such parts.
    """
    config = pair.model.config
    require_transformer(config, asked.name, "Use occlusion or integrated-gradients.")
    # The weights of a model know of no row.
    given = {"row": row} if asked.is_of_word else {}
    if place is None:
        return asked.make(pair, **given)
    place.check_in(config)
    return choose_parts(asked.make(pair, part=place.part, **given), place)


def _refuse(asked: Measure, given: Mapping[str, str | int | None]) -> None:
    """Refuse what a measure does not take."""
    for what, why in _REASONS.items():
        if given.get(what) is not None and what not in asked.takes:
            article = "" if what == "steps" else "a "
            raise InputError(
                f"{asked.name} cannot be combined with {article}{what}: {why}. Leave the {what} "
                "out."
            )


def _changed(pair: PairData, asked: Measure, changes: GivenChanges | None) -> PairData:
    """Return the pair under its changes and further ones; cuts are made in the weights.

    Raises:
        InputError: a change cannot be read, or the measure does not take it.
    """
    probe = pair.read(changes)
    heads = None if probe is None else heads_to_cut(probe, pair.model)
    if heads is not None:
        return replace(pair, model=cut_model(pair.model, heads), changes=None)
    if probe is not None and not asked.takes_changes:
        others = " or ".join(one.name for one in MEASURES.values() if one.takes_changes)
        raise InputError(
            f"{asked.name} takes cuts of whole heads only, but the changes are "
            f"{describe_probe(probe)}: it computes parts of the model by itself. Use {others}, or "
            "cut heads."
        )
    return replace(pair, changes=probe)


def _check_recurrent(pair: PairData, asked: Measure, part: Part, kind: MapKind) -> None:
    # A recurrent model has no layers to take apart; what needs only its answers works.
    possible = [one.name for one in MEASURES.values() if one.is_for_recurrent]
    if not asked.is_for_recurrent:
        advice = f"Use {', '.join(possible[:-1])} or {possible[-1]}."
        require_transformer(pair.model.config, asked.name, advice)
    if kind == "whole":
        return
    require_attention(pair.model.config)
    if (part, kind) != ("decoder", "cross"):
        raise InputError(
            "A recurrent model attends only in decoder.cross, but the part and kind are "
            f"{part}.{kind}. Leave them out."
        )


_REASONS = {
    "head": "it measures the whole",
    "layer": "it measures the whole",
    "steps": "it has no integral",
    "baseline": "it has no integral",
}


@torch.inference_mode()
def weights(
    pair: PairData, *, part: Part, kind: MapKind, layer: int | None = None, head: int | None = None
) -> Map:
    """Return the weights of a head, or their average over a layer's heads, which the note says.

    Source:
        Vaswani et al. 2017, equation 1.
    """
    layer = last_layer(pair, part, layer)
    site = f"{part}.{layer}.{kind}"
    weights_HLM = pair.see(("weights",), sites=[site])[f"{site}.weights"].double()
    return make_map(
        pair,
        "weights",
        "Vaswani et al. 2017, equation 1",
        (weights_HLM.mean(dim=0) if head is None else weights_HLM[head]).numpy(force=True),
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
        "the factor with which a head adds a position's value",
        _ATTENTIONS,
        weights,
        takes=("part", "kind", "layer", "head"),
        sums_to_one=True,
        is_for_recurrent=True,
        takes_changes=True,
    ),
    Measure(
        "norms",
        "Kobayashi et al. 2020",
        "the length of the vector that an attention adds from a position",
        _ATTENTIONS,
        norms,
        takes=("part", "kind", "layer", "head"),
    ),
    Measure(
        "residual-norms",
        "Kobayashi et al. 2021",
        "the length of the vector from a position, with the residual connection, after the norm",
        _ATTENTIONS,
        residual_norms,
        takes=("part", "kind", "layer"),
    ),
    Measure(
        "alti",
        "Ferrando et al. 2022 (ALTI, ALTI+)",
        "the share of a vector that comes from each token",
        ("decoder.whole", "encoder.whole", *_ATTENTIONS),
        alti,
        takes=("part", "kind", "layer"),
        sums_to_one=True,
    ),
    Measure(
        "rollout",
        "Abnar and Zuidema 2020",
        "a product of weights through the layers, half of each layer assumed to be residual",
        ("decoder.whole", "encoder.whole"),
        rollout,
        takes=("part", "layer"),
        sums_to_one=True,
        takes_changes=True,
    ),
    Measure(
        "gradients",
        "Chefer et al. 2021",
        "a weight times the gradient of the predicted token's logit, carried through the layers",
        ("decoder.whole", "decoder.cross", "decoder.self"),
        gradients,
        takes=("kind", "layer"),
        is_of_word=True,
        takes_changes=True,
    ),
    Measure(
        "integrated-gradients",
        "Sundararajan et al. 2017",
        "a token's part in the log-probability of the predicted one, compared with a baseline",
        ("decoder.whole",),
        integrated_gradients,
        takes=("steps", "baseline"),
        is_signed=True,
        is_of_word=True,
        is_for_recurrent=True,
    ),
    Measure(
        "value-zeroing",
        "Mohebbi et al. 2023",
        "a position's share in the change of a row's direction when its values are 0",
        ("decoder.cross", "decoder.self", "encoder.whole", "encoder.self"),
        value_zeroing,
        takes=("part", "kind", "layer"),
        sums_to_one=True,
    ),
    Measure(
        "occlusion",
        "Li et al. 2016",
        "the fall of a token's log-probability when a source word is taken away",
        ("decoder.whole",),
        occlusion,
        is_signed=True,
        is_of_word=True,
        is_for_recurrent=True,
    ),
)

MEASURES: dict[str, Measure] = {one.name: one for one in _ALL}
"""Every measure of words, by its name. Its map has a column for each source token or word."""

_SIDES: tuple[tuple[Side, str], ...] = (("q", "queries"), ("k", "keys"), ("v", "values"))

_OF_PARTS = (
    Measure(
        "logit-attribution",
        "Elhage et al. 2021; Wang et al. 2023",
        "what a part adds to the logit of the word, with the norms' deviations held fixed",
        ("decoder.whole", "encoder.whole"),
        logit_attribution,
        is_signed=True,
        is_of_word=True,
        is_of_parts=True,
    ),
    Measure(
        "head-gradients",
        "Michel et al. 2019",
        "what a head does for the log-probability of the word, to first order",
        ("decoder.whole", "encoder.whole"),
        head_gradients,
        is_signed=True,
        is_of_word=True,
        takes_changes=True,
        is_of_parts=True,
    ),
    *(
        Measure(
            f"{side}-composition",
            "Elhage et al. 2021",
            f"how much of what the row's head writes the column's head reads with its {what}",
            ("decoder.whole", "encoder.whole"),
            partial(composition, side=side),
            is_of_parts=True,
        )
        for side, what in _SIDES
    ),
)

PART_MEASURES: dict[str, Measure] = {one.name: one for one in _OF_PARTS}
"""Every measure of parts of the model, by its name. Its map has a row for each head or layer."""
