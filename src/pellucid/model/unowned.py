"""Logits that a model never had: converters append tokens that no softmax of its training saw.

Marian starts its decoder from a vector of zeros, and its softmax covers its vocabulary. A converter
appends ``<pad>`` with a row of zeros, so that the start has an id. The logit of that id is a
constant, and would take a share of every softmax.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

NEVER = -10_000.0
"""A logit whose probability is 0 in every precision."""

_TABLES = ("output.weight", "target_embedding.weight", "embedding.weight")


def rows_of_zeros(weights: Mapping[str, Tensor], ids: Collection[int]) -> list[int]:
    """Find those of some ids whose row of the output matrix is zero, so that nothing is learned.

    Args:
        weights: the tensors, by the names of the bundle.
        ids: of the target vocabulary.
    """
    output_VD = _output(weights)
    # A softmax that has an id moves its row in training, so zeros were never in one.
    return [id_ for id_ in ids if not output_VD[id_].any()]


def silence_logits(weights: Mapping[str, Tensor], ids: Collection[int]) -> dict[str, Tensor]:
    """Give some tokens the probability 0, with a bias of `NEVER`, and nothing else another share.

    Args:
        weights: the tensors, by the names of the bundle.
        ids: of the target vocabulary.

    Returns:
        The tensors, with ``output.bias`` added if it is needed and missing.
    """
    if not ids:
        return dict(weights)
    output_VD = _output(weights)
    # A copy, because the caller keeps its tensors.
    bias_V = weights.get("output.bias", torch.zeros(len(output_VD))).clone()
    bias_V[list(ids)] = NEVER
    return {**weights, "output.bias": bias_V}


def _output(weights: Mapping[str, Tensor]) -> Tensor:
    """Return the matrix that turns states into logits; which table it is depends on the tying."""
    # In order: a separate table comes before those that it may be tied to.
    return next(weights[name] for name in _TABLES if name in weights)
