"""From a line of text, and what its translation may and must hold, to the input of a search."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from pellucid.config import DecodingConfig, ModelConfig
from pellucid.decode.constraints.request import Constraints, Request
from pellucid.errors import InputError, need_library
from pellucid.text.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pellucid.decode.constraints.forbidden import Spelling

MOST_TOKENS = 65_536
"""Maximum length of a translation, whatever a model or an option says: a search makes tables of
that length before it begins."""


class RequestBuilder:
    """Builds requests from texts.

    Args:
        tokenizer: text to ids.
        models: the models that will translate; their shortest length limits hold.

    Attributes:
        max_source_length: the most tokens that a source may have.
        max_target_length: the most tokens that a target may have.
    """

    def __init__(self, tokenizer: Tokenizer, models: Sequence[ModelConfig]) -> None:
        self._tokenizer = tokenizer
        self.max_source_length = min(model.max_source_length for model in models)
        self.max_target_length = min(model.max_target_length for model in models)

    @cached_property
    def _spelling(self) -> Spelling:
        purpose = "A phrase that a translation must or must not hold"
        # It needs PyTorch.
        found = need_library("pellucid.decode.constraints.forbidden", purpose)
        made: Spelling = found.Spelling(self._tokenizer)
        return made

    def build(
        self, text: str, source_ids: list[int], constraints: Constraints, config: DecodingConfig
    ) -> Request:
        """Build the request of one line.

        Args:
            text: the line; with the seed it determines the random numbers.
            source_ids: the same in ids, no more than the models take.
            constraints: what its translation may and must hold.
            config: the options of the search.

        Raises:
            InputError: the constraints cannot be written with this vocabulary, do not fit into
                the length, or cannot be combined with this kind of search.
        """
        if constraints.required and (config.sample or config.diverse_groups > 1):
            raise InputError(
                "Required phrases cannot be combined with sample or diverse_groups, because they "
                "need the whole beam. Leave the option out."
            )
        by_ratio = int(len(source_ids) * config.max_length_ratio) + config.max_length_offset
        limit = min(config.max_length or by_ratio, self.max_target_length, MOST_TOKENS)
        shortest = max(config.min_length, math.ceil(len(source_ids) * config.min_length_ratio))
        given = self._tokenizer.given_ids(text)
        prefix = constraints.prefix_ids or prefix_ids(self._tokenizer, constraints.prefix)
        request = Request(
            tuple(source_ids),
            max_length=limit,
            min_length=shortest,
            prefix_ids=(*given, *prefix),
            num_given=len(given),
            forbidden=config.forbidden_tokens,
            key=text,
            forbidden_texts=tuple(
                self._spelling.forbid(phrase) for phrase in constraints.forbidden
            ),
        )
        return self.requiring(request, constraints.required)

    def requiring(self, request: Request, phrases: Sequence[str]) -> Request:
        """Ask for phrases in the answer to a request, besides those that it asks for.

        Raises:
            InputError: they cannot be written with this vocabulary, or do not fit into the length.
        """
        required = tuple(required_ids(self._tokenizer, phrase) for phrase in phrases)
        if request.required:
            # Of a phrase that both ask for the larger count is enough.
            required = tuple((Counter(request.required) | Counter(required)).elements())
        # The prefix may hold the phrases, so it and they are not added up.
        needed = 1 + max(len(request.prefix_ids), sum(map(len, required)))
        limit = request.max_length
        shortest = request.min_length
        if max(shortest, needed) > limit:
            what = "minimum length asks for" if shortest > limit else "prefix and phrases need"
            raise InputError(
                f"A translation of this line must have at most {limit} tokens, but the {what} "
                f"{max(shortest, needed)}. Allow more with max_length, or ask for less."
            )
        # Only if needed: it takes time to spell out a vocabulary, and loads PyTorch.
        return replace(request, required=required, spelling=self._spelling if required else None)

    def can_write(self, phrase: str) -> bool:
        """Tell whether the vocabulary has all of a phrase."""
        return self._tokenizer.config.unk_id not in self._tokenizer.encode_target(phrase)

    def too_long(self, source_ids: list[int]) -> str | None:
        """Explain in a sentence that a source is too long; None if it is not."""
        limit = self.max_source_length
        if len(source_ids) <= limit:
            return None
        return (
            f"A source line must have at most {limit} tokens for this model, but has "
            f"{len(source_ids)}. Split it into sentences."
        )


def required_ids(tokenizer: Tokenizer, phrase: str) -> tuple[int, ...]:
    """Cut a phrase that must appear into tokens.

    Args:
        tokenizer: the translation's.
        phrase: the phrase, of whole words; spaces around it are ignored.

    Returns:
        Its ids, as in the middle of a sentence, without ``</s>``.

    Raises:
        InputError: it is empty, or the vocabulary lacks a part of it.
    """
    ids = _encode(tokenizer, phrase, "required phrase")
    if not ids:
        raise InputError(f"A required phrase must hold text, but is {phrase!r}. Leave it out.")
    return ids


def prefix_ids(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """Cut the beginning of a translation into tokens.

    Args:
        tokenizer: the translation's.
        text: the beginning; its last word may be unfinished. Spaces around it are ignored.

    Returns:
        Its ids, without ``</s>``; no ids for an empty text.

    Raises:
        InputError: the vocabulary lacks a part of it.
    """
    return _encode(tokenizer, text, "prefix")


def _encode(tokenizer: Tokenizer, text: str, what: str) -> tuple[int, ...]:
    """Cut a text into tokens, and refuse unknown ones."""
    text = text.strip()
    unknown = tokenizer.config.unk_id
    # Without the final `</s>`, because a translation continues after a phrase or a prefix.
    ids = tuple(tokenizer.encode_target(text)[:-1])
    if unknown in ids:
        # A vocabulary of words lacks whole words, any other one single characters.
        parts = text.split() if tokenizer.config.kind == "words" else text
        missing = [part for part in parts if unknown in tokenizer.encode_target(part)]
        raise InputError(
            f"A {what} must be written in the model's target vocabulary, but {text!r} holds "
            f"{', '.join(map(repr, dict.fromkeys(missing)))}, which it lacks. Use other words."
        )
    return ids
