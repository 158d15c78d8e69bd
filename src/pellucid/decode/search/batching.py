"""Grouping of sources into batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

GROWTH = 1.5
"""The longest source of a group is at most this many times as long as its shortest."""

SHORT = 8
"""Sources up to this length are one group."""


def group_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Group sources that differ little in length, so that a batch holds little padding.

    Args:
        lengths: the number of tokens of each source.

    Yields:
        Indices into ``lengths``, the longest source first.
    """
    group: list[int] = []
    # Equal lengths keep their order, because Python's sort is stable.
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if group and lengths[index] * GROWTH < lengths[group[0]] and lengths[group[0]] > SHORT:
            yield group
            group = []
        group.append(index)
    if group:
        yield group
