"""The rules over the next token: what a translation may not hold, and how it begins."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar, final

import torch
from torch import Tensor

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.forbidden import TextRule
from pellucid.decode.constraints.request import Request, check_requests
from pellucid.decode.constraints.token_history import (
    Rule,
    TokenHistory,
    last_tokens,
    lower_values,
    pad_rows,
)

Device = torch.device | str
Group = TypeVar("Group", bound=Hashable)
Sequences = tuple[tuple[int, ...], ...]


def make_rules(
    requests: Sequence[Request],
    config: DecodingConfig,
    *,
    eos_id: int,
    vocabulary_size: int,
    never: Sequence[int],
    device: Device,
) -> list[Rule]:
    """Make the rules that some requests need.

    A forced prefix beats all other rules, which count its tokens as history. The minimum length
    is that of the requests; of the configuration only ``no_repeat_ngram`` and
    ``repetition_penalty`` count here. The rules may leave a row without any token.

    Args:
        requests: what `TokenHistory.request_A` points into.
        config: the options of the search.
        eos_id: the end token.
        vocabulary_size: the number of tokens.
        never: tokens that no translation holds, such as padding.
        device: the device of the values.

    Returns:
        The rules, to be called one after another at each step.

    Raises:
        InputError: a prefix holds ``</s>``, a forbidden sequence is empty, or an id is not in the
            vocabulary.
    """
    check_requests(requests, eos_id, vocabulary_size)
    rules: list[Rule] = []
    if config.repetition_penalty > 1:
        rules.append(_RepetitionPenalty(config.repetition_penalty))
    if never:
        rules.append(_Never(never, device))
    if any(request.min_length > 1 for request in requests):
        rules.append(_MinimumLength([request.min_length for request in requests], eos_id, device))
    if config.no_repeat_ngram:
        rules.append(_NoRepeatedNgram(config.no_repeat_ngram))
    if any(request.forbidden for request in requests):
        rules.append(_ForbiddenSequences([request.forbidden for request in requests], device))
    if any(request.forbidden_texts for request in requests):
        texts, set_of_request = _distinct(request.forbidden_texts for request in requests)
        max_lengths = [request.max_length for request in requests]
        rules.append(TextRule(texts, set_of_request, max_lengths, device))
    # It calls the others itself, since it must know values from before they lower them.
    if any(request.prefix_ids for request in requests):
        return [_ForcedPrefix([request.prefix_ids for request in requests], rules, device)]
    return rules


def leave_only_given(logits_AV: Tensor, requests: Sequence[Request], history: TokenHistory) -> None:
    """Give the tokens that belong to the question (``num_given``) the probability 1, in place."""
    places = zip(history.length_A.tolist(), history.request_A.tolist(), strict=True)
    for row, (length, request) in enumerate(places):
        if length < requests[request].num_given:
            logits_AV[row] = -torch.inf
            logits_AV[row, requests[request].prefix_ids[length]] = 0.0


def _distinct(groups: Iterable[Group]) -> tuple[list[Group], list[int]]:
    """List the different ones, and the place of each in that list.

    Most requests forbid the same, so tables with one entry for each set stay small.
    """
    places: dict[Group, int] = {}
    place_of = [places.setdefault(group, len(places)) for group in groups]
    return list(places), place_of


@final
class _Never:
    """Forbid some tokens."""

    def __init__(self, never: Sequence[int], device: Device) -> None:
        self._ids = torch.tensor(list(never), device=device)

    def __call__(self, values_AV: Tensor, history: TokenHistory) -> None:
        values_AV.index_fill_(1, self._ids, -torch.inf)


@final
class _MinimumLength:
    """Forbid ``</s>`` before a sentence has its minimum length."""

    def __init__(self, min_lengths: Sequence[int], eos_id: int, device: Device) -> None:
        self._min_length_R = torch.tensor(min_lengths, device=device)
        self._eos_id = eos_id

    def __call__(self, values_AV: Tensor, history: TokenHistory) -> None:
        # `</s>` counts as a token of the length that it would end.
        is_short_A = history.length_A + 1 < self._min_length_R[history.request_A]
        values_AV[:, self._eos_id].masked_fill_(is_short_A, -torch.inf)


@final
class _NoRepeatedNgram:
    """Forbid to write the same n tokens twice in the same order."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __call__(self, values_AV: Tensor, history: TokenHistory) -> None:
        tokens_AT = history.tokens_AT
        num_before = self._size - 1
        num_places = tokens_AT.shape[1] - num_before
        if num_places <= 0:
            return
        # Compare the newest n − 1 tokens with those at every place.
        last_AY = last_tokens(history, num_before)
        columns_X = torch.arange(num_places, device=tokens_AT.device)
        # Where the n tokens are all written, not only the first n − 1.
        is_repeated_AX = columns_X + num_before < history.length_A[:, None]
        for offset in range(num_before):
            window_AX = tokens_AT[:, offset : offset + num_places]
            is_repeated_AX &= window_AX == last_AY[:, offset, None]
        lower_values(values_AV, tokens_AT[:, num_before:], is_repeated_AX, -torch.inf)


