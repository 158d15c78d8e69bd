"""Pairs of the training text that are set aside for validation and test.

The hash of its source decides where a pair goes, not its place in the file: so equal sources stay
together, and other text behind the last line changes little. Training also leaves out pairs whose
target is set aside, since a model that has learned a target would be judged too well.
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
        pairs: all of them, sources and targets. Only those near the smallest hashes are kept in
            memory.
        number: the sources to set aside for each of validation and test.

    Raises:
        DataError: there are too few pairs.
    """
    smallest: dict[bytes, set[bytes]] = {}
    bound = b"\xff" * 9
    num_pairs = 0
    for source, target in pairs:
        if not source.strip() or not target.strip():
            continue
        num_pairs += 1
        if (key := _hash(source)) < bound:
            smallest.setdefault(key, set()).add(_hash(target))
            if len(smallest) > 4 * number:
                smallest = {key: smallest[key] for key in sorted(smallest)[: 2 * number]}
                bound = max(smallest)
    number = min(number, max(1, num_pairs // LARGEST_SHARE))
    if len(smallest) < 3:
        raise DataError(
            "The text must have at least three pairs with different sources, one each for "
            f"training, validation and test, but has {len(smallest)}. Give more text."
        )
    chosen = sorted(smallest)[: min(2 * number, len(smallest) - 1)]
    splits = {key: "validation" if place % 2 == 0 else "test" for place, key in enumerate(chosen)}
    return HeldOut(splits, set[bytes]().union(*(smallest[key] for key in chosen)))


def _hash(text: str) -> bytes:
    """Hash a text; case and white space do not count."""
    folded = " ".join(text.split()).casefold()
    return blake2b(folded.encode("utf-8", "surrogateescape"), digest_size=8).digest()
