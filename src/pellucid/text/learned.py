"""The text that a model has learned from: counts that training writes and a bundle keeps."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from pellucid.text.sentences import count_sentences
from pellucid.text.tokenizers.tokenizer import SPACE_SIGN, SPECIAL_TOKENS, Tokenizer

STATISTICS = "statistics.json"
"""The file of a run's prepared data that holds these counts."""

RARE = 10
"""Training has hardly learned a character or token that it met less often."""

MOST_CHARACTERS = 20_000
"""Different characters that are listed, the most frequent ones."""

MOST_SAMPLED = 5_000
"""Lines whose sentences are counted."""

# NumPy counts many tokens in one call much faster than Python counts one by one.
_CHUNK = 1 << 20
# One more than the last code point of Unicode.
_EVERYTHING = 0x110000


@final
class TextStatistics:
    """Counts characters, tokens, lengths and sentences of training pairs, one pair at a time.

    The result depends only on the pairs and their order.

    Args:
        source_vocabulary_size: the number of source tokens.
        target_vocabulary_size: the number of target tokens.
    """

    def __init__(self, source_vocabulary_size: int, target_vocabulary_size: int) -> None:
        self._source = _Side(source_vocabulary_size)
        self._target = _Side(target_vocabulary_size)
        self._longest_targets: dict[int, int] = {}

    def add(
        self, source: str, target: str, source_ids: Sequence[int], target_ids: Sequence[int]
    ) -> None:
        """Count one pair.

        Args:
            source: the source in the form that the tokenizer cuts.
            target: the same of the target.
            source_ids: its tokens, ``</s>`` included.
            target_ids: the target's.
        """
        self._source.add(source, source_ids)
        self._target.add(target, target_ids)
        bound = length_bound(len(source_ids))
        length = len(target_ids)
        if length > self._longest_targets.get(bound, 0):
            self._longest_targets[bound] = length

    def to_manifest(self) -> dict[str, Any]:
        """Return the counts in the form of a bundle's manifest, under ``data.text``.

        Returns:
            ``longest_targets`` gives for sources of at most so many tokens the tokens of the
            longest target; ``source`` and ``target`` are described in docs/formats/bundle.md.
        """
        longest = 0
        targets = {}
        for bound, length in sorted(self._longest_targets.items()):
            longest = max(longest, length)
            targets[str(bound)] = longest
        return {
            "source": self._source.describe(),
            "target": self._target.describe(),
            "longest_targets": targets,
        }


def length_bound(length: int) -> int:
    """Round a length up to the bound of its class: exact up to 8, then in steps of about a fifth.

    Example:
        8 gives 8, 9 gives 10, 50 gives 56.
    """
    if length <= 8:
        return length
    step = 1 << max(0, (length - 1).bit_length() - 3)
    return -(-length // step) * step


def merge_statistics(
    earlier: Mapping[str, Any],
    later: Mapping[str, Any],
    num_known: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Combine the counts of two trainings of one model.

    Characters and tokens of either count as learned; lengths and sentences are those of the later
    text, which decides how the model treats a line now.

    Args:
        earlier: the manifest's ``data.text`` of the model that training started from; may be empty.
        later: the counts of the new text, made with the same vocabulary or an extended one.
        num_known: the tokens of each side that the earlier training had; unless given, all.
    """
    merged = dict(later)
    for side in ("source", "target"):
        old = earlier.get(side)
        new = later[side]
        if not isinstance(old, Mapping):
            continue
        counts = read_characters(old)
        for character, count in read_characters(new).items():
            counts[character] = max(count, counts.get(character, 0))
        known = (num_known or {}).get(side, sys.maxsize)
        were_rare = read_rare_tokens(old)
        are_rare = read_rare_tokens(new)
        # Rare is what both trainings hardly met; a new token had no earlier training.
        rare = {id_ for id_ in are_rare if id_ >= known or id_ in were_rare}
        merged[side] = {
            **new,
            "characters": _by_magnitude(counts),
            # A letter of base64 holds 6 bits, so this size has room for every id.
            "rare_tokens": _pack(rare, len(new["rare_tokens"]) * 6),
        }
    return merged


def read_text_counts(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the counts in a bundle's manifest; empty if it has none."""
    data = manifest.get("data")
    text = data.get("text") if isinstance(data, Mapping) else None
    return text if isinstance(text, Mapping) else {}


def read_characters(side: Mapping[str, Any]) -> dict[str, int]:
    """Read the characters of one side: how often each occurred at least."""
    groups = side.get("characters")
    if not isinstance(groups, Mapping):
        return {}
    return {
        character: int(count)
        for count, characters in groups.items()
        # A stranger may have written the manifest; Python refuses numbers of thousands of digits.
        if isinstance(characters, str) and str(count).isdecimal() and len(str(count)) < 20
        for character in characters
    }


def read_rare_tokens(side: Mapping[str, Any]) -> frozenset[int]:
    """Read the ids of one side that training met less than `RARE` times."""
    try:
        packed = base64.b64decode(side["rare_tokens"], validate=True)
    except (KeyError, ValueError, TypeError):
        return frozenset()
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8))
    return frozenset(np.flatnonzero(bits).tolist())


