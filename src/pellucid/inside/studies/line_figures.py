"""Figures of lines: the weights of all heads, their links, the lens, and all measures."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid.bundle import Bundle
from pellucid.decode.hypothesis import OVERFLOW
from pellucid.decode.probing.under_probe import UnderProbe
from pellucid.errors import InputError
from pellucid.evaluation.word_links import count_links
from pellucid.inside.align.alignment_maps import PairBatch, batches_of, groups_of, watch_under
from pellucid.inside.align.attention_links import align_pairs
from pellucid.inside.align.link_views import View
from pellucid.inside.align.linked_units import links_of_maps, words_of_pair
from pellucid.inside.changes.place import Place
from pellucid.inside.heads.weight_figures import WEIGHT_FIGURES, figures_of_weights
from pellucid.inside.measures.agreement import agreement
from pellucid.inside.measures.maps import Map, source_words
from pellucid.inside.measures.registry import MEASURES, measure
from pellucid.inside.pair import PairData, states_of
from pellucid.inside.studies.study_lines import StudyLine
from pellucid.model import EncoderDecoder, Transformer
from pellucid.model.site import Site
from pellucid.text.link_choices import CONVENTIONS, LinkRule

RULES: tuple[LinkRule, ...] = ("best", "both")
PRONOUN_FIGURES = ("pronoun", "clause")
"""Weight on the antecedent: of a pronoun's row, and the largest of a row after it."""
Spots = Mapping[str, tuple[Sequence[int], Sequence[int]]]
"""For ``encoder.self`` and the like: the rows of a pronoun, and the positions of its antecedent."""


@torch.inference_mode()
def weights_and_lens(
    bundle: Bundle,
    heads: Sequence[Place],
    lines: Sequence[StudyLine],
    *,
    spots: Sequence[Sequence[Spots]] | None = None,
    under: UnderProbe | None = None,
) -> dict[str, Any]:
    """Run lines through the model, and add up the figures of its heads.

    Args:
        bundle: the model.
        heads: the heads.
        lines: the lines.
        spots: of the pronouns of each line, for `PRONOUN_FIGURES`.
        under: what changes the model on the way; each line then runs by itself.

    Returns:
        ``sums`` of `WEIGHT_FIGURES` of each head over the lines that have them, their number
        (``counts``), the ``tokens`` of the targets, how many are ``first`` after each number of
        decoder layers (none for a recurrent model), and the counts of ``links``, see `_count_gold`.
    """
    model = bundle.model
    ids = bundle.config.tokenizer
    is_read = isinstance(model, Transformer)
    states = states_of(model, "decoder") if is_read else []
    sums = np.zeros((len(heads), len(WEIGHT_FIGURES) + (len(PRONOUN_FIGURES) if spots else 0)))
    counts = np.zeros(sums.shape, int)
    first = np.zeros(len(states), int)
    tokens = 0
    pairs = [line.ids for line in lines]
    for batch in batches_of(
        pairs,
        groups_of(pairs, is_apart=under is not None),
        pad_id=ids.pad_id,
        start_id=ids.target_start_id,
        device=model.output_weight.device,
    ):
        ours = None if spots is None else [spots[index] for index in batch.indices]
        watch = _Watch(batch, {f"{one.part}.{one.layer}.{one.kind}" for one in heads}, states, ours)
        probe = watch_under(under, pairs[batch.indices[0]], ids.target_start_id, watch)
        memory_BSD = model.encode(batch.source_BS, batch.source_mask_BS, probe=probe)
        # Without that mask rows would attend to padding.
        own_mask = None if model.config.look_ahead_mask else batch.target_mask_BT
        result_BTD = model.decode(
            batch.read_BT, memory_BSD, batch.source_mask_BS, target_mask_BT=own_mask, probe=probe
        )
        if not result_BTD[batch.target_mask_BT].isfinite().all():
            raise InputError(OVERFLOW)
        found_BHX = np.stack(
            [watch.of_head(head, model).numpy(force=True) for head in heads], axis=1
        )
        # Lines without a figure, such as one of a single token, do not count for it.
        sums += np.nansum(found_BHX, axis=0)
        counts += (~np.isnan(found_BHX)).sum(axis=0)
        tokens += int(batch.target_mask_BT.sum())
        first += np.array([_count_first(model, watch.states[name], batch) for name in states], int)
    return {
        "sums": sums.tolist(),
        "counts": counts.tolist(),
        "first": first.tolist(),
        "tokens": tokens,
        "links": _count_gold(bundle, [one for one in heads if one.kind == "cross"], lines, under),
    }


