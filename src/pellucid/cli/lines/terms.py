"""The sentences at the end of a translation about its glossary: terms found, and terms missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary

_MOST_SHOWN = 3


@final
class TermCounts:
    """Counts the terms of a glossary in the lines, and in their translations.

    Args:
        glossary: the terms; None counts nothing.
    """

    def __init__(self, glossary: Glossary | None) -> None:
        self._glossary = glossary
        self._num_lines = self._num_with_terms = self._num_terms = 0
        self._lacking: list[int] = []
        self._num_lacking = 0

    def add(self, number: int, source: str, translation: str) -> None:
        """Count one line.

        Args:
            number: its number, from 0.
            source: the line.
            translation: its translation; empty for a line that was not translated.
        """
        if self._glossary is None:
            return
        terms = self._glossary.terms_for(source)
        self._num_lines += 1
        self._num_terms += len(terms)
        self._num_with_terms += bool(terms)
        if any(term not in translation for term in terms):
            self._num_lacking += 1
            if len(self._lacking) < _MOST_SHOWN:
                self._lacking.append(number + 1)

    def sentences(self) -> Iterator[str]:
        """Yield the sentences; none without a glossary."""
        if self._glossary is None or not self._num_lines:
            return
        terms = "1 term was" if self._num_terms == 1 else f"{self._num_terms:,} terms were"
        yield (
            f"Glossary: {terms} found in {self._num_with_terms:,} of {self._num_lines:,} "
            f"{'line' if self._num_lines == 1 else 'lines'}."
        )
        if self._num_lacking:
            places = ", ".join(map(str, self._lacking))
            more = ", …" if self._num_lacking > _MOST_SHOWN else ""
            lines = (
                "1 line lacks" if self._num_lacking == 1 else f"{self._num_lacking:,} lines lack"
            )
            yield f"Glossary term not found in the translation: {lines} one ({places}{more})."