class _Side:
    """The counts of one side."""

    def __init__(self, vocabulary_size: int) -> None:
        self._characters = np.zeros(_EVERYTHING, dtype=np.int64)
        self._tokens = np.zeros(vocabulary_size, dtype=np.int64)
        self._lengths: dict[int, int] = {}
        self._sentences: list[int] = []
        self._stride = 1
        self._num_lines = 0
        self._text: list[str] = []
        self._ids: list[int] = []

    def add(self, line: str, ids: Sequence[int]) -> None:
        """Count one line."""
        length = len(line.strip())
        self._lengths[length] = self._lengths.get(length, 0) + 1
        if self._num_lines % self._stride == 0:
            self._sentences.append(count_sentences(line))
            if len(self._sentences) >= MOST_SAMPLED:
                # Every second one remains, so that the sample is spread over the whole text.
                self._sentences = self._sentences[::2]
                self._stride = 2 * self._stride
        self._num_lines += 1
        self._text.append(line)
        self._ids.extend(ids)
        if len(self._ids) >= _CHUNK:
            self._count()

    def describe(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        self._count()
        found = np.flatnonzero(self._characters)
        counts = {chr(point): int(self._characters[point]) for point in found}
        frequent = sorted(counts, key=lambda letter: (-counts[letter], letter))[:MOST_CHARACTERS]
        rare = np.flatnonzero(self._tokens < RARE)
        return {
            "characters": _by_magnitude({letter: counts[letter] for letter in frequent}),
            "other_characters": len(counts) - len(frequent),
            "length": _distribution(self._lengths),
            "sentences": _distribution(_tally(self._sentences)),
            "rare_tokens": _pack(rare.tolist(), len(self._tokens)),
        }

    def _count(self) -> None:
        # UTF-32 has one number a character, which NumPy can count. Half characters become "?".
        points = np.frombuffer("".join(self._text).encode("utf-32-le", "replace"), dtype="<u4")
        self._characters += np.bincount(points, minlength=_EVERYTHING)
        self._tokens += np.bincount(
            np.array(self._ids, dtype=np.int64), minlength=len(self._tokens)
        )
        self._text = []
        self._ids = []


def _by_magnitude(counts: Mapping[str, int]) -> dict[str, str]:
    """Group characters by the power of ten that their count reaches, the largest first."""
    groups: dict[int, list[str]] = {}
    for letter in sorted(counts):
        groups.setdefault(10 ** (len(str(counts[letter])) - 1), []).append(letter)
    return {str(count): "".join(groups[count]) for count in sorted(groups, reverse=True)}


def _tally(values: Iterable[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for value in values:
        found[value] = found.get(value, 0) + 1
    return found


def _distribution(counts: Mapping[int, int]) -> dict[str, int]:
    """Describe numbers by their median, the 99th percentile, the 99.9th, and the largest."""
    total = sum(counts.values())
    if not total:
        return {}
    values = np.array(sorted(counts), dtype=np.int64)
    running: NDArray[np.int64] = np.cumsum([counts[int(value)] for value in values])
    shares = {"median": 0.5, "p99": 0.99, "p999": 0.999, "longest": 1.0}
    return {
        # The smallest number that so many lines do not exceed.
        name: int(values[np.searchsorted(running, min(total, int(np.ceil(share * total))))])
        for name, share in shares.items()
    }


def _pack(ids: Iterable[int], size: int) -> str:
    """Write a set of ids as bits in base64, which stays small for large vocabularies."""
    bits = np.zeros(size, dtype=np.uint8)
    bits[[id_ for id_ in ids if id_ < size]] = 1
    return base64.b64encode(np.packbits(bits).tobytes()).decode("ascii")


_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_ENOUGH = 10**6
"""The count of a character that is in the vocabulary, if the bundle has no counts."""


@dataclass(frozen=True)
class LearnedText:
    """The text that a model learned from.

    Attributes:
        characters: how often, at least, each character was in the sources.
        rare_tokens: ids of source tokens that training met less often than `statistics.RARE`.
        usual_sentences: sentences of most lines.
        most_sentences: sentences that only one line in a hundred exceeds.
        most_characters: characters that only one line in a thousand exceeds; 0 if unknown.
        longest_targets: the tokens of the longest target for sources of at most so many tokens.
    """

    characters: Mapping[str, int]
    rare_tokens: frozenset[int] = frozenset()
    usual_sentences: int = 1
    most_sentences: int = 1
    most_characters: int = 0
    longest_targets: Mapping[int, int] | None = None

    @classmethod
    def read(cls, manifest: Mapping[str, Any], tokenizer: Tokenizer) -> Self:
        """Read a bundle's manifest.

        Without counts (in a bundle of an earlier version, or an imported one) the characters are
        those of the vocabulary, and the model counts as one of single sentences, as most are.

        Args:
            manifest: the bundle's manifest.
            tokenizer: its tokenizer.
        """
        text = read_text_counts(manifest)
        source = _section(text, "source")
        characters = read_characters(source)
        if not characters:
            return cls(dict.fromkeys(_vocabulary_characters(tokenizer), _ENOUGH))
        sentences = _section(source, "sentences")
        lengths = _section(source, "length")
        usual = max(1, _number(sentences, "median"))
        targets = _section(text, "longest_targets")
        return cls(
            characters,
            read_rare_tokens(source),
            usual,
            max(usual, _number(sentences, "p99")),
            _number(lengths, "p999"),
            {
                int(bound): _number(targets, bound)
                for bound in targets
                if bound.isdecimal() and len(bound) < 10
            }
            or None,
        )

    def longest_target(self, source_length: int) -> int | None:
        """Find the tokens of the longest target that training had for such a source.

        Args:
            source_length: tokens of the source, ``</s>`` included.

        Returns:
            None if the bundle does not tell, or no source was as long.
        """
        # Searching works once for each length: a long text has few different ones.
        found = self._longest
        if source_length not in found:
            bound = length_bound(source_length)
            known = [limit for limit in self.longest_targets or {} if limit >= bound]
            found[source_length] = (self.longest_targets or {})[min(known)] if known else None
        return found[source_length]

    @cached_property
    def _longest(self) -> dict[int, int | None]:
        """Results of `longest_target`, kept."""
        return {}


def byte_or_unknown_ids(
    tokenizer: Tokenizer, side: Literal["source", "target"] = "source"
) -> frozenset[int]:
    """List the tokens of a side that stand for text outside its vocabulary: ``<unk>`` and bytes."""
    vocabulary = tokenizer.vocabulary(side)
    found = {id_ for id_, token in enumerate(vocabulary) if _BYTE.fullmatch(token)}
    return frozenset(found | {tokenizer.config.unk_id})


def can_write_everything(tokenizer: Tokenizer) -> bool:
    """Tell whether the target's vocabulary has a token for each byte, and so needs no ``<unk>``."""
    return sum(map(bool, map(_BYTE.fullmatch, tokenizer.vocabulary("target")))) == 256


def _vocabulary_characters(tokenizer: Tokenizer) -> set[str]:
    """Gather the characters of the source's vocabulary; a space is one of them."""
    found = {" "}
    for token in tokenizer.vocabulary("source"):
        if token not in SPECIAL_TOKENS and not _BYTE.fullmatch(token):
            found.update(token)
    return found - {SPACE_SIGN}


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Read an object of a manifest, which may come from a stranger."""
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}


def _number(values: Mapping[str, Any], name: str) -> int:
    found = values.get(name)
    return found if isinstance(found, int) and found > 0 else 0
