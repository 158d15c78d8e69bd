"""Signs that a translation loops or invents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from pellucid.decode.hypothesis import Hypothesis
from pellucid.text.learned import LearnedText
from pellucid.translate.results import Flag

UNSURE = -1.2
"""The mean log-probability of a token below which a translation is a guess."""

_LONGEST_PERIOD = 24
_MOST_ALIKE = 3
_RUN = 4
_WORD = re.compile(r"[^\W\d_]{2,}")


def judge(
    source: str,
    source_ids: Sequence[int],
    text: str,
    hypothesis: Hypothesis,
    learned: LearnedText | None,
    *,
    has_own_length: bool,
    is_sample: bool,
) -> list[Flag]:
    """Find the reasons to read a translation again.

    Args:
        source: the line, or the part of one.
        source_ids: its tokens, ``</s>`` included.
        text: the translation.
        hypothesis: its tokens and their log-probabilities.
        learned: the text that the model learned from, if known.
        has_own_length: True if the caller limited the length, so that its end is expected.
        is_sample: True if the tokens were drawn, and may be improbable.
    """
    flags: list[Flag] = []
    if not text.strip():
        return ["empty"]
    if repeats(source_ids, hypothesis.ids):
        flags.append("repeats")
    longest = None if learned is None else learned.longest_target(len(source_ids))
    # A fifth and three tokens more than ever seen: another spelling does not make the difference.
    if longest is not None and len(hypothesis.ids) > 1.2 * longest + 3:
        flags.append("long")
    if not (hypothesis.is_finished or has_own_length):
        flags.append("unfinished")
    if not any(map(str.isalpha, source)) and len(_WORD.findall(text)) >= 3:
        flags.append("invented")
    if not is_sample and mean_log_probability(hypothesis) < UNSURE:
        flags.append("unsure")
    return flags


def mean_log_probability(hypothesis: Hypothesis) -> float:
    """Compute the mean natural log-probability of a hypothesis's tokens."""
    return hypothesis.log_probability / max(1, len(hypothesis.ids))


def repeats(source: Sequence[int], target: Sequence[int]) -> bool:
    """Tell whether a target says something again and again that its source does not.

    That is a token four times in a row, two to four tokens three times in a row, a longer sequence
    twice in a row, or any four tokens three times; each more often than in the source.

    Args:
        source: its tokens.
        target: its tokens.
    """
    pairs = list(pairwise(target))
    if len(set(pairs)) == len(pairs):  # nearly always
        return False
    for period in range(1, min(_LONGEST_PERIOD, len(target) // 2) + 1):
        needed = 4 if period == 1 else 3 if period < 5 else 2
        copies = _copies(target, period)
        if copies >= needed and copies > _most_copies(source):
            return True
    return _most_alike(target) >= max(_MOST_ALIKE, 1 + _most_alike(source))


def _copies(tokens: Sequence[int], period: int) -> int:
    """Count how often some sequence of so many tokens stands there in a row, at most."""
    longest = run = 0
    for token, earlier in zip(tokens[period:], tokens, strict=False):
        run = run + 1 if token == earlier else 0
        longest = max(longest, run)
    return 1 + longest // period


def _most_copies(tokens: Sequence[int]) -> int:
    return max(
        (
            _copies(tokens, period)
            for period in range(1, min(_LONGEST_PERIOD, len(tokens) // 2) + 1)
        ),
        default=1,
    )


def _most_alike(tokens: Sequence[int]) -> int:
    """Count the most frequent sequence of four tokens."""
    runs = Counter(tuple(tokens[i : i + _RUN]) for i in range(len(tokens) - _RUN + 1))
    return max(runs.values(), default=0)
