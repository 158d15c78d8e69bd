"""Language codes such as ``>>fra<<``: the first token of a source, which names the target language.

A model for several languages needs one in each line. Without it, or with one that the model does
not know, the translation may be in any of its languages. A code is no word of the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pellucid.errors import InputError, suggestion
from pellucid.text.tokenizer import Tokenizer

__all__ = ["CodeFaults", "find_code", "split_code", "with_code"]

_CODE = re.compile(r"\s*>>[^\s<>]+<<")
_MOST_EXAMPLES = 3
_MOST_CODES = 12


def split_code(tokenizer: Tokenizer, source: str) -> tuple[str, str]:
    """Split a source line into its language code, known or not, and the text alone.

    For a model without codes everything is text.

    Returns:
        The code, ``""`` if the line has none, and the text after it.
    """
    match = _CODE.match(source) if tokenizer.language_codes else None
    if match is None:
        return "", source
    return match[0].strip(), source[match.end() :]


def find_code(tokenizer: Tokenizer, language: str) -> str:
    """Find the code of a language.

    Args:
        tokenizer: of the model.
        language: such as ``fra``, or the whole code ``>>fra<<``.

    Raises:
        InputError: the model has no codes, or does not have this one.
    """
    names = {code[2:-2]: code for code in tokenizer.language_codes}
    if not names:
        raise InputError(
            f"A target language needs a model with language codes, but this model has none "
            f"({language}). Leave it out."
        )
    bare = language.removeprefix(">>").removesuffix("<<")
    if bare not in names:
        raise InputError(
            f"The target language must be one of the model's {len(names)} codes, but is "
            f"{bare!r}. {suggestion(bare, names)}"
        )
    return names[bare]


def with_code(tokenizer: Tokenizer, code: str, source: str) -> str:
    """Begin a source line with a code, in place of the one that it has; a blank line stays."""
    _, text = split_code(tokenizer, source)
    return f"{code} {text.lstrip()}" if text.strip() else source


class CodeFaults:
    """Counts lines without a language code, or with a wrong one, to say so once, at the end.

    Args:
        tokenizer: of the model; one without codes reads a code as text.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._missing: list[str] = []
        self._unknown: list[str] = []

    def add(self, number: int, source: str) -> None:
        """Look at a line, counted from 0."""
        match = _CODE.match(source)
        if match is not None:
            if match[0].strip() not in self._tokenizer.language_codes:
                self._unknown.append(f"line {number + 1}: {match[0].strip()}")
        elif self._tokenizer.language_codes and source.strip():
            self._missing.append(f"line {number + 1}")

    def sentence(self) -> str:
        """Say what is wrong, and what the codes are; ``""`` if nothing is wrong."""
        faults = []
        if self._missing:
            faults.append(f"{_count(self._missing)} no language code ({_examples(self._missing)})")
        if self._unknown:
            what = "a language code that the model does not know"
            faults.append(f"{_count(self._unknown)} {what} ({_examples(self._unknown)})")
        if not faults:
            return ""
        codes = self._tokenizer.language_codes
        if not codes:
            return f"{faults[0]}, and reads as text. It has no codes: leave them out."
        more = f" and {len(codes) - _MOST_CODES:,} more" if len(codes) > _MOST_CODES else ""
        return (
            f"{', and '.join(faults)}. Begin each line with one of the model's codes: "
            f"{' '.join(codes[:_MOST_CODES])}{more}."
        )


def _count(lines: Sequence[str]) -> str:
    return "1 line has" if len(lines) == 1 else f"{len(lines):,} lines have"


def _examples(lines: Sequence[str]) -> str:
    more = len(lines) - _MOST_EXAMPLES
    return ", ".join(lines[:_MOST_EXAMPLES]) + (f" and {more:,} more" if more > 0 else "")
