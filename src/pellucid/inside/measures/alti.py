r"""ALTI and ALTI+: how much of a vector comes from each token, layer by layer and from the start.

A sub-layer's result is a sum of parts $T_i(x_j)$ (see `contributions`). A part counts by how much
nearer to the whole it is than nothing, in the 1-norm:

$$c_{ij} = \frac{\max(0, \lVert y_i\rVert_1 - \lVert y_i - T_i(x_j)\rVert_1)}
{\sum_k \max(0, \lVert y_i\rVert_1 - \lVert y_i - T_i(x_k)\rVert_1)}$$

Each row sums to 1, nothing is negative, and a position that a row may not attend to has 0. The
feed-forward network mixes no positions, and is taken to leave the shares as they are.

Source:
    Ferrando et al. 2022, "Measuring the Mixing of Contextual Information in the Transformer",
    section 3 (ALTI); Ferrando et al. 2022, "Towards Opening the Black Box of Neural
    Machine Translation: Source and Target Interpretations of the Transformer", section 3 (ALTI+).
"""

from __future__ import annotations

from itertools import chain

import numpy as np
import torch

from pellucid.inside.measures.contributions import Attention, take_apart
from pellucid.inside.measures.maps import Kind, Map, Part, last_layer, make_map, sites_up_to
from pellucid.inside.measures.rollout import roll_decoder, roll_encoder
from pellucid.inside.pair import Pair

__all__ = ["alti", "shares"]


def alti(pair: Pair, *, part: Part, kind: Kind = "whole", layer: int | None = None) -> Map:
    """The shares of one attention, or with ``whole`` of the tokens that the model read.

    ``whole`` is ALTI in the encoder, ALTI+ in the decoder: its columns are the source tokens and
    the target prefix, so `Map.source_share` says how much of each output token is owed to the
    source. In cross-attention alone, the last column is what the row keeps.

    Args:
        pair: the sentence.
        part: ``encoder`` or ``decoder``.
        kind: ``self``, ``cross`` or ``whole``.
        layer: from 0, the last unless given; with ``whole`` everything up to its end.

    Returns:
        The map. Where a row has no part near its result, it and what follows from it sum to less
        than 1, which the map's note says.
    """
    layer = last_layer(pair, part, layer)
    if kind == "whole":
        matrix = _whole(pair, part, layer)
        name = "ALTI" if part == "encoder" else "ALTI+"
        source = f"Ferrando et al. 2022 ({name})"
    else:
        site = f"{part}.{layer}.{kind}"
        matrix = shares(take_apart(pair, [site])[site])
        source = "Ferrando et al. 2022 (ALTI), one layer"
    is_full = bool(np.allclose(matrix.sum(axis=1), 1))
    return make_map(
        pair,
        "alti",
        source,
        matrix,
        part=part,
        kind=kind,
        layer=layer,
        sums_to_one=is_full,
        note="" if is_full else "some rows have no part near their result and sum to less than 1",
    )


@torch.inference_mode()
def shares(attention: Attention) -> np.ndarray:
    """The share of each position in each row: ``(rows, positions)``.

    In cross-attention with a residual connection there is one column more, what the row keeps. A
    row none of whose parts is nearer to the whole than nothing is has shares 0.
    """
    rows = []
    for row in range(len(attention.own_LD)):
        result_D = attention.result(row)
        distance_X = (result_D - attention.parts(row)).abs().sum(dim=-1)
        nearness_X = (result_D.abs().sum() - distance_X).clamp(min=0)
        total = nearness_X.sum()
        rows.append(nearness_X / total if total > 0 else nearness_X)
    return torch.stack(rows).numpy()


def _whole(pair: Pair, part: Part, layer: int) -> np.ndarray:
    encoder, decoder = sites_up_to(pair, part, layer)
    apart = take_apart(pair, [*encoder, *chain(*decoder)])
    rolled = roll_encoder([shares(apart[site]) for site in encoder])
    if part == "encoder":
        return rolled
    layers = []
    num_source = len(pair.source_ids)
    for own, cross in decoder:
        crossed = shares(apart[cross])
        kept = crossed[:, num_source:].sum(axis=1)
        layers.append((shares(apart[own]), crossed[:, :num_source], kept))
    return roll_decoder(layers, rolled)