@final
class _RepetitionPenalty:
    """Multiply the log-probability of every token that the row already has.

    Source:
        Keskar et al. 2019, "CTRL", section 4.1.

    Differs:
        There logits are divided, so positive and negative ones need different treatment.
        Log-probabilities are never positive.
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor

    def __call__(self, values_AV: Tensor, history: TokenHistory) -> None:
        tokens_AT = history.tokens_AT
        columns_T = torch.arange(tokens_AT.shape[1], device=tokens_AT.device)
        is_there_AT = columns_T < history.length_A[:, None]
        # Behind a row's end anything may stand, but gather needs ids that exist.
        tokens_AT = tokens_AT.where(is_there_AT, 0)
        penalized_AT = values_AV.gather(1, tokens_AT) * self._factor
        lower_values(values_AV, tokens_AT, is_there_AT, penalized_AT)


@final
class _Endings:
    """Tells which sequences of its request each row ends with."""

    def __init__(self, of_requests: Sequence[Sequences], device: Device) -> None:
        sets, set_of_request = _distinct(of_requests)
        # A single forbidden token has no tokens before it, but a table needs a column.
        self._width = max(1, *(len(sequence) for group in sets for sequence in group))
        num_sequences = max(map(len, sets))
        # No token is -2, so the sequences that fill up a set never match; -1 matches any token.
        filled = [[*group, *[(-2,)] * (num_sequences - len(group))] for group in sets]
        rows = [
            [[-1] * (self._width - len(sequence)) + list(sequence) for sequence in group]
            for group in filled
        ]
        self._tokens_GQX = torch.tensor(rows, dtype=torch.long, device=device)
        self._set_R = torch.tensor(set_of_request, device=device)

    def __call__(self, history: TokenHistory) -> Tensor:
        """Compare: ``is_ending_AQ``."""
        tokens_AQX = self._tokens_GQX[self._set_R[history.request_A]]
        last_A1X = last_tokens(history, self._width)[:, None]
        return ((tokens_AQX == -1) | (tokens_AQX == last_A1X)).all(-1)


@final
class _ForbiddenSequences:
    """Forbid the last token of a sequence if the row ends with the tokens before it."""

    def __init__(self, of_requests: Sequence[Sequences], device: Device) -> None:
        self._has_begun = _Endings(
            [tuple(ids[:-1] for ids in sequences) for sequences in of_requests], device
        )
        last = [[ids[-1] for ids in sequences] for sequences in of_requests]
        self._last_RQ = pad_rows(last, 0, device)

    def __call__(self, values_AV: Tensor, history: TokenHistory) -> None:
        last_AQ = self._last_RQ[history.request_A]
        lower_values(values_AV, last_AQ, self._has_begun(history), -torch.inf)


@final
class _ForcedPrefix:
    """Within the prefix only its next token keeps its value, whatever other rules say."""

    def __init__(
        self, prefixes: Sequence[tuple[int, ...]], others: Sequence[Rule], device: Device
    ) -> None:
        self._prefix_RX = pad_rows(prefixes, 0, device)
        self._length_R = torch.tensor([len(prefix) for prefix in prefixes], device=device)
        self._others = others

    def __call__(self, values_AV: Tensor, history: TokenHistory) -> None:
        request_A = history.request_A
        last = self._prefix_RX.shape[1] - 1
        is_inside_A1 = (history.length_A < self._length_R[request_A])[:, None]
        forced_A1 = self._prefix_RX[request_A, history.length_A.clamp(max=last)][:, None]
        value_A1 = values_AV.gather(1, forced_A1)
        for rule in self._others:
            rule(values_AV, history)
        if not is_inside_A1.any():
            return
        # Rows beyond their prefix keep what the other rules made of the values.
        values_AV.masked_fill_(is_inside_A1, -torch.inf)
        value_A1 = value_A1.where(is_inside_A1, values_AV.gather(1, forced_A1))
        values_AV.scatter_(1, forced_A1, value_A1)
