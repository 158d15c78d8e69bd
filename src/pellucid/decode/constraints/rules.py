"""The rules over the next token: what a translation may not hold, and what it begins with."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar, final

import torch
from torch import Tensor

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.forbidden import Spelling, TextRule
from pellucid.decode.constraints.history import History, Rule, last_tokens, lower_values, pad_rows
from pellucid.decode.constraints.request import Request
from pellucid.errors import InputError

__all__ = ["make_rules"]

Device = torch.device | str
Group = TypeVar("Group", bound=Hashable)


def make_rules(
    requests: Sequence[Request],
    config: DecodingConfig,
    *,
    eos_id: int,
    vocabulary_size: int,
    never: Sequence[int],
    device: Device,
) -> list[Rule]:
    """Make the rules that some requests need, and no others.

    A forced prefix beats all other rules, which count what stands in it as written. It is the
    requests' ``min_length`` that counts here, and of the configuration only
    ``no_repeat_ngram`` and ``repetition_penalty``. A row may be left without any token that it
    may write.

    Args:
        requests: what `History.request_A` points into.
        config: the options of the search.
        eos_id: what ends a sentence.
        vocabulary_size: how many tokens there are.
        never: tokens that are never written, such as padding.
        device: where the values are.

    Returns:
        The rules, to be called one after the other at each step.

    Raises:
        InputError: a prefix holds ``</s>``, a forbidden sequence is empty, or a token is none.
    """
    _check_requests(requests, eos_id, vocabulary_size)
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
        sequences, places = _distinct(request.forbidden for request in requests)
        rules.append(_ForbiddenSequences(sequences, places, device))
    if any(request.forbidden_texts for request in requests):
        texts, places = _distinct(request.forbidden_texts for request in requests)
        max_lengths = [request.max_length for request in requests]
        rules.append(TextRule(texts, places, max_lengths, device))
    if any(request.whole for request in requests):
        sequences, places = _distinct(request.whole for request in requests)
        spelling = next(request.spelling for request in requests if request.spelling)
        rules.append(_WholeWords(sequences, places, spelling, device))
    if any(request.prefix_ids for request in requests):
        return [_ForcedPrefix([request.prefix_ids for request in requests], rules, device)]
    return rules


def _check_requests(requests: Sequence[Request], eos_id: int, vocabulary_size: int) -> None:
    """Check the tokens of prefixes and forbidden sequences."""
    for request in requests:
        if eos_id in request.prefix_ids:
            raise InputError(
                "A prefix must leave the end open, but holds the token </s> "
                f"({eos_id}). Take it out of the prefix."
            )
        for what, ids in (
            ("prefix", request.prefix_ids),
            *(("forbidden sequence", sequence) for sequence in request.forbidden),
        ):
            if wrong := [id_ for id_ in ids if not 0 <= id_ < vocabulary_size]:
                raise InputError(
                    f"The tokens of a {what} must be from 0 to {vocabulary_size - 1}, but one is "
                    f"{wrong[0]}. Take the ids from this model's target vocabulary."
                )
        if () in request.forbidden:
            raise InputError(
                "A forbidden sequence must hold a token, but one is empty. Leave it out."
            )


def _distinct(groups: Iterable[Group]) -> tuple[list[Group], list[int]]:
    """The different ones, and which of them each is: most requests forbid the same."""
    places: dict[Group, int] = {}
    place_of = [places.setdefault(group, len(places)) for group in groups]
    return list(places), place_of


@final
class _Never:
    """Some tokens are never written."""

    def __init__(self, never: Sequence[int], device: Device) -> None:
        self._ids = torch.tensor(list(never), device=device)

    def __call__(self, values_AV: Tensor, history: History) -> None:
        values_AV.index_fill_(1, self._ids, -torch.inf)


@final
class _MinimumLength:
    """No ``</s>`` before a sentence has its fewest tokens."""

    def __init__(self, min_lengths: Sequence[int], eos_id: int, device: Device) -> None:
        self._min_length_R = torch.tensor(min_lengths, device=device)
        self._eos_id = eos_id

    def __call__(self, values_AV: Tensor, history: History) -> None:
        is_short_A = history.length_A + 1 < self._min_length_R[history.request_A]
        values_AV[:, self._eos_id].masked_fill_(is_short_A, -torch.inf)


@final
class _NoRepeatedNgram:
    """No n tokens stand twice in the same order."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __call__(self, values_AV: Tensor, history: History) -> None:
        tokens_AT, num_before = history.tokens_AT, self._size - 1
        num_places = tokens_AT.shape[1] - num_before
        if num_places <= 0:
            return
        last_AY = last_tokens(history, num_before)
        columns_X = torch.arange(num_places, device=tokens_AT.device)
        is_repeated_AX = columns_X + num_before < history.length_A[:, None]
        for offset in range(num_before):
            window_AX = tokens_AT[:, offset : offset + num_places]
            is_repeated_AX &= window_AX == last_AY[:, offset, None]
        lower_values(values_AV, tokens_AT[:, num_before:], is_repeated_AX, -torch.inf)


