"""Where two files are shifted against each other, found without knowing their languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["Shift", "find_shifts", "is_unrelated"]

WINDOW = 128
"""Lines that are judged together."""

MOST = 10
"""Shifts of up to so many lines are tried, in both directions."""

CLEARLY = 6.0
"""How many standard errors another line must fit better than the one of the same number."""

AS_WELL = 2.0
"""How many beside lines that do so clearly."""

RIVAL, MOST_RIVALS = 2.0, 4
"""By how many standard errors a shift must fit better than another one that is no rival to it, and
how many rivals it may have: lines that are there twice or three times make two or four."""

LEAST_CORRELATION = 0.1
"""Of the logarithms of lengths; translations have 0.5 and more."""

MATCH = 3.0
"""What an anchor in both lines counts, in units of the product of standardized lengths."""


@dataclass(frozen=True)
class Shift:
    """A stretch where source line i belongs to target line i + ``offset``.

    Attributes:
        first: about the first such line, from 0.
        last: about the last.
        offset: never 0.
    """

    first: int
    last: int
    offset: int


def find_shifts(
    source_lengths: Sequence[int],
    target_lengths: Sequence[int],
    source_anchors: Sequence[int],
    target_anchors: Sequence[int],
) -> list[Shift]:
    r"""Compare every window of lines with the same lines of the other side, moved a little.

    Translations of long sentences are long, and numbers and names stay. With standardized
    logarithms of lengths $x_i$, $y_i$ the fit of line i at offset k is
    $$f_k(i) = x_i y_{i+k} + 3 \cdot [\text{an anchor in both}]$$
    A window is shifted by k where the mean of $f_k(i) - f_0(i)$ is at least six standard errors
    above zero, or two beside a window that is. Neighbors that are alike, sorted text and doubled
    lines change both alike. Where long and short lines take turns, half of all offsets fit better
    than a wrong one: what so many others rival is no shift.

    Args:
        source_lengths: characters of every source line.
        target_lengths: characters of every target line.
        source_anchors: for every source line, a set of 64 bits for its numbers and names.
        target_anchors: the same for the targets.

    Returns:
        The shifted stretches, in order.
    """
    source = _Side(source_lengths, source_anchors)
    target = _Side(target_lengths, target_anchors)
    count = min(len(source.lengths), len(target.lengths))
    if count < WINDOW // 2:
        return []
    offsets = [offset for offset in range(-MOST, MOST + 1) if offset]
    edges = np.arange(0, count - WINDOW // 2 + 1, WINDOW)
    sizes = np.diff(np.append(edges, count))
    evidence = np.stack(
        [_evidence(_gain(source, target, count, offset), edges, sizes) for offset in offsets]
    )
    best = np.array(offsets)[evidence.argmax(axis=0)]
    found = np.where(evidence.max(axis=0) > CLEARLY, best, 0)
    if found.any():
        found[_num_rivals(source, target, found, offsets, edges, sizes) > MOST_RIVALS] = 0
        _spread(found, dict(zip(offsets, evidence, strict=True)))
    return [
        _refined(source, target, count, first * WINDOW, min(count, last * WINDOW), offset)
        for first, last, offset in _stretches(found)
    ]


def is_unrelated(
    source_lengths: Sequence[int],
    target_lengths: Sequence[int],
    source_anchors: Sequence[int],
    target_anchors: Sequence[int],
) -> bool:
    """Whether nothing shows that line i of one side translates line i of the other.

    True where, in enough lines, the lengths correlate by less than `LEAST_CORRELATION` and no
    more anchors are in both lines than in a line and the tenth after it.

    Args:
        source_lengths: as for `find_shifts`, with the others.
        target_lengths: likewise.
        source_anchors: likewise.
        target_anchors: likewise.
    """
    source, target = _Side(source_lengths, source_anchors), _Side(target_lengths, target_anchors)
    count = len(source.lengths)
    if count < 2 * WINDOW or not (source.lengths.any() and target.lengths.any()):
        return False
    correlation = float(np.mean(source.lengths * target.lengths))
    matches = [
        int(np.count_nonzero(source.anchors & np.roll(target.anchors, shift)))
        for shift in (0, MOST)
    ]
    return correlation < LEAST_CORRELATION and matches[0] < 1.5 * matches[1] + WINDOW // 16


class _Side:
    """One side's standardized lengths and anchors."""

    def __init__(self, lengths: Sequence[int], anchors: Sequence[int]) -> None:
        logarithms = np.log1p(np.asarray(lengths, dtype=np.float64))
        self.anchors = np.asarray(anchors, dtype=np.uint64)
        if logarithms.size:
            logarithms = (logarithms - logarithms.mean()) / (logarithms.std() or 1.0)
        self.lengths = np.clip(logarithms, -3, 3)


