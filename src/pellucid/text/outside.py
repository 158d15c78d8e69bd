"""Text outside a vocabulary: the share of its tokens that are ``<unk>`` or single bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, final

import numpy as np

from pellucid.text.learned import byte_or_unknown_ids
from pellucid.text.tokenizers.tokenizer import Tokenizer

Side = Literal["source", "target"]

LOUD = 0.05
"""The share from which a model can hardly translate such text right."""

_SIDES: tuple[Side, Side] = ("source", "target")
_CHUNK = 1 << 16
_KEYS = ("tokens", "unknown_tokens")


class Outside(NamedTuple):
    """Tokens of both sides of a text, without ``</s>``, and those outside the vocabulary."""

    source_tokens: int
    source_outside: int
    target_tokens: int
    target_outside: int

    @property
    def source(self) -> float:
        """The share of the source tokens."""
        return self.source_outside / max(1, self.source_tokens)

    @property
    def target(self) -> float:
        """The share of the target tokens."""
        return self.target_outside / max(1, self.target_tokens)

    @property
    def is_loud(self) -> bool:
        """True if the share of a side is so large that translations suffer."""
        return max(self.source, self.target) > LOUD

    def describe(self) -> str:
        """Describe the shares: ``12.3% of the source tokens and 0.0% of the target tokens``."""
        return f"{self.source:.1%} of the source tokens and {self.target:.1%} of the target tokens"

    def to_sides(self) -> dict[Side, dict[str, int]]:
        """Return the numbers of each side, as a manifest holds them."""
        return {
            "source": dict(zip(_KEYS, self[:2], strict=True)),
            "target": dict(zip(_KEYS, self[2:], strict=True)),
        }

    @classmethod
    def read(cls, counts: Mapping[str, Any]) -> Outside | None:
        """Read the numbers from a manifest's ``data.text``; None if it has none.

        Args:
            counts: that object, which earlier versions wrote without these numbers.
        """
        found = []
        for side in _SIDES:
            section = counts.get(side)
            values = section if isinstance(section, Mapping) else {}
            found += [values.get(key) for key in _KEYS]
        numbers = [number for number in found if isinstance(number, int)]
        return cls(*numbers) if len(numbers) == len(found) else None


@final
class OutsideCounter:
    """Counts the tokens outside a vocabulary, one pair at a time.

    Args:
        tokenizer: cuts the text.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._sides = [_Side(tokenizer, side) for side in _SIDES]

    def add(self, source_ids: Sequence[int], target_ids: Sequence[int]) -> None:
        """Count one pair, whose sides both end in ``</s>``."""
        for side, ids in zip(self._sides, (source_ids, target_ids), strict=True):
            side.add(ids)

    def total(self) -> Outside:
        """Return the counts so far."""
        (source, source_outside), (target, target_outside) = (one.total() for one in self._sides)
        return Outside(source, source_outside, target, target_outside)


def count_outside(tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]]) -> Outside:
    """Count the tokens of some pairs that are outside a vocabulary.

    Args:
        tokenizer: cuts the text.
        pairs: source and target of each.
    """
    counter = OutsideCounter(tokenizer)
    for source, target in pairs:
        counter.add(tokenizer.encode_source(source), tokenizer.encode_target(target))
    return counter.total()


class _Side:
    """The counts of one side; tokens are looked up in large groups, which is fast."""

    def __init__(self, tokenizer: Tokenizer, side: Side) -> None:
        self._is_outside_V = np.zeros(len(tokenizer.vocabulary(side)), dtype=bool)
        self._is_outside_V[list(byte_or_unknown_ids(tokenizer, side))] = True
        self._ids: list[int] = []
        self._num_ends = self._tokens = self._outside = 0

    def add(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)
        self._num_ends += 1
        if len(self._ids) >= _CHUNK:
            self._count()

    def total(self) -> tuple[int, int]:
        self._count()
        return self._tokens - self._num_ends, self._outside

    def _count(self) -> None:
        ids = np.array(self._ids, dtype=np.int64)
        self._tokens += len(ids)
        self._outside += int(np.count_nonzero(self._is_outside_V[ids]))
        self._ids = []
