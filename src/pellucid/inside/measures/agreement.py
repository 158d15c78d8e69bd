r"""The agreement of measures: their rank correlation, row by row, on one sentence.

Measures have different units, so they are compared by how they order the source words of a row.
Kendall's $\tau_b$ counts the pairs of words that both order the same way against those that they
order differently. Spearman's $\rho$ is the correlation of ranks. Both are 1 for the same order, −1
for the reverse, and about 0 for unrelated orders.

Source:
    Kendall 1945, "The Treatment of Ties in Ranking Problems"; Jain and Wallace 2019, "Attention is
    not Explanation", section 4.1, which compares attention with gradients and with leaving one out
    in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pellucid.arguments import checked
from pellucid.errors import InputError
from pellucid.inside.measures.maps import Map, merge_source_words, source_words
from pellucid.inside.pair import PairData
from pellucid.shapes import Brief


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(Brief):
    """Rank correlations between maps.

    Attributes:
        titles: of the maps.
        kendall: ``(maps, maps)``, the mean over rows; NaN if no row can be compared.
        spearman: the same.
        num_rows: ``(maps, maps)``, the number of rows compared; a row of equal numbers has no
            order.
    """

    titles: tuple[str, ...]
    kendall: np.ndarray
    spearman: np.ndarray
    num_rows: np.ndarray


@checked
def agreement(pair: PairData, maps: Sequence[Map]) -> Agreement:
    """Compare maps of one pair.

    Args:
        pair: the sentence.
        maps: decoder rows by source tokens, or by `source_words`.

    Raises:
        InputError: a map has other rows or columns.
    """
    merged = [on_words(pair, map_) for map_ in maps]
    size = len(maps)
    taus = np.full((size, size), np.nan)
    rhos = np.full((size, size), np.nan)
    counts = np.zeros((size, size), dtype=int)
    for one in range(size):
        for other in range(one, size):
            # Both halves at once: correlation is symmetric.
            place = [one, other], [other, one]
            taus[place], counts[place] = _mean(kendall, merged[one], merged[other])
            rhos[place], _ = _mean(spearman, merged[one], merged[other])
    return Agreement(tuple(map_.title for map_ in maps), taus, rhos, counts)


def on_words(pair: PairData, map_: Map) -> np.ndarray:
    """Return a map's numbers by decoder rows and source words.

    Raises:
        InputError: it has other rows or columns.
    """
    words = source_words(pair)
    has_source = map_.num_source_columns in (len(words), len(pair.source_ids))
    if map_.part != "decoder" or not has_source:
        raise InputError(
            "A map to compare must have decoder rows and a column for each source token or word, "
            f"but has {map_.num_source_columns} source columns ({map_.title}). Take cross or whole "
            "of a measure of words."
        )
    return merge_source_words(map_, words).source_matrix


def kendall(one: np.ndarray, other: np.ndarray) -> float:
    r"""Compute Kendall's $\tau_b$ of two rows, with ties; NaN if all numbers of one are equal."""
    upper = np.triu_indices(len(one), 1)
    signs = np.sign(one[:, None] - one)[upper]
    other_signs = np.sign(other[:, None] - other)[upper]
    # Pairs that are tied in a row are left out of its factor: that is the b of τ_b.
    size = np.sqrt(np.abs(signs).sum() * np.abs(other_signs).sum())
    return float((signs * other_signs).sum() / size) if size else float("nan")


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    r"""Compute Spearman's $\rho$ of two rows: the correlation of ranks; ties share the middle."""
    ranks = _ranks(one)
    other_ranks = _ranks(other)
    size = np.sqrt((ranks**2).sum() * (other_ranks**2).sum())
    return float((ranks * other_ranks).sum() / size) if size else float("nan")


def _ranks(row: np.ndarray) -> np.ndarray:
    """Rank the numbers of a row around 0; equal numbers share the middle of their ranks."""
    below = (row[:, None] > row).sum(axis=1)
    above = (row[:, None] < row).sum(axis=1)
    ranks: np.ndarray = (below - above) / 2
    return ranks


def _mean(
    correlation: Callable[[np.ndarray, np.ndarray], float], one: np.ndarray, other: np.ndarray
) -> tuple[float, int]:
    """Return the mean over the rows that have a correlation, and their number."""
    found = [correlation(row, other_row) for row, other_row in zip(one, other, strict=True)]
    # A row of equal numbers has no order to compare.
    known = [value for value in found if not np.isnan(value)]
    return (float(np.mean(known)) if known else float("nan")), len(known)
