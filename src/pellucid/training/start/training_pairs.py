"""The training pairs that are kept, as text and as ids, with the links between their tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pellucid.check.findings import FoundPlace
from pellucid.check.link_check import MOST_BROKEN, find_link_fault, linked_words, read_links
from pellucid.check.scan import MOST_EXAMPLES, corpora
from pellucid.config import Recipe, TrainingConfig
from pellucid.errors import ConfigurationError, DataError
from pellucid.evaluation.word_links import parse_links
from pellucid.terminal.text import count_of
from pellucid.text.outside import Outside, OutsideCounter
from pellucid.text.reading.bad_lines import BadLine, BadLines
from pellucid.text.reading.sentence_pairs import (
    SentencePair,
    find_aside,
    read_lessons,
    resolve_folder,
)
from pellucid.text.token_words import words_of_tokens
from pellucid.text.tokenizers.subwords import SentencePieceTokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.training.start.kept_pairs import reason_to_leave_out
from pellucid.training.start.preparation import in_groups

if TYPE_CHECKING:
    from pellucid.data.segmentations import Variant


@dataclass(frozen=True)
class CorpusCount:
    """One training corpus: its file, its pairs, those that were kept, and its weight."""

    name: str
    pairs: int
    kept: int
    weight: float = 1.0


class KeptPair(NamedTuple):
    """A training pair, as text and as ids; its word links, and their file and line."""

    source: str
    target: str
    ids: tuple[list[int], list[int]]
    links: str
    links_place: str


class KeptPairs:
    """The training pairs that are kept, read from the files in each iteration.

    Iterating counts the pairs left out, by reason, and each corpus at its end.
    """

    def __init__(
        self,
        recipe: Recipe,
        base: Path,
        tokenizer: Tokenizer,
        dropped: Counter[str],
        counts: list[CorpusCount],
    ) -> None:
        """Remember where the pairs are.

        Args:
            recipe: the recipe.
            base: the folder that its relative names start from.
            tokenizer: cuts the pairs.
            dropped: gets the number of pairs left out, by reason.
            counts: gets the counts of each corpus.
        """
        self._data = recipe.data
        self._symbols = recipe.tokenizer.symbols
        self._base = base
        self._tokenizer = tokenizer
        self._dropped = dropped
        self.first_dropped: list[FoundPlace] = []
        self.blank: Counter[str] = Counter()
        self._counts = counts
        self._outside = OutsideCounter(tokenizer)
        self.bad = BadLines()
        self._limit = recipe.data.max_pair_length

    def __iter__(self) -> Iterator[KeptPair]:
        """Read the files, and yield the pairs that are kept."""
        parts = corpora(self._data, "train")
        self.bad = BadLines()
        self._outside = OutsideCounter(self._tokenizer)
        for number, corpus in enumerate(parts):
            num_pairs = num_kept = 0
            bad = BadLines()
            pairs = read_lessons(corpus.data, "train", self._base, symbols=self._symbols, bad=bad)
            for group in in_groups(read_links(pairs, self._alignment(number), bad)):
                num_pairs += len(group)
                cut = self._cut([pair for pair, *_ in group])
                for (pair, links, place), ids in zip(group, cut, strict=True):
                    if ids is not None:
                        num_kept += 1
                        yield KeptPair(pair.source, pair.target, ids, links, place)
                    elif len(self.first_dropped) < MOST_EXAMPLES and _has_both_sides(pair):
                        line = pair.where.rpartition(":")[2]
                        self.first_dropped.append(
                            FoundPlace(
                                f"{corpus.source}:{line}",
                                f"{corpus.target}:{line}",
                                pair.source,
                                pair.target,
                            )
                        )
            self.bad.extend(bad)
            weight = self._data.train_weights[number] if self._data.train_weights else 1.0
            self._counts.append(CorpusCount(corpus.source, num_pairs, num_kept, weight))
        if self.bad.count:
            self._dropped["unreadable"] = self.bad.count
        if num_same_target := find_aside(self._data, self._base).num_same_target:
            self._dropped["target set aside"] = num_same_target

    @property
    def outside(self) -> Outside:
        """Tokens outside the vocabulary in the pairs of the last iteration, also those left out."""
        return self._outside.total()

    def segmentations(
        self, training: TrainingConfig
    ) -> Iterator[tuple[list[Variant], list[Variant]]]:
        """Yield several segmentations of both sides of every pair, none too long.

        Raises:
            ConfigurationError: the tokenizer has no subwords.
        """
        if not isinstance(self._tokenizer, SentencePieceTokenizer):
            what = "of words" if self._tokenizer.config.kind == "words" else "Marian's"
            raise ConfigurationError(
                "training.subword_samples needs a tokenizer that SentencePiece learned, but this "
                f"one is {what}. Leave training.subword_samples out."
            )
        cut_source, cut_target = (
            self._tokenizer.segmenter(
                side,
                training.subword_samples or 0,
                dropout=training.subword_dropout,
                seed=training.seed,
            )
            for side in ("source", "target")
        )
        for pair in self:
            best_source, best_target = pair.ids
            yield (
                self._fitting(cut_source(pair.source), best_source),
                self._fitting(cut_target(pair.target), best_target),
            )

    def _fitting(self, ways: list[tuple[list[int], float]], best: list[int]) -> list[Variant]:
        return [way for way in ways if len(way[0]) <= self._limit] or [(best, 0.0)]

    def links(self, pair: KeptPair, broken: BrokenLinks) -> tuple[list[int], list[int]]:
        """Find the positions of a pair's linked tokens."""
        source, target = linked_words(self._tokenizer, pair.source, pair.target)
        links = broken.check(pair.links, pair.links_place, (len(source), len(target)))
        return link_tokens(
            self._tokenizer, pair.source, pair.target, pair.ids, links, pair.links_place
        )

    def _alignment(self, corpus: int) -> Path | None:
        if not self._data.train_alignments:
            return None
        folder = resolve_folder(self._data.folder, self._base)
        return folder / self._data.train_alignments[corpus]

    def _cut(self, pairs: list[SentencePair]) -> Iterator[tuple[list[int], list[int]] | None]:
        sources = self._tokenizer.encode_sources([pair.source for pair in pairs])
        targets = self._tokenizer.encode_targets([pair.target for pair in pairs])
        for pair, source_ids, target_ids in zip(pairs, sources, targets, strict=True):
            self._outside.add(source_ids, target_ids)
            reason = reason_to_leave_out(
                self._data, pair.source, pair.target, source_ids, target_ids
            )
            if reason is None:
                yield source_ids, target_ids
            else:
                self._dropped[reason] += 1
                self.blank[reason] += not _has_both_sides(pair)
                yield None


