"""From the hypotheses of a search to the translations of lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from pellucid.bundle import Bundle
from pellucid.config import DecodingConfig
from pellucid.decode.constraints.request import Request
from pellucid.decode.hypothesis import OVERFLOW, Hypothesis
from pellucid.errors import InputError
from pellucid.languages.negations import lost_negations
from pellucid.machine.turns import give_way
from pellucid.text.learned import LearnedText
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.attended_words import AttentionReader, replace_unknown
from pellucid.translate.judging import DOUBTFUL, add_partial, add_stuck, judge, seems_short
from pellucid.translate.preparing import Ready
from pellucid.translate.results import Flag, Scored, TranslatedHypothesis, Translation

if TYPE_CHECKING:
    from pellucid.decode.probing.under_probe import UnderProbe

Unknown = Literal["token", "source-word"]
Result = TypeVar("Result", Translation, Scored)

_Row = tuple[float, "_Row | None", "TranslatedHypothesis | None"]
"""A choice of a hypothesis for each part so far: their scores, the row before, and the last."""


@dataclass(frozen=True)
class TranslationWriter:
    """Turns what a search found into translations.

    Attributes:
        reader: computes the attention of doubtful translations.
        learned: the text that it learned from, if known.
        unknown: what to write for a word outside the vocabulary.
        bundle: the bundle of the model, which names a head that was taught word links.
        change: what changed the model, if anything.
    """

    reader: AttentionReader
    learned: LearnedText | None
    unknown: Unknown = "token"
    bundle: Bundle | None = None
    change: UnderProbe | None = None

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
        doubtful: list[tuple[float, int, int]] = []
        short: list[tuple[int, int, int]] = []
        written = [
            self._translation(index, line, answer, config, (doubtful, short))
            for index, (line, answer) in enumerate(zip(lines, each, strict=True))
        ]
        if doubtful:
            add_stuck(doubtful, lines, each, written, self.reader)
        bundle = self.bundle
        if short and bundle is not None and (head := bundle.guided_head) is not None:
            convention = bundle.guided_convention
            add_partial(short, lines, each, written, self.reader, head, convention)
        return written

    def _translation(
        self,
        index: int,
        line: Ready,
        found: Sequence[tuple[Hypothesis, ...]],
        config: DecodingConfig,
        to_look_at: tuple[list[tuple[float, int, int]], list[tuple[int, int, int]]],
    ) -> Translation:
        """Write the translation of one line, and note the parts to look at: doubtful, short."""
        error = line.error
        for request, hypotheses in zip(line.requests, found, strict=True):
            if not hypotheses or not hypotheses[0].ids:
                error = error or _error_of(request, hypotheses)
        if error is not None:
            return Translation(line.source, (), error=error, notes=line.notes)
        if not line.requests:
            blank = TranslatedHypothesis("".join(filter(None, line.gaps)))
            return Translation(line.source, (blank,), notes=line.notes)
        parts: list[list[TranslatedHypothesis]] = []
        flags: dict[Flag, None] = {}
        denied: list[str] = []
        for place, (part, request, hypotheses) in enumerate(
            zip(line.parts, line.requests, found, strict=True)
        ):
            written = [self._hypothesis(part, request, one) for one in hypotheses]
            parts.append(written)
            # Without counts of the training text nothing is usual, so nothing is unusual.
            if self.learned is None:
                continue
            mean = written[0].log_probability / max(1, len(written[0].ids))
            flags |= dict.fromkeys(
                judge(
                    part,
                    request.source_ids,
                    written[0].text,
                    hypotheses[0],
                    self.learned,
                    mean=mean,
                    has_own_length=config.max_length is not None,
                    is_sample=config.sample,
                )
            )
            # Tokens that were drawn may be improbable without being wrong.
            if mean < DOUBTFUL and not config.sample:
                to_look_at[0].append((mean, index, place))
            if (rating := seems_short(part, written[0].text, hypotheses[0])) is not None:
                to_look_at[1].append((rating, index, place))
            if self.bundle is not None:
                languages = self.bundle.config.languages
                denied += lost_negations(
                    part,
                    written[0].text,
                    source_language=languages.source,
                    target_language=languages.target,
                )
        joined = _join(parts, line.gaps, config)
        if denied:
            flags["partial"] = None
        notes = line.notes
        if flags:
            notes = replace(notes, flags=tuple(flags), unlinked_words=tuple(denied))
        bundle = self.bundle
        if bundle is not None and config.precision != bundle.config.decoding.precision:
            notes = replace(notes, precision=config.precision)
        if self.change is not None:
            missed = self.change.missed_in_all([request.source_ids for request in line.requests])
            notes = replace(notes, missed_changes=missed) if missed else notes
        return Translation(line.source, tuple(joined), notes=notes)

    def _hypothesis(self, part: str, request: Request, found: Hypothesis) -> TranslatedHypothesis:
        give_way()
        text = self.text(found.ids)
        if self.unknown == "source-word" and self.tokenizer.config.unk_id in found.ids:
            text = replace_unknown(self.reader, part, request.source_ids, found.ids, text)
        return TranslatedHypothesis(
            text,
            tokens=tuple(self.tokenizer.target_tokens(found.ids)),
            ids=found.ids,
            token_log_probabilities=found.token_log_probabilities,
            log_probability=found.log_probability,
            score=found.score,
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return self.reader.tokenizer

    def text(self, ids: Sequence[int]) -> str:
        """Write ids as one line of text."""
        # Byte tokens may spell a line break, which would shift all following lines.
        return self.tokenizer.decode_target(ids).replace("\r", " ").replace("\n", " ")


def _join(
    parts: Sequence[list[TranslatedHypothesis]], gaps: Sequence[str | None], config: DecodingConfig
) -> list[TranslatedHypothesis]:
    """Join the hypotheses of the parts of one text: the ``n_best`` of all combinations."""
    if len(parts) == 1 and not any(gaps):
        return parts[0]
    if config.sample:
        # Samples are not ranked: the k-th sample of the text has the k-th of each part.
        rows = list(zip(*parts, strict=False))
    else:
        best: list[_Row] = [(0.0, None, None)]
        for part in parts:
            best = _combine(best, part, config.n_best)
        rows = list(map(_unroll, best))
    return [TranslatedHypothesis.joined(row, gaps) for row in rows]


def _combine(rows: Sequence[_Row], part: Sequence[TranslatedHypothesis], n: int) -> list[_Row]:
    """Append one part's hypotheses to the best rows so far, and keep the best again."""
    give_way()
    found: list[_Row] = [
        # A row points to the one before. Copying it would make texts of many lines quadratic.
        (row[0] + hypothesis.score, row, hypothesis)
        for i, row in enumerate(rows)
        # Both are sorted: before this pair stand (i + 1)(j + 1) - 1 better ones.
        for j, hypothesis in enumerate(part[:n])
        if (i + 1) * (j + 1) <= n
    ]
    return sorted(found, key=lambda row: -row[0])[:n]


