r"""Value zeroing: how far a layer's result turns when one position has nothing to say.

The value vectors of position j are made zero in all heads of one attention, its weights stay, and
the layer's result of each row is compared with what it was:

$$s_{ij} = 1 - \cos(\tilde{x}_i^{\neg j}, \tilde{x}_i)$$

Each row is then divided by its sum. Unlike weights and norms this sees the whole layer, residual
connections, norms and feed-forward network included.

Source:
    Mohebbi et al. 2023, "Quantifying Context Mixing in Transformers", section 3.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor

from pellucid.attention.masks import causal_mask
from pellucid.inside.measures.maps import Kind, Map, Part, last_layer, make_map, shares_of_rows
from pellucid.inside.measures.rollout import roll_encoder
from pellucid.inside.pair import Pair
from pellucid.model.site import Site

__all__ = ["value_zeroing"]

MOST_NUMBERS_AT_ONCE = 1 << 24
ROUNDING = 1e-12
"""A change of direction below this is the arithmetic's own."""


class _Zero:
    """A probe that silences one position in each row of a batch."""

    def __init__(self, site: str, silent_B: Tensor) -> None:
        self._site = site
        self._silent_B = silent_B

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Make the values of each batch row's position zero."""
        if (site, stage) != (self._site, "value"):
            return None
        silenced_BHME = tensor.clone()
        silenced_BHME[torch.arange(len(tensor)), :, self._silent_B] = 0.0
        return silenced_BHME


@torch.inference_mode()
def value_zeroing(pair: Pair, *, part: Part, kind: Kind, layer: int | None = None) -> Map:
    """What silencing each position changes in each row, as shares of the row's whole change.

    Args:
        pair: the sentence.
        part: ``encoder`` or ``decoder``.
        kind: ``self``, ``cross``, or in the encoder ``whole``: the layers up to `layer`,
            multiplied as in rollout, with no identity added, since what comes by the residual
            connection is in the measure.
        layer: from 0; the last unless given.

    Returns:
        The map; a row that nothing changes is empty.
    """
    layer = last_layer(pair, part, layer)
    depth = range(layer + 1) if kind == "whole" else [layer]
    seen = pair.see(("input",))
    memory_1SD = pair.model.encode(torch.tensor([pair.source_ids]))
    maps = []
    for index in depth:
        x_1LD = seen[f"{part}.{index}.self.input"][None]
        site = f"{part}.{index}.{'self' if kind == 'whole' else kind}"
        maps.append(_shares(pair, site, x_1LD, memory_1SD))
    return make_map(
        pair,
        "value-zeroing",
        "Mohebbi et al. 2023, section 3",
        roll_encoder(maps) if kind == "whole" else maps[0],
        part=part,
        kind=kind,
        layer=layer,
        sums_to_one=True,
    )


def _shares(pair: Pair, site: str, x_1LD: Tensor, memory_1SD: Tensor) -> np.ndarray:
    """One attention's map, ``(rows, positions)``, in double precision."""
    part, layer, _ = site.split(".")
    module = copy.deepcopy(pair.model.get_submodule(f"{part}.layers.{layer}")).double()
    x_1LD, memory_1SD = x_1LD.double(), memory_1SD.double()
    length = x_1LD.shape[1]
    has_mask = part == "decoder" and pair.model.config.look_ahead_mask
    self_mask = causal_mask(length) if has_mask else None

    def run(probe: _Zero | None, size: int) -> Tensor:
        inputs = [x_1LD.expand(size, -1, -1)]
        others: dict[str, Tensor | None] = {"mask": None}
        if part == "decoder":
            inputs.append(memory_1SD.expand(size, -1, -1))
            others = {"self_mask": self_mask, "cross_mask": None, "cache": None}
        result_BLD: Tensor = module(*inputs, **others, site=Site(f"{part}.{layer}", probe))
        return result_BLD

    before_1LD = run(None, 1)
    num_keys = memory_1SD.shape[1] if site.endswith(".cross") else length
    config = pair.model.config
    numbers_each = length * max(config.d_ff, config.num_heads * num_keys)
    size = max(1, MOST_NUMBERS_AT_ONCE // numbers_each)
    columns = []
    for first in range(0, num_keys, size):
        silent_B = torch.arange(first, min(first + size, num_keys))
        after_BLD = run(_Zero(site, silent_B), len(silent_B))
        columns.append(1 - torch.cosine_similarity(after_BLD, before_1LD, dim=-1))
    changes = torch.cat(columns).T.numpy()
    changes[changes < ROUNDING] = 0.0
    return shares_of_rows(changes)
