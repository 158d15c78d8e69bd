"""Tags at the ends of sources, such as ``<2fr>`` or ``[MED]``: marks of a language or a domain."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import takewhile

MOST_TAGS = 4
"""Tags at one end of a source."""

LONGEST = 32
FEWEST = 3
LEAST_SHARE = 0.001
"""Sources that must have a tag: so many, and this share of all."""

LEAST_TAGGED = 0.2
"""The least share of sources with a tag, if there are tags."""

_GLUED = re.compile(r"(<[^<>\s]{1,30}>|\[[^\[\]\s]{1,30}\])(?=[\w<\[])")
"""A tag in brackets that touches the first word."""

MOST_IN_TARGETS = 0.02
"""The share of its pairs in which a tag may be in the target too: more often it is markup."""


def find_tags(sources: Collection[str], targets: Iterable[str]) -> frozenset[str]:
    """Find the tags of a text: signs at the ends of many sources that no target has.

    Args:
        sources: the sources, or a sample of them.
        targets: their targets.
    """
    found = Counter[str]()
    kept = Counter[str]()
    for source, target in zip(sources, targets, strict=True):
        for token in set(ends_of(source)):
            if f"</{token[1:]}" not in source:
                found[token] += 1
                kept[token] += token in target
    least = max(FEWEST, LEAST_SHARE * len(sources))
    tags = frozenset(
        token
        for token, count in found.items()
        if count >= least and kept[token] <= MOST_IN_TARGETS * count
    )
    num_tagged = sum(without_tags(source, tags) != source for source in sources)
    return tags if num_tagged >= max(FEWEST, LEAST_TAGGED * len(sources)) else frozenset()


def without_tags(source: str, tags: Collection[str]) -> str:
    """Take the tags off a source; one that consists of tags stays."""
    bare = source.strip()
    for token in ends_of(source) if tags else ():
        if token in tags:
            bare = bare.removeprefix(token).removesuffix(token).strip()
    return bare if bare and bare != source.strip() else source


def ends_of(source: str) -> list[str]:
    """List the first and the last tokens of a source, as far as they look like tags."""
    apart = _GLUED.sub(r"\1 ", source) if source.startswith(("<", "[")) else source
    first = apart.split(None, MOST_TAGS)[:MOST_TAGS]
    last = source.rsplit(None, MOST_TAGS)[: -MOST_TAGS - 1 : -1]
    return [*takewhile(_is_like_a_tag, first), *takewhile(_is_like_a_tag, last)]


def _is_like_a_tag(token: str) -> bool:
    """Tell whether a token has a sign, not a quotation mark, at an end, or is as ``2fr``."""
    if len(token) > LONGEST or "</" in token or not any(map(str.isalpha, token)):
        return False
    return token[0].isdigit() or _is_sign(token[0]) or _is_sign(token[-1])


def _is_sign(letter: str) -> bool:
    is_open = unicodedata.category(letter) in ("Ps", "Pe", "Pc", "Sm", "Sc", "Sk", "So")
    return letter in "@#%&*/\\" or (is_open and letter not in "„‚")
