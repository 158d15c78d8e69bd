"""The units that links join: words by a rule, words that are given, or the model's own tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pellucid.errors import DataError
from pellucid.text.language_tokens import split_code
from pellucid.text.line_words import find_parts_of_words, line_words
from pellucid.text.link_choices import UnitRule, WordRule
from pellucid.text.token_words import mark_unknown, words_of_tokens
from pellucid.text.tokenizers.tokenizer import Tokenizer

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")


@dataclass(frozen=True)
class GivenUnits:
    """What is given with pairs of lines.

    Attributes:
        source_words: the words of each source, separated by spaces; None to cut the line.
        target_words: those of each target.
        faults: for the number of a pair, from 0, why it is faulty.
    """

    source_words: Sequence[str] | None = None
    target_words: Sequence[str] | None = None
    faults: Mapping[int, str] = field(default_factory=dict)

    def words(self, side: Side, index: int) -> str | None:
        """Return the words of one line, if they are given."""
        lines = self.source_words if side == "source" else self.target_words
        return None if lines is None else lines[index]

    def reversed(self) -> GivenUnits:
        """Exchange the sides."""
        return GivenUnits(self.target_words, self.source_words, self.faults)


NOTHING_GIVEN = GivenUnits()


@dataclass(frozen=True)
class Units:
    """The units of one line.

    Attributes:
        names: of each unit, from 0: a word as it is given or stands in the line, or a token.
        parts: the letters of each in the line; None if the units are tokens.
    """

    names: tuple[str, ...]
    parts: tuple[str, ...] | None

    def of_tokens(
        self, tokenizer: Tokenizer, side: Side, line: str, ids: Sequence[int]
    ) -> list[range]:
        """Find the units of each token except ``</s>``; those of a language code have none.

        Args:
            tokenizer: the tokenizer that cut the line.
            side: the side that it was cut as.
            line: the line, a target as it is.
            ids: its tokens, ending in ``</s>``.
        """
        if self.parts is not None:
            # A target is encoded with its unknown letters marked, so they are looked for as such.
            marked = line if side == "source" else mark_unknown(tokenizer, line)
            parts = [
                part if side == "source" else mark_unknown(tokenizer, part) for part in self.parts
            ]
            return words_of_tokens(tokenizer, side, marked, ids, parts)
        found = [range(place, place + 1) for place in range(len(ids) - 1)]
        if side == "source" and split_code(tokenizer, line)[0]:
            is_text = map(bool, words_of_tokens(tokenizer, side, line, ids))
            found = [
                one if is_word else range(0) for one, is_word in zip(found, is_text, strict=True)
            ]
        return found


def find_units(
    tokenizer: Tokenizer,
    side: Side,
    line: str,
    *,
    rule: UnitRule,
    words: str | None = None,
    ids: Sequence[int] | None = None,
) -> Units:
    """Find the units of a line.

    Args:
        tokenizer: tells a source's language code, and cuts a line into tokens.
        side: the side of the line.
        line: the line, perhaps with a language code, which is no unit if units are words.
        rule: how to cut the line.
        words: the words of the line instead, separated by spaces.
        ids: its tokens, ending in ``</s>``, if they are known.

    Raises:
        DataError: the words are not those of the line.
    """
    if rule == "subwords":
        if ids is None:
            encode = tokenizer.encode_source if side == "source" else tokenizer.encode_target
            ids = encode(line if side == "source" else mark_unknown(tokenizer, line))
        read = tokenizer.source_tokens if side == "source" else tokenizer.target_tokens
        return Units(tuple(read(ids[:-1])), None)
    if side == "source":
        line = split_code(tokenizer, line)[1]
        words = None if words is None else split_code(tokenizer, words)[1]
    return units_of_line(line, rule=rule, words=words)


def units_of_line(line: str, *, rule: WordRule, words: str | None = None) -> Units:
    """Find the words of a line that has no language code; as `find_units`."""
    if words is None:
        cut = tuple(line_words(line, rule))
        return Units(cut, cut)
    given = tuple(words.split())
    return Units(given, tuple(find_parts_of_words(given, line)))


def count_linkable_words(
    tokenizer: Tokenizer,
    side: Side,
    line: str,
    *,
    rule: UnitRule = "auto",
    words: str | None = None,
) -> int:
    """Count the words of a line that links may name, as `find_units` finds them."""
    try:
        return len(find_units(tokenizer, side, line, rule=rule, words=words).names)
    except DataError:  # Reported with the line.
        return 0 if words is None else len(words.split())


@dataclass(frozen=True)
class PairWords:
    """The words of a pair: of each token but ``</s>``, and how many either side has."""

    source: list[range]
    target: list[range]
    sizes: tuple[int, int]


def words_of_pair(
    tokenizer: Tokenizer,
    lines: tuple[str, str],
    ids: tuple[Sequence[int], Sequence[int]],
    rule: UnitRule = "auto",
) -> PairWords:
    """Find the words of both lines, by a rule, and those of each token."""
    source_line, target_line = lines
    source_ids, target_ids = ids
    source = find_units(tokenizer, "source", source_line, rule=rule, ids=source_ids)
    target = find_units(tokenizer, "target", target_line, rule=rule, ids=target_ids)
    return words_of_units(tokenizer, (source, target), lines, ids)


def words_of_units(
    tokenizer: Tokenizer,
    units: tuple[Units, Units],
    lines: tuple[str, str],
    ids: tuple[Sequence[int], Sequence[int]],
) -> PairWords:
    """Find the words of each token of a pair whose lines are cut into words already."""
    source, target = units
    return PairWords(
        source.of_tokens(tokenizer, "source", lines[0], ids[0]),
        target.of_tokens(tokenizer, "target", lines[1], ids[1]),
        (len(source.names), len(target.names)),
    )
