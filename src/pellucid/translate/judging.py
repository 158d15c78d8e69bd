"""Signs that a translation loops or invents, and a second search for those that do."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from pellucid.config import DecodingConfig
from pellucid.decode.hypothesis import Hypothesis
from pellucid.text.learned import LearnedText
from pellucid.translate.preparing import Ready
from pellucid.translate.results import HESITANT, Flag, Translation

if TYPE_CHECKING:
    from pellucid.translate.attended_words import AttentionReader

# exp(-1.2) is the 30 % a token that docs/guides/translating.md names.
UNSURE = -1.2
"""The mean log-probability of a token below which a translation is a guess."""

# Of a former packaged model's translations of golden lists and the corpus this flags 0 of the 1,575
# right ones and 4 of the 16 wrong ones. Where most words are less sure, one of them says nothing.
HESITATING = math.log(0.15)
SURE = math.log(0.9)
"""The log-probability of a token below which a translation is a guess, if most others are sure."""

DOUBTFUL = -1.0
"""The mean log-probability of a token below which attention is looked at."""

_RETRIED: frozenset[Flag] = frozenset(("repeats", "long", "unfinished", "stuck", "empty"))
"""The flags of translations that another search may improve."""

MOST_REPLAYED = 16
"""Translations of one call whose attention is computed, the least certain ones."""

# Both are cheap to check, and spare most translations the computation of attention.
FEWER_WORDS = 2
"""Words less than in the source, from which links are read; or with a token below `HESITANT`."""
_PART = re.compile(r"[^\W_]+")
MOST_LINKED = 512
"""Translations of one call whose links are read, the shortest ones."""

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
    mean: float,
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
        mean: the mean log-probability of its tokens.
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
    logs = hypothesis.token_log_probabilities
    hesitates = min(logs, default=0.0) < HESITATING and median(logs) > SURE
    if not is_sample and (mean < UNSURE or hesitates):
        flags.append("unsure")
    return flags


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
        # A source that repeats itself may be translated with as many repetitions.
        if copies >= needed and copies > _most_copies(source):
            return True
    return _most_alike(target) >= max(_MOST_ALIKE, 1 + _most_alike(source))


def _copies(tokens: Sequence[int], period: int) -> int:
    """Count how often some sequence of so many tokens stands there in a row, at most."""
    # Equal tokens one period apart, in a row, make up all copies except the first.
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


def add_stuck(
    doubtful: Sequence[tuple[float, int, int]],
    lines: Sequence[Ready],
    found: Sequence[Sequence[tuple[Hypothesis, ...]]],
    written: list[Translation],
    reader: AttentionReader,
) -> None:
    """Look at the attention of the least certain translations, and flag those that are stuck.

    Args:
        doubtful: mean log-probability, line and part of each translation to look at.
        lines: the lines.
        found: the answers to their requests.
        written: their translations, some of which get a flag.
        reader: computes their attention.
    """
    from pellucid.translate.attended_words import is_stuck

    for _, index, place in heapq.nsmallest(MOST_REPLAYED, doubtful):
        line = lines[index]
        notes = written[index].notes
        ids = line.requests[place].source_ids, found[index][place][0].ids
        if "stuck" not in notes.flags and is_stuck(reader, line.parts[place], *ids):
            notes = replace(notes, flags=(*notes.flags, "stuck"))
            written[index] = replace(written[index], notes=notes)


def seems_short(source: str, text: str, hypothesis: Hypothesis) -> int | None:
    """Rate a translation that may leave something out: the smaller, the more it may.

    That is one with fewer words than its source, or with a token that the model was unsure of.

    Args:
        source: the line, or the part of one.
        text: its translation.
        hypothesis: the tokens of that.
    """
    more = len(_PART.findall(text)) - len(_PART.findall(source))
    is_sure = min(hypothesis.token_log_probabilities, default=0.0) > HESITANT
    return None if is_sure and more > -FEWER_WORDS else more


def add_partial(
    short: Sequence[tuple[int, int, int]],
    lines: Sequence[Ready],
    found: Sequence[Sequence[tuple[Hypothesis, ...]]],
    written: list[Translation],
    reader: AttentionReader,
    head: tuple[int, int],
    convention: Literal["predicts", "reads"],
) -> None:
    """Look for source words that the head of word links never attends to, and flag their lines.

    Args:
        short: rating, line and part of each translation to look at; see `seems_short`.
        lines: the lines.
        found: the answers to their requests.
        written: their translations, some of which get a flag.
        reader: computes their attention.
        head: the layer and the head that were taught word links.
        convention: the token that a row of that head counts for.
    """
    from pellucid.translate.attended_words import GivenPair, unlinked_words

    places = [(index, place) for _, index, place in heapq.nsmallest(MOST_LINKED, short)]
    pairs = []
    for i, k in places:
        best = found[i][k][0]
        source_ids = lines[i].requests[k].source_ids
        logs = best.token_log_probabilities
        pairs.append(GivenPair(lines[i].parts[k], source_ids, best.ids, logs))
    unlinked = unlinked_words(reader, head, convention, pairs)
    for (index, _), words in zip(places, unlinked, strict=True):
        if words:
            notes = written[index].notes
            # Several parts of one line may leave words out; the flag is listed once.
            flags = tuple(dict.fromkeys((*notes.flags, "partial")))
            named = tuple(dict.fromkeys((*notes.unlinked_words, *words)))
            notes = replace(notes, flags=flags, unlinked_words=named)
            written[index] = replace(written[index], notes=notes)


def retry_flagged(
    translations: list[Translation], search: Callable[[Sequence[int]], list[Translation]]
) -> list[Translation]:
    """Search again for flagged translations, and keep what has fewer flags.

    Args:
        translations: of some texts.
        search: translates the texts of these places again.
    """
    again = [
        index
        for index, one in enumerate(translations)
        if one.error is None and not _RETRIED.isdisjoint(one.notes.flags)
    ]
    found = list(translations)
    if not again:
        return found
    for index, other in zip(again, search(again), strict=True):
        if other.error is None and len(other.notes.flags) < len(found[index].notes.flags):
            found[index] = replace(other, notes=replace(other.notes, retried=True))
    return found


def against_repetition(config: DecodingConfig) -> dict[str, Any]:
    """Choose the options of a second search, for translations that loop or are empty.

    Args:
        config: the options of the first.
    """
    options: dict[str, Any] = {
        # Each option only becomes stricter: what the user asked for still holds.
        "no_repeat_ngram": min(3, config.no_repeat_ngram or 3),
        "repetition_penalty": max(1.2, config.repetition_penalty),
        "min_length_ratio": max(0.3, config.min_length_ratio),
    }
    # A wider beam, unless tokens are drawn: sampling and a beam exclude each other.
    if config.beam == 1 and not config.sample:
        options["beam"] = 4
    return options
