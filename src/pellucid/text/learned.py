"""The text that a model has learned from, as far as its bundle tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

from pellucid.text.statistics import (
    length_bound,
    read_characters,
    read_rare_tokens,
    read_text_counts,
)
from pellucid.text.tokenizers.tokenizer import SPACE_SIGN, SPECIAL_TOKENS, Tokenizer

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
        sentences, lengths = _section(source, "sentences"), _section(source, "length")
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
