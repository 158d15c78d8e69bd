"""The sentences of a training text as a small filter: was this one among them?"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pellucid.files import read_bytes, write_bytes

_BITS_EACH = 12
_NUM_HASHES = 8
_MARKS = re.compile(r"[\s.,!?]+")
_HASH_BYTES = 32
"""Bytes at the beginning of the file that name the model: its hash."""


class SeenSentences:
    """A Bloom filter of sentences, without capitals and marks.

    A sentence that was in the text is always found; of 300 that were not, one is found too.

    Args:
        model_hash: of the model that was trained on the text, in hexadecimal.
        bits: the filter.

    Source:
        Bloom 1970, "Space/Time Trade-offs in Hash Coding with Allowable Errors".
    """

    def __init__(self, model_hash: str, bits: NDArray[np.uint8]) -> None:
        self.model_hash = model_hash
        self._bits = bits

    @classmethod
    def of(cls, sentences: Iterable[str], *, model_hash: str) -> Self:
        """Make the filter of some sentences."""
        texts = {_bare(sentence) for sentence in sentences}
        size = max(1, len(texts) * _BITS_EACH // 8)
        seen = cls(model_hash, np.zeros(size, dtype=np.uint8))
        for text in texts:
            for place in seen._places(text):
                # Bit by bit; a place that is set twice stays set.
                seen._bits[place // 8] |= 1 << place % 8
        return seen

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a filter from its file."""
        data = read_bytes(path)
        bits = np.frombuffer(data[_HASH_BYTES:], dtype=np.uint8)
        return cls(data[:_HASH_BYTES].hex(), bits)

    @property
    def bits(self) -> bytes:
        """The filter, eight places a byte, the first in the lowest bit."""
        return self._bits.tobytes()

    def write(self, path: Path) -> None:
        """Write the filter into a file: the model's hash, then the bits."""
        write_bytes(path, bytes.fromhex(self.model_hash) + self.bits)

    def __contains__(self, sentence: str) -> bool:
        """Tell whether a sentence was in the text, with any capitals and marks."""
        return all(
            self._bits[place // 8] >> place % 8 & 1 for place in self._places(_bare(sentence))
        )

    def _places(self, text: str) -> Iterator[int]:
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        # Two hashes make all places (Kirsch and Mitzenmacher 2006).
        start, step = (int.from_bytes(half, "little") for half in (digest[:8], digest[8:]))
        for number in range(_NUM_HASHES):
            # An odd step is never 0, so that the places differ.
            yield (start + number * (step | 1)) % (8 * len(self._bits))


@cache
def shipped_seen_sentences() -> SeenSentences:
    """Read the filter of the packaged model's training text."""
    return SeenSentences.read(Path(str(files("pellucid") / "models" / "demo.seen")))


def _bare(sentence: str) -> str:
    return _MARKS.sub(" ", sentence.lower()).strip()
