"""From lines of text to the requests of a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pellucid.config import DecodingConfig
from pellucid.decode import Constraints, Request, RequestBuilder
from pellucid.errors import InputError
from pellucid.files import not_utf8
from pellucid.lines.preparing import Preparer
from pellucid.text import Tokenizer
from pellucid.text.cleaning import Cleaned
from pellucid.text.codes import find_fault, split_code
from pellucid.translation import NO_NOTES, Notes

__all__ = ["Ready", "Treatment", "make_ready"]


@dataclass(frozen=True)
class Treatment:
    """The treatment of lines before they are translated.

    Attributes:
        clean: replace or drop characters that the model has not learned.
        split: split lines that have more sentences than the model's training lines.
        split_long: split lines that are too long for the model.
    """

    clean: bool = False
    split: bool = False
    split_long: bool = False


@dataclass(frozen=True)
class Ready:
    """A line that can be searched for.

    Attributes:
        source: the line as given.
        cleaned: the line as it is translated.
        parts: its parts; none if it is blank or cannot be translated.
        requests: the request of each part.
        error: the reason that it cannot be translated.
        notes: what is unusual about it.
    """

    source: str
    cleaned: Cleaned
    parts: tuple[str, ...] = ()
    requests: tuple[Request, ...] = ()
    error: str | None = None
    notes: Notes = NO_NOTES


def make_ready(
    texts: Sequence[str],
    constraints: Sequence[Constraints],
    config: DecodingConfig,
    how: Treatment,
    *,
    tokenizer: Tokenizer,
    builder: RequestBuilder,
    preparer: Preparer,
) -> Iterator[Ready]:
    """Make lines ready for a search.

    Args:
        texts: the lines.
        constraints: what the translation of each may and must hold.
        config: the options of the search.
        how: what to do with the lines.
        tokenizer: the model's.
        builder: makes requests.
        preparer: compares lines with the training text.

    Yields:
        Each line, in order.
    """
    damages = [not_utf8(text) for text in texts]
    cleaned = [
        preparer.clean(text) if how.clean and damage is None else Cleaned(text)
        for text, damage in zip(texts, damages, strict=True)
    ]
    # A line with only a language code has no text to translate.
    texts_alone = [split_code(tokenizer, one.text)[1] for one in cleaned]
    filled = [index for index, text in enumerate(texts_alone) if text.strip()]
    encoded = dict(
        zip(
            filled,
            tokenizer.encode_sources([cleaned[index].text for index in filled]),
            strict=True,
        )
    )
    maker = _Maker(config, how, tokenizer, builder, preparer)
    for index, (text, one) in enumerate(zip(texts, cleaned, strict=True)):
        if damages[index] is not None and text.strip():
            yield Ready(text, one, error=damages[index])
        elif index not in encoded:
            yield Ready(text, one, notes=Notes(one.replaced, one.dropped))
        else:
            try:
                yield maker.make(text, one, encoded[index], constraints[index])
            except InputError as error:
                yield Ready(text, one, error=str(error))


@dataclass(frozen=True)
class _Maker:
    """Makes the requests of one line after another."""

    config: DecodingConfig
    how: Treatment
    tokenizer: Tokenizer
    builder: RequestBuilder
    preparer: Preparer

    def make(
        self, source: str, cleaned: Cleaned, ids: list[int], constraints: Constraints
    ) -> Ready:
        """Make one request, or one for each part of a line that is split."""
        problem = self.builder.too_long(ids)
        text, is_too_long = cleaned.text, problem is not None
        parts = [text]
        is_split = self.how.split and self.preparer.learned is not None
        if is_split or (self.how.split_long and is_too_long):
            parts = self.preparer.split(text, is_too_long=is_too_long)
        is_whole = len(parts) > 1 and not self._may_split(constraints)
        if is_too_long and is_whole:
            raise InputError(
                "A line with a prefix, required phrases or a given length is too long, and "
                "cannot be split automatically. Split it yourself, and give each part what "
                "belongs to it."
            )
        if problem is not None and len(parts) == 1:
            may_split = is_split or self.how.split_long
            advice = " One of its sentences is too long by itself." if may_split else ""
            raise InputError(f"{problem}{advice}")
        if is_whole:
            parts = [text]
        each = [ids] if len(parts) == 1 else self._encode_parts(parts, problem)
        requests = tuple(
            self.builder.build(part, one, constraints, self.config)
            for part, one in zip(parts, each, strict=True)
        )
        notes = self.preparer.note(cleaned, parts, each, is_whole=is_whole)
        if fault := find_fault(self.tokenizer, text):
            notes = replace(notes, language_code=fault)
        return Ready(source, cleaned, tuple(parts), requests, notes=notes)

    def _may_split(self, constraints: Constraints) -> bool:
        """Tell whether the parts of a line may be translated by themselves."""
        is_whole = constraints.required or constraints.prefix or self.config.alternatives
        return not (is_whole or self.config.max_length or self.config.min_length)

    def _encode_parts(self, parts: list[str], problem: str | None) -> list[list[int]]:
        """Cut parts into tokens; if one is too long, cut all again into single sentences."""
        encoded = self.tokenizer.encode_sources(parts)
        if any(map(self.builder.too_long, encoded)):
            parts[:] = [one for part in parts for one in self.preparer.sentences(part)]
            encoded = self.tokenizer.encode_sources(parts)
        for ids in encoded:
            if (sentence := self.builder.too_long(ids)) is not None:
                raise InputError(
                    f"{problem or sentence} One of its sentences is too long by itself."
                )
        return encoded
