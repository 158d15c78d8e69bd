"""A second search for translations that lack a term of a glossary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, product

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.build_request import RequestBuilder
from pellucid.decode.constraints.request import Request
from pellucid.decode.constraints.terms import UsedTerm, WantedTerm, check_terms
from pellucid.decode.hypothesis import Hypothesis
from pellucid.errors import InputError

MOST_TRIED = 6
"""Choices of forms that are searched for, for one line."""

LEAST_BEAM = 8
"""With a narrow beam a phrase comes at the first possible place."""

FAR = math.log(20)
"""The loss in log-probability, in nats, from which a term is reported.

That is the rule for placeholders too. Of 21 terms forced upon the packaged model it says all: words
that it does not expect cost it 6 to 22 nats, whether they fit (*tarte* for *pizza*) or not.
"""

UNWRITABLE = "the model's vocabulary lacks a part of it"
NOT_SEARCHED = "samples and diverse groups cannot be made to have it"
NOT_FOUND = "no translation with it was found"

Answers = tuple[Hypothesis, ...]
Used = tuple[UsedTerm, ...]


@dataclass(frozen=True)
class TermSearch:
    """What searches again for translations that lack a term.

    Attributes:
        builder: makes requests.
        decode: answers requests.
        text: writes the ids of a translation.
        config: the options of the first search.
    """

    builder: RequestBuilder
    decode: Callable[[Sequence[Request], DecodingConfig], list[Answers]]
    text: Callable[[Sequence[int]], str]
    config: DecodingConfig

    def hold(
        self,
        requests: Sequence[Request],
        terms: Sequence[Sequence[WantedTerm]],
        found: Sequence[Answers],
    ) -> tuple[list[Answers], list[Used]]:
        """Search again for each translation without its terms, and keep what has more of them.

        Each form of a missing term is tried, and the model chooses among them by its score. A
        translation that has its terms stays as it is.

        Args:
            requests: what was asked.
            terms: of each request.
            found: the answers.

        Returns:
            The answers, and what became of the terms of each.
        """
        pairs = zip(terms, found, strict=True)
        kept = [_Kept.of(own, self._in_order(own, answers), self.text) for own, answers in pairs]
        lacking = [row for row, one in enumerate(kept) if one.is_lacking]
        reasons: dict[int, dict[int, str]] = {row: {} for row in lacking}
        again: list[Request] = []
        rows: list[int] = []
        for row in lacking:
            for phrases in self._choices(terms[row], kept[row].used, reasons[row]):
                # A choice that does not fit into the length is left out.
                with suppress(InputError):
                    again.append(self.builder.requiring(requests[row], phrases))
                    rows.append(row)
        before = {row: kept[row] for row in lacking}
        wider = self.config.model_copy(update={"beam": max(self.config.beam, LEAST_BEAM)})
        for row, answers in zip(rows, self.decode(again, wider) if again else (), strict=True):
            one = _Kept.of(terms[row], answers, self.text)
            kept[row] = max(kept[row], one, key=lambda kept: kept.rank)
        for row in lacking:
            kept[row] = kept[row].explained(before[row], reasons[row])
        return [one.answers for one in kept], [one.used for one in kept]

    def _in_order(self, terms: Sequence[WantedTerm], answers: Answers) -> Answers:
        """Put hypotheses that have all terms before others."""
        if len(answers) < 2 or not terms:
            return answers
        return tuple(sorted(answers, key=lambda one: _Kept.of(terms, (one,), self.text).is_lacking))

    def _choices(
        self, terms: Sequence[WantedTerm], used: Used, reasons: dict[int, str]
    ) -> Iterator[Sequence[str]]:
        """List what to require: forms of missing terms, and the others as they are written.

        Args:
            terms: of a line.
            used: what became of them.
            reasons: why a term cannot be required, by its number; filled here.
        """
        if self.config.sample or self.config.diverse_groups > 1:
            reasons |= dict.fromkeys(range(len(terms)), NOT_SEARCHED)
            return iter(())
        each: list[Sequence[str]] = []
        has_more = False
        for number, (term, one) in enumerate(zip(terms, used, strict=True)):
            if not one.reason:
                each.append([one.written])
            elif forms := [form for form in term.candidates() if self.builder.can_write(form)]:
                each.append(forms)
                has_more |= forms != [one.written]
            else:
                reasons[number] = UNWRITABLE
        return islice(product(*each), MOST_TRIED) if has_more else iter(())


@dataclass(frozen=True)
class _Kept:
    """Answers to a request, and what became of the terms in the first one."""

    answers: Answers
    text: str
    used: Used
    rank: tuple[int, int, float]

    @classmethod
    def of(
        cls,
        terms: Sequence[WantedTerm],
        answers: Answers,
        text: Callable[[Sequence[int]], str],
    ) -> _Kept:
        has_text = bool(answers) and bool(answers[0].ids)
        written = text(answers[0].ids) if has_text else ""
        used = check_terms(terms, written) if terms else ()
        faults = sum(bool(one.reason) for one in used)
        misses = sum(one.outcome == "miss" for one in used)
        score = answers[0].score if has_text else -math.inf
        # No translation is worse than any.
        return cls(answers, written, used, (-misses - (not has_text), -faults, score))

    @property
    def said(self) -> str:
        # A word that the vocabulary lacks is put in later.
        return "another one" if "<unk>" in self.text else f"“{self.text}”"

    @property
    def is_lacking(self) -> bool:
        return any(one.reason for one in self.used)

    def explained(self, before: _Kept, reasons: dict[int, str]) -> _Kept:
        """Add why terms are missing, and how much less likely the others made the translation."""
        far = ""
        if self is not before and before.answers:
            loss = before.answers[0].log_probability - self.answers[0].log_probability
            if loss > FAR:
                far = f"it makes the translation {_times(loss)} less likely than {before.said}"
        used: list[UsedTerm] = []
        for number, (one, old) in enumerate(zip(self.used, before.used, strict=True)):
            reason = one.reason
            if one.outcome == "miss":
                reason = reasons.get(number, NOT_FOUND)
            elif old.outcome == "miss":
                reason = reason or far
            used.append(replace(one, reason=reason))
        return replace(self, used=tuple(used))


def _times(loss: float) -> str:
    """Write how many times less likely a loss in nats is, in a round number."""
    power = int(loss / math.log(10))
    return f"{10**power:,} times" if power < 6 else "a million times"
