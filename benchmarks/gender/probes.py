"""Probes of the study: what keeps or changes results of many sentences of one length at once."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import torch
from torch import Tensor


class Keep:
    """A probe that keeps some stages, by name. Only named sites show stages of attention."""

    def __init__(self, stages: Collection[str], sites: Collection[str] = ()) -> None:
        self.stages = stages
        self.sites = sites
        self.found: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        """Keep a result."""
        if stage in self.stages:
            self.found[f"{site}.{stage}"] = tensor


class Put:
    """A probe that puts vectors of another run where a mask is True.

    Attributes:
        vectors: by name.
        mask: shaped so that it broadcasts to each of them.
    """

    def __init__(
        self, vectors: Mapping[str, Tensor], mask: Tensor, sites: Collection[str] = ()
    ) -> None:
        self.vectors = vectors
        self.mask = mask
        self.sites = sites

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Replace what the mask covers."""
        name = f"{site}.{stage}"
        if name not in self.vectors:
            return None
        return torch.where(self.mask, self.vectors[name], tensor)


class CutHeads:
    """A probe that sets the contexts of some heads to 0."""

    def __init__(self, heads: Mapping[str, Collection[int]]) -> None:
        self.heads = heads
        self.sites = tuple(heads)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Zero the context of these heads."""
        if stage != "context" or site not in self.heads:
            return None
        gate_H11 = torch.ones(tensor.shape[1], 1, 1)
        gate_H11[list(self.heads[site])] = 0.0
        return tensor * gate_H11


class CutEdges:
    """A probe that forbids edges before the softmax, in all heads of some sites.

    Attributes:
        edges: for each site, True where a query must not attend: ``edges_BLM``.
    """

    def __init__(self, edges: Mapping[str, Tensor]) -> None:
        self.edges = edges
        self.sites = tuple(edges)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Forbid them."""
        if stage != "masked" or site not in self.edges:
            return None
        return tensor.masked_fill(self.edges[site][:, None], -math.inf)


class Steer:
    """A probe that adds a vector where a mask is True, or removes a direction there.

    Attributes:
        name: of the result.
        mask: ``is_steered_BS``.
        step: what to add: ``step_BD``; None to remove instead.
        direction: of length 1, whose part is set to that of ``center``.
        center: the part of the mean vector.
    """

    sites = ()

    def __init__(
        self,
        name: str,
        mask: Tensor,
        *,
        step: Tensor | None = None,
        direction: Tensor | None = None,
        center: float = 0.0,
    ) -> None:
        self.name = name
        self.mask = mask
        self.step = step
        self.direction = direction
        self.center = center

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Add or remove."""
        if f"{site}.{stage}" != self.name:
            return None
        if self.step is not None:
            return tensor + self.mask[:, :, None] * self.step[:, None]
        assert self.direction is not None
        part_BS = (tensor @ self.direction - self.center) * self.mask
        return tensor - part_BS[:, :, None] * self.direction


class Gates:
    """A probe that multiplies each head's context by a one that can be differentiated by."""

    def __init__(self) -> None:
        self.gates: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Multiply the context of one attention."""
        if stage != "context":
            return None
        self.gates[site] = torch.ones(tensor.shape[1], 1, 1, requires_grad=True)
        return tensor * self.gates[site]