def _unroll(row: _Row | None) -> tuple[TranslatedHypothesis, ...]:
    """List the hypotheses of a row."""
    found: list[TranslatedHypothesis] = []
    while row is not None and row[2] is not None:
        found.append(row[2])
        row = row[1]
    return tuple(reversed(found))


def _error_of(request: Request, hypotheses: Sequence[Hypothesis]) -> str | None:
    """Say why a request has no translation, if it has none."""
    if any(one.has_overflowed for one in hypotheses):
        return OVERFLOW
    return None if hypotheses else unmet(request)


def unmet(request: Request) -> str:
    """Say that nothing obeys the constraints of a request."""
    return (
        f"No translation within {request.max_length} tokens meets the constraints. "
        "Loosen them, widen the beam, or allow more with max_length."
    )


def with_sources(results: list[Result], texts: Sequence[str], to: str | None) -> list[Result]:
    """Put the given texts into results of texts that got a code."""
    if to is None:
        return results
    return [replace(one, source=text) for one, text in zip(results, texts, strict=True)]


def one_line(text: str) -> str:
    """Cut the edges of a line, and refuse several lines."""
    text = text.strip()
    if "\n" in text:
        raise InputError(
            "A text to look at must be one line, but has line breaks. Look at its lines one by one."
        )
    return text
