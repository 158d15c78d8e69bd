r"""Value zeroing: the change in a layer's result when the values of one position are 0.

The value vectors of position j become zero in all heads of one attention, and the weights stay.
Then the layer's result for each row is compared with the original result:

$$s_{ij} = 1 - \cos(\tilde{x}_i^{\neg j}, \tilde{x}_i)$$

Each row is divided by its sum. Unlike weights and norms, this measures the whole layer, with
residual connections, norms and feed-forward network.

Source:
    Mohebbi et al. 2023, "Quantifying Context Mixing in Transformers", section 3.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor

from pellucid.attention.masks import causal_mask
from pellucid.config.head_address import Part, sites_of
from pellucid.inside.measures.maps import Map, MapKind, last_layer, make_map, shares_of_rows
from pellucid.inside.measures.rollout import roll_encoder
from pellucid.inside.pair import PairData
from pellucid.model.site import Site

MOST_NUMBERS_AT_ONCE = 1 << 21
"""Numbers in the widest result of one block of positions; a block holds several such results."""

ROUNDING = 1e-12
"""A smaller change of direction is only rounding."""


class _Zero:
    """A probe that sets the values of one position to 0 in each row of a batch."""

    def __init__(self, site: str, silent_B: Tensor) -> None:
        self._site = site
        self.sites = (site,)  # attention elsewhere takes the fast path
        self._silent_B = silent_B

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Set the values of each batch row's position to 0."""
        if (site, stage) != (self._site, "value"):
            return None
        silenced_BHME = tensor.clone()
        silenced_BHME[torch.arange(len(tensor), device=tensor.device), :, self._silent_B] = 0.0
        return silenced_BHME


@torch.inference_mode()
def value_zeroing(pair: PairData, *, part: Part, kind: MapKind, layer: int | None = None) -> Map:
    """Compute how much zeroing each position changes each row, as shares of the row's sum.

    Args:
        pair: the sentence.
        part: ``encoder`` or ``decoder``.
        kind: ``self``, ``cross``, or in the encoder ``whole``: the layers up to `layer`, multiplied
            as in rollout, but without an added identity, since the measure includes the residual
            connection.
        layer: from 0; the last unless given.

    Returns:
        The map; a row is empty if no position changes it.
    """
    layer = last_layer(pair, part, layer)
    depth = range(layer + 1) if kind == "whole" else [layer]
    # The vectors that really enter each layer, so that only its own values are silenced.
    seen = pair.see(("input",))
    memory_1SD = pair.model.encode(pair.to_tensor([pair.source_ids]))
    sites = sites_of(pair.model.config)
    maps = []
    for index in depth:
        # A layer begins with self-attention, or with the unit in its place.
        first = next(one for one in sites if one.startswith(f"{part}.{index}."))
        x_1LD = seen[f"{first}.input"][None]
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


def _shares(pair: PairData, site: str, x_1LD: Tensor, memory_1SD: Tensor) -> np.ndarray:
    """Compute one attention's map, ``(rows, positions)``, in double precision."""
    part, layer, _ = site.split(".")
    # A copy of one layer in double precision: changes of direction are small numbers.
    module = copy.deepcopy(pair.model.get_submodule(f"{part}.layers.{layer}")).double()
    x_1LD = x_1LD.double()
    memory_1SD = memory_1SD.double()
    length = x_1LD.shape[1]
    has_mask = part == "decoder" and pair.model.config.look_ahead_mask
    self_mask = causal_mask(length, device=pair.device) if has_mask else None

    def run(probe: _Zero | None, size: int) -> Tensor:
        inputs = [x_1LD.expand(size, -1, -1)]
        others: dict[str, Tensor | None] = {"mask": None}
        if part == "decoder":
            inputs.append(memory_1SD.expand(size, -1, -1))
            # One sentence has no padding, so only the look-ahead mask is needed.
            others = {"self_mask": self_mask, "cross_mask": None, "cache": None}
        result_BLD: Tensor = module(*inputs, **others, site=Site(f"{part}.{layer}", probe))
        return result_BLD

    before_1LD = run(None, 1)
    num_keys = memory_1SD.shape[1] if site.endswith(".cross") else length
    config = pair.model.config
    # The widest result of one batch row: inside the feed-forward network, or all heads' weights.
    numbers_each = length * max(config.d_ff, config.num_heads * num_keys)
    size = max(1, MOST_NUMBERS_AT_ONCE // numbers_each)
    columns = []
    for first in range(0, num_keys, size):
        silent_B = torch.arange(first, min(first + size, num_keys), device=pair.device)
        after_BLD = run(_Zero(site, silent_B), len(silent_B))
        columns.append(1 - torch.cosine_similarity(after_BLD, before_1LD, dim=-1))
    changes = torch.cat(columns).T.numpy(force=True)
    # Divided by its sum, a row of rounding errors would look like a finding.
    changes[changes < ROUNDING] = 0.0
    return shares_of_rows(changes)
