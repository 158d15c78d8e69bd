r"""From texts to the requests of a search.

White space at the edges of a line is no text: it is cut off, and put around the translation. The
lines of a text with line breaks are translated one by one, and the breaks stay where they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.build_request import RequestBuilder
from pellucid.decode.constraints.request import Constraints, Request
from pellucid.errors import InputError
from pellucid.text.cleaning import Cleaned
from pellucid.text.codes import find_fault, split_code
from pellucid.text.reading.lines import not_a_line
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.preparing import Preparer
from pellucid.translate.results import NO_NOTES, Notes

LineConstraints = Constraints | Sequence[Constraints]
"""The constraints of a text, or of each of its lines."""

_LINE = re.compile(r"\S(?:[^\n]*\S)?")
"""One line without the white space at its edges."""


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
    """A text that can be searched for.

    Attributes:
        source: the text as given.
        parts: its parts; none if it is blank or cannot be translated.
        gaps: white space and marks before, between and after the parts, which the translation gets
            too; None between two sentences of one line.
        requests: the request of each part.
        error: the reason that it cannot be translated.
        notes: what is unusual about it.
    """

    source: str
    parts: tuple[str, ...] = ()
    gaps: tuple[str | None, ...] = ("",)
    requests: tuple[Request, ...] = ()
    error: str | None = None
    notes: Notes = NO_NOTES


def make_ready(
    texts: Sequence[str],
    constraints: Sequence[LineConstraints],
    config: DecodingConfig,
    how: Treatment,
    *,
    tokenizer: Tokenizer,
    builder: RequestBuilder,
    preparer: Preparer,
) -> Iterator[Ready]:
    """Make texts ready for a search.

    Args:
        texts: the texts, normally of one line each.
        constraints: what the translation of each may and must hold.
        config: the options of the search.
        how: what to do with the lines.
        tokenizer: the model's.
        builder: makes requests.
        preparer: compares lines with the training text.

    Yields:
        Each text, in order.
    """
    damages = [not_a_line(text) for text in texts]
    layouts = [
        _Layout.of(text if damage is None else "", tokenizer, preparer, clean=how.clean)
        for text, damage in zip(texts, damages, strict=True)
    ]
    encoded = iter(
        tokenizer.encode_sources([line.text for layout in layouts for line in layout.lines])
    )
    maker = _Maker(config, how, tokenizer, builder, preparer)
    for text, layout, damage, one in zip(texts, layouts, damages, constraints, strict=True):
        ids = [next(encoded) for _ in layout.lines]
        if damage is not None:
            yield Ready(text, error=damage)
        elif not layout.lines:
            yield Ready(text, gaps=layout.gaps, notes=layout.notes)
        else:
            try:
                yield maker.make(text, layout, ids, one)
            except InputError as error:
                yield Ready(text, error=str(error))


class _Layout(NamedTuple):
    """The lines of a text without their edges, cleaned.

    Attributes:
        lines: the lines that hold text.
        numbers: the number of each among all lines of the text, from 0.
        gaps: what stands before, between and after them.
        notes: the characters that were replaced or dropped in what has no text.
    """

    lines: tuple[Cleaned, ...]
    numbers: tuple[int, ...]
    gaps: tuple[str, ...]
    notes: Notes

    @classmethod
    def of(cls, text: str, tokenizer: Tokenizer, preparer: Preparer, *, clean: bool) -> _Layout:
        """Find the lines of a text."""
        if "\n" not in text and text == text.strip() and not tokenizer.language_codes:
            only = preparer.clean(text) if clean else Cleaned(text)
            if only.text.strip():  # nearly always, so this is quick
                return cls((only,), (0,), (only.before, only.after), NO_NOTES)
        spans = [match.span() for match in _LINE.finditer(text)]
        edges = [0, *(place for span in spans for place in span), len(text)]
        around = [text[start:end] for start, end in pairwise(edges)][::2]
        lines: list[Cleaned] = []
        numbers: list[int] = []
        gaps, code = [around[0]], ""
        number = around[0].count("\n")
        replaced, dropped = Counter[str](), Counter[str]()
        for (start, end), after in zip(spans, around[1:], strict=True):
            line = text[start:end]
            own, alone = split_code(tokenizer, line)
            if not lines:
                code = own
            elif code and not own:
                line = f"{code} {line}"  # the code of the first line counts for all
            cleaned = preparer.clean(line) if clean else Cleaned(line)
            # A line with only a language code, or with only dropped signs, has no text.
            if alone.strip() and split_code(tokenizer, cleaned.text)[1].strip():
                gaps[-1] += cleaned.before
                lines.append(cleaned)
                numbers.append(number)
                gaps.append(cleaned.after + after)
            else:
                replaced.update(cleaned.replaced)
                dropped.update(cleaned.dropped)
                gaps[-1] += after
            number += after.count("\n")
        return cls(tuple(lines), tuple(numbers), tuple(gaps), Notes(replaced, dropped))


@dataclass(frozen=True)
class _Maker:
    """Makes the requests of one text after another."""

    config: DecodingConfig
    how: Treatment
    tokenizer: Tokenizer
    builder: RequestBuilder
    preparer: Preparer

    def make(
        self, source: str, layout: _Layout, ids: list[list[int]], constraints: LineConstraints
    ) -> Ready:
        """Make the requests of a text: one for each line, or for each part of a split line."""
        each = _of_lines(constraints, layout.numbers)
        parts: list[str] = []
        gaps: list[str | None] = [layout.gaps[0]]
        requests: list[Request] = []
        encoded: list[list[int]] = []
        has_whole, fault = False, ""
        for cleaned, one, own, gap in zip(layout.lines, ids, each, layout.gaps[1:], strict=True):
            found, is_whole = self._parts(cleaned.text, one, own)
            has_whole |= is_whole
            cut = (
                [one] if len(found) == 1 else self._encode_parts(found, self.builder.too_long(one))
            )
            requests += [
                self.builder.build(part, part_ids, own, self.config)
                for part, part_ids in zip(found, cut, strict=True)
            ]
            parts += found
            encoded += cut
            gaps += [*[None] * (len(found) - 1), gap]
            fault = fault or find_fault(self.tokenizer, cleaned.text)
        notes = self.preparer.note(
            _together(layout.lines), parts, encoded, num_lines=len(each), is_whole=has_whole
        )
        if fault:
            notes = replace(notes, language_code=fault)
        return Ready(source, tuple(parts), tuple(gaps), tuple(requests), notes=notes)

    def _parts(self, text: str, ids: list[int], constraints: Constraints) -> tuple[list[str], bool]:
        """Split one line if it should be; tell whether its constraints keep it whole instead."""
        problem = self.builder.too_long(ids)
        is_too_long = problem is not None
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
        return [text] if is_whole else parts, is_whole

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


def _of_lines(constraints: LineConstraints, numbers: Sequence[int]) -> Sequence[Constraints]:
    """Choose the constraints of the lines of a text that have these numbers."""
    if not isinstance(constraints, Constraints):
        return [constraints[number] for number in numbers]
    if len(numbers) > 1 and constraints.required:
        raise InputError(
            "A text with required phrases must be one line, but has line breaks. Give each of its "
            "lines by itself, with its own phrases."
        )
    if len(numbers) == 1:  # nearly always
        return [constraints]
    return [constraints, *[replace(constraints, prefix="")] * (len(numbers) - 1)]


def _together(lines: Sequence[Cleaned]) -> Cleaned:
    """Add up the characters of the lines of a text."""
    if len(lines) == 1:
        return lines[0]
    replaced, dropped, unknown = Counter[str](), Counter[str](), Counter[str]()
    for line in lines:
        replaced.update(line.replaced)
        dropped.update(line.dropped)
        unknown.update(line.unknown)
    return Cleaned("\n".join(line.text for line in lines), replaced, dropped, unknown)
