"""Sentences by which models of the course are judged, kept out of its text: ``kept_out.txt``.

The file has a hash of each, so that who writes the course cannot read them there;
``tests/golden/make_kept_out.py`` writes it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

_MARKS = re.compile(r"[\s.,!?]+")


def hash_of(sentence: str) -> str:
    """Hash an English sentence, without capitals and marks."""
    bare = _MARKS.sub(" ", sentence.lower().replace("\u2019", "'")).strip()
    return hashlib.blake2b(bare.encode(), digest_size=8).hexdigest()


def is_kept_out(words: Sequence[str]) -> bool:
    """Tell whether English words are one of the sentences."""
    return hash_of(" ".join(words)) in _hashes()


@cache
def _hashes() -> frozenset[str]:
    text = files("pellucid.corpora.course").joinpath("kept_out.txt").read_text(encoding="utf-8")
    return frozenset(text.split())
