"""From a line of text and what its translation may and must hold to what a search is asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from pellucid.config import DecodingConfig, ModelConfig
from pellucid.decode.constraints.forbidden import Spelling
from pellucid.decode.constraints.request import Constraints, Request
from pellucid.decode.constraints.required import prefix_ids, required_ids
from pellucid.errors import InputError
from pellucid.text import Tokenizer
from pellucid.text.letters import is_word_letter

__all__ = ["RequestBuilder"]


class RequestBuilder:
    """Turns texts into requests, for a tokenizer and its models; the shortest limits count."""

    def __init__(self, tokenizer: Tokenizer, models: Sequence[ModelConfig]) -> None:
        self._tokenizer = tokenizer
        self._max_source_length = min(model.max_source_length for model in models)
        self._max_target_length = min(model.max_target_length for model in models)

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling(self._tokenizer)

    def build(
        self, text: str, source_ids: list[int], constraints: Constraints, config: DecodingConfig
    ) -> Request:
        """Make the request of one line.

        Args:
            text: the line; with the seed it decides its random numbers.
            source_ids: the same in ids, no more than the model takes.
            constraints: what its translation may and must hold.
            config: how to search.

        Raises:
            InputError: the constraints cannot be written with this vocabulary, or not within the
                length, or not with this kind of search.
        """
        if constraints.required and (config.sample or config.diverse_groups > 1):
            raise InputError(
                "Required phrases must be asked for without sample and diverse_groups, but are "
                "not. They need the whole beam: leave the option out."
            )
        limit = self._max_length(len(source_ids), config)
        shortest = max(config.min_length, math.ceil(len(source_ids) * config.min_length_ratio))
        prefix = prefix_ids(self._tokenizer, constraints.prefix) if constraints.prefix else ()
        required = tuple(required_ids(self._tokenizer, phrase) for phrase in constraints.required)
        needed = 1 + max(len(prefix), sum(map(len, required)))
        if max(shortest, needed) > limit:
            what = "minimum length asks for" if shortest > limit else "prefix and phrases need"
            raise InputError(
                f"A translation of this line must have at most {limit} tokens, but the {what} "
                f"{max(shortest, needed)}. Allow more with max_length, or ask for less."
            )
        whole = tuple(
            ids
            for phrase, ids in zip(constraints.required, required, strict=True)
            if is_word_letter(phrase.strip()[-1])
        )
        return Request(
            tuple(source_ids),
            max_length=limit,
            min_length=shortest,
            prefix_ids=prefix,
            required=required,
            key=text,
            forbidden_texts=tuple(map(self._spelling.forbid, constraints.forbidden))
            if constraints.forbidden
            else (),
            whole=whole,
            spelling=self._spelling if whole else None,
        )

    def too_long(self, source_ids: list[int]) -> str | None:
        """Why a source cannot be read at once, in a sentence; None where it can."""
        limit = self._max_source_length
        if len(source_ids) <= limit:
            return None
        return (
            f"A source line must have at most {limit} tokens for this model, but has "
            f"{len(source_ids)}. Split it into sentences (--split-long does)."
        )

    def _max_length(self, source_length: int, config: DecodingConfig) -> int:
        by_ratio = int(source_length * config.max_length_ratio) + config.max_length_offset
        return min(config.max_length or by_ratio, self._max_target_length)
