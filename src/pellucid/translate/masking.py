"""Masks around a model that has them: symbols in, placeholders out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import NamedTuple

from pellucid.config.bundle import MASKS
from pellucid.decode.constraints.request import Constraints, LineConstraints
from pellucid.documents.markup.segments import Segment
from pellucid.documents.masks import mask, mask_copies, mask_with, unmask
from pellucid.text.reading.lines import CutLine
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.results import TranslatedHypothesis, Translation

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
    is_copying: bool = False,
) -> Hidden:
    """Mask the placeholders of texts.

    Args:
        tokenizer: the model's.
        texts: to translate; lines that were cut stay as they are.
        constraints: of each text.
        is_copying: True if words that the vocabulary lacks are copied. A model without masks then
            reads a placeholder that it cannot spell as one unknown word.
    """
    if not (tokenizer.has_masks or is_copying) or not texts:
        return Hidden(texts, constraints, [None] * len(texts))
    wanted = None if tokenizer.has_masks else partial(_is_unknown, tokenizer)
    found = [_hide(text, one, wanted) for text, one in zip(texts, constraints, strict=True)]
    return Hidden(*map(list, zip(*found, strict=True)))


def hide_copies(tokenizer: Tokenizer, segments: Sequence[Segment]) -> Hidden:
    """Mask what documents copy, for a model that has masks or copies unknown words."""
    is_unknown = partial(_is_unknown, tokenizer)
    if not (tokenizer.has_masks or is_unknown(MASKS[0])):
        return Hidden([one.text.strip() for one in segments], (), [None] * len(segments))
    wanted = None if tokenizer.has_masks else is_unknown
    found = [mask_copies(one, wanted) for one in segments]
    copies = [[own] if own else None for _, own in found]
    return Hidden([text for text, _ in found], (), copies)


def _is_unknown(tokenizer: Tokenizer, copy: str) -> bool:
    return tokenizer.config.unk_id in tokenizer.encode_source(copy)


def _hide(
    text: str, constraints: LineConstraints, wanted: Callable[[str], bool] | None
) -> tuple[str, LineConstraints, Copies | None]:
    if isinstance(text, CutLine):
        return text, constraints, None
    lines, copies = list[str](), list[Mapping[str, str]]()
    for line in text.split("\n"):
        # Lines of one text have symbols of their own, as long as there are enough.
        masked, own = mask(line, start=sum(map(len, copies)), wanted=wanted)
        lines.append(masked)
        copies.append(own)
    if wanted is not None and not any(copies):
        return text, constraints, None
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

    source_words, of_source = _split(translation.source_words, everything)

    def show(one: TranslatedHypothesis) -> TranslatedHypothesis:
        lines, own = one.text.split("\n"), copies
        if len(lines) != len(own):
            lines, own = [one.text], [everything]
        text = "\n".join(map(unmask, lines, own))
        parts = tuple(map(show, one.parts))
        if one.alignment is None:
            return replace(one, text=text, parts=parts)
        words, places = _split(one.words, everything)
        links = (product(of_source[i], places[j]) for i, j in one.alignment)
        alignment = tuple(chain.from_iterable(links))
        return replace(one, text=text, parts=parts, words=words, alignment=alignment)

    notes, found = translation.notes, translation.hypotheses
    words = dict.fromkeys(unmask(word, everything) for word in notes.unlinked_words)
    if notes.unknown_words or notes.unknown:
        unknown = {one: count for one, count in notes.unknown.items() if one not in everything}
        strange = tuple(unmask(word, everything) for word in notes.unknown_words)
        notes = replace(notes, unknown=unknown, unknown_words=strange)
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
        source_words=source_words,
    )


def _split(
    words: Sequence[str], copies: Mapping[str, str]
) -> tuple[tuple[str, ...], Sequence[range]]:
    """Put placeholders back into words; find the places of each, as one may have white space."""
    shown, places = list[str](), list[range]()
    for word in words:
        own = unmask(word, copies).split()
        places.append(range(len(shown), len(shown) + len(own)))
        shown += own
    return tuple(shown), places
