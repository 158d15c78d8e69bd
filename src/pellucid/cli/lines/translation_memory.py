"""Translation memories: texts that were translated before, and those that are nearly equal."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from pathlib import Path

from pellucid.documents.markup.segments import Segment
from pellucid.documents.placeholders import keeps_copies
from pellucid.documents.segment_writing import GivenTranslation, write_segment
from pellucid.errors import DataError, need_library
from pellucid.files import hash_file, reading
from pellucid.terminal.text import percent
from pellucid.text.line_words import line_words
from pellucid.text.reading.bad_lines import BadLines
from pellucid.text.reading.sentence_pairs import read_pairs_of_file

# The least similarity of a text that is taken, one less the share of letters that differ.
LEAST = 0.85

_MOST_TRIED = 5
_NUMBERS = re.compile(r"\d+")


class Memory:
    """Texts with their translations; of several for one text the last one counts.

    Args:
        path: a TMX, XLIFF or PO file, or a table.
        languages: codes of source and target.

    Attributes:
        hash: of the file.

    Raises:
        DataError: it cannot be read, or has no text of these languages.
        InputError: its kind is unknown, or rapidfuzz is not installed.
    """

    def __init__(self, path: str, languages: tuple[str, str]) -> None:
        self._process = need_library("rapidfuzz.process", "A memory")
        self._distance = need_library("rapidfuzz.distance.Levenshtein", "A memory")
        bad = BadLines()
        pairs = read_pairs_of_file(path, languages, bad)
        self._targets = {one.source: one.target for one in pairs if one.source and one.target}
        if not self._targets:
            none = f"A memory must have translated texts, but {path} has none."
            advice = "Give one with text of the model's languages."
            raise DataError(" ".join(filter(None, (none, bad.about_entries(), advice))))
        # By length: `_near` takes only those whose length allows them to be similar enough.
        self._texts = sorted(self._targets, key=len)
        with reading(path):
            self.hash = hash_file(Path(path))

    def write(self, segment: Segment) -> bool:
        """Write a segment's translation if the memory has one whose numbers and codes fit."""
        text = segment.text.strip()
        for source, similarity in [(text, 1.0)] if text in self._targets else self._near(text):
            target = self._targets[source]
            if _numbers(source) == _numbers(text) and keeps_copies(segment, target):
                # No links are known. That the words follow each other evenly is enough to place
                # tags.
                words = line_words(text)
                others = line_words(target)
                links = [(k, k * len(others) // len(words)) for k in range(len(words))]
                write_segment(segment, [GivenTranslation(target, others, links)], words)
                if segment.written is not None:
                    segment.match = similarity
                    if similarity < 1:
                        segment.reason = f"the memory has a similar text ({percent(similarity)})"
                    return True
                segment.reason = ""
        return False

    def _near(self, text: str) -> list[tuple[str, float]]:
        """Find the most similar texts; those of other lengths cannot be similar enough."""
        first = bisect_left(self._texts, math.ceil(LEAST * len(text)), key=len)
        last = bisect_right(self._texts, int(len(text) / LEAST), key=len)
        found = self._process.extract(
            text,
            self._texts[first:last],
            scorer=self._distance.normalized_similarity,
            score_cutoff=LEAST,
            limit=_MOST_TRIED,
        )
        return [(source, similarity) for source, similarity, _ in found]


def _numbers(text: str) -> Counter[str]:
    return Counter(_NUMBERS.findall(text))
