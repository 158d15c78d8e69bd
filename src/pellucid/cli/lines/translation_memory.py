"""Translation memories: texts that were translated before, and those that are nearly equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pellucid.cli.lines.text_counts import SIMILAR
from pellucid.decode.constraints.terms import cut_words
from pellucid.documents.markup.placeholder_shapes import find_placeholders
from pellucid.documents.markup.segments import Segment
from pellucid.documents.placeholders import keeps_copies
from pellucid.documents.segment_writing import GivenTranslation, write_segment
from pellucid.errors import DataError, need_library
from pellucid.files import hash_file, reading
from pellucid.terminal.text import percent
from pellucid.text.line_words import line_words
from pellucid.text.reading.bad_lines import BadLines
from pellucid.text.reading.sentence_pairs import read_pairs_of_file

LEAST = 0.75
"""The least similarity of a text that is suggested: one less the share of words that differ."""

_MOST_READ = 20_000
"""Places in the index that are read for one text."""

_MOST_COMPARED = 50
"""Texts that are compared in full: those that share most pairs of words."""


class Suggestion(NamedTuple):
    """A similar text of a memory.

    Attributes:
        similarity: one less the share of words and signs that must be put in, left out or
            exchanged, of the longer text.
        source: the text.
        translation: its translation.
        difference: the way from there to the text that is translated, as ``a [-red-]{+blue+} cat``.
    """

    similarity: float
    source: str
    translation: str
    difference: str

    def __str__(self) -> str:
        return f"{SIMILAR} ({percent(self.similarity)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the suggestion as JSON values."""
        return {**self._asdict(), "similarity": round(self.similarity, 4)}


class Memory:
    """Texts with their translations; of several for one text the last one counts.

    Args:
        path: a TMX, XLIFF or PO file, or a table.
        languages: codes of source and target.

    Attributes:
        hash: of the file.
        targets: the translation of each text.

    Raises:
        DataError: it cannot be read, or has no text of these languages.
        InputError: its kind is unknown, or rapidfuzz is not installed.
    """

    def __init__(self, path: str, languages: tuple[str, str]) -> None:
        self._distance = need_library("rapidfuzz.distance.Levenshtein", "A memory")
        bad = BadLines()
        pairs = read_pairs_of_file(path, languages, bad)
        self.targets = {one.source: one.target for one in pairs if one.source and one.target}
        if not self.targets:
            none = f"A memory must have translated texts, but {path} has none."
            advice = "Give one with text of the model's languages."
            raise DataError(" ".join(filter(None, (none, bad.about_entries(), advice))))
        self._texts = [*self.targets]
        # Texts by their pairs of neighboring words: a pair is in few of them.
        self._places: dict[tuple[str, str], list[int]] = {}
        for number, text in enumerate(self._texts):
            for pair in _pairs(_words(text)):
                self._places.setdefault(pair, []).append(number)
        with reading(path):
            self.hash = hash_file(Path(path))

    def write(self, segment: Segment) -> bool:
        """Write a segment's translation if the memory has its text, and the codes fit."""
        text = segment.text.strip()
        target = self.targets.get(text)
        if target is None or not keeps_copies(segment, target):
            return False
        # No links are known. That the words follow each other evenly is enough to place tags.
        words = line_words(text)
        others = line_words(target)
        links = [(k, k * len(others) // len(words)) for k in range(len(words))]
        write_segment(segment, [GivenTranslation(target, others, links)], words)
        if segment.written is None:
            segment.reason = ""
            return False
        segment.match = 1
        return True

    def suggest(self, text: str) -> Suggestion | None:
        """Find the most similar text, if one is similar enough.

        The time does not grow with the memory: only the rarest pairs of words are looked up.

        Args:
            text: of a segment.
        """
        words = _words(text)
        best = LEAST
        found = None
        for number in self._candidates(words):
            other = self._texts[number]
            theirs = _words(other)
            similarity = self._distance.normalized_similarity(words, theirs, score_cutoff=best)
            if similarity >= best and (found is None or similarity > best):
                best = similarity
                found = other
        if found is None:
            return None
        return Suggestion(best, found, self.targets[found], self._difference(found, text))

    def _candidates(self, words: Sequence[str]) -> list[int]:
        """List the texts that share most of the rarest pairs of words.

        A text of n words that is similar enough has at most ``edits`` changes, each of which
        breaks two of the pairs. So one of 2 · edits + 1 pairs is in it, and the rarest are read.
        """
        longest = int(len(words) / LEAST)
        edits = int((1 - LEAST) * longest)
        known = [places for pair in _pairs(words) if (places := self._places.get(pair))]
        absent = len(_pairs(words)) - len(known)
        counts: Counter[int] = Counter()
        num_read = 0
        for places in sorted(known, key=len)[: max(0, 2 * edits + 1 - absent)]:
            num_read += len(places)
            if num_read > _MOST_READ:
                break
            counts.update(places)
        return [number for number, _ in counts.most_common(_MOST_COMPARED)]

    def _difference(self, old: str, new: str) -> str:
        ours = _units(old)
        theirs = _units(new)
        said = []
        for kind, first, last, start, end in self._distance.opcodes(ours, theirs):
            left = "".join(ours[first:last])
            put = "".join(theirs[start:end])
            if kind == "equal":
                said.append(left)
            else:
                said.append((f"[-{left}-]" if left else "") + (f"{{+{put}+}}" if put else ""))
        return "".join(said)


def _units(text: str) -> list[str]:
    """Cut a text as `cut_words` does, but keep each placeholder whole: half of one says nothing."""
    words = cut_words(text)
    found = [one for one in find_placeholders("".join(words)) if one.token is None]
    inside = {place for one in found for place in range(one.start + 1, one.end)}
    units: list[str] = []
    place = 0
    for word in words:
        if place in inside:
            units[-1] += word
        else:
            units.append(word)
        place += len(word)
    return units


def _words(text: str) -> tuple[str, ...]:
    """Cut a text into words and signs."""
    return tuple(word for word in cut_words(text) if word != " ")


def _pairs(words: Sequence[str]) -> set[tuple[str, str]]:
    """List the pairs of neighboring words, with the edges of the text."""
    return {*zip(("", *words), (*words, ""), strict=True)}
