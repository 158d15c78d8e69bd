"""A table of all heads of a model on one sentence: a row of figures for each, to sort by.

Most figures describe weights. Only the effect of cutting the head says what the head does for
the translation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch

from pellucid.arguments import checked
from pellucid.errors import InputError, suggestion
from pellucid.evaluation.word_links import GoldLinks, count_links, error_of_counts
from pellucid.inside.align.linked_units import PairWords, links_of_maps
from pellucid.inside.changes.change import Changes, CutHead
from pellucid.inside.changes.place import Place, all_heads
from pellucid.inside.heads.weight_figures import WEIGHT_FIGURES, figures_of_weights
from pellucid.inside.pair import PairData
from pellucid.inside.record.trace_data import TraceData
from pellucid.shapes import Brief
from pellucid.text.link_choices import Convention, LinkRule
from pellucid.text.token_words import is_punctuation


@dataclass(frozen=True)
class Gold:
    """The right links of a pair, and how links are read from its maps.

    Attributes:
        links: between the words of both sides.
        words: those of the pair.
        convention: whether a decoder row counts for the token that it predicts or reads.
        rule: which links to take from a map, see `link_words`.
    """

    links: GoldLinks
    words: PairWords
    convention: Convention = "predicts"
    rule: LinkRule = "both"


@dataclass(frozen=True, repr=False)
class HeadRow(Brief):
    r"""The figures of one head in one sentence.

    Figures of weights are averaged over the rows that may attend to something.

    Attributes:
        head: the head.
        entropy: $-\sum_j \alpha_j \ln \alpha_j$, in nats; 0 if a row attends to a single token.
        confidence: the largest weight of a row.
        end_mass: the weight on ``</s>``; in the decoder's self-attention, which never reads
            ``</s>``, the weight on the start token.
        punctuation_mass: the weight on tokens that are only punctuation.
        distance: $\sum_j \alpha_j |i - j|$, in tokens: the distance of what a row attends to from
            its own position; in cross-attention from the position of the same number.
        cut_effect: the change in the target's log-probability when the head is cut; below 0 if
            the target becomes less likely. None if it was not computed.
        link_counts: the counts behind the alignment error, as `count_links` returns them. None if
            they were not computed, and for self-attention.

    Source:
        Confidence: Voita et al. 2019, "Analyzing Multi-Head Self-Attention", section 4.
    """

    head: Place
    entropy: float
    confidence: float
    end_mass: float
    punctuation_mass: float
    distance: float
    cut_effect: float | None = None
    link_counts: tuple[int, int, int, int] | None = None

    @property
    def alignment_error(self) -> float | None:
        """The alignment error rate of the head's links, see `score_counts`."""
        return None if self.link_counts is None else float(error_of_counts(self.link_counts))


FIGURES = ("entropy", "confidence", "end_mass", "punctuation_mass", "distance", "cut_effect")
SORTABLE = (*FIGURES, "alignment_error")
"""The figures that rows can be sorted by."""


@checked
def head_rows(
    trace: TraceData, *, pair: PairData | None = None, gold: Gold | None = None
) -> list[HeadRow]:
    """Compute the figures of every head whose weights a trace holds.

    Args:
        trace: of one sentence.
        pair: the same sentence with its model. If given, the effect of cutting each head is
            computed, which takes one run for each.
        gold: the right links. If given, the alignment error of each cross-attention head is
            computed.

    Returns:
        A row for each head, from the encoder's first layer on.

    Raises:
        InputError: the trace holds no weights.
    """
    found = []
    for name, weights_HLM in trace.arrays.items():
        part, *place, stage = name.split(".")
        if stage != "weights":
            continue
        keys = trace.key_tokens(part, place[1])
        # The decoder's self-attention never reads ``</s>``: there the start token takes its place.
        end = len(keys) - 1 if part == "encoder" or place[1] == "cross" else 0
        is_mark = np.array([is_punctuation(token) for token in keys])
        for index, head in enumerate(trace.heads):
            where = Place(
                "encoder" if part == "encoder" else "decoder",
                int(place[0]),
                "self" if place[1] == "self" else "cross",
                head,
            )
            row = _figures(where, weights_HLM[index].astype(np.float64), end, is_mark)
            if gold is not None and where.kind == "cross":
                # The row that reads the start token, or predicts the end, belongs to no word.
                map_TS = weights_HLM[index]
                rows = map_TS[1:] if gold.convention == "reads" else map_TS[:-1]
                (links,) = links_of_maps(rows[None], gold.words, gold.rule)
                row = replace(row, link_counts=count_links(links, gold.links))
            found.append(row)
    if not found:
        raise InputError(
            "The trace holds no weights to make a table of heads from. Look again with the stage "
            "weights."
        )
    if pair is None:
        return found
    effects = cut_effects(pair, [row.head for row in found])
    return [replace(row, cut_effect=effects[row.head]) for row in found]


def cut_effects(pair: PairData, heads: Iterable[Place] | None = None) -> dict[Place, float]:
    """Compute the change in the target's log-probability when a single head is cut.

    Args:
        pair: the sentence, scored with teacher forcing.
        heads: the heads to cut, one at a time; all unless given.
    """
    chosen = list(all_heads(pair.model.config) if heads is None else heads)
    before = _log_probability(pair)
    return {head: _log_probability(pair, Changes(CutHead(head))) - before for head in chosen}


@checked
def sort_rows(rows: Iterable[HeadRow], by: str, *, descending: bool = False) -> list[HeadRow]:
    """Sort by one figure; rows without it come last, equal ones stay in order.

    Raises:
        InputError: the figure does not exist.
    """
    if by not in SORTABLE:
        raise InputError(
            f"The figure to sort heads by must be one of {', '.join(SORTABLE)}, but is {by!r}. "
            f"{suggestion(by, SORTABLE)}"
        )
    sign = -1.0 if descending else 1.0

    def place(row: HeadRow) -> float:
        figure = getattr(row, by)
        # Rows without the figure come last in either direction.
        return math.inf if figure is None else sign * figure

    return sorted(rows, key=place)


def _figures(head: Place, weights_LM: np.ndarray, end: int, is_mark: np.ndarray) -> HeadRow:
    rows, keys = map(torch.tensor, ([size] for size in weights_LM.shape))
    found_X = figures_of_weights(torch.tensor(weights_LM)[None, None], rows, keys)[0, 0]
    figures = dict(zip(WEIGHT_FIGURES, found_X.tolist(), strict=True))
    # A row that may attend nowhere would pull the mean down.
    attending = weights_LM[weights_LM.sum(axis=1) > 0]
    on_marks = float(attending[:, is_mark].sum(axis=1).mean()) if len(attending) else math.nan
    return HeadRow(
        head,
        entropy=figures["entropy"],
        confidence=figures["confidence"],
        # Which is the start token where `end` is 0.
        end_mass=figures["end" if end else "first"],
        punctuation_mass=on_marks,
        distance=figures["distance"],
    )


def _log_probability(pair: PairData, probe: Changes | None = None) -> float:
    with torch.inference_mode():
        return float(pair.log_probabilities(probe=probe).sum())
