"""Pairs of the training text that are set aside for validation and test.

The hash of its source decides which part a pair goes to, not its place in the file: the smallest
hashes are for validation, the largest for test. So equal sources stay together, and one pair more
or less moves no other between the two; it can only move one in or out at the edge of each.
Training also leaves out pairs whose target is set aside, since a model that has learned a target
would be judged too well.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from pellucid.errors import DataError

LARGEST_SHARE = 10
"""One pair in so many is set aside for each of validation and test, at most."""


class HeldOut(NamedTuple):
    """What is set aside.

    Attributes:
        splits: the split of each source that is set aside, by its hash.
        targets: the hashes of the targets of these sources.
    """

    splits: dict[bytes, str]
    targets: set[bytes]

    def split_of(self, source: str, target: str) -> str | None:
        """Tell the split of a pair; None if only its target is set aside."""
        split = self.splits.get(_hash(source))
        return split or (None if _hash(target) in self.targets else "train")


def hold_out(pairs: Iterable[tuple[str, str]], number: int) -> HeldOut:
    """Choose the pairs to set aside.

    Args:
        pairs: all of them, sources and targets. Only those near the smallest and the
            largest hashes are kept in memory.
        number: the sources to set aside for each of validation and test.

    Raises:
        DataError: there are too few pairs.
    """
    kept: dict[bytes, set[bytes]] = {}
    # At first no hash lies between these two, so all are kept.
    low = b"\xff" * 9
    high = b""
    num_pairs = 0
    for source, target in pairs:
        if not source.strip() or not target.strip():
            continue
        num_pairs += 1
        key = _hash(source)
        if not low < key < high:
            kept.setdefault(key, set()).add(_hash(target))
            # Only now and then, because it sorts all that is kept.
            if len(kept) > 8 * number:
                order = sorted(kept)
                low = order[2 * number - 1]
                high = order[-2 * number]
                kept = {key: kept[key] for key in order if not low < key < high}
    if len(kept) < 3:
        raise DataError(
            "The text must have at least three pairs with different sources, one each for "
            f"training, validation and test, but has {len(kept)}. Give more text."
        )
    # At least one source stays between the two ends, for training.
    number = min(number, max(1, num_pairs // LARGEST_SHARE), (len(kept) - 1) // 2)
    order = sorted(kept)
    ends = dict.fromkeys(order[:number], "validation") | dict.fromkeys(order[-number:], "test")
    return HeldOut(ends, set[bytes]().union(*(kept[key] for key in ends)))


def _hash(text: str) -> bytes:
    """Hash a text; case and white space do not count."""
    folded = " ".join(text.split()).casefold()
    # Not Python's own hash, which differs in every process.
    # Damaged lines come with lone surrogates, which UTF-8 would refuse.
    return blake2b(folded.encode("utf-8", "surrogateescape"), digest_size=8).digest()