def _fit(source: _Side, target: _Side, count: int, offset: int) -> NDArray[np.float64]:
    """How well every source line goes with the target line so many lines on; 0 past the ends."""
    fit = np.zeros(count)
    here = slice(max(0, -offset), min(count, count - offset))
    there = slice(max(0, offset), min(count, count + offset))
    is_match = (source.anchors[:count][here] & target.anchors[:count][there]) != 0
    fit[here] = source.lengths[:count][here] * target.lengths[:count][there] + MATCH * is_match
    return fit


def _gain(source: _Side, target: _Side, count: int, offset: int) -> NDArray[np.float64]:
    return _fit(source, target, count, offset) - _fit(source, target, count, 0)


def _num_rivals(
    source: _Side,
    target: _Side,
    found: NDArray[np.int64],
    offsets: Sequence[int],
    edges: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> NDArray[np.int64]:
    """How many other offsets fit every window about as well as the one found."""
    count = int(sizes.sum())
    found_of_line = np.repeat(found, sizes)
    fit = np.zeros(count)
    for offset in offsets:
        is_it = found_of_line == offset
        fit[is_it] = _fit(source, target, count, offset)[is_it]
    rivals = np.zeros(len(found), dtype=np.int64)
    for offset in offsets:
        gain = fit - _fit(source, target, count, offset)
        rivals += (found != offset) & (_evidence(gain, edges, sizes) < RIVAL)
    return rivals


def _evidence(
    gain: NDArray[np.float64], edges: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The mean gain of every window, in standard errors."""
    mean = np.add.reduceat(gain, edges) / sizes
    square = np.add.reduceat(gain**2, edges) / sizes
    variance = np.maximum(square - mean**2, 1e-12)
    evidence: NDArray[np.float64] = mean / np.sqrt(variance / sizes)
    return evidence


def _spread(found: NDArray[np.int64], evidence: Mapping[int, NDArray[np.float64]]) -> None:
    """Let a shift reach over the windows beside it that show it less clearly."""
    for way in (1, -1):
        numbers = range(len(found))[::way]
        for before, number in pairwise(numbers):
            offset = int(found[before])
            if offset and not found[number] and evidence[offset][number] > AS_WELL:
                found[number] = offset


def _stretches(found: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Runs of windows of one offset: first, past the last, offset; one quiet window is bridged."""
    run: tuple[int, int, int] | None = None
    for number, offset in enumerate(found.tolist()):
        if not offset:
            continue
        if run is not None and run[2] == offset and number - run[1] <= 1:
            run = (run[0], number + 1, offset)
            continue
        if run is not None:
            yield run
        run = (number, number + 1, offset)
    if run is not None:
        yield run


def _refined(source: _Side, target: _Side, count: int, first: int, past: int, offset: int) -> Shift:
    """Move both ends to where the gain changes its sign, within a window outwards."""
    gain = _gain(source, target, count, offset)
    middle = (first + past) // 2
    start, end = max(0, first - WINDOW), min(count, past + WINDOW)
    before = np.cumsum(gain[start:middle][::-1])
    after = np.cumsum(gain[middle:end])
    return Shift(middle - 1 - int(before.argmax()), middle + int(after.argmax()), offset)
