"""Pairs of the training text that are set aside for validation and test.

The hash of its source decides which part a pair goes to, not its place in the file: the smallest
hashes are for validation, the largest for test. So equal sources stay together, and one pair more
or less moves no other between the two; it can only move one in or out at the edge of each.
Training also leaves out pairs whose target is set aside, since a model that has learned a target
would be judged too well. So only rare pairs are set aside: with "Danke." all of its pairs would
leave the training text.

What is set aside travels with a model as hashes. Training that starts from it sets the same pairs
aside again, because the model may have learned all others.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from pellucid.errors import DataError

LARGEST_SHARE = 10
"""One pair in so many is set aside for each of validation and test, at most."""

RARE = (2, 4, 8, 16, 32)
"""How often the source and the target of a rare pair may occur. The next number is tried only if
too few pairs are so rare, and then fewer are set aside, since each takes more others with it."""

FEWEST = 10
"""Numbers of `RARE` are enough that set aside one in so many of the pairs that are asked for."""

CANDIDATES = 8
FEWEST_CANDIDATES = 1000
"""Sources to remember at each end, times the pairs to set aside, since not all are rare; few pairs
to set aside still need a look at many."""

SET_ASIDE = "set_aside.json"
"""The file in which a run's data folder keeps what is set aside."""

_BYTES = 8


@dataclass(frozen=True)
class HeldOut:
    """What is set aside.

    Attributes:
        splits: the split of each source that is set aside, by its hash.
        targets: the hashes of the targets of these sources.
        doubtful: the pairs of each split that an earlier model may have learned.
    """

    splits: Mapping[bytes, str]
    targets: frozenset[bytes]
    doubtful: Counter[str] = field(default_factory=Counter)

    def split_of(self, source: str, target: str) -> str | None:
        """Tell the split of a pair; None if only its target is set aside."""
        split = self.splits.get(hash_text(source))
        return split or (None if hash_text(target) in self.targets else "train")

    def to_record(self) -> dict[str, str]:
        """Write the hashes as a model's manifest has them."""
        parts = {
            split: [key for key, own in self.splits.items() if own == split]
            for split in ("validation", "test")
        }
        parts["targets"] = list(self.targets)
        return {
            name: b64encode(b"".join(sorted(hashes))).decode() for name, hashes in parts.items()
        }

    @staticmethod
    def of_record(record: Mapping[str, Any]) -> HeldOut:
        """Read what `to_record` wrote.

        Raises:
            ValueError: the record is damaged.
        """
        parts = {}
        for name in ("validation", "test", "targets"):
            joined = b64decode(str(record.get(name, "")), validate=True)
            parts[name] = [joined[at : at + _BYTES] for at in range(0, len(joined), _BYTES)]
        splits = {key: split for split in ("validation", "test") for key in parts[split]}
        return HeldOut(splits, frozenset(parts["targets"]))


NOTHING = HeldOut({}, frozenset())
"""Nothing is set aside."""


def hold_out(pairs: Iterable[tuple[str, str]], number: int, earlier: HeldOut = NOTHING) -> HeldOut:
    """Choose the pairs to set aside.

    Args:
        pairs: all of them, sources and targets. Only those near the smallest and the
            largest hashes are kept in memory.
        number: the pairs to set aside for each of validation and test.
        earlier: what a model that learned from such text had set aside. It is set aside again,
            and more only if that is too little.

    Raises:
        DataError: there are too few pairs, or none is rare.
    """
    kept: dict[bytes, list[bytes]] = {}
    again: dict[bytes, list[bytes]] = {}
    # At first no hash lies between these two, so all are kept.
    low = b"\xff" * (_BYTES + 1)
    high = b""
    reach = max(CANDIDATES * number, FEWEST_CANDIDATES)
    num_pairs = 0
    # How often each target occurs, by three bytes of its hash. Rarely two targets share a place,
    # and then count as more frequent than they are.
    occurrences = bytearray(1 << 24)
    for source, target in pairs:
        if not source.strip() or not target.strip():
            continue
        num_pairs += 1
        key = hash_text(source)
        meaning = hash_text(target)
        place = _place(meaning)
        occurrences[place] = min(255, occurrences[place] + 1)
        if key in earlier.splits:
            again.setdefault(key, []).append(meaning)
        elif not low < key < high:
            targets = kept.setdefault(key, [])
            if len(targets) <= RARE[-1]:
                targets.append(meaning)
            # Only now and then, because it sorts all that is kept.
            if len(kept) > 4 * reach:
                order = sorted(kept)
                low = order[reach - 1]
                high = order[-reach]
                kept = {key: kept[key] for key in order if not low < key < high}
    if len(kept) + len(again) < 3:
        raise DataError(
            "The text must have at least three pairs with different sources, one each for "
            f"training, validation and test, but has {len(kept) + len(again)}. Give more text."
        )
    order = sorted(kept)
    if len(order) > 2 * reach:
        order = [*order[:reach], *order[-reach:]]
    often = {
        key: max(len(kept[key]), *(occurrences[_place(one)] for one in kept[key])) for key in order
    }
    return _choose(order, kept, often, again, earlier, num_pairs, number)


