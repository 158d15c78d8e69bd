"""Language codes such as ``>>fra<<``: the first token of a source, which names the target language.

A model for several languages needs one in each line. Without it, or with one that the model does
not know, the translation may be in any of its languages. A code is not a word of the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from pellucid.arguments import check_text
from pellucid.errors import InputError, suggestion
from pellucid.languages.codes import find_language, pick_codes
from pellucid.languages.more_names import other_codes
from pellucid.terminal.text import count_of
from pellucid.text.reading.lines import CutLine
from pellucid.text.tokenizers.tokenizer import Tokenizer

MISSING = "missing"
"""The fault of a line without a code; of others it is the code."""

_CODE = re.compile(r"\s*>>[^\s<>]+<<")
_MOST_EXAMPLES = 3
# A model of many languages may have a hundred codes, too many for a message.
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
    """Find the code of a language, or of two.

    Args:
        tokenizer: of the model.
        language: such as ``fra``, ``fr``, ``fra_Latn``, ``French``, or the whole code ``>>fra<<``;
            before it, and a colon, the source's language, for a model that reads it.

    Raises:
        InputError: the model has no codes, does not have this one, or reads both languages and is
            given one.
    """
    names = {code[2:-2]: code for code in tokenizer.language_codes}
    source, _, target = language.removeprefix(">>").removesuffix("<<").rpartition(":")
    if not names:
        raise InputError(
            "A language needs a model with language codes, but this model has none "
            f"({language.strip(':')}). Leave it out."
        )
    if tokenizer.reads_source_language:
        if not source or not target:
            raise need_languages(tokenizer)
        both = (
            _find_name(names, one, side) for one, side in ((source, "source"), (target, "target"))
        )
        return f">>{':'.join(both)}<<"
    if not target:
        raise need_languages(tokenizer)
    # Such a model reads any of its languages, and is told only the one to write.
    return names[_find_name(names, target, "target")]


def _find_name(names: Collection[str], wanted: str, side: str) -> str:
    """Find the name that a model has for a language: the same one, or the only one as near."""
    near = near_names(names, wanted)
    if len(near) == 1:
        return near[0]
    advice = suggestion(wanted, names)
    if near:
        advice = f"Name one of {', '.join(near)}."
    elif len(names) > _MOST_CODES and advice.startswith("Known"):
        advice = f"It has {len(names)} languages: pellucid inspect MODEL lists them."
    raise InputError(
        f"The {side} language must be one that the model has a code for, but is {wanted!r}. "
        f"{advice}"
    )


def near_names(names: Collection[str], wanted: str) -> list[str]:
    """List the names that may mean a language: ``fra_Latn`` for ``fr``, ``fra`` or ``French``."""
    if wanted in names:
        return [wanted]
    asked = [find_language(wanted), wanted, *other_codes(wanted)]
    # A script or a region stays: kas_Deva is one of two that are called Kashmiri.
    found = (pick_codes(one, names) for one in asked if one)
    return next(filter(None, found), [])


def need_languages(tokenizer: Tokenizer) -> InputError:
    """Word the refusal of a text without the languages that a model must be told."""
    names = [code[2:-2] for code in tokenizer.language_codes]
    has_both = tokenizer.reads_source_language
    options = "--from LANGUAGE and --to LANGUAGE" if has_both else "--to LANGUAGE"
    code = f">>{names[0]}:{names[-1]}<<" if has_both else tokenizer.language_codes[0]
    return InputError(
        f"This model has {len(names)} languages, and cannot guess which are meant. Give {options}, "
        f"or begin each line with a code such as {code}."
    )


def code_problem(tokenizer: Tokenizer, source: str) -> str | None:
    """Say that a line lacks the code without which its model cannot read it; None if not."""
    if not tokenizer.needs_code or not source.strip() or tokenizer.language_code(source):
        return None
    return need_languages(tokenizer).sentence


def with_code(tokenizer: Tokenizer, code: str, source: str) -> str:
    """Begin each line of a text with a code, in place of the one that it has.

    White space at its edges and blank lines stay, and so does a line that is too long.
    """
    # A copy would be a plain string, and hide that the line is only a beginning.
    if isinstance(source, CutLine):
        return source
    return "\n".join(_line_with_code(tokenizer, code, line) for line in source.split("\n"))


def with_codes(tokenizer: Tokenizer, language: str | None, texts: Sequence[str]) -> Sequence[str]:
    """Begin the lines of some texts with the code of a language; None leaves them as they are.

    Raises:
        InputError: the model has no such code, or cannot do without one.
    """
    if language is None:
        # A line that was cut hides what it begins with.
        for one in texts if tokenizer.needs_code else ():
            if not isinstance(one, CutLine) and (problem := code_problem(tokenizer, one)):
                raise InputError(problem)
        return texts
    check_text("to", language)
    code = find_code(tokenizer, language)
    return [with_code(tokenizer, code, text) for text in texts]


def backwards(language: str | None) -> str | None:
    """Turn a direction such as ``en:fr`` round; None if it does not have both languages."""
    source, _, target = (language or "").partition(":")
    return f"{target}:{source}" if source and target else None


def _line_with_code(tokenizer: Tokenizer, code: str, line: str) -> str:
    _, text = split_code(tokenizer, line)
    # White space at the edge is put around the translation, so the code comes after it.
    edge = line[: len(line) - len(line.lstrip())]
    return f"{edge}{code} {text.lstrip()}" if text.strip() else line


def find_fault(tokenizer: Tokenizer, source: str) -> str:
    """Find what is wrong with the language code of a line: `MISSING`, a wrong code, or ``""``.

    Every code is wrong for a model without codes, which reads it as text.
    """
    codes = tokenizer.language_codes
    match = _CODE.match(source)
    if match is None:
        return MISSING if codes and source.strip() else ""
    code = match[0].strip()
    return "" if tokenizer.knows_code(code) else code


class CodeFaults:
    """Counts lines without a language code, or with a wrong one, to say so once, at the end."""

    def __init__(self) -> None:
        self._counts = {"missing": 0, "unknown": 0}
        self._examples: dict[str, list[str]] = {"missing": [], "unknown": []}

    def add(self, number: int, fault: str) -> None:
        """Count the fault of a line, numbered from 0, as `find_fault` returned it."""
        if not fault:
            return
        kind = "missing" if fault == MISSING else "unknown"
        self._counts[kind] += 1
        if len(self._examples[kind]) < _MOST_EXAMPLES:
            code = "" if fault == MISSING else f": {fault}"
            self._examples[kind].append(f"line {number + 1}{code}")

    @property
    def is_empty(self) -> bool:
        """True if no line has a fault."""
        return not any(self._counts.values())

    def sentence(self, tokenizer: Tokenizer, option: str = "") -> str:
        """Say what is wrong, and what the codes are; ``""`` if nothing is wrong.

        Args:
            tokenizer: of the model.
            option: an option that sets the code of every line, if there is one.
        """
        said = {"missing": "no language code", "unknown": "a language code that is not the model's"}
        faults = [self._say(kind, what) for kind, what in said.items() if self._counts[kind]]
        codes = tokenizer.language_codes
        if not faults:
            return ""
        if not codes:
            return f"{faults[0]}. It has no codes, and reads them as text: leave them out."
        more = f" and {len(codes) - _MOST_CODES:,} more" if len(codes) > _MOST_CODES else ""
        return (
            f"{', and '.join(faults)}. Begin each line with one of the model's codes"
            f"{f', or give {option}' if option else ''}: "
            f"{' '.join(codes[:_MOST_CODES])}{more}."
        )

    def _say(self, kind: str, what: str) -> str:
        count = self._counts[kind]
        examples = self._examples[kind]
        lines = count_of(count, "line has", "lines have")
        more = count - len(examples)
        return f"{lines} {what} ({', '.join(examples)}{f' and {more:,} more' if more else ''})"
