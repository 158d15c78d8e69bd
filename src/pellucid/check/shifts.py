"""Shifts between two parallel files, found without knowing their languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

WINDOW = 128
"""Lines that are compared together."""

MAX_OFFSET = 10
"""The largest shift to try, in lines and in both directions."""

MIN_EVIDENCE = 6.0
"""Standard errors by which a shift must fit a window better than no shift."""

MIN_EVIDENCE_NEARBY = 2.0
"""The same for a window next to one that is clearly shifted."""

RIVAL_EVIDENCE = 2.0
"""Another shift is a rival unless it fits worse by this many standard errors."""

MAX_RIVALS = 4
"""Rivals that a shift may have: lines that occur twice or three times make two or four."""

MIN_CORRELATION = 0.1
"""The least correlation of the logarithms of lengths; translations have 0.5 and more."""

ANCHOR_WEIGHT = 3.0
"""The weight of an anchor in both lines, in units of the product of standardized lengths."""


@dataclass(frozen=True)
class Shift:
    """A stretch where source line i belongs to target line i + ``offset``.

    Attributes:
        first: about the first such line, from 0.
        last: about the last such line.
        offset: the shift in lines; never 0.
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
    r"""Find stretches where source lines translate target lines of other numbers.

    Long sentences have long translations, which keep numbers and names. With standardized
    logarithms of lengths $x_i$, $y_i$ the fit of line i at offset k is
    $$f_k(i) = x_i y_{i+k} + 3 \cdot [\text{an anchor in both}]$$
    A window of lines is shifted by k if the mean of $f_k(i) - f_0(i)$ is at least six standard
    errors above zero, or two next to a window that is. Similar neighbors, sorted text and doubled
    lines change both terms alike. If long and short lines alternate, half of all offsets fit better
    than a wrong one: an offset with so many rivals is not a shift.

    Args:
        source_lengths: the characters of each source line.
        target_lengths: the characters of each target line.
        source_anchors: the numbers and names of each source line, as a set of 64 bits.
        target_anchors: the same for the targets.

    Returns:
        The shifted stretches, in order.
    """
    source = _Side(source_lengths, source_anchors)
    target = _Side(target_lengths, target_anchors)
    count = min(len(source.lengths), len(target.lengths))
    if count < WINDOW // 2:
        return []
    offsets = [offset for offset in range(-MAX_OFFSET, MAX_OFFSET + 1) if offset]
    edges = np.arange(0, count - WINDOW // 2 + 1, WINDOW)
    sizes = np.diff(np.append(edges, count))
    evidence = np.stack(
        [_evidence(_gain(source, target, count, offset), edges, sizes) for offset in offsets]
    )
    best = np.array(offsets)[evidence.argmax(axis=0)]
    found = np.where(evidence.max(axis=0) > MIN_EVIDENCE, best, 0)
    if found.any():
        found[_num_rivals(source, target, found, offsets, edges, sizes) > MAX_RIVALS] = 0
        _spread(found, dict(zip(offsets, evidence, strict=True)))
    return [
        _refine(source, target, count, first * WINDOW, min(count, last * WINDOW), offset)
        for first, last, offset in _stretches(found)
    ]


def is_unrelated(
    source_lengths: Sequence[int],
    target_lengths: Sequence[int],
    source_anchors: Sequence[int],
    target_anchors: Sequence[int],
) -> bool:
    """Tell whether nothing shows that line i of one side translates line i of the other.

    True if, over enough lines, the lengths correlate by less than `MIN_CORRELATION`, and a line
    shares no more anchors with its counterpart than with the tenth line after that.

    Args:
        source_lengths: as in `find_shifts`.
        target_lengths: as in `find_shifts`.
        source_anchors: as in `find_shifts`.
        target_anchors: as in `find_shifts`.
    """
    source = _Side(source_lengths, source_anchors)
    target = _Side(target_lengths, target_anchors)
    count = len(source.lengths)
    if count < 2 * WINDOW or not (source.lengths.any() and target.lengths.any()):
        return False
    correlation = float(np.mean(source.lengths * target.lengths))
    matches = [
        int(np.count_nonzero(source.anchors & np.roll(target.anchors, shift)))
        for shift in (0, MAX_OFFSET)
    ]
    # Lines ten apart share anchors by chance only; half as many again, and a few, may be chance.
    return correlation < MIN_CORRELATION and matches[0] < 1.5 * matches[1] + WINDOW // 16


class _Side:
    """One side's standardized lengths and anchors."""

    def __init__(self, lengths: Sequence[int], anchors: Sequence[int]) -> None:
        logarithms = np.log1p(np.asarray(lengths, dtype=np.float64))
        self.anchors = np.asarray(anchors, dtype=np.uint64)
        if logarithms.size:
            logarithms = (logarithms - logarithms.mean()) / (logarithms.std() or 1.0)
        self.lengths = np.clip(logarithms, -3, 3)


def _fit(source: _Side, target: _Side, count: int, offset: int) -> NDArray[np.float64]:
    """Compute how well each source line fits the target line at an offset; 0 past the ends."""
    fit = np.zeros(count)
    here = slice(max(0, -offset), min(count, count - offset))
    there = slice(max(0, offset), min(count, count + offset))
    is_match = (source.anchors[:count][here] & target.anchors[:count][there]) != 0
    products = source.lengths[:count][here] * target.lengths[:count][there]
    fit[here] = products + ANCHOR_WEIGHT * is_match
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
    """Count, for each window, the other offsets that fit about as well as the one found."""
    count = int(sizes.sum())
    # The fit of each line at the offset found for its window.
    found_of_line = np.repeat(found, sizes)
    fit = np.zeros(count)
    for offset in offsets:
        is_found = found_of_line == offset
        fit[is_found] = _fit(source, target, count, offset)[is_found]
    rivals = np.zeros(len(found), dtype=np.int64)
    for offset in offsets:
        gain = fit - _fit(source, target, count, offset)
        rivals += (found != offset) & (_evidence(gain, edges, sizes) < RIVAL_EVIDENCE)
    return rivals


def _evidence(
    gain: NDArray[np.float64], edges: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Compute the mean gain of each window, in standard errors."""
    mean = np.add.reduceat(gain, edges) / sizes
    square = np.add.reduceat(gain**2, edges) / sizes
    variance = np.maximum(square - mean**2, 1e-12)
    evidence: NDArray[np.float64] = mean / np.sqrt(variance / sizes)
    return evidence


def _spread(found: NDArray[np.int64], evidence: Mapping[int, NDArray[np.float64]]) -> None:
    """Extend each shift to neighboring windows that show it less clearly."""
    for way in (1, -1):
        numbers = range(len(found))[::way]
        for before, number in pairwise(numbers):
            offset = int(found[before])
            if offset and not found[number] and evidence[offset][number] > MIN_EVIDENCE_NEARBY:
                found[number] = offset


def _stretches(found: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Yield runs of windows with one offset: first, one after the last, offset.

    A single window without an offset does not end a run.
    """
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


def _refine(source: _Side, target: _Side, count: int, first: int, past: int, offset: int) -> Shift:
    """Move both ends of a shift to the change of the gain's sign, at most one window outwards."""
    gain = _gain(source, target, count, offset)
    middle = (first + past) // 2
    start = max(0, first - WINDOW)
    end = min(count, past + WINDOW)
    before = np.cumsum(gain[start:middle][::-1])
    after = np.cumsum(gain[middle:end])
    return Shift(middle - 1 - int(before.argmax()), middle + int(after.argmax()), offset)
