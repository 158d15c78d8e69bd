"""Masks around a model that has them: symbols in, placeholders out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import NamedTuple

from pellucid.config.config_json import MASKS
from pellucid.decode.constraints.request import Constraints, LineConstraints
from pellucid.documents.markup.segments import Segment
from pellucid.documents.placeholder_masks import (
    SYMBOL,
    Wanted,
    is_reordered,
    mask,
    mask_copies,
    mask_with,
    unmask,
)
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
        rows = zip(translations, sources, self.texts, self.copies, strict=True)
        return [
            one if copies is None else _show(one, source, text, copies)
            for one, source, text, copies in rows
        ]

    def is_reordered(self, row: int, text: str) -> bool:
        """Tell whether a translation of a text changed what programs fill in by its order."""
        copies = self.copies[row]
        return copies is not None and any(is_reordered(*one) for one in _lines(text, copies))

    def show_pieces(self, pieces: Iterable[str]) -> Iterator[str]:
        """Put the placeholders back into the pieces of the translation of the only text."""
        (copies,) = self.copies
        if copies is None:
            yield from pieces
            return
        # The end may still change: a symbol without a placeholder may go with its space.
        unsure = " " + "".join({*MASKS} - {*_join(copies)})
        whole = said = ""
        # None marks the end, after which everything is decided.
        for piece in chain(pieces, [None]):
            whole += piece or ""
            decided = whole if piece is None else whole.rstrip(unsure)
            shown = "\n".join(map(unmask, decided.split("\n"), copies))
            if shown != said:
                yield shown[len(said) :]
            said = shown


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
    wanted = tokenizer.maskable if tokenizer.has_masks else partial(_is_unknown, tokenizer)
    is_copying = not tokenizer.has_masks
    found = [
        _hide(text, one, wanted, is_copying=is_copying)
        for text, one in zip(texts, constraints, strict=True)
    ]
    return Hidden(*map(list, zip(*found, strict=True)))


def hide_copies(tokenizers: Sequence[Tokenizer], segments: Sequence[Segment]) -> Hidden:
    """Mask what documents copy, for models that all have masks or copy unknown words.

    Args:
        tokenizers: of the model, or of each model of a chain.
        segments: of documents.
    """
    # A model that can spell a symbol, for example in bytes, would not copy it as unknown.
    if not all(one.has_masks or _is_unknown(one, MASKS[0]) for one in tokenizers):
        return Hidden([one.text.strip() for one in segments], (), [None] * len(segments))
    each = [one.maskable if one.has_masks else partial(_is_unknown, one) for one in tokenizers]
    rules = [one for one in each if one is not None]
    wanted = (lambda copy: all(rule(copy) for rule in rules)) if rules else None
    found = [mask_copies(one, wanted) for one in segments]
    copies = [[own] if own else None for _, own in found]
    return Hidden([text for text, _ in found], (), copies)


def _is_unknown(tokenizer: Tokenizer, copy: str) -> bool:
    return tokenizer.config.unk_id in tokenizer.encode_source(copy)


def _hide(
    text: str, constraints: LineConstraints, wanted: Wanted | None, *, is_copying: bool
) -> tuple[str, LineConstraints, Copies | None]:
    if isinstance(text, CutLine):
        return text, constraints, None
    lines = list[str]()
    copies = list[Mapping[str, str]]()
    for line in text.split("\n"):
        # Each line of a text has other symbols, as long as there are enough.
        masked, own = mask(line, start=sum(map(len, copies)), wanted=wanted)
        lines.append(masked)
        copies.append(own)
    # Only unknown words are hidden here. Without one, nothing has to come back.
    if is_copying and not any(copies):
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


def _lines(text: str, copies: Copies) -> Sequence[tuple[str, Mapping[str, str]]]:
    """Pair the lines of a translation with their placeholders; a part of it has all."""
    lines = text.split("\n")
    if len(lines) != len(copies):
        return [(text, _join(copies))]
    return [*zip(lines, copies, strict=True)]


def _lost(one: TranslatedHypothesis, copies: Copies) -> list[str]:
    """List the placeholders that a translation lacks."""
    lines = _lines(one.text, copies)
    return [copy for line, own in lines for symbol, copy in own.items() if symbol not in line]


def _show(translation: Translation, source: str, masked: str, copies: Copies) -> Translation:
    """Put placeholders back; say if a translation has lost one."""
    everything = _join(copies)
    source_words, of_source = _split(translation.source_words, masked, copies)

    def show(one: TranslatedHypothesis) -> TranslatedHypothesis:
        text = "\n".join(unmask(*line) for line in _lines(one.text, copies))
        parts = tuple(map(show, one.parts))
        middle = tuple(unmask(between, everything) for between in one.middle)
        one = replace(one, middle=middle)
        if one.alignment is None:
            return replace(one, text=text, parts=parts)
        words, places = _split(one.words, one.text, copies)
        # A placeholder with spaces is several words for links (docs/decisions/0027).
        links = (product(of_source[i], places[j]) for i, j in one.alignment)
        alignment = tuple(chain.from_iterable(links))
        return replace(one, text=text, parts=parts, words=words, alignment=alignment)

    notes = translation.notes
    found = translation.hypotheses
    words = dict.fromkeys(unmask(word, everything) for word in notes.unlinked_words)
    if notes.unknown_words or notes.unknown:
        # The symbols were put in here, so they say nothing about the user's characters.
        unknown = {one: count for one, count in notes.unknown.items() if one not in everything}
        strange = tuple(unmask(word, everything) for word in notes.unknown_words)
        notes = replace(notes, unknown=unknown, unknown_words=strange)
    if found and any(is_reordered(*line) for line in _lines(found[0].text, copies)):
        notes = replace(notes, flags=tuple(dict.fromkeys((*notes.flags, "reordered"))))
    if found and all(_lost(one, copies) for one in found):
        notes = replace(notes, flags=tuple(dict.fromkeys((*notes.flags, "partial"))))
        words |= dict.fromkeys(_lost(found[0], copies))
    notes = replace(notes, unlinked_words=tuple(words)) if words else notes
    return replace(
        translation,
        source=source,
        hypotheses=tuple(map(show, found)),
        notes=notes,
        source_words=source_words,
        terms=tuple(
            replace(
                one,
                written=unmask(one.written, everything),
                reason=unmask(one.reason, everything),
            )
            for one in translation.terms
        ),
        through=tuple(
            replace(step, translation=unmask(step.translation, everything))
            for step in translation.through
        ),
    )


def _split(
    words: Sequence[str], text: str, copies: Copies
) -> tuple[tuple[str, ...], Sequence[range]]:
    """Put placeholders back into the words of a text, each those of its line.

    Returns:
        The words, and the places of each word before, as a placeholder may have white space.
    """
    own = [own.get(one, "") for line, own in _lines(text, copies) for one in SYMBOL.findall(line)]
    symbols = SYMBOL.findall("".join(words))
    if len(symbols) != len(own):  # Subwords are not the text.
        own = [_join(copies).get(one, "") for one in symbols]
    left = iter(own)
    shown = list[str]()
    places = list[range]()
    for word in words:
        new = SYMBOL.sub(lambda _: next(left), word).split()
        places.append(range(len(shown), len(shown) + len(new)))
        shown += new
    return tuple(shown), places
