"""Readings of a pronoun's nouns: from heads, from maps of any measure, and from cuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import torch
from antecedents.cases import Case, Reading

from pellucid.config.head_address import Kind, Part
from pellucid.inside import Pair
from pellucid.inside.ask import Ask
from pellucid.inside.changes.change import Changes, CutEdge, cut_source_word
from pellucid.inside.changes.place import Place
from pellucid.inside.pair import attention_at, output_by_head
from pellucid.inside.record.trace_data import TraceData
from pellucid.inside.replayed_pair import replay

Rows = Literal["pronoun", "predicate", "predicts", "reads"]
"""The rows of a map to read: the encoder's at the pronoun or at the other words of its clause, or
the decoder's that predict, or that read, the French word that shows the gender."""

CUTS = (
    "cut pronoun > noun",
    "cut predicate > noun",
    "cut noun > predicate",
    "cut decoder > noun",
    "cut word",
)
"""The cuts that `read_cuts` makes for each noun."""


def read_heads(case: Case) -> dict[str, list[float]]:
    r"""Read every head's weights on each noun, and the norms of the vectors that they bring.

    The encoder's rows are those of the pronoun, and those of its clause's other words. The
    decoder's rows are those that predict, and those that read, the word that shows the gender; its
    self-attention attends to the nouns' translations. Names consist of a head, a measure and the
    rows: ``decoder.1.cross.0 norms, predicts``. A noun's number is the sum over its tokens,
    averaged over the rows.

    Source:
        Norms: Kobayashi et al. 2020, "Attention is Not Only a Weight", $\lVert\alpha f(x)\rVert$.
    """
    trace = replay(case.pair, Ask(stages=("weights", "value")))
    found: dict[str, list[float]] = {}
    for name in [name for name in trace.arrays if name.endswith(".weights")]:
        site = name.removesuffix(".weights")
        part, _, kind = site.split(".")
        rows: tuple[Rows, ...] = ("predicts", "reads")
        if part == "encoder":
            rows = ("pronoun", "predicate")
        maps = {"weights": trace.arrays[name], "norms": _norms(case.pair, trace, site)}
        for measure, map_HLM in maps.items():
            for row in rows:
                scores_HX = _scores(
                    map_HLM, case, row, is_source=(part, kind) != ("decoder", "self")
                )
                for head, scores in enumerate(scores_HX.tolist()):
                    found[f"{site}.{head} {measure}, {row}"] = scores
    return found


def read_map(name: str, make_map: Callable[[Pair], np.ndarray], rows: Rows) -> Reading:
    """Make a reading of a map of any measure.

    Args:
        name: of the reading.
        make_map: returns a map with source tokens as columns; its rows are the encoder's positions
            for ``pronoun`` and ``predicate``, otherwise the decoder's rows. Further columns are
            ignored.
        rows: the rows to read.
    """

    def read(case: Case) -> dict[str, list[float]]:
        map_1LM = np.asarray(make_map(case.pair))[None]
        return {f"{name}, {rows}": _scores(map_1LM, case, rows, is_source=True)[0].tolist()}

    return read


@torch.inference_mode()
def read_cuts(case: Case) -> dict[str, list[float]]:
    """Compute what the word that shows the gender loses in log-probability by cuts of each noun.

    In the encoder, the pronoun cannot attend to the noun, or the predicate cannot, or the noun
    cannot attend to the predicate. In the decoder, the rows that predict the word cannot attend to
    the noun. Last, no position can attend to the noun. Each cut is in all layers and heads.
    """
    rows = list(case.rows)
    before = case.pair.log_probabilities()[rows].sum()
    losses: dict[str, list[float]] = {name: [] for name in CUTS}
    for noun in case.nouns:
        probes = (
            _cut_edges("encoder", "self", case.pronoun, noun),
            _cut_edges("encoder", "self", case.predicate, noun),
            _cut_edges("encoder", "self", noun, case.predicate),
            _cut_edges("decoder", "cross", case.rows, noun),
            cut_source_word(noun),
        )
        for name, probe in zip(CUTS, probes, strict=True):
            after = case.pair.log_probabilities(probe=probe)[rows].sum()
            losses[name].append(float(before - after))
    return losses


def _cut_edges(part: Part, kind: Kind, queries: Sequence[int], keys: Sequence[int]) -> Changes:
    """Cut all edges from some positions to others, in all layers and heads."""
    return Changes(
        *(
            CutEdge(Place(part, None, kind, None, query, key, is_edge=True))
            for query in queries
            for key in keys
        )
    )


def _scores(map_HLM: np.ndarray, case: Case, rows: Rows, *, is_source: bool) -> np.ndarray:
    """Sum over each noun's tokens in the mean of the rows, for each head: ``scores_HX``."""
    queries = {
        "pronoun": case.pronoun,
        "predicate": case.predicate,
        "predicts": case.rows,
        "reads": [row + 1 for row in case.rows],
    }
    row_HM = map_HLM[:, list(queries[rows])].mean(axis=1)
    nouns = case.nouns
    if not is_source:  # The decoder reads target token t at position t + 1.
        nouns = tuple(tuple(token + 1 for token in tokens) for tokens in case.target_nouns)
    return np.stack([row_HM[:, list(tokens)].sum(axis=1) for tokens in nouns], axis=1)


def _norms(pair: Pair, trace: TraceData, site: str) -> np.ndarray:
    """Compute the norm of what each head brings to each row from each position: ``norms_HLM``."""
    value_HME = trace.arrays[f"{site}.value"]
    projection_HED = output_by_head(attention_at(pair.model, site)).detach().numpy()
    lengths_HM = np.linalg.norm(value_HME @ projection_HED, axis=-1)
    norms_HLM: np.ndarray = trace.arrays[f"{site}.weights"] * lengths_HM[:, None]
    return norms_HLM
