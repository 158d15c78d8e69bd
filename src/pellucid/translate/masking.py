"""Masks around a model that has them: symbols in, placeholders out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pellucid.config.bundle import MASKS
from pellucid.decode.constraints.request import Constraints
from pellucid.documents.masks import mask, mask_pair, mask_with, unmask
from pellucid.text.reading.lines import CutLine
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.results import TranslatedHypothesis, Translation

if TYPE_CHECKING:
    from pellucid.translate.preparing import LineConstraints

Copies = Sequence[tuple[str, ...]]
"""The placeholders of each line of a text."""


def has_masks(tokenizer: Tokenizer) -> bool:
    """Tell whether a model reads symbols in the place of placeholders."""
    return {*MASKS} <= {*tokenizer.config.symbols}


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
            one if copies is None else unmask_translation(one, source, copies)
            for one, source, copies in rows
        ]

    def show_piece(self, piece: str) -> str:
        """Put the placeholders back into a piece of the translation of the only text."""
        return piece if self.copies[0] is None else unmask_text(piece, self.copies[0])


def mask_both(
    tokenizer: Tokenizer, sources: Sequence[str], targets: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """Mask lines and given translations of them for a model with masks."""
    if not has_masks(tokenizer) or len(sources) != len(targets):
        return sources, targets
    pairs = [mask_pair(source, target) for source, target in zip(sources, targets, strict=True)]
    return [source for source, _ in pairs], [target for _, target in pairs]


def hide(
    tokenizer: Tokenizer, texts: Sequence[str], constraints: Sequence[LineConstraints]
) -> Hidden:
    """Mask texts for a model with masks; those that have symbols already stay, as do cut lines."""
    if not has_masks(tokenizer):
        return Hidden(texts, constraints, [None] * len(texts))
    found = [
        (text, one, None)
        if isinstance(text, CutLine) or any(map(text.__contains__, MASKS))
        else _hide(text, one)
        for text, one in zip(texts, constraints, strict=True)
    ]
    return Hidden(*map(list, zip(*found, strict=True))) if found else Hidden((), (), ())


def _hide(text: str, constraints: LineConstraints) -> tuple[str, LineConstraints, Copies]:
    lines, copies = zip(*map(mask, text.split("\n")), strict=True)
    return "\n".join(lines), mask_constraints(constraints, copies), copies


def mask_constraints(constraints: LineConstraints, copies: Copies) -> LineConstraints:
    """Mask what the translation of a text, or of each of its lines, must hold."""
    if not isinstance(constraints, Constraints):
        each = zip(constraints, copies, strict=False)
        return [_mask_phrases(one, own) for one, own in each]
    return _mask_phrases(constraints, [one for line in copies for one in line])


def _mask_phrases(constraints: Constraints, copies: Sequence[str]) -> Constraints:
    return replace(
        constraints,
        prefix=mask_with(constraints.prefix, copies),
        required=tuple(mask_with(one, copies) for one in constraints.required),
        forbidden=tuple(mask_with(one, copies) for one in constraints.forbidden),
    )


def unmask_text(text: str, copies: Copies) -> str:
    """Give each line of a translation the placeholders of the source's line."""
    lines = text.split("\n")
    if len(lines) != len(copies):
        lines, copies = [text], [tuple(one for line in copies for one in line)]
    return "\n".join(unmask(line, own) for line, own in zip(lines, copies, strict=True))


def unmask_translation(translation: Translation, source: str, copies: Copies) -> Translation:
    """Give a translation, its words and the words of its source their placeholders."""
    own = [one for line in copies for one in line]

    def show(one: TranslatedHypothesis) -> TranslatedHypothesis:
        words = tuple(unmask(word, own) for word in one.words)
        parts = tuple(map(show, one.parts))
        return replace(one, text=unmask_text(one.text, copies), words=words, parts=parts)

    return replace(
        translation,
        source=source,
        hypotheses=tuple(map(show, translation.hypotheses)),
        source_words=tuple(unmask(word, own) for word in translation.source_words),
    )