class _Watch:
    """A probe that turns weights into figures at once, and keeps the states between layers."""

    def __init__(
        self,
        batch: PairBatch,
        sites: set[str],
        states: Sequence[str],
        spots: Sequence[Sequence[Spots]] | None,
    ) -> None:
        self._lengths = {
            "encoder": batch.source_mask_BS.sum(dim=1),
            "decoder": batch.target_mask_BT.sum(dim=1),
        }
        self._attentions = sites
        self._names = states
        self.sites = tuple(sites)  # the only ones whose stages are wanted
        self._spots = spots
        self._figures: dict[str, Tensor] = {}
        self.states: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        """Look at one result."""
        if stage == "weights" and site in self._attentions:
            part, _, kind = site.split(".")
            keys_B = self._lengths["encoder" if kind == "cross" else part]
            found_BHX = figures_of_weights(tensor, self._lengths[part], keys_B)
            if self._spots is not None:
                onto_BHX = self._onto(tensor, f"{part}.{kind}", self._lengths[part].tolist())
                found_BHX = torch.cat([found_BHX, onto_BHX], dim=-1)
            self._figures[site] = found_BHX
        elif f"{site}.{stage}" in self._names:
            self.states[f"{site}.{stage}"] = tensor

    def _onto(self, weights_BHLM: Tensor, kind: str, lengths: Sequence[int]) -> Tensor:
        """Compute `PRONOUN_FIGURES`, means over the pronouns of a line; NaN without one."""
        assert self._spots is not None
        found_BHX = weights_BHLM.new_full((*weights_BHLM.shape[:2], 2), torch.nan).double()
        for index, (spots, length) in enumerate(zip(self._spots, lengths, strict=True)):
            own = list[Tensor]()
            later = list[Tensor]()
            for rows, keys in (one[kind] for one in spots):
                # The last row is that of </s>.
                onto_HL = weights_BHLM[index, :, : length - 1][..., list(keys)].sum(dim=-1)
                own.append(onto_HL[:, list(rows)].mean(dim=-1))
                # Rows after the pronoun show whether the clause still looks back.
                later_HL = onto_HL[:, max(rows) + 1 :]
                later += [later_HL.amax(dim=-1)] if later_HL.shape[1] else []
            for figure, some in enumerate((own, later)):
                if some:
                    found_BHX[index, :, figure] = torch.stack(some).mean(dim=0).double()
        return found_BHX

    def of_head(self, head: Place, model: EncoderDecoder) -> Tensor:
        """Return the figures of one head, ``figures_BX``, without those that it cannot have."""
        found_BX = self._figures[f"{head.part}.{head.layer}.{head.kind}"][:, head.head].clone()
        if (head.part, head.kind) == ("decoder", "self"):
            found_BX[:, 4] = torch.nan  # the decoder never reads </s>
            if model.config.look_ahead_mask:
                # The mask forbids the next position.
                found_BX[:, 2] = torch.nan
        return found_BX


