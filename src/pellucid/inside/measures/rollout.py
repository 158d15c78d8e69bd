r"""Attention rollout: weights multiplied through the layers, back to the tokens.

Rollout assumes that half of a layer's result comes from the residual connection and half from the
attention, that all heads count the same, and that the rest of the layer changes nothing. These are
assumptions about a model, not measurements. `alti` measures the shares instead, and multiplies
them in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from pellucid.config.head_address import Part
from pellucid.inside.measures.maps import Map, last_layer, make_map, sites_up_to
from pellucid.inside.pair import PairData


def roll_encoder(layers: Sequence[np.ndarray]) -> np.ndarray:
    r"""Multiply a stack's maps, the last layer first: $\tilde{A}_N \cdots \tilde{A}_1$.

    Args:
        layers: from the first layer to the last, each ``(positions, positions)``.

    Source:
        Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers", equation 1.
    """
    rolled = np.eye(len(layers[0]))
    for layer in layers:
        rolled = layer @ rolled
    return rolled


def roll_decoder(
    layers: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], encoder: np.ndarray
) -> np.ndarray:
    r"""Multiply a decoder's maps: to the source tokens, and to the target prefix.

    In each layer, self-attention mixes the rows by $A$. Cross-attention then keeps a share $k$ of
    each row and takes $C$ from the encoder:

    $$R_l = \text{diag}(k)\, A\, R_{l-1} + [\,C R_{enc} \mid 0\,], \qquad R_0 = [\,0 \mid I\,]$$

    Args:
        layers: from the first to the last: self-attention ``(rows, rows)``, cross-attention
            ``(rows, source)``, and the share that each row keeps ``(rows,)``.
        encoder: from the encoder's output to the source tokens, ``(source, source)``.

    Returns:
        ``(rows, source + rows)``. Rows that sum to 1 in every layer sum to 1.

    Source:
        Ferrando et al. 2022, "Towards Opening the Black Box of Neural Machine Translation: Source
        and Target Interpretations of the Transformer", section 3.
    """
    num_rows, num_source = layers[0][1].shape
    rolled = np.concatenate([np.zeros((num_rows, num_source)), np.eye(num_rows)], axis=1)
    for own, cross, kept in layers:
        # Self-attention runs first in a layer; cross-attention then keeps a share of its result.
        rolled = kept[:, None] * (own @ rolled)
        rolled[:, :num_source] += cross @ encoder
    return rolled


@torch.inference_mode()
def rollout(pair: PairData, *, part: Part, layer: int | None = None) -> Map:
    r"""Multiply $\tilde{A} = \frac{1}{2} A + \frac{1}{2} I$, with $A$ the mean over the heads.

    A model without residual connections has $\tilde{A} = A$.

    Source:
        Abnar and Zuidema 2020, section 3. Into the decoder: as in `roll_decoder`, with one half
        for cross-attention and one for the row.
    """
    layer = last_layer(pair, part, layer)
    seen = pair.see(("weights",))
    # Without a residual connection nothing is left of the row itself, so attention is all.
    share = 0.5 if pair.model.config.residual else 1.0

    def weighed(site: str) -> np.ndarray:
        mean: np.ndarray = share * seen[f"{site}.weights"].double().mean(dim=0).numpy(force=True)
        return mean

    def mixed(site: str) -> np.ndarray:
        mean = weighed(site)
        # The residual connection hands a row its own vector on.
        return mean + (1 - share) * np.eye(len(mean))

    encoder, decoder = sites_up_to(pair, part, layer)
    matrix = roll_encoder([mixed(site) for site in encoder])
    if part == "decoder":
        # The residual connection keeps the same share of every row.
        kept = np.full(len(pair.target_ids), 1 - share)
        layers = [(mixed(own), weighed(cross), kept) for own, cross in decoder]
        matrix = roll_decoder(layers, matrix)
    return make_map(
        pair,
        "rollout",
        "Abnar and Zuidema 2020, equation 1",
        matrix,
        part=part,
        kind="whole",
        layer=layer,
        sums_to_one=True,
        note="mean of heads",
    )
