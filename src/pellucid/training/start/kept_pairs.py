"""Find the training pairs that are kept before there is a vocabulary, which is learned from them.

How many tokens a line has is known once a vocabulary is learned, and the vocabulary should be
learned from the kept lines only. So the pairs are estimated by their words first; then vocabulary
and pairs follow from each other until the pairs stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from pathlib import Path

from pellucid.check.counting import count_words
from pellucid.config import DataConfig, Recipe
from pellucid.text.reading.sentence_pairs import SentencePair, read_lessons
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.training.start.preparation import Say, be_silent, in_groups, say_progress

SUBWORDS_PER_WORD = 1.3

Cut = Callable[[Sequence[str]], Sequence[Sequence[int]]]

MOST_ROUNDS = 3
"""Vocabularies to learn at most. Only lines at the very limits still change after the second."""


def reason_to_leave_out(
    data: DataConfig, source: str, target: str, source_ids: Sequence[int], target_ids: Sequence[int]
) -> str | None:
    """Tell why training cannot use a pair, if so: the first reason that holds.

    Args:
        data: sets the limits.
        source: the source text.
        target: the target text.
        source_ids: the source's tokens, ending in ``</s>``; only their number counts.
        target_ids: the same of the target.
    """
    if not source.strip() or len(source_ids) <= 1:
        return "empty source"
    if not target.strip() or len(target_ids) <= 1:
        return "empty target"
    if len(source_ids) > data.max_pair_length:
        return "source too long"
    if len(target_ids) > data.max_pair_length:
        return "target too long"
    shorter, longer = sorted((len(source_ids) - 1, len(target_ids) - 1))
    if longer > data.max_source_target_ratio * shorter:
        return "length ratio"
    return None


class KeptText:
    """The training text as far as it is kept.

    Vocabularies are remembered, so that training need not learn again what was learned to choose
    its settings.

    Args:
        base: the folder that the recipe's relative names start from.
        say: takes a line for people while a large text is read.
    """

    def __init__(self, base: Path, say: Say = be_silent) -> None:
        self._base = base
        self._say = say
        self._estimated: dict[str, bytes] = {}
        self._learned: dict[tuple[str, bytes], tuple[Tokenizer, bytes]] = {}

    def learn(
        self,
        recipe: Recipe,
        given: Tokenizer | None = None,
        choose: Callable[[bytes], Recipe] | None = None,
    ) -> Tokenizer:
        """Learn the vocabulary from the pairs that are kept under it.

        The result depends only on the recipe and the text.

        Args:
            recipe: names the text, its limits and the vocabulary.
            given: the tokenizer of a model to start from.
            choose: makes the recipe for pairs that are kept, a byte for each pair in the order of
                the files, 1 if it is kept. If none is, all are 1: training reports the reasons.

        Raises:
            PellucidError: the text cannot be read, or no such vocabulary be learned from it.
        """
        text = f"{recipe.data.model_dump_json()} {recipe.tokenizer.symbols}"
        if text not in self._estimated:
            self._estimated[text] = self._select(recipe, _estimate, _estimate, "Reading the text")
        kept = self._estimated[text]
        for _ in range(MOST_ROUNDS):
            recipe = recipe if choose is None else choose(kept)
            key = recipe.tokenizer.model_dump_json(), kept
            if key not in self._learned:
                tokenizer = self._learn(recipe, given, kept)
                selected = self._select(
                    recipe,
                    tokenizer.encode_sources,
                    tokenizer.encode_targets,
                    "Counting tokens with the new vocabulary",
                )
                self._learned[key] = tokenizer, selected
            tokenizer, selected = self._learned[key]
            if selected == kept:
                break
            kept = selected
        return tokenizer

    def _learn(self, recipe: Recipe, given: Tokenizer | None, kept: bytes) -> Tokenizer:
        def pairs() -> Iterator[SentencePair]:
            pairs = read_lessons(recipe.data, "train", self._base, symbols=recipe.tokenizer.symbols)
            return compress(say_progress(pairs, "Learning a vocabulary", self._say), kept)

        def sources() -> Iterator[str]:
            return (pair.source for pair in pairs())

        def targets() -> Iterator[str]:
            return (pair.target for pair in pairs())

        tokenizer = given or learn_tokenizer(recipe.tokenizer, sources, targets)
        if recipe.start.new_tokens:
            return tokenizer.extended(recipe.start.new_tokens, sources, targets)
        return tokenizer

    def _select(self, recipe: Recipe, cut_source: Cut, cut_target: Cut, doing: str) -> bytes:
        kept = bytearray()
        data = recipe.data
        lessons = read_lessons(data, "train", self._base, symbols=recipe.tokenizer.symbols)
        pairs = say_progress(lessons, doing, self._say)
        for group in in_groups(pairs):
            sources = cut_source([pair.source for pair in group])
            targets = cut_target([pair.target for pair in group])
            for pair, source_ids, target_ids in zip(group, sources, targets, strict=True):
                reason = reason_to_leave_out(data, pair.source, pair.target, source_ids, target_ids)
                kept.append(reason is None)
        return bytes(kept) if any(kept) else b"\1" * len(kept)


def _estimate(texts: Sequence[str]) -> list[range]:
    """Estimate the tokens of texts, with ``</s>``, by their words."""
    return [range(1 + round(SUBWORDS_PER_WORD * count_words(text))) for text in texts]
