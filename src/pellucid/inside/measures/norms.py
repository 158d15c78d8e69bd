r"""Norm-based attention: the norms of the vectors that a row is the sum of.

A weight is only the factor with which a vector is added: a large weight on a short vector brings
little.

Source:
    Kobayashi et al. 2020, "Attention is Not Only a Weight: Analyzing Transformers with Vector
    Norms"; Kobayashi et al. 2021, "Incorporating Residual and Normalization Layers into Analysis
    of Masked Language Models".
"""

from __future__ import annotations

import numpy as np
import torch

from pellucid.config.head_address import Part
from pellucid.inside.measures.contributions import Attention, take_apart
from pellucid.inside.measures.maps import Map, MapKind, last_layer, make_map
from pellucid.inside.pair import PairData


@torch.inference_mode()
def norms(
    pair: PairData, *, part: Part, kind: MapKind, layer: int | None = None, head: int | None = None
) -> Map:
    r"""Compute $\lVert\alpha^h_{ij} f^h(x_j)\rVert$; of a whole layer $\lVert\sum_h \dots\rVert$.

    Source:
        Kobayashi et al. 2020, equations 3 to 6 (one head) and section 5 (all heads).
    """
    layer = last_layer(pair, part, layer)
    attention = _take(pair, part, kind, layer)
    if head is None:
        matrix_LM = torch.stack(
            [attention.bring(row).norm(dim=-1) for row in range(len(attention.own_LD))]
        )
    else:
        lengths_M = attention.transformed_HMD[head].norm(dim=-1)
        matrix_LM = attention.weights_HLM[head] * lengths_M
    return make_map(
        pair,
        "norms",
        "Kobayashi et al. 2020, equations 3 to 6",
        matrix_LM.numpy(force=True),
        part=part,
        kind=kind,
        layer=layer,
        head=head,
        note="" if head is not None else "all heads summed",
    )


@torch.inference_mode()
def residual_norms(pair: PairData, *, part: Part, kind: MapKind, layer: int | None = None) -> Map:
    r"""Compute $\lVert T_i(x_j) \rVert$: with the residual connection, through the layer norm.

    In self-attention the residual connection counts for the row's own position; in cross-attention
    it has a separate column, the last.

    Source:
        Kobayashi et al. 2021, section 3.
    """
    layer = last_layer(pair, part, layer)
    attention = _take(pair, part, kind, layer)
    rows = [attention.parts(row).norm(dim=-1) for row in range(len(attention.own_LD))]
    return make_map(
        pair,
        "residual-norms",
        "Kobayashi et al. 2021, section 3",
        torch.stack(rows).numpy(force=True),
        part=part,
        kind=kind,
        layer=layer,
    )


@torch.inference_mode()
def mixing_ratio(
    pair: PairData, *, part: Part, kind: MapKind, layer: int | None = None
) -> np.ndarray:
    r"""Compute the share of each row that comes from other positions, from 0 to 1.

    $$r_i = \frac{\lVert\sum_{j \neq i} T_i(x_j)\rVert}
    {\lVert\sum_{j \neq i} T_i(x_j)\rVert + \lVert T_i(x_i)\rVert}$$

    In cross-attention everything from the source counts as other positions.

    Source:
        Kobayashi et al. 2021, the "mixing ratio".
    """
    layer = last_layer(pair, part, layer)
    attention = _take(pair, part, kind, layer)
    ratios = []
    for row in range(len(attention.own_LD)):
        parts_XD = attention.parts(row)
        if kind == "self":
            own_D = parts_XD[row]
        else:
            # The source has no position that is the row itself; only the residual connection is its
            # own.
            own_D = attention.through_norm(attention.own_LD[row], row)
        mixed = float((parts_XD.sum(dim=0) - own_D).norm())
        kept = float(own_D.norm())
        ratios.append(mixed / (mixed + kept) if mixed + kept else 0.0)
    return np.array(ratios)


def _take(pair: PairData, part: Part, kind: MapKind, layer: int) -> Attention:
    site = f"{part}.{layer}.{kind}"
    return take_apart(pair, [site])[site]
