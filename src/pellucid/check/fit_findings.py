"""Findings about how a text fits a recipe and a model: lengths, tags, vocabulary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pellucid.check.findings import NAMES, Finding, FoundPlace, Severity, say
from pellucid.config import DataConfig, ModelConfig
from pellucid.config.data import Split
from pellucid.terminal.text import count_of, percent
from pellucid.text.outside import Outside
from pellucid.text.tokenizers.tokenizer import SPACE_SIGN, Tokenizer

MANY_DROPPED = 0.05
"""The share of pairs left out from which it is a warning."""


def describe_left_out(
    dropped: Counter[str], total: int, data: DataConfig, examples: Sequence[FoundPlace]
) -> Iterator[Finding]:
    """Describe the training pairs that are left out, if there are any.

    Args:
        dropped: their number, by reason.
        total: all training pairs.
        data: the limits.
        examples: some of these pairs.
    """
    count = dropped.total()
    if not count:
        return
    share = count / total
    reasons = ", ".join(f"{reason}: {times:,}" for reason, times in dropped.most_common())
    sentences = [
        say(
            "left out",
            pairs=_pairs(count, total, "training pair"),
            share=percent(share),
            reasons=reasons,
        )
    ]
    if "too long" in reasons:
        sentences.append(say("left out: too long", longest=data.max_pair_length))
    if "ratio" in reasons:
        sentences.append(say("left out: ratio", ratio=data.max_source_target_ratio))
    severity: Severity = "note"
    if count == total:
        severity = "error"
    elif share >= MANY_DROPPED:
        severity = "warning"
    words = " ".join(sentences)
    yield Finding(severity, "dropped", "train", count, share, words, tuple(examples))


def describe_too_long(count: int, total: int, model: ModelConfig) -> Iterator[Finding]:
    """Describe the validation pairs that are too long for a model, if there are any."""
    if not count:
        return
    is_all = count == total
    sentence = say(
        "too long",
        pairs=_pairs(count, total, "validation pair is", "validation pairs are"),
        source=model.max_source_length,
        target=model.max_target_length,
    )
    yield Finding(
        "error" if is_all else "warning",
        "too long for the model",
        "validation",
        count,
        count / total,
        f"{sentence} {say('all too long' if is_all else 'some too long')}",
    )


def describe_tags(
    tokenizer: Tokenizer, tags: Mapping[str, float], *, is_new: bool
) -> Iterator[Finding]:
    """Name the tags of the sources, and the setting that keeps those whole that are cut.

    Args:
        tokenizer: may cut them.
        tags: the tags, and their shares of the sources.
        is_new: True if the tokenizer is learned, and can learn to keep them.
    """
    if not tags:
        return
    shares = ", ".join(f"{tag} {percent(share)}" for tag, share in tags.items())
    sentences = [say("tags of sources", shares=shares)]
    cut = [tag for tag in tags if _is_cut(tag, tokenizer)]
    if cut and is_new:
        listed = json.dumps(cut, ensure_ascii=False)
        sentences.append(say("cut tags of a new model", tags=listed))
    elif cut:
        sentences.append(say("cut tags"))
    share = sum(tags.values())
    yield Finding("note", "tags of sources", "train", len(tags), share, " ".join(sentences))


def describe_unknown_tokens(outside: Outside, split: Split) -> Finding:
    """Describe the tokens outside the vocabulary of the model to start from."""
    sentences = [say("outside", tokens=outside.describe(), split=NAMES[split])]
    if outside.is_loud:
        sentences.append(say("much outside"))
    count = outside.source_outside + outside.target_outside
    return Finding(
        "warning" if outside.is_loud else "note",
        "outside the vocabulary",
        split,
        count,
        count / max(1, outside.source_tokens + outside.target_tokens),
        " ".join(sentences),
    )


def _pairs(count: int, total: int, one: str, many: str | None = None) -> str:
    counted = count_of(total, one, many)
    return f"all {counted}" if count == total > 1 else f"{count:,} of {counted}"


def _is_cut(tag: str, tokenizer: Tokenizer) -> bool:
    tokens = tokenizer.source_tokens(tokenizer.encode_source(tag))
    return tokenizer.normalized(tag) not in [token.strip(SPACE_SIGN) for token in tokens]
