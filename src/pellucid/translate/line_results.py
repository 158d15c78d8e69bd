"""From the hypotheses of a search to the translations of lines."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.request import Request
from pellucid.decode.decoder import Decoder
from pellucid.decode.hypothesis import OVERFLOW, Hypothesis
from pellucid.errors import InputError
from pellucid.text.learned import LearnedText
from pellucid.text.sentences import gap_between
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.judging import judge, mean_log_probability
from pellucid.translate.ready import Ready
from pellucid.translate.results import Flag, TranslatedHypothesis, Translation

if TYPE_CHECKING:
    from pellucid.model import EncoderDecoder

Unknown = Literal["token", "source-word"]

RETRIED: frozenset[Flag] = frozenset(("repeats", "long", "unfinished", "stuck", "empty"))
"""The flags of translations that another search may improve."""

_MOST_REPLAYED = 16
"""Translations of one call whose attention is computed, the least certain ones."""

_DOUBTFUL = -1.0
"""The mean log-probability of a token from which on attention is looked at."""


@dataclass(frozen=True)
class Writer:
    """Turns what a search found into translations.

    Attributes:
        load_model: gives the model, if its attention is to be looked at.
        tokenizer: its tokenizer.
        learned: the text that it learned from, if known.
        unknown: what to write for a word outside the vocabulary.
    """

    load_model: Callable[[], EncoderDecoder]
    tokenizer: Tokenizer
    learned: LearnedText | None
    unknown: Unknown = "token"

    def translations(
        self,
        lines: Sequence[Ready],
        found: Sequence[tuple[Hypothesis, ...]],
        config: DecodingConfig,
    ) -> list[Translation]:
        """Write the translation of each line.

        Args:
            lines: the lines.
            found: the answers to their requests, one after the other.
            config: the options of the search.
        """
        answers = iter(found)
        each = [[next(answers) for _ in line.requests] for line in lines]
        written = [
            self._translation(line, answer, config)
            for line, answer in zip(lines, each, strict=True)
        ]
        if self.learned is None or config.sample:
            return written
        return self._with_stuck(lines, each, written)

    def _translation(
        self, line: Ready, found: Sequence[tuple[Hypothesis, ...]], config: DecodingConfig
    ) -> Translation:
        if line.error is not None:
            return Translation(line.source, (), error=line.error, notes=line.notes)
        for request, hypotheses in zip(line.requests, found, strict=True):
            if error := _error_of(request, hypotheses):
                return Translation(line.source, (), error=error, notes=line.notes)
        if not line.requests:
            blank = TranslatedHypothesis("".join(filter(None, line.gaps)))
            return Translation(line.source, (blank,), notes=line.notes)
        parts = [
            [self._hypothesis(part, request, one) for one in answer]
            for part, request, answer in zip(line.parts, line.requests, found, strict=True)
        ]
        joined = _join(parts, line.gaps, config)
        flags = {} if self.learned is None else self._flags(line, found, parts, config)
        notes = replace(line.notes, flags=tuple(flags)) if flags else line.notes
        return Translation(line.source, tuple(joined), notes=notes)

    def _hypothesis(self, part: str, request: Request, found: Hypothesis) -> TranslatedHypothesis:
        text = self.text(found.ids)
        if self.unknown == "source-word" and self.tokenizer.config.unk_id in found.ids:
            from pellucid.translate.attention import replace_unknown

            text = replace_unknown(
                self.load_model(), self.tokenizer, part, request.source_ids, found.ids, text
            )
        return TranslatedHypothesis(
            text,
            tokens=tuple(self.tokenizer.target_tokens(found.ids)),
            ids=found.ids,
            token_log_probabilities=found.token_log_probabilities,
            log_probability=found.log_probability,
            score=found.score,
        )

    def text(self, ids: Sequence[int]) -> str:
        """Write ids as one line of text."""
        # Byte tokens may spell a line break, which would shift all following lines.
        return self.tokenizer.decode_target(ids).replace("\r", " ").replace("\n", " ")

    def _flags(
        self,
        line: Ready,
        found: Sequence[tuple[Hypothesis, ...]],
        parts: Sequence[Sequence[TranslatedHypothesis]],
        config: DecodingConfig,
    ) -> dict[Flag, None]:
        """Judge the best translation of each part."""
        return dict.fromkeys(
            flag
            for part, request, hypotheses, written in zip(
                line.parts, line.requests, found, parts, strict=True
            )
            for flag in judge(
                part,
                request.source_ids,
                written[0].text,
                hypotheses[0],
                self.learned,
                has_own_length=config.max_length > 0,
                is_sample=config.sample,
            )
        )

    def _with_stuck(
        self,
        lines: Sequence[Ready],
        found: Sequence[Sequence[tuple[Hypothesis, ...]]],
        written: list[Translation],
    ) -> list[Translation]:
        """Look at the attention of the least certain translations."""
        doubtful = [
            (mean, index, place)
            for index, answers in enumerate(found)
            if written[index].error is None
            for place, hypotheses in enumerate(answers)
            if (mean := mean_log_probability(hypotheses[0])) < _DOUBTFUL
        ]
        if doubtful:
            from pellucid.translate.attention import is_stuck
        for _, index, place in heapq.nsmallest(_MOST_REPLAYED, doubtful):
            line, notes = lines[index], written[index].notes
            ids = line.requests[place].source_ids, found[index][place][0].ids
            if "stuck" not in notes.flags and is_stuck(
                self.load_model(), self.tokenizer, line.parts[place], *ids
            ):
                notes = replace(notes, flags=(*notes.flags, "stuck"))
                written[index] = replace(written[index], notes=notes)
        return written


def _join(
    parts: Sequence[list[TranslatedHypothesis]], gaps: Sequence[str | None], config: DecodingConfig
) -> list[TranslatedHypothesis]:
    """Join the hypotheses of the parts of one text: the ``n_best`` of all combinations."""
    if len(parts) == 1 and not any(gaps):
        return parts[0]
    rows: list[tuple[TranslatedHypothesis, ...]] = [()]
    if config.sample:
        rows = list(zip(*parts, strict=False))
    else:
        rows = reduce(lambda best, part: _combine(best, part, config.n_best), parts, rows)
    return [TranslatedHypothesis.joined(row, gaps) for row in rows]


def _combine(
    rows: Sequence[tuple[TranslatedHypothesis, ...]], part: Sequence[TranslatedHypothesis], n: int
) -> list[tuple[TranslatedHypothesis, ...]]:
    """Append one part's hypotheses to the best rows so far, and keep the best again."""
    found = [
        (*row, hypothesis)
        for i, row in enumerate(rows)
        # Both are sorted: before this pair stand (i + 1)(j + 1) - 1 better ones.
        for j, hypothesis in enumerate(part)
        if (i + 1) * (j + 1) <= n
    ]
    return sorted(found, key=lambda row: -sum(one.score for one in row))[:n]


