"""Counts of how a text fits a recipe and a model, for the data check and before training."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pellucid.check.findings import Finding
from pellucid.check.fit_findings import (
    describe_left_out,
    describe_tags,
    describe_too_long,
    describe_unknown_tokens,
)
from pellucid.config import ModelConfig, Recipe
from pellucid.config.data import Split
from pellucid.errors import ConfigurationError, DataError, InputFileNotFoundError
from pellucid.text.outside import count_outside
from pellucid.text.reading.bad_lines import BadLines
from pellucid.text.reading.sentence_pairs import SentencePair, read_lessons
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.training.start.kept_pairs import KeptText
from pellucid.training.start.training_pairs import CorpusCount, KeptPairs


class LongPairs(NamedTuple):
    """The pairs of a text that are too long for a model.

    Attributes:
        number: how many.
        total: that of all pairs without an empty side.
        shortest: tokens of the longer side, of the pair where these are the fewest.
    """

    number: int
    total: int
    shortest: int


def check_fit(
    recipe: Recipe,
    base: Path,
    text: KeptText,
    tags: Mapping[str, float],
    given: Tokenizer | None,
) -> list[Finding]:
    """Find what training will leave out or cannot use: long pairs, text outside the vocabulary.

    Args:
        recipe: the recipe, with what is chosen for it; it leaves bad lines out.
        base: the recipe's folder.
        text: the training text, which the vocabulary is learned from.
        tags: the tags of the sources, and their shares.
        given: the tokenizer of the model to start from.
    """
    findings: list[Finding] = []
    splits: tuple[Split, ...] = ("train", "validation")
    symbols = recipe.tokenizer.symbols
    tokenizer = given
    # What cannot be read at all is a finding of the rest of the check.
    with suppress(DataError, InputFileNotFoundError):
        try:
            tokenizer = text.learn(recipe, given)
        except ConfigurationError as error:
            findings.append(Finding("error", "vocabulary", "train", 1, 0.0, str(error)))
        validation = read_lessons(recipe.data, "validation", base, symbols=symbols, bad=BadLines())
        long = count_long_pairs(validation, recipe.model, tokenizer)
        findings += describe_too_long(long.number, long.total, recipe.model)
        if tokenizer is not None:
            findings += _left_out(recipe, base, tokenizer)
            findings += describe_tags(tokenizer, tags, is_new=given is None)
        if given is not None:
            for split in splits:
                pairs = read_lessons(recipe.data, split, base, symbols=symbols, bad=BadLines())
                outside = count_outside(given, ((pair.source, pair.target) for pair in pairs))
                findings.append(describe_unknown_tokens(outside, split))
    return findings


def _left_out(recipe: Recipe, base: Path, tokenizer: Tokenizer) -> list[Finding]:
    dropped: Counter[str] = Counter()
    counts: list[CorpusCount] = []
    kept = KeptPairs(recipe, base, tokenizer, dropped, counts)
    deque(kept, maxlen=0)  # Reading them counts them.
    # The rest of the check reports these.
    for reason in ("unreadable", "target set aside"):
        del dropped[reason]
    dropped -= kept.blank
    total = sum(corpus.pairs for corpus in counts)
    return list(describe_left_out(dropped, total, recipe.data, kept.first_dropped))


def count_long_pairs(
    pairs: Iterable[SentencePair], model: ModelConfig, tokenizer: Tokenizer | None
) -> LongPairs:
    """Count the pairs that are too long for a model to read or write.

    Args:
        pairs: those with an empty side do not count.
        model: its limits count.
        tokenizer: cuts the pairs; None counts words.
    """
    longest: list[int] = []
    count = 0
    for pair in pairs:
        if not pair.source.strip() or not pair.target.strip():
            continue
        if tokenizer is None:
            source = len(pair.source.split()) + 1
            target = len(pair.target.split()) + 1
        else:
            source = len(tokenizer.encode_source(pair.source))
            target = len(tokenizer.encode_target(pair.target))
        longest.append(max(source, target))
        count += source > model.max_source_length or target > model.max_target_length
    return LongPairs(count, len(longest), min(longest, default=0))


def check_lengths(
    recipe: Recipe, tokenizer: Tokenizer, validation: Iterable[SentencePair]
) -> str | None:
    """Say how many validation pairs are too long for the model to read or write.

    Args:
        recipe: its model's limits count.
        tokenizer: cuts the pairs.
        validation: the pairs.

    Raises:
        DataError: all of them are, so that no model could be chosen.
    """
    model = recipe.model
    long = count_long_pairs(validation, model, tokenizer)
    if not long.number:
        return None
    limits = (
        f"model.max_source_length = {model.max_source_length} or model.max_target_length = "
        f"{model.max_target_length} tokens"
    )
    if long.number < long.total:
        return (
            f"{long.number:,} of {long.total:,} validation pairs are longer than {limits}: "
            "they do not count for the loss, and a source that is too long counts as translated "
            "by nothing."
        )
    which = "its only one is" if long.total == 1 else f"all {long.total:,} are"
    raise DataError(
        f"The validation text must have pairs that the model can read, but {which} longer than "
        f"{limits} (the shortest has {long.shortest:,}). Split them into sentences, or raise these "
        "limits."
    )
