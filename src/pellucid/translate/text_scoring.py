"""Log-probabilities of given translations: texts in, numbers out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pellucid.decode.constraints.build_request import RequestBuilder
from pellucid.decode.decoder import Decoder
from pellucid.decode.hypothesis import OVERFLOW
from pellucid.errors import DataError
from pellucid.text.language_tokens import code_problem
from pellucid.text.reading.lines import not_a_line
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.results import Scored

IdPairs = dict[int, tuple[list[int], list[int]]]


def check_same_number(sources: Sequence[str], targets: Sequence[str]) -> None:
    """Refuse pairs with a side missing.

    Raises:
        DataError: sources and targets differ in number.
    """
    if len(sources) != len(targets):
        raise DataError(
            f"There must be one target for each source, but there are {len(sources)} sources "
            f"and {len(targets)} targets."
        )


def score_pairs(
    decoder: Decoder,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    builder: RequestBuilder,
    batch_tokens: int,
) -> list[Scored]:
    """Compute log-probabilities of given translations, in float32.

    Args:
        decoder: of one model, or of several whose softmaxes are averaged.
        tokenizer: their tokenizer.
        sources: the lines to translate.
        targets: a translation of each; an empty one is only ``</s>``.
        builder: knows how long a source and a target may be.
        batch_tokens: maximum number of positions of one side to compute at once.

    Returns:
        One result for each pair, in order.

    Raises:
        DataError: sources and targets differ in number.
    """
    check_same_number(sources, targets)
    limit = builder.max_target_length
    scored: list[Scored] = []
    pairs: IdPairs = {}
    faults = [
        not_a_line(one) or not_a_line(other) for one, other in zip(sources, targets, strict=True)
    ]
    pairs_read = [
        # A damaged line keeps its place, so that all lists stay parallel; it is not scored.
        ("", "") if fault else tokenizer.masked_pair(source, target)
        for source, target, fault in zip(sources, targets, faults, strict=True)
    ]
    encoded = (
        tokenizer.encode_sources([source for source, _ in pairs_read]),
        tokenizer.encode_targets([target for _, target in pairs_read]),
    )
    for index, (source_ids, written_ids) in enumerate(zip(*encoded, strict=True)):
        target_ids = [*tokenizer.given_ids(pairs_read[index][0]), *written_ids]
        no_code = code_problem(tokenizer, pairs_read[index][0])
        problem = (
            faults[index] or no_code or builder.too_long(source_ids) or _too_long(target_ids, limit)
        )
        scored.append(Scored(sources[index], targets[index], error=problem))
        if problem is None:
            pairs[index] = (source_ids, target_ids)
            if decoder.change is not None:
                decoder.change.know([(source_ids, pairs_read[index][0])])
    for group in _group(pairs, batch_tokens):
        _score_group(decoder, tokenizer, group, pairs, scored)
    return scored


def _score_group(
    decoder: Decoder,
    tokenizer: Tokenizer,
    group: list[int],
    pairs: IdPairs,
    scored: list[Scored],
) -> None:
    """Score the pairs of one batch and write the results into ``scored``."""
    change = decoder.change
    sources, targets = zip(*(pairs[index] for index in group), strict=True)
    found = decoder.score(sources, targets)
    for index, source_ids, logs in zip(group, sources, found, strict=True):
        ids = pairs[index][1]
        # Not a number has no order and no form in JSON: an error of this pair only.
        if any(map(math.isnan, logs)):
            scored[index] = replace(scored[index], error=OVERFLOW)
            continue
        given = len(tokenizer.leading_ids(ids))
        # What is given is certain, as in a search.
        logs = (*[0.0] * given, *logs[given:])
        scored[index] = replace(
            scored[index],
            tokens=tuple(tokenizer.target_tokens(ids)),
            ids=tuple(ids),
            token_log_probabilities=logs,
            log_probability=sum(logs),
            missed_changes=() if change is None else change.missed_in_all([source_ids]),
        )


def _too_long(ids: Sequence[int], limit: int) -> str | None:
    if len(ids) <= limit:
        return None
    return (
        f"A target line must have at most {limit} tokens for this model, but has {len(ids)}. "
        "Split it into sentences."
    )


def _group(pairs: IdPairs, batch_tokens: int) -> list[list[int]]:
    """Group pairs by their longer side, longest first, so that rows times length fit the budget."""
    lengths = {index: max(map(len, pair)) for index, pair in pairs.items()}
    groups: list[list[int]] = []
    longest = 0
    # Longest first: then the first pair of a group decides its length.
    for index in sorted(lengths, key=lambda index: (-lengths[index], index)):
        if not groups or (len(groups[-1]) + 1) * longest > batch_tokens:
            groups.append([])
            longest = lengths[index]
        groups[-1].append(index)
    return groups
