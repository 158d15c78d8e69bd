r"""Gradient × attention: weights that the logit of the predicted token depends on, layer by layer.

For each decoder row, the gradient of its predicted token's logit with respect to each attention's
weights is multiplied with these weights. Negative products become 0, and heads are averaged:

$$\bar{A} = \mathbb{E}_h[(\nabla A \odot A)^+]$$

Relevance is carried from layer to layer by adding. It starts from identities (each token is
relevant to itself) and zeros:

$$R^{ee} \mathrel{+}= \bar{A} R^{ee}; \quad R^{dd} \mathrel{+}= \bar{A} R^{dd}, \quad
R^{de} \mathrel{+}= \bar{A} R^{de}; \quad
R^{de} \mathrel{+}= (\bar{R}^{dd})^T \bar{A} \bar{R}^{ee}$$

for the encoder's self-attention, the decoder's, and cross-attention. $\bar{R}$ is $R$ with each
row, without the identity, divided by its sum.

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
    Map,
    MapKind,
    last_layer,
    make_map,
    shares_of_rows,
    sites_up_to,
)
from pellucid.inside.pair import PairData

MOST_NUMBERS_AT_ONCE = 1 << 23
"""Gradients of weights that one backward pass computes."""


class _Leaves:
    """A probe that keeps weights, and adds a zero to them that can be differentiated by."""

    def __init__(self) -> None:
        self.weights: dict[str, Tensor] = {}
        self.zeros: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Add the zero to one attention's weights."""
        if stage != "weights":
            return None
        self.weights[site] = tensor.detach()
        # A separate zero, since the weights themselves may come from a path without gradients.
        self.zeros[site] = torch.zeros_like(tensor, requires_grad=True)
        # The derivative by this zero is that by the weights.
        return tensor + self.zeros[site]


def gradient_weights(pair: PairData) -> Iterator[dict[str, np.ndarray]]:
    r"""Compute $\bar{A}$ of every attention, for one decoder row after the other.

    Yields:
        By site such as ``decoder.1.cross`` a map ``(queries, keys)``, for the logit of the token
        that the row predicts.
    """
    leaves = _Leaves()
    # The caller may be in inference mode, whose tensors have no gradients.
    with torch.inference_mode(False), torch.enable_grad():
        logits_TV = pair.logits(probe=leaves)
        chosen_T = logits_TV[range(len(pair.target_ids)), list(pair.target_ids)]
    # Each row of a pass holds the gradients of all weights, so rows are limited by memory.
    numbers_each = sum(zeros.numel() for zeros in leaves.zeros.values())
    size = max(1, MOST_NUMBERS_AT_ONCE // numbers_each)
    with torch.inference_mode(False):
        one_hot = torch.eye(len(chosen_T), dtype=chosen_T.dtype, device=pair.device)
    for first in range(0, len(one_hot), size):
        # One backward pass for several rows: each has its own gradient of every attention.
        with torch.inference_mode(False):
            some = one_hot[first : first + size]
            gradients = torch.autograd.grad(
                *(chosen_T, list(leaves.zeros.values()), some),
                retain_graph=True,
                is_grads_batched=True,
            )
            kept = {
                site: (gradient * leaves.weights[site])[:, 0].clamp(min=0).mean(dim=1).double()
                for site, gradient in zip(leaves.zeros, gradients, strict=True)
            }
        for row in range(len(some)):
            yield {site: by_row[row].numpy(force=True) for site, by_row in kept.items()}


def gradients(pair: PairData, *, kind: MapKind = "whole", layer: int | None = None) -> Map:
    """Compute each decoder row's relevances for the logit of the token that it predicts.

    Args:
        pair: the sentence.
        kind: ``whole`` carries relevance to the source tokens and the target prefix; ``self`` and
            ``cross`` take the row's own row of one layer's gradient × attention.
        layer: of the decoder; the last unless given. With ``whole``, all layers up to its end.
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
        decoder: for each layer those of self-attention and cross-attention.

    Source:
        Chefer et al. 2021, equations 6, 7 and 10.
    """
    num_rows, num_source = decoder[0][1].shape
    to_source = np.eye(num_source)
    for own in encoder:
        to_source = to_source + own @ to_source
    rows_to_rows = np.eye(num_rows)
    rows_to_source = np.zeros((num_rows, num_source))
    for own, cross in decoder:
        # In the order of the equations: to the source with the relevance before this layer.
        rows_to_source = rows_to_source + own @ rows_to_source
        rows_to_rows = rows_to_rows + own @ rows_to_rows
        rows_to_source = rows_to_source + _leveled(rows_to_rows).T @ cross @ _leveled(to_source)
    return np.concatenate([rows_to_source, rows_to_rows], axis=1)


def _leveled(relevance: np.ndarray) -> np.ndarray:
    """Divide each row, without the identity, by its sum; add the identity (equations 8, 9)."""
    identity = np.eye(len(relevance))
    return shares_of_rows(relevance - identity) + identity