@final
class _RepetitionPenalty:
    """The log-probability of a token that was written before is multiplied.

    Source:
        Keskar et al. 2019, "CTRL", section 4.1.

    Differs:
        There the logits are divided, so that a positive one falls and a negative one must be
        treated apart; log-probabilities are never positive.
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor

    def __call__(self, values_AV: Tensor, history: History) -> None:
        tokens_AT = history.tokens_AT
        columns_T = torch.arange(tokens_AT.shape[1], device=tokens_AT.device)
        is_written_AT = columns_T < history.length_A[:, None]
        tokens_AT = tokens_AT.where(is_written_AT, 0)
        lower_values(
            values_AV, tokens_AT, is_written_AT, values_AV.gather(1, tokens_AT) * self._factor
        )


@final
class _ForbiddenSequences:
    """The last token of a sequence is forbidden where those before it have just been written."""

    def __init__(
        self,
        sets: Sequence[tuple[tuple[int, ...], ...]],
        set_of_request: Sequence[int],
        device: Device,
    ) -> None:
        sequences = [sequence for group in sets for sequence in group]
        self._num_before = max(map(len, sequences)) - 1
        num_sequences = max(map(len, sets))
        before = [
            [_pad_left(sequence[:-1], self._num_before) for sequence in group]
            + [_pad_left((), self._num_before)] * (num_sequences - len(group))
            for group in sets
        ]
        self._before_GQX = torch.tensor(before, dtype=torch.long, device=device)
        self._last_GQ = pad_rows([[ids[-1] for ids in group] for group in sets], -1, device)
        self._group_R = torch.tensor(set_of_request, device=device)

    def __call__(self, values_AV: Tensor, history: History) -> None:
        group_A = self._group_R[history.request_A]
        before_AQX, last_AQ = self._before_GQX[group_A], self._last_GQ[group_A]
        last_A1X = last_tokens(history, self._num_before)[:, None]
        # -1 matches any token. last_tokens also gives -1 before the beginning; no sequence asks it.
        fits_AQ = ((before_AQX == -1) | (before_AQX == last_A1X)).all(-1)
        lower_values(values_AV, last_AQ, fits_AQ & (last_AQ >= 0), -torch.inf)


@final
class _WholeWords:
    """After a sequence that ends with a word only what leaves the word may be written."""

    def __init__(
        self,
        sets: Sequence[tuple[tuple[int, ...], ...]],
        set_of_request: Sequence[int],
        spelling: Spelling,
        device: Device,
    ) -> None:
        self._width = max(len(sequence) for group in sets for sequence in group)
        # No token is -2, so what fills a set up is never written.
        num_sequences = max(map(len, sets))
        padded = [[*group, *[(-2,)] * (num_sequences - len(group))] for group in sets]
        rows = [[_pad_left(sequence, self._width) for sequence in group] for group in padded]
        self._tokens_GQX = torch.tensor(rows, dtype=torch.long, device=device)
        self._group_R = torch.tensor(set_of_request, device=device)
        self._goes_on_V = ~spelling.leaves_V.to(device)

    def __call__(self, values_AV: Tensor, history: History) -> None:
        tokens_AQX = self._tokens_GQX[self._group_R[history.request_A]]
        last_A1X = last_tokens(history, self._width)[:, None]
        is_written_AQ = ((tokens_AQX == -1) | (tokens_AQX == last_A1X)).all(-1)
        values_AV.masked_fill_(is_written_AQ.any(1)[:, None] & self._goes_on_V, -torch.inf)


def _pad_left(sequence: tuple[int, ...], width: int) -> list[int]:
    """A sequence aligned right, -1 in front."""
    return [-1] * (width - len(sequence)) + list(sequence)


@final
class _ForcedPrefix:
    """Within the prefix only its next token keeps its value, whatever other rules say."""

    def __init__(
        self, prefixes: Sequence[tuple[int, ...]], others: Sequence[Rule], device: Device
    ) -> None:
        self._prefix_RX = pad_rows(prefixes, 0, device)
        self._length_R = torch.tensor([len(prefix) for prefix in prefixes], device=device)
        self._others = others

    def __call__(self, values_AV: Tensor, history: History) -> None:
        request_A, last = history.request_A, self._prefix_RX.shape[1] - 1
        is_inside_A1 = (history.length_A < self._length_R[request_A])[:, None]
        forced_A1 = self._prefix_RX[request_A, history.length_A.clamp(max=last)][:, None]
        value_A1 = values_AV.gather(1, forced_A1)
        for rule in self._others:
            rule(values_AV, history)
        if not is_inside_A1.any():
            return
        values_AV.masked_fill_(is_inside_A1, -torch.inf)
        value_A1 = value_A1.where(is_inside_A1, values_AV.gather(1, forced_A1))
        values_AV.scatter_(1, forced_A1, value_A1)