def _choose(
    order: Sequence[bytes],
    kept: Mapping[bytes, Sequence[bytes]],
    often: Mapping[bytes, int],
    again: Mapping[bytes, Sequence[bytes]],
    earlier: HeldOut,
    num_pairs: int,
    number: int,
) -> HeldOut:
    """Choose the rarest pairs from both ends, after those of an earlier model."""
    splits = {key: earlier.splits[key] for key in again}
    count = Counter[str]()
    for key, targets in again.items():
        count[splits[key]] += len(targets)
    limit, rare = _find_rare(order, kept, often, num_pairs, number)
    # What the earlier model did not know of its own text ended at these hashes.
    edges = {
        "validation": max(_of(earlier, "validation"), default=b""),
        "test": min(_of(earlier, "test"), default=b"\xff" * _BYTES),
    }
    doubtful = Counter[str]()
    for split, keys in (("validation", rare), ("test", rare[::-1])):
        # At least one source stays between the two ends, for training.
        for key in keys[: (len(rare) if again or len(rare) < len(kept) else len(rare) - 1) // 2]:
            is_new = key <= edges[split] if split == "validation" else key >= edges[split]
            wanted = limit if is_new or not again else limit // FEWEST
            if count[split] and count[split] + len(kept[key]) > wanted:
                break
            splits[key] = split
            count[split] += len(kept[key])
            doubtful[split] += len(kept[key]) * (bool(again) and not is_new)
    if not {"validation", "test"} <= set(splits.values()):
        raise DataError(
            "data.split sets aside only pairs whose source and target are rare, because training "
            f"leaves out every pair of a target that is set aside, but of {num_pairs:,} pairs "
            f"nearly all have a source or a target that occurs more than {RARE[-1]} times. Name "
            "other text to validate on in place of data.split: --set data.validation=FILE."
        )
    chosen = (again.get(key) or kept[key] for key in splits)
    all_targets = frozenset(one for targets in chosen for one in targets)
    return HeldOut(splits, all_targets | earlier.targets, +doubtful)


def _find_rare(
    order: Sequence[bytes],
    kept: Mapping[bytes, Sequence[bytes]],
    often: Mapping[bytes, int],
    num_pairs: int,
    number: int,
) -> tuple[int, list[bytes]]:
    """Find the rarest sources that are enough, and the most pairs to set aside for each split."""
    limit = 0
    rare: list[bytes] = []
    for most in RARE:
        # Each pair of a split may take all others of its target out of the training text.
        limit = min(number, max(1, 2 * num_pairs // (LARGEST_SHARE * most)))
        rare = [key for key in order if often[key] <= most]
        if sum(len(kept[key]) for key in rare) >= max(2, 2 * limit // FEWEST):
            break
    return limit, rare


def _of(held_out: HeldOut, split: str) -> list[bytes]:
    return [key for key, own in held_out.splits.items() if own == split]


def _place(digest: bytes) -> int:
    return int.from_bytes(digest[:3], "little")


def hash_text(text: str) -> bytes:
    """Hash a text; case and white space do not count."""
    folded = " ".join(text.split()).casefold()
    # Not Python's own hash, which differs in every process.
    # Damaged lines come with lone surrogates, which UTF-8 would refuse.
    return blake2b(folded.encode("utf-8", "surrogateescape"), digest_size=_BYTES).digest()