def _has_both_sides(pair: SentencePair) -> bool:
    """Tell whether neither side is blank: the data check has examples of those."""
    return bool(pair.source.strip() and pair.target.strip())


class BrokenLinks:
    """Lines of word links that cannot be used; their pairs are trained without links."""

    def __init__(self) -> None:
        self.lines = BadLines()
        self._num_lines = 0

    def check(self, links: str, place: str, sizes: tuple[int, int]) -> str:
        """Return a line of links, or an empty one in place of one that cannot be used.

        Args:
            links: in the Pharaoh format.
            place: the file and the line; empty for a corpus without links.
            sizes: the number of words of the source and the target.
        """
        if not place:
            return links
        self._num_lines += 1
        fault = find_link_fault(links, place, sizes)
        if fault is None:
            return links
        self.lines.add(BadLine(place, int(place.rpartition(":")[2]), fault))
        return ""

    def describe(self) -> str | None:
        """Say which lines were left out, or return None.

        Raises:
            DataError: so many that the file cannot belong to this text.
        """
        count = self.lines.count
        if not count:
            return None
        if count > MOST_BROKEN * self._num_lines:
            first = self.lines.first[0].fault.sentence
            raise DataError(
                f"Word links must belong to this text, but {count:,} of {self._num_lines:,} lines "
                f"cannot be used: {self.lines.listed()}. {first} See pellucid check."
            )
        lines = count_of(count, "line")
        return (
            f"Word links: {lines} cannot be used, and the pair is trained without links: "
            f"{self.lines.listed()}. See pellucid check."
        )


def link_tokens(
    tokenizer: Tokenizer,
    source: str,
    target: str,
    ids: tuple[Sequence[int], Sequence[int]],
    links: str,
    place: str,
) -> tuple[list[int], list[int]]:
    """Turn the links of a pair's words into links of its subwords.

    Args:
        tokenizer: the tokenizer that cut the pair.
        source: the line.
        target: its translation.
        ids: of both, each ending in ``</s>``.
        links: a line in the Pharaoh format; only sure links (``i-j``) are learned.
        place: the file and the line, for messages.

    Returns:
        The source and the target position of each link; the last one joins both ``</s>``.

    Raises:
        DataError: something is not a link, or leads to a word that does not exist.
    """
    source_words, target_words = linked_words(tokenizer, source, target)
    sure = parse_links(links, place, (len(source_words), len(target_words))).sure
    joined: set[tuple[int, int]] = set()
    if sure:
        sources = _tokens_of_words(tokenizer, "source", source, ids[0], source_words)
        targets = _tokens_of_words(tokenizer, "target", target, ids[1], target_words)
        for i, j in sure:
            joined |= {(s, t) for s in sources[i] for t in targets[j]}
    pairs = [*sorted(joined), (len(ids[0]) - 1, len(ids[1]) - 1)]
    return [s for s, _ in pairs], [t for _, t in pairs]


def _tokens_of_words(
    tokenizer: Tokenizer,
    side: Literal["source", "target"],
    text: str,
    ids: Sequence[int],
    words: Sequence[str],
) -> list[list[int]]:
    """List the tokens of each word; a token may belong to several."""
    owners = words_of_tokens(tokenizer, side, text, ids, words)
    return [
        [token for token, of_token in enumerate(owners) if word in of_token]
        for word in range(len(words))
    ]