def against_repetition(config: DecodingConfig) -> dict[str, Any]:
    """Choose the options of a second search, for translations that loop or are empty.

    Args:
        config: the options of the first.
    """
    options: dict[str, Any] = {
        "no_repeat_ngram": min(3, config.no_repeat_ngram or 3),
        "repetition_penalty": max(1.2, config.repetition_penalty),
        "min_length_ratio": max(0.3, config.min_length_ratio),
    }
    if config.beam == 1 and not config.sample:
        options["beam"] = 4
    return options


def stream_line(
    decoder: Decoder, line: Ready, config: DecodingConfig, writer: Writer
) -> Iterator[str]:
    """Yield the translation of a text piece by piece, as soon as it is decided.

    Raises:
        InputError: nothing obeys the constraints.
    """
    yield from filter(None, line.gaps[:1])
    said = ""
    for request, gap in zip(line.requests, line.gaps[1:], strict=True):
        begun = ""
        for piece in _stream_text(decoder, request, config, writer):
            joint = "" if begun else gap_between(said, piece)
            yield joint + piece
            begun += joint + piece
        said += begun
        if gap is not None:
            yield from filter(None, [gap])
            said = ""


def _stream_text(
    decoder: Decoder, request: Request, config: DecodingConfig, writer: Writer
) -> Iterator[str]:
    """Yield the text of one request piece by piece, as soon as it is decided.

    Raises:
        InputError: nothing obeys the constraints, or the model's logits are not finite.
    """
    ids: tuple[int, ...] = ()
    said = whole = ""
    for ids in decoder.stream(request, config):
        whole = writer.text(ids)
        # The end may still change: a space, or half of a character's bytes (U+FFFD so far).
        sure = whole.rstrip(" \ufffd")
        if sure.startswith(said) and len(sure) > len(said):
            yield sure[len(said) :]
            said = sure
    if not ids:
        raise InputError(_unmet(request))
    yield whole[len(said) :]


def _error_of(request: Request, hypotheses: Sequence[Hypothesis]) -> str | None:
    """Say why a request has no translation, if it has none."""
    if any(one.has_overflowed for one in hypotheses):
        return OVERFLOW
    return None if hypotheses else _unmet(request)


def _unmet(request: Request) -> str:
    """Say that nothing obeys the constraints of a request."""
    return (
        f"No translation within {request.max_length} tokens meets the constraints. "
        "Loosen them, widen the beam, or allow more with max_length."
    )
