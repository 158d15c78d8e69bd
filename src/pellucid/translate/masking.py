"""Masks around a model that has them: symbols in, placeholders out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pellucid.decode.constraints.request import Constraints
from pellucid.documents.masks import mask, mask_with, unmask
from pellucid.text.reading.lines import CutLine
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.results import TranslatedHypothesis, Translation

if TYPE_CHECKING:
    from pellucid.translate.preparing import LineConstraints

Copies = Sequence[Mapping[str, str]]
"""The placeholder of each symbol, for each line of a text."""


class Hidden(NamedTuple):
    """Texts as a model reads them.

    Attributes:
        texts: with symbols.
        constraints: of each text.
        copies: of each text; None of one that is not to get placeholders back.
    """

    texts: Sequence[str]
    constraints: Sequence[LineConstraints]
    copies: Sequence[Copies | None]

    def show(self, translations: list[Translation], sources: Sequence[str]) -> list[Translation]:
        """Put the placeholders back into translations of these texts."""
        rows = zip(translations, sources, self.copies, strict=True)
        return [
            one if copies is None else _show(one, source, copies) for one, source, copies in rows
        ]

    def show_piece(self, piece: str) -> str:
        """Put the placeholders back into a piece of the translation of the only text."""
        return piece if self.copies[0] is None else unmask(piece, _join(self.copies[0]))


def hide(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    constraints: Sequence[LineConstraints],
    *,
    words_only: bool = False,
) -> Hidden:
    """Mask texts for a model with masks.

    Args:
        tokenizer: the model's.
        texts: to translate; lines that were cut stay as they are.
        constraints: of each text.
        words_only: True to leave placeholders with white space, so that links count words.
    """
    if not tokenizer.has_masks or not texts:
        return Hidden(texts, constraints, [None] * len(texts))
    rows = zip(texts, constraints, strict=True)
    found = [_hide(text, one, words_only=words_only) for text, one in rows]
    return Hidden(*map(list, zip(*found, strict=True)))


def _hide(
    text: str, constraints: LineConstraints, *, words_only: bool
) -> tuple[str, LineConstraints, Copies | None]:
    if isinstance(text, CutLine):
        return text, constraints, None
    lines, copies = list[str](), list[Mapping[str, str]]()
    for line in text.split("\n"):
        # Lines of one text have symbols of their own, as long as there are enough.
        masked, own = mask(line, start=sum(map(len, copies)), words_only=words_only)
        lines.append(masked)
        copies.append(own)
    if isinstance(constraints, Constraints):
        return "\n".join(lines), _mask_phrases(constraints, _join(copies)), copies
    each = zip(constraints, copies, strict=False)
    return "\n".join(lines), [_mask_phrases(one, own) for one, own in each], copies


def _mask_phrases(constraints: Constraints, copies: Mapping[str, str]) -> Constraints:
    return replace(
        constraints,
        prefix=mask_with(constraints.prefix, copies),
        required=tuple(mask_with(one, copies) for one in constraints.required),
        forbidden=tuple(mask_with(one, copies) for one in constraints.forbidden),
    )


def _join(copies: Copies) -> dict[str, str]:
    return {symbol: copy for line in copies for symbol, copy in line.items()}


def _show(translation: Translation, source: str, copies: Copies) -> Translation:
    """Put placeholders back; say if a translation has lost one."""
    everything = _join(copies)

    def show(one: TranslatedHypothesis) -> TranslatedHypothesis:
        lines, own = one.text.split("\n"), copies
        if len(lines) != len(own):
            lines, own = [one.text], [everything]
        return replace(
            one,
            text="\n".join(map(unmask, lines, own)),
            words=tuple(unmask(word, everything) for word in one.words),
            parts=tuple(map(show, one.parts)),
        )

    notes, found = translation.notes, translation.hypotheses
    words = dict.fromkeys(unmask(word, everything) for word in notes.unlinked_words)
    if found and not any(all(map(one.text.__contains__, everything)) for one in found):
        lost = [copy for symbol, copy in everything.items() if symbol not in found[0].text]
        notes = replace(notes, flags=tuple(dict.fromkeys((*notes.flags, "partial"))))
        words |= dict.fromkeys(lost)
    notes = replace(notes, unlinked_words=tuple(words)) if words else notes
    return replace(
        translation,
        source=source,
        hypotheses=tuple(map(show, found)),
        notes=notes,
        source_words=tuple(unmask(word, everything) for word in translation.source_words),
    )
