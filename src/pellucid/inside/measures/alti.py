r"""ALTI and ALTI+: the share of each token in a vector, for one layer or from the tokens on.

The result of a sub-layer is a sum of parts $T_i(x_j)$ (see `contributions`). A part counts by how
much nearer to the whole result it is than the zero vector, in the 1-norm:

$$c_{ij} = \frac{\max(0, \lVert y_i\rVert_1 - \lVert y_i - T_i(x_j)\rVert_1)}
{\sum_k \max(0, \lVert y_i\rVert_1 - \lVert y_i - T_i(x_k)\rVert_1)}$$

Each row sums to 1, no share is negative, and positions that a row may not attend to have 0. The
feed-forward network mixes no positions, and is assumed to leave the shares as they are.

Source:
    Ferrando et al. 2022, "Measuring the Mixing of Contextual Information in the Transformer",
    section 3 (ALTI); Ferrando et al. 2022, "Towards Opening the Black Box of Neural
    Machine Translation: Source and Target Interpretations of the Transformer", section 3 (ALTI+).
"""

from __future__ import annotations

from itertools import chain

import numpy as np
import torch

from pellucid.config.head_address import Part
from pellucid.inside.measures.contributions import Attention, take_apart
from pellucid.inside.measures.maps import Map, MapKind, last_layer, make_map, sites_up_to
from pellucid.inside.measures.rollout import roll_decoder, roll_encoder
from pellucid.inside.pair import PairData


def alti(pair: PairData, *, part: Part, kind: MapKind = "whole", layer: int | None = None) -> Map:
    """Compute the shares in one attention, or with ``whole`` the shares of the tokens read.

    ``whole`` is ALTI in the encoder and ALTI+ in the decoder. ALTI+ has columns for the source
    tokens and the target prefix, so `Map.source_share` tells how much of each output token comes
    from the source. With ``cross``, the last column is the share that the row keeps.

    Args:
        pair: the sentence.
        part: ``encoder`` or ``decoder``.
        kind: ``self``, ``cross`` or ``whole``.
        layer: from 0; the last unless given. With ``whole``, all layers up to its end.

    Returns:
        The map. If a row has no part near its result, this row and those that follow from it sum
        to less than 1, and the map's note says so.
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
    # Rows whose parts all lead away sum to 0, and pass that on.
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
    """Compute the share of each position in each row: ``(rows, positions)``.

    Cross-attention with a residual connection has one more column, the share that the row keeps.
    A row has shares 0 if none of its parts is nearer to the result than the zero vector.
    """
    rows = []
    for row in range(len(attention.own_LD)):
        result_D = attention.result(row)
        distance_X = (result_D - attention.parts(row)).abs().sum(dim=-1)
        # A part that leads away from the result would count negatively, and is taken as 0.
        nearness_X = (result_D.abs().sum() - distance_X).clamp(min=0)
        total = nearness_X.sum()
        rows.append(nearness_X / total if total > 0 else nearness_X)
    return torch.stack(rows).numpy(force=True)


def _whole(pair: PairData, part: Part, layer: int) -> np.ndarray:
    encoder, decoder = sites_up_to(pair, part, layer)
    apart = take_apart(pair, [*encoder, *chain(*decoder)])
    # Shares of layers multiply as weights do in rollout; only their source differs.
    rolled = roll_encoder([shares(apart[site]) for site in encoder])
    if part == "encoder":
        return rolled
    layers = []
    num_source = len(pair.source_ids)
    for own, cross in decoder:
        crossed = shares(apart[cross])
        # The column after the source, if there is a residual connection.
        kept = crossed[:, num_source:].sum(axis=1)
        layers.append((shares(apart[own]), crossed[:, :num_source], kept))
    return roll_decoder(layers, rolled)
