"""TER in acceptable time for very long lines, and for text without spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from sacrebleu.metrics.base import Signature
from sacrebleu.metrics.ter import TER

LARGEST_SEARCH = 1_000_000
"""The largest product of the hypothesis's and the reference's words to search shifts for."""


@final
class BoundedTER(TER):
    """sacreBLEU's TER, except that it searches no shifts in lines of more than a thousand words.

    The search tries up to a thousand shifts and computes an edit distance for each, which would
    take hours for one line of 20,000 words. The signature counts the lines scored without shifts.
    """

    num_long_lines = 0

    def __init__(self, *, in_characters: bool = False) -> None:
        """Make the metric.

        Args:
            in_characters: count edits of characters instead of words, for text without spaces,
                whose lines would be one word each. The signature then has ``tok:char``.
        """
        super().__init__()
        self._in_characters = in_characters

    def _preprocess_segment(self, sent: str) -> str:
        segment: str = super()._preprocess_segment(sent)
        # TER takes what stands between spaces as a word, here each character.
        return " ".join("".join(segment.split())) if self._in_characters else segment

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: dict[str, Any]
    ) -> list[float]:
        words = hypothesis.split()
        references = ref_kwargs["ref_words"]
        if len(words) * max(map(len, references)) <= LARGEST_SEARCH:
            return super()._compute_segment_statistics(hypothesis, ref_kwargs)
        self.num_long_lines += 1
        edits = min(count_word_edits(words, reference) for reference in references)
        return [edits, sum(map(len, references)) / len(references)]

    def get_signature(self) -> Signature:
        """Return sacreBLEU's signature, with the number of lines scored without shifts."""
        info = super().get_signature()
        # None leaves the entry out, so that usual text keeps sacreBLEU's own signature.
        info.update("noshift", self.num_long_lines or None)
        if self._in_characters:
            info.update("tok", "char")
        return info


def count_word_edits(words: Sequence[str], reference_words: Sequence[str]) -> int:
    """Count the fewest insertions, deletions and substitutions between two texts."""
    # Numbers instead of words let NumPy compare a whole row at once.
    ids: dict[str, int] = {}
    rows = [ids.setdefault(word, len(ids)) for word in words]
    columns = np.array([ids.setdefault(word, len(ids)) for word in reference_words], dtype=np.int64)
    places = np.arange(len(columns) + 1)
    distances = places
    for number, row in enumerate(rows, start=1):
        best = np.empty_like(distances)
        best[0] = number
        np.minimum(distances[1:] + 1, distances[:-1] + (columns != row), out=best[1:])
        # Steps along the row cost 1 each. Without this slope they are a running minimum.
        distances = np.minimum.accumulate(best - places) + places
    return int(distances[-1])
