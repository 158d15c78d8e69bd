"""Lines translated in one way: made ready, searched for, judged, linked, and searched for again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from pellucid.arguments import check_text
from pellucid.config import DecodingConfig, TreatmentConfig
from pellucid.decode.constraints.request import Constraints, LineConstraints, Request
from pellucid.decode.constraints.terms import UsedTerm
from pellucid.decode.decoder import Decoder
from pellucid.decode.hypothesis import Hypothesis
from pellucid.text.language_tokens import with_codes
from pellucid.translate.judging import retry_flagged
from pellucid.translate.masking import hide
from pellucid.translate.preparing import Preparer, Ready, Treatment, constraints_of_each
from pellucid.translate.results import Translation
from pellucid.translate.written_lines import TranslationWriter, with_sources

if TYPE_CHECKING:
    from pellucid.translate.links.aligning import Aligner

Answers = tuple[Hypothesis, ...]

WINDOW_LINES = 1000
"""Lines of an iterator that are translated together."""


@dataclass(frozen=True)
class LineTranslation:
    """Everything that decides how lines are translated.

    Attributes:
        preparer: makes lines ready.
        decoder: searches.
        writer: turns what was found into translations, and judges them.
        config: the options of the search.
        again: the options of a second search for flagged translations.
        how: the treatment of lines.
        aligner: links words; None if that was not asked for.
        to: the language whose code every line gets.
        batch_tokens: approximate number of positions to compute at once.
    """

    preparer: Preparer
    decoder: Decoder
    writer: TranslationWriter
    config: DecodingConfig
    again: DecodingConfig
    how: TreatmentConfig
    aligner: Aligner | None
    to: str | None
    batch_tokens: int

    def translate(
        self, given: Sequence[str], constraints: Constraints | Sequence[LineConstraints]
    ) -> list[Translation]:
        """Translate texts; results show them as they were given, without added codes and masks.

        Raises:
            DataError: constraints and texts differ in number.
            InputError: the model has no code for the language.
        """
        how = self.how
        tokenizer = self.writer.tokenizer
        texts = with_codes(tokenizer, self.to, given)
        each = constraints_of_each(constraints, len(texts))
        hidden = hide(tokenizer, texts, each, is_copying=how.unknown == "source-word")
        texts = hidden.texts
        each = hidden.constraints
        treatment = Treatment(how.clean, how.split)
        lines = self.preparer.prepare(texts, each, self.config, treatment)
        requests = [request for line in lines for request in line.requests]
        found = self.decoder.decode(requests, self.config, batch_tokens=self.batch_tokens)
        used: list[tuple[UsedTerm, ...]] = []
        if any(line.terms for line in lines):
            found, used = self._hold_terms(lines, requests, found)
        translations = self.writer.translations(lines, found, self.config)
        if used:
            each_used = iter(used)
            translations = [
                replace(one, terms=tuple(chain(*islice(each_used, len(line.requests)))))
                for line, one in zip(lines, translations, strict=True)
            ]
        if self.aligner is not None:
            translations = self.aligner.align(lines, translations)

        def search_again(rows: Sequence[int]) -> list[Translation]:
            # These texts have codes and masks already.
            once = replace(
                self, config=self.again, to=None, how=how.model_copy(update={"retry": False})
            )
            return once.translate([texts[row] for row in rows], [each[row] for row in rows])

        if how.retry:
            translations = retry_flagged(translations, search_again)
        return hidden.show(with_sources(translations, given, self.to), given)

    def _hold_terms(
        self, lines: Sequence[Ready], requests: Sequence[Request], found: Sequence[Answers]
    ) -> tuple[list[Answers], list[tuple[UsedTerm, ...]]]:
        """Search again for the lines that lack a term of the glossary."""
        # A second search is rare, and imports what most calls have no need of.
        from pellucid.decode.constraints.held_terms import TermSearch

        def decode(again: Sequence[Request], config: DecodingConfig) -> list[Answers]:
            return self.decoder.decode(again, config, batch_tokens=self.batch_tokens)

        search = TermSearch(self.preparer.builder, decode, self.writer.text, self.config)
        terms = [own for line in lines for own in line.terms or [()] * len(line.requests)]
        return search.hold(requests, terms, found)

    def translate_lazily(
        self,
        texts: Iterator[str],
        constraints_for: Callable[[Sequence[str]], Constraints | Sequence[LineConstraints]],
    ) -> Iterator[Translation]:
        """Translate the texts of an iterator, `WINDOW_LINES` at a time.

        Args:
            texts: lines, whose line ends are cut, or other texts.
            constraints_for: makes the constraints of some texts.
        """
        for window in windows_of(texts):
            yield from self.translate(window, constraints_for(window))


def windows_of(texts: Iterator[str]) -> Iterator[list[str]]:
    """Read the texts of an iterator, `WINDOW_LINES` at a time.

    Args:
        texts: lines, whose line ends are cut, or other texts.
    """
    lines = map(_read_line, enumerate(texts))
    while window := list(islice(lines, WINDOW_LINES)):
        yield window


def _read_line(numbered: tuple[int, object]) -> str:
    number, line = numbered
    text = check_text(f"texts[{number}]", line)
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
