"""Texts taken apart: several lines, several sentences, language codes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from pellucid.documents.placeholder_masks import has_only_symbols
from pellucid.text.cleaning import Cleaned
from pellucid.text.language_tokens import split_code
from pellucid.text.learned import LearnedText
from pellucid.text.sentences import split_sentences
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.results import NO_NOTES, Notes

_LINE = re.compile(r"\S(?:[^\n\r]*\S)?")
"""One line without the white space at its edges. A carriage return ends one, too."""

_WORD_LETTER = re.compile(r"\w")


class Layout(NamedTuple):
    """The lines of a text without their edges, cleaned.

    Attributes:
        lines: the lines that hold text.
        numbers: the number of each among all lines of the text, from 0.
        gaps: what stands before, between and after them.
        notes: the characters that were replaced or dropped in what has no text.
        error: the reason that it is not text.
    """

    lines: tuple[Cleaned, ...] = ()
    numbers: tuple[int, ...] = ()
    gaps: tuple[str, ...] = ("",)
    notes: Notes = NO_NOTES
    error: str | None = None

    @classmethod
    def of(cls, text: str, tokenizer: Tokenizer, clean: Callable[[str], Cleaned]) -> Layout:
        """Find the lines of a text."""
        spans = [match.span() for match in _LINE.finditer(text)]
        edges = [0, *(place for span in spans for place in span), len(text)]
        # Every second piece lies between lines; the others are the lines.
        around = [text[start:end] for start, end in pairwise(edges)][::2]
        lines: list[Cleaned] = []
        numbers: list[int] = []
        gaps = [around[0]]
        code = ""
        # Blank lines count, so that constraints given by line meet their lines.
        number = around[0].count("\n")
        replaced = Counter[str]()
        dropped = Counter[str]()
        for (start, end), after in zip(spans, around[1:], strict=True):
            line = text[start:end]
            own, alone = split_code(tokenizer, line)
            if not lines:
                code = own
            elif code and not own:
                line = f"{code} {line}"  # the code of the first line counts for all
            if tokenizer.has_masks and has_only_symbols(alone):
                gaps[-1] += alone.lstrip() + after
                number += after.count("\n")
                continue
            cleaned = clean(line)
            # A line with only a language code, or with only dropped signs, has no text.
            if alone.strip() and split_code(tokenizer, cleaned.text)[1].strip():
                # Direction marks that stood around the line go around its translation.
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


def together(lines: Sequence[Cleaned]) -> Cleaned:
    """Add up the characters of the lines of a text."""
    replaced = Counter[str]()
    dropped = Counter[str]()
    unknown = Counter[str]()
    for line in lines:
        replaced.update(line.replaced)
        dropped.update(line.dropped)
        unknown.update(line.unknown)
    return Cleaned("\n".join(line.text for line in lines), replaced, dropped, unknown)


def split_line(
    text: str, tokenizer: Tokenizer, learned: LearnedText | None, *, is_too_long: bool
) -> list[str]:
    """Split a line at sentence ends if it has more sentences than the model's training lines.

    Args:
        text: the line, cleaned.
        tokenizer: the model's.
        learned: the text that it learned from, if known.
        is_too_long: True to split in any case, because the model cannot read it as a whole.

    Returns:
        The parts, each with the line's language code; only the line itself if it is like the
        training lines, or has one sentence.
    """
    sentences = sentences_of(text, tokenizer, with_code=False)
    # Without counts (imported models), assume one sentence a line, as most models learn.
    most = 1
    longest = 0
    usual = 1
    if learned is not None:
        most = learned.most_sentences
        usual = learned.usual_sentences
        longest = learned.most_characters
    # A longest line of 0 characters means that nothing is known about lengths.
    is_like_training = len(sentences) <= most and not 0 < longest < len(text.strip())
    if len(sentences) <= 1 or (is_like_training and not is_too_long):
        return [text]
    code = tokenizer.language_code(text)
    return [_with_code(code, part) for part in _pack(sentences, usual, longest)]


def sentences_of(text: str, tokenizer: Tokenizer, *, with_code: bool = True) -> list[str]:
    """Split a line into its single sentences, each with its language code unless told not to.

    What has no letter or digit, such as an emoji, stays with the sentence before it.
    """
    code = tokenizer.language_code(text)
    found: list[str] = []
    for sentence in split_sentences(text.removeprefix(code)):
        if found and _WORD_LETTER.search(sentence) is None:
            found[-1] += f" {sentence}"
        else:
            found.append(sentence)
    return [_with_code(code, part) for part in found] if with_code else found


def _with_code(code: str, part: str) -> str:
    return f"{code} {part}".lstrip()


def _pack(sentences: Sequence[str], usual: int, longest: int) -> list[str]:
    """Group sentences into parts of the usual number, no longer than lines of the training text.

    Args:
        sentences: the sentences of one line.
        usual: sentences of a usual training line.
        longest: the most characters of a part; 0 for any number.
    """
    parts: list[list[str]] = []
    for sentence in sentences:
        length = sum(len(one) + 1 for one in (*parts[-1], sentence)) if parts else 0
        if parts and len(parts[-1]) < usual and not 0 < longest < length:
            parts[-1].append(sentence)
        else:
            parts.append([sentence])
    return [" ".join(part) for part in parts]
