"""Maps from target tokens to source tokens, of many pairs at once, for alignment.

Pairs run through the model in batches with teacher forcing. Only the results that maps are made
of are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pellucid.attention.probe import Probe
from pellucid.data import make_source_batch
from pellucid.decode.probing.under_probe import UnderProbe
from pellucid.inside.align.link_views import PairMaps
from pellucid.inside.changes.given_changes import SeveralProbes
from pellucid.inside.pair import Keeper, attention_at, output_by_head
from pellucid.model import EncoderDecoder

BATCH_TOKENS = 4096
"""The most positions of one side computed at once; at least one pair is."""


@torch.inference_mode()
def map_pairs(
    model: EncoderDecoder,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    layers: Collection[int],
    *,
    pad_id: int,
    start_id: int,
    has_norms: bool,
    change: UnderProbe | None = None,
) -> Iterator[PairMaps]:
    """Run pairs through the model and yield their maps, pairs of similar length together.

    Args:
        model: the model.
        pairs: source and target ids, both ending in ``</s>``.
        layers: of the decoder.
        pad_id: fills positions without a token.
        start_id: the token that every target starts from.
        has_norms: compute norms as well as weights.
        change: what changes the model; each pair then runs by itself.

    Yields:
        The maps of each pair, in any order. They hold no numbers if the model's states overflow.
    """
    layers = sorted(layers)
    sites = [f"decoder.{layer}.cross" for layer in layers]
    device = model.output_weight.device
    groups = groups_of(pairs, is_apart=change is not None)
    for batch in batches_of(pairs, groups, pad_id=pad_id, start_id=start_id, device=device):
        group = batch.indices
        keeper = Keeper(("weights", "value"), sites)
        probe = watch_under(change, pairs[group[0]], start_id, keeper)
        source_mask_BS = batch.source_mask_BS if change is None else None
        memory_BSD = model.encode(
            batch.source_BS, source_mask_BS, probe=None if change is None else change.probe
        )
        states_BTD = model.decode(batch.read_BT, memory_BSD, source_mask_BS, probe=probe)
        is_finite_BT = states_BTD.isfinite().all(dim=-1)
        maps = {
            layer: _make_maps(model, site, keeper.found, has_norms=has_norms)
            for layer, site in zip(layers, sites, strict=True)
        }
        for row, index in enumerate(group):
            sizes = tuple(map(len, pairs[index]))
            cut = {layer: one[row, :, : sizes[1], : sizes[0]] for layer, one in maps.items()}
            if not is_finite_BT[row, : sizes[1]].all():
                cut = {layer: np.full_like(one, np.nan) for layer, one in cut.items()}
            yield PairMaps(index, cut, model.config.num_heads)


def watch_under(
    change: UnderProbe | None,
    pair: tuple[Sequence[int], Sequence[int]],
    start_id: int,
    watcher: Probe,
) -> Probe:
    """Let a probe watch the next run of a pair, after what changes the model, if anything does."""
    if change is None:
        return watcher
    change.begin(pair[0], (start_id, *pair[1][:-1]))
    return SeveralProbes([change.probe, watcher])


def _make_maps(
    model: EncoderDecoder, site: str, seen: Mapping[str, Tensor], *, has_norms: bool
) -> np.ndarray:
    """Compute all maps of one layer, ``maps_BXTS``, in the order of `_column`."""
    weights_BHTS = seen[f"{site}.weights"]
    value_BHSE = seen[f"{site}.value"]
    # In the order that `_column` counts in.
    maps = [weights_BHTS, weights_BHTS.mean(dim=1, keepdim=True)]
    if has_norms:
        transformed_BHSD = value_BHSE  # The context of a recurrent decoder is used as it is.
        if not model.config.is_recurrent:
            transformed_BHSD = value_BHSE @ output_by_head(attention_at(model, site))
        weighted_BHTS = weights_BHTS * transformed_BHSD.norm(dim=-1)[:, :, None, :]
        # ‖Σ_h α f‖² from the products of the heads' vectors, without a D-vector for each T × S.
        # A product of any two heads at a position, small since it has no axis of rows.
        products = torch.einsum("bhsd,bgsd->bshg", transformed_BHSD, transformed_BHSD)
        squares_BTS = torch.einsum("bhts,bgts,bshg->bts", weights_BHTS, weights_BHTS, products)
        # Rounding may leave a square slightly below 0.
        norms_BTS = squares_BTS.clamp(min=0).sqrt()
        maps += [weighted_BHTS, norms_BTS[:, None]]
    return torch.cat(maps, dim=1).numpy(force=True)


@dataclass(frozen=True, eq=False)
class PairBatch:
    """Pairs of similar length that run through a model together.

    Attributes:
        indices: their numbers.
        source_BS: their sources.
        source_mask_BS: True for tokens, False for padding.
        read_BT: what the decoder reads, from the start token on.
        target_BT: what it is to predict.
        target_mask_BT: True for tokens, False for padding.
    """

    indices: list[int]
    source_BS: Tensor
    source_mask_BS: Tensor
    read_BT: Tensor
    target_BT: Tensor
    target_mask_BT: Tensor


def batches_of(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    groups: Iterable[list[int]],
    *,
    pad_id: int,
    start_id: int,
    device: torch.device,
) -> Iterator[PairBatch]:
    """Yield pairs in groups, such as `groups_of` makes.

    Args:
        pairs: source and target ids, both ending in ``</s>``.
        groups: the numbers of those that run together.
        pad_id: fills positions without a token.
        start_id: the token that every target starts from.
        device: where the model computes.
    """
    for group in groups:
        source_BS, source_mask_BS = make_source_batch(
            [pairs[index][0] for index in group], pad_id=pad_id
        )
        target_BT, mask_BT = make_source_batch([pairs[index][1] for index in group], pad_id=pad_id)
        # What the decoder reads is the target one to the right, after the start token.
        read_BT = target_BT.roll(1, dims=1)
        read_BT[:, 0] = start_id
        yield PairBatch(
            indices=group,
            source_BS=source_BS.to(device),
            source_mask_BS=source_mask_BS.to(device),
            read_BT=read_BT.to(device),
            target_BT=target_BT.to(device),
            target_mask_BT=mask_BT.to(device),
        )


def groups_of(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]], *, is_apart: bool = False
) -> Iterator[list[int]]:
    """Yield the numbers of pairs of similar length, as many as `BATCH_TOKENS` allows.

    Under a change each is by itself (``is_apart``), since it must see no padding.
    """
    group: list[int] = []
    longest = 0
    # Pairs of similar length waste no positions on padding.
    for index in sorted(range(len(pairs)), key=lambda index: max(map(len, pairs[index]))):
        longest = max(map(len, pairs[index]))
        if group and (is_apart or (len(group) + 1) * longest > BATCH_TOKENS):
            yield group
            group = []
        group.append(index)
    if group:
        yield group
