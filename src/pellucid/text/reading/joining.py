"""Text that was cut into subwords before: noticed, and joined again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class CutKind:
    """One way of writing subwords with spaces between them.

    Attributes:
        example: a word cut so.
        sign: a text that every cut word holds.
        pattern: finds a cut in a line that holds the sign.
        join: makes words of a line again.
    """

    example: str
    sign: str
    pattern: re.Pattern[str]
    join: Callable[[str], str]


def _without(pattern: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)
    return lambda line: compiled.sub("", line)


def _from_sentencepiece(line: str) -> str:
    if "\u2581" not in line:  # not cut
        return line
    return line.replace(" ", "").replace("\u2581", " ").strip()


CUT_KINDS: Mapping[str, CutKind] = {
    "bpe": CutKind("nu@@ mber", "@@", re.compile(r"\S@@(?: |$)"), _without("@@(?: |$)")),
    "sentencepiece": CutKind(
        "\u2581num ber", "\u2581", re.compile("(?:^| )\u2581"), _from_sentencepiece
    ),
    "wordpiece": CutKind("num ##ber", " ##", re.compile(r" ##\w"), _without(r" ##(?=\w)")),
    "joiner": CutKind("num \uffedber", "\uffed", re.compile("\uffed"), _without(" ?\uffed ?")),
}
"""The values of ``data.cut_by``: subword-nmt, SentencePiece, BERT, OpenNMT's tokenizer."""


def joiner(kind: str) -> Callable[[str], str] | None:
    """Find what joins the pieces of ``data.cut_by``; None for ``none``."""
    return None if kind == "none" else CUT_KINDS[kind].join
