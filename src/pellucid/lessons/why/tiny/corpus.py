"""The built-in corpus as words, for models that learn it in half a minute."""

from __future__ import annotations

import re

from pellucid.corpora import SplitName, make_split
from pellucid.lessons.why.tiny.words import Pair

_WORD = re.compile(r"\w+|[^\w\s]")


def draw_corpus(count: int, *, seed: int, part: SplitName) -> list[Pair]:
    """Draw sentences of the built-in corpus in small letters, a space around each mark.

    Args:
        count: the number of sentences.
        seed: of the draws.
        part: of the corpus; no sentence is in two of them.
    """
    return [
        (_cut(example.source), _cut(example.target))
        for example in make_split(part, seed=seed, count=count)
    ]


def _cut(sentence: str) -> str:
    return " ".join(_WORD.findall(sentence.lower()))