def _count_first(model: EncoderDecoder, states_BTD: Tensor, batch: PairBatch) -> int:
    """Count the target tokens that are the likeliest, if the model ended with these states."""
    assert isinstance(model, Transformer)
    last_BTD = model.decoder.leave(states_BTD, Site("decoder"))
    found = 0
    # Row by row, so that memory holds the logits of one line.
    for last_TD, target_T, mask_T in zip(
        last_BTD, batch.target_BT, batch.target_mask_BT, strict=True
    ):
        logits_TV = model.logits(last_TD[mask_T][None])[0]
        right_T1 = logits_TV.gather(1, target_T[mask_T][:, None])
        found += int((logits_TV > right_T1).any(dim=1).logical_not().sum())
    return found


def _count_gold(
    bundle: Bundle, heads: Sequence[Place], lines: Sequence[StudyLine], under: UnderProbe | None
) -> list[Any]:
    """Count links of the cross-attention of some heads, compared with the right ones.

    Returns:
        For each head and each of `CONVENTIONS` what `count_links` counts, added up over lines;
        nothing without gold links.

    Raises:
        InputError: a line cannot be aligned.
    """
    if not heads or lines[0].gold is None:
        return []
    views = [
        View(head.layer, "head", head.head, convention)
        for head in heads
        for convention in CONVENTIONS
    ]
    pairs = [line.source for line in lines], [line.target for line in lines]
    sums = np.zeros((len(views), 4), int)
    aligned = align_pairs(bundle.model, bundle.tokenizer, *pairs, views, change=under)
    for line, found in zip(lines, aligned, strict=True):
        assert line.gold is not None
        if found.error is not None:
            raise InputError(f"{found.error} (line {line.number + 1})")
        sums += [count_links(links, line.gold) for links in found.links]
    counted: list[Any] = sums.reshape(len(heads), len(CONVENTIONS), 4).tolist()
    return counted


def measures_of(bundle: Bundle, under: UnderProbe | None = None) -> list[str]:
    """Name the measures that a model has; a recurrent one has few, and so has a changed one."""
    is_recurrent = bundle.config.model.is_recurrent
    return [
        one.name
        for one in MEASURES.values()
        if (one.is_for_recurrent or not is_recurrent) and (one.takes_changes or under is None)
    ]


def measure_line(
    bundle: Bundle, line: StudyLine, under: UnderProbe | None = None
) -> dict[str, Any]:
    """Measure one line with every measure, each with its default layer and all heads.

    Returns:
        For each measure the ``seconds`` that it took, the counts of `count_links` by the rules
        ``best`` and ``both``, and Kendall's correlation with occlusion (``order``), which a changed
        model does not have.
    """
    changes = None if under is None else under.probe.probe
    ids = tuple(line.ids[0]), tuple(line.ids[1])
    pair = PairData(bundle.model, bundle.tokenizer, *ids, changes=changes)
    maps: dict[str, Map] = {}
    found: dict[str, Any] = {}
    for name in measures_of(bundle, under):
        started = time.perf_counter()
        maps[name] = measure(pair, name)
        found[name] = {"seconds": time.perf_counter() - started}
        found[name] |= _count(bundle, pair, line, maps[name])
    for name, one in maps.items():
        both = [one, maps.get("occlusion", one)]
        order = agreement(pair, both).kendall[0, 1] if "occlusion" in maps else np.nan
        found[name]["order"] = float(order)
    return found


def _count(bundle: Bundle, pair: PairData, line: StudyLine, map_: Map) -> dict[str, Any]:
    """Read links from the rows that predict the target's tokens."""
    assert line.gold is not None
    rows_TX = map_.source_matrix[:-1]
    if rows_TX.shape[1] != len(pair.source_ids):  # columns of words: their tokens share them
        rows_TS = np.zeros((len(rows_TX), len(pair.source_ids)))
        for column, word in enumerate(source_words(pair)):
            rows_TS[:, list(word)] = rows_TX[:, [column]] / len(word)
        rows_TX = rows_TS
    words = words_of_pair(bundle.tokenizer, (line.source, line.target), line.ids)
    return {
        rule: count_links(links_of_maps(rows_TX[None], words, rule)[0], line.gold) for rule in RULES
    }
