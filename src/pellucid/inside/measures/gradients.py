r"""Gradient × attention: weights that the predicted word's logit depends on, carried to the tokens.

For every decoder row by itself: the gradient of the logit of the word that it predicts, by each
attention's weights, times these weights; what is negative is dropped, heads are averaged:

$$\bar{A} = \mathbb{E}_h[(\nabla A \odot A)^+]$$

Relevance is carried from layer to layer by adding, from identities (each token is relevant to
itself) and zeros:

$$R^{ee} \mathrel{+}= \bar{A} R^{ee}; \quad R^{dd} \mathrel{+}= \bar{A} R^{dd}, \quad
R^{de} \mathrel{+}= \bar{A} R^{de}; \quad
R^{de} \mathrel{+}= (\bar{R}^{dd})^T \bar{A} \bar{R}^{ee}$$

for the encoder's self-attention, the decoder's, and cross-attention; $\bar{R}$ is $R$ with its
rows, identity left out, brought to the sum 1.

Source:
    Chefer et al. 2021, "Generic Attention-model Explainability for Interpreting Bi-Modal and
    Encoder-Decoder Transformers", equations 5 to 10.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from pellucid.inside.measures.maps import (
    Kind,
    Map,
    last_layer,
    make_map,
    shares_of_rows,
    sites_up_to,
)
from pellucid.inside.pair import Pair

__all__ = ["carry", "gradient_weights", "gradients"]


class _Leaves:
    """A probe that keeps weights, and adds a zero to them by which gradients can be taken."""

    def __init__(self) -> None:
        self.weights: dict[str, Tensor] = {}
        self.zeros: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Make one attention's weights something to differentiate by."""
        if stage != "weights":
            return None
        self.weights[site] = tensor.detach()
        self.zeros[site] = torch.zeros_like(tensor, requires_grad=True)
        return tensor + self.zeros[site]


def gradient_weights(pair: Pair) -> Iterator[dict[str, np.ndarray]]:
    r"""$\bar{A}$ of every attention, for one decoder row after the other.

    Yields:
        By site such as ``decoder.1.cross`` a map ``(queries, keys)``, for the logit of the word
        that the row predicts.
    """
    leaves = _Leaves()
    with torch.inference_mode(False), torch.enable_grad():
        logits_TV = pair.logits(probe=leaves)
        chosen_T = logits_TV[torch.arange(len(pair.target_ids)), list(pair.target_ids)]
    sites = list(leaves.zeros)
    for row in range(len(pair.target_ids)):
        with torch.inference_mode(False):
            gradients = torch.autograd.grad(
                chosen_T[row], [leaves.zeros[site] for site in sites], retain_graph=True
            )
        yield {
            site: (gradient * leaves.weights[site])[0].clamp(min=0).mean(dim=0).double().numpy()
            for site, gradient in zip(sites, gradients, strict=True)
        }


def gradients(pair: Pair, *, kind: Kind = "whole", layer: int | None = None) -> Map:
    """Each decoder row's relevances, for the logit of the word that it predicts.

    Args:
        pair: the sentence.
        kind: ``whole`` carries relevance to the source tokens and the target prefix; ``self`` and
            ``cross`` give the row's own row of one layer's gradient × attention.
        layer: of the decoder; the last unless given. With ``whole`` everything up to its end.
    """
    layer = last_layer(pair, "decoder", layer)
    encoder, decoder = sites_up_to(pair, "decoder", layer)
    rows = []
    for row, maps in enumerate(gradient_weights(pair)):
        if kind == "whole":
            layers = [(maps[own], maps[cross]) for own, cross in decoder]
            rows.append(carry([maps[site] for site in encoder], layers)[row])
        else:
            rows.append(maps[f"decoder.{layer}.{kind}"][row])
    return make_map(
        pair,
        "gradients",
        "Chefer et al. 2021, equations 5 to 10",
        np.stack(rows),
        part="decoder",
        kind=kind,
        layer=layer,
        note="mean of heads",
    )


def carry(encoder: list[np.ndarray], decoder: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Carry relevance through the layers: ``(rows, source + rows)``.

    Args:
        encoder: gradient × attention of each layer.
        decoder: of each layer self-attention and cross-attention.

    Source:
        Chefer et al. 2021, equations 6, 7 and 10.
    """
    num_rows, num_source = decoder[0][1].shape
    to_source = np.eye(num_source)
    for own in encoder:
        to_source = to_source + own @ to_source
    rows_to_rows, rows_to_source = np.eye(num_rows), np.zeros((num_rows, num_source))
    for own, cross in decoder:
        rows_to_source = rows_to_source + own @ rows_to_source
        rows_to_rows = rows_to_rows + own @ rows_to_rows
        rows_to_source = rows_to_source + _leveled(rows_to_rows).T @ cross @ _leveled(to_source)
    return np.concatenate([rows_to_source, rows_to_rows], axis=1)


def _leveled(relevance: np.ndarray) -> np.ndarray:
    """Rows without the identity brought to the sum 1, and the identity again (equations 8, 9)."""
    identity = np.eye(len(relevance))
    return shares_of_rows(relevance - identity) + identity
