"""Answering many requests: which are searched side by side, and when to look twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.request import Request
from pellucid.decode.search.loop import Found, Search, SpecialIds, Stepper

__all__ = ["DOUBT", "decode_requests", "decode_strictly"]

DOUBT = 1e-3
"""A lead, in natural logs, that rounding in float32 could overturn, with a factor to spare.

The same sentence in other company differs by some 1e-6 a token (docs/guides/translating.md).
"""

GROWTH = 1.5
"""How much longer than the shortest the longest source of one group may be."""

SHORT = 8
"""Sources up to this length are one group."""


def decode_requests(
    stepper: Stepper,
    requests: Sequence[Request],
    config: DecodingConfig,
    special: SpecialIds,
    *,
    batch_tokens: int,
) -> list[Found]:
    """Answer requests, sources of about one length side by side.

    Args:
        stepper: the model, or an ensemble.
        requests: in any order.
        config: how to search.
        special: the ids with a meaning.
        batch_tokens: how many hypotheses times the longest source are computed at once, about;
            at least one sentence is.

    Returns:
        One answer a request, in their order.
    """
    answers: dict[int, Found] = {}
    for group in _group_by_length(requests):
        longest = len(requests[group[0]].source_ids)
        sentences = max(1, batch_tokens // (longest * config.beam))
        search = Search(stepper, [requests[i] for i in group], config, special, sentences=sentences)
        answers.update((group[place], found) for place, found in search.answers())
    return [answers[index] for index in range(len(requests))]


def decode_strictly(
    stepper: Stepper,
    make_exact: Callable[[], Stepper],
    requests: Sequence[Request],
    config: DecodingConfig,
    special: SpecialIds,
    *,
    batch_tokens: int,
) -> list[Found]:
    """Answer requests so that no answer depends on what else is asked for, or how much at once.

    Company changes how sums are rounded, and that alone. So an answer all of whose decisions had
    a lead above `DOUBT` is the same in any company; every other sentence is searched again
    alone, in float64.

    Args:
        stepper: the model in float32.
        make_exact: gives it in float64, when needed.
        requests: in any order.
        config: how to search; not by sampling.
        special: the ids with a meaning.
        batch_tokens: as in `decode_requests`.
    """
    found = decode_requests(stepper, requests, config, special, batch_tokens=batch_tokens)
    doubtful = [index for index, answer in enumerate(found) if answer.margin < DOUBT]
    exact = make_exact() if doubtful else None
    for index in doubtful:
        assert exact is not None
        found[index] = next(
            answer
            for _, answer in Search(
                exact, [requests[index]], config, special, sentences=1
            ).answers()
        )
    return found


def _group_by_length(requests: Sequence[Request]) -> Iterator[list[int]]:
    """Places of requests whose sources differ little in length, the longest first."""
    lengths = [len(request.source_ids) for request in requests]
    group: list[int] = []
    for index in sorted(range(len(requests)), key=lambda index: (-lengths[index], index)):
        if group and lengths[index] * GROWTH < lengths[group[0]] and lengths[group[0]] > SHORT:
            yield group
            group = []
        group.append(index)
    if group:
        yield group
