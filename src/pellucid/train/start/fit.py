"""Whether a model fits a text: its lengths and its vocabulary, in the check and before training."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pellucid.check.findings import NAMES, Finding
from pellucid.config import Recipe
from pellucid.config.data import Split
from pellucid.errors import ConfigurationError, DataError, InputFileNotFoundError
from pellucid.terminal.text import percent
from pellucid.text.outside import Outside, count_outside
from pellucid.text.reading.sentence_pairs import BadLines, SentencePair, read_lessons
from pellucid.text.tokenizers.tokenizer import SPACE_SIGN, Tokenizer
from pellucid.train.start.kept_pairs import KeptText, longest_kept
from pellucid.train.start.training_pairs import CorpusCount, KeptPairs

MANY_DROPPED = 0.05
"""The share of pairs left out from which it is a warning."""


def check_fit(
    recipe: Recipe, base: Path, text: KeptText, tags: Mapping[str, float], given: Tokenizer | None
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
    tokenizer = given
    # What cannot be read at all is a finding of the rest of the check.
    with suppress(DataError, InputFileNotFoundError):
        try:
            tokenizer = text.learn(recipe, given)
        except ConfigurationError as error:
            findings.append(Finding("error", "vocabulary", "train", 1, 0.0, str(error)))
        findings += _too_long(recipe, base, tokenizer)
        if tokenizer is not None:
            findings += [
                *_left_out(recipe, base, tokenizer),
                *_cut_tags(tokenizer, tags, is_new=given is None),
            ]
        if given is not None:
            for split in splits:
                pairs = read_lessons(recipe.data, split, base, bad=BadLines())
                outside = count_outside(given, ((pair.source, pair.target) for pair in pairs))
                findings.append(_describe_outside(outside, split))
    return findings


def _left_out(recipe: Recipe, base: Path, tokenizer: Tokenizer) -> Iterator[Finding]:
    """Count the pairs that training will leave out, by reason."""
    dropped: Counter[str] = Counter()
    counts: list[CorpusCount] = []
    kept = KeptPairs(recipe, base, tokenizer, dropped, counts)
    deque(kept, maxlen=0)
    del dropped["unreadable"]
    total, count = sum(corpus.pairs for corpus in counts), dropped.total()
    if not count:
        return
    number = f"all {total:,}" if count == total else f"{count:,} of {total:,}"
    reasons = ", ".join(f"{reason}: {times:,}" for reason, times in dropped.most_common())
    advice = ""
    if "too long" in reasons:
        longest = f"{longest_kept(recipe.data):,} tokens"
        advice = f" data.max_length is {longest}: split these pairs, or raise it."
    if "ratio" in reasons:
        advice += f" data.max_length_ratio is {recipe.data.max_length_ratio:g}."
    yield Finding(
        "error" if count == total else "warning" if count >= MANY_DROPPED * total else "note",
        "dropped",
        "train",
        count,
        count / total,
        f"{number} training pairs ({percent(count / total)}) will be left out ({reasons}).{advice}",
        tuple(kept.first_dropped),
    )


def _cut_tags(
    tokenizer: Tokenizer, tags: Mapping[str, float], *, is_new: bool
) -> Iterator[Finding]:
    """Name the tags of the sources, and the setting that keeps those whole that are cut."""
    if not tags:
        return
    cut = []
    for tag in tags:
        tokens = tokenizer.source_tokens(tokenizer.encode_source(tag))
        if tokenizer.normalized(tag) not in [token.strip(SPACE_SIGN) for token in tokens]:
            cut.append(tag)
    advice = " The tokenizer cuts them" if cut else ""
    if cut and is_new:
        advice += f": set tokenizer.symbols = {json.dumps(cut, ensure_ascii=False)}"
    shares = ", ".join(f"{tag} {percent(share)}" for tag, share in tags.items())
    yield Finding(
        "note",
        "tags of sources",
        "train",
        len(tags),
        sum(tags.values()),
        f"tags: {shares} of the training sources.{advice}{'.' if cut else ''}",
    )


def _too_long(recipe: Recipe, base: Path, tokenizer: Tokenizer | None) -> Iterator[Finding]:
    total = count = 0
    model = recipe.model
    for pair in read_lessons(recipe.data, "validation", base, bad=BadLines()):
        if pair.source.strip() and pair.target.strip():
            source, target = _lengths(pair, tokenizer)
            total += 1
            count += source > model.max_source_length or target > model.max_target_length
    if not count:
        return
    is_all = count == total
    which = f"all {total:,}" if is_all else f"{count:,} of {total:,}"
    advice = (
        "No model could be chosen: split them into sentences, or raise these limits."
        if is_all
        else "They do not count for the loss."
    )
    yield Finding(
        "error" if is_all else "warning",
        "too long for the model",
        "validation",
        count,
        count / total,
        f"{which} validation pairs are longer than the model can read or write "
        f"(model.max_source_length = {model.max_source_length:,}, model.max_target_length = "
        f"{model.max_target_length:,} tokens). {advice}",
    )


def _lengths(pair: SentencePair, tokenizer: Tokenizer | None) -> tuple[int, int]:
    if tokenizer is None:
        return len(pair.source.split()) + 1, len(pair.target.split()) + 1
    return len(tokenizer.encode_source(pair.source)), len(tokenizer.encode_target(pair.target))


def _describe_outside(outside: Outside, split: Split) -> Finding:
    advice = ""
    if outside.is_loud:
        advice = (
            " Such text is hardly translated right: give the model tokens for it with "
            "start.new_tokens, or train a new model."
        )
    count = outside.source_outside + outside.target_outside
    return Finding(
        "warning" if outside.is_loud else "note",
        "outside the vocabulary",
        split,
        count,
        count / max(1, outside.source_tokens + outside.target_tokens),
        f"{outside.describe()} of the {NAMES[split]} text are unknown to the model to start from, "
        f"or single bytes.{advice}",
    )


def check_lengths(
    recipe: Recipe, tokenizer: Tokenizer, validation: Sequence[SentencePair]
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
    lengths = [_lengths(pair, tokenizer) for pair in validation]
    num_too_long = sum(
        source > model.max_source_length or target > model.max_target_length
        for source, target in lengths
    )
    if not num_too_long:
        return None
    limits = (
        f"model.max_source_length = {model.max_source_length} or model.max_target_length = "
        f"{model.max_target_length} tokens"
    )
    if num_too_long < len(validation):
        return (
            f"{num_too_long:,} of {len(validation):,} validation pairs are longer than {limits}: "
            "they do not count for the loss, and a source that is too long counts as translated "
            "by nothing."
        )
    shortest = min(max(pair) for pair in lengths)
    which = "its only one is" if len(validation) == 1 else f"all {len(validation):,} are"
    raise DataError(
        f"The validation text must have pairs that the model can read, but {which} longer than "
        f"{limits} (the shortest has {shortest:,}). Split them into sentences, or raise these "
        "limits."
    )
