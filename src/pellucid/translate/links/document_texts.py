"""The texts of documents, translated: searched for widely where placeholders may be lost, chosen.

The command and the service both follow `translate_texts`, so that a document has the same words
whoever translates it.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pellucid.config import DecodingConfig
from pellucid.decode.hypothesis import Hypothesis
from pellucid.documents.markup.segments import Segment
from pellucid.documents.placeholders import keeps_copies
from pellucid.documents.segment_writing import FEWEST_FOR_PLACEHOLDERS
from pellucid.translate.attended_words import GivenPair, unlinked_words
from pellucid.translate.judging import judge
from pellucid.translate.masking import Hidden, hide_copies
from pellucid.translate.results import Flag, Translation
from pellucid.translate.text_translator import TextTranslator

Key = tuple[object, ...]

LOOKS_WRONG = {
    "repeats": "the translation repeats itself",
    "long": "the translation is far longer than any that the model learned from",
    "unfinished": "the translation is without an end",
    "stuck": "the translation attends to one word all the time",
    "empty": "the translation is empty",
    "invented": "the translation has words for a text without letters",
    "unsure": "the model is not confident",
    "reordered": "placeholders that programs fill in by their order have another order",
    "partial": "words may be missing in the translation",
}
"""Why a translation should be looked at, by its flag. Programs compare the part before a colon."""


class DocumentText(NamedTuple):
    """A text of a document, and what decides how it is translated.

    Attributes:
        segment: the text with its copies; tags need not be known.
        has_tags: True if the places of tags must be found by word links.
        is_wide: True if several translations are searched, of which one must keep the copies or
            the blocks of templates.
    """

    segment: Segment
    has_tags: bool
    is_wide: bool

    @classmethod
    def of(cls, segment: Segment) -> DocumentText:
        """Describe a segment."""
        return cls(segment, segment.has_tags, segment.is_wide)

    @property
    def key(self) -> Key:
        """What texts with the same translation have in common."""
        return self.has_tags, *self.segment.key


class TextsAsked(NamedTuple):
    """Texts for the model.

    Attributes:
        texts: the texts.
        is_linked: True if word links are needed.
        is_wide: True if several translations are, as `wide_search` has them.
        has_copies: True if unknown words must stay the source's, as placeholders may be some.
    """

    texts: Sequence[str]
    is_linked: bool
    is_wide: bool
    has_copies: bool


Asking = Generator[TextsAsked, list[Translation], dict[Key, Translation]]


def wide_search(decoding: DecodingConfig, most: int = FEWEST_FOR_PLACEHOLDERS) -> dict[str, Any]:
    """Return the options that search for several translations.

    Args:
        decoding: the options of other texts.
        most: the translations that may be asked for.
    """
    if decoding.sample:
        return {}
    width = max(decoding.beam, min(FEWEST_FOR_PLACEHOLDERS, most))
    return {"beam": width, "n_best": width}


def translate_texts(translator: TextTranslator, given: Iterable[DocumentText]) -> Asking:
    """Translate the texts of documents, each once; whoever drives this asks the model.

    Args:
        translator: the model.
        given: the texts.

    Yields:
        Texts for the model; it takes their translations.

    Returns:
        The translation of each text by its key: the one to write is the first of the hypotheses.
    """
    texts = dict[Key, DocumentText]()
    for one in given:
        known = texts.setdefault(one.key, one)
        if one.is_wide and not known.is_wide:
            texts[one.key] = one
    found = dict[Key, Translation]()

    def ask(own: Sequence[DocumentText], *, is_linked: bool, is_wide: bool) -> Asking:
        if own:
            segments = [one.segment for one in own]
            hidden = hide_copies(translator.tokenizers, segments)
            has_copies = any(one.copies for one in segments)
            answers = yield TextsAsked([*hidden.texts], is_linked, is_wide, has_copies)
            shown = choose_covered(translator, segments, hidden, answers)
            for one, translation in zip(own, shown, strict=True):
                found[one.key] = _without_copies(translation, one.segment)
        return found

    kinds: dict[tuple[bool, bool], list[DocumentText]] = {}
    for one in texts.values():
        kinds.setdefault((one.has_tags, one.is_wide), []).append(one)
    for (has_tags, is_wide), own in sorted(kinds.items(), key=lambda kind: kind[0]):
        yield from ask(own, is_linked=has_tags, is_wide=is_wide)
        if is_wide and not has_tags:
            # If no translation has all placeholders, links find places for them.
            lost = [one for one in own if not fits(one.segment, found[one.key])]
            yield from ask(lost, is_linked=True, is_wide=False)
    return found


def doubt_of(translation: Translation) -> str:
    """Say why a translation should be looked at; empty if nothing is known against it."""
    # Unknown words are reported only if nothing worse is known.
    return "; ".join(doubts_of(translation)[: len(translation.notes.flags) or 1])


def doubts_of(translation: Translation) -> list[str]:
    """List each reason to look at a translation."""
    notes = translation.notes
    words = " ".join(notes.unlinked_words)
    named = {"partial": f": {words}"} if words else {}
    found = [f"{LOOKS_WRONG[one]}{named.get(one, '')}" for one in notes.flags]
    unknown = dict.fromkeys((*notes.unknown_words, *notes.unknown))
    return [*found, f"unknown to the model: {' '.join(unknown)}"] if unknown else found


def _without_copies(translation: Translation, segment: Segment) -> Translation:
    """Leave out the notes on placeholders, which return as they are whatever the model reads."""
    notes = translation.notes
    rest = text_read(segment, translation)
    unknown = {one: count for one, count in notes.unknown.items() if one in rest}
    words = tuple(one for one in notes.unknown_words if one in rest)
    if len(unknown) != len(notes.unknown) or len(words) != len(notes.unknown_words):
        share = notes.unknown_tokens if unknown or words else 0.0
        notes = replace(notes, unknown=unknown, unknown_words=words, unknown_tokens=share)
    # Whoever writes the text puts a lost placeholder back, and says where it stands.
    unlinked = tuple(one for one in notes.unlinked_words if _has_own_word(one, segment))
    if notes.unlinked_words and not unlinked:
        flags = tuple(one for one in notes.flags if one != "partial")
        notes = replace(notes, flags=flags)
    return replace(translation, notes=replace(notes, unlinked_words=unlinked))


def _has_own_word(text: str, segment: Segment) -> bool:
    """Tell whether a part of a text is more than a placeholder between marks."""
    rest = text
    for copied in segment.copies:
        rest = rest.replace(copied, "")
    return rest == text or any(map(str.isalnum, rest))


FAR = math.log(20)
"""How much less likely than the first hypothesis, in nats, makes another one a guess."""

_Place = tuple[int, int]
"""A text, and one of its hypotheses."""


def choose_covered(
    translator: TextTranslator,
    segments: Sequence[Segment],
    hidden: Hidden,
    found: Sequence[Translation],
) -> list[Translation]:
    """Put the hypothesis first that keeps all placeholders and leaves out the fewest words.

    Of several the most likely one counts. Its flags take the place of those of the first one.

    Args:
        translator: the model.
        segments: of documents.
        hidden: their texts as the model read them.
        found: the translations of these.

    Returns:
        The translations with placeholders.
    """
    written = hidden.show([*found], [one.text.strip() for one in segments])
    # In a chain nothing links the words of the first text and the last.
    if len(translator.tokenizers) > 1:
        return written
    fitting = dict[int, list[int]]()
    for row, (segment, shown) in enumerate(zip(segments, written, strict=True)):
        own = [k for k, one in enumerate(shown.hypotheses) if keeps_copies(segment, one.text)]
        raw = found[row].hypotheses
        straight = [k for k in own if not hidden.is_reordered(row, raw[k].text)]
        if own:
            fitting[row] = straight or own
    left_out = _left_out(translator, hidden, found, [(row, own[0]) for row, own in fitting.items()])
    # Most are complete; only for the others it is worth looking at what else there is.
    others = [(row, k) for row, own in fitting.items() if left_out[row, own[0]] for k in own[1:]]
    left_out |= _left_out(translator, hidden, found, others)
    for row, own in fitting.items():
        best = min(own, key=lambda k: len(left_out.get((row, k), ())))
        words = left_out[row, best]
        shown = written[row]
        notes = shown.notes
        if best:
            flags = _judge(translator, hidden, found, (row, best))
            notes = replace(notes, flags=tuple(flags), unlinked_words=())
        if words:
            flags = dict.fromkeys((*notes.flags, "partial"))
            notes = replace(notes, flags=tuple(flags), unlinked_words=words)
        each = shown.hypotheses
        each = (each[best], *each[:best], *each[best + 1 :])
        written[row] = replace(shown, hypotheses=each, notes=notes)
    return written


def _left_out(
    translator: TextTranslator,
    hidden: Hidden,
    found: Sequence[Translation],
    places: Sequence[_Place],
) -> dict[_Place, tuple[str, ...]]:
    """Find the words that hypotheses leave out, where a head was taught word links."""
    nothing = dict.fromkeys(places, tuple[str, ...]())
    taught = translator.taught_links
    if taught is None or translator.tokenizer.needs_code:
        return nothing
    # A text that was split has no tokens of its own.
    known = [(row, k) for row, k in places if not found[row].hypotheses[k].parts]
    encode = translator.tokenizer.encode_source
    pairs = []
    for row, k in known:
        own = found[row].hypotheses[k]
        text = hidden.texts[row]
        pairs.append(GivenPair(text, encode(text), own.ids, own.token_log_probabilities))
    reader = translator.attention_reader()
    words = unlinked_words(reader, *taught, pairs)
    return nothing | dict(zip(known, words, strict=True))


def _judge(
    translator: TextTranslator, hidden: Hidden, found: Sequence[Translation], place: _Place
) -> dict[Flag, None]:
    """Judge a hypothesis by itself, and by how far it is behind the first."""
    row, k = place
    text = hidden.texts[row]
    own = found[row].hypotheses[k]
    logs = own.token_log_probabilities
    flags = judge(
        text,
        translator.tokenizer.encode_source(text),
        own.text,
        Hypothesis(own.ids, logs, is_finished=True, score=own.score),
        translator.learned,
        mean=own.log_probability / max(1, len(logs)),
        has_own_length=True,
        is_sample=False,
    )
    if found[row].hypotheses[0].log_probability - own.log_probability > FAR:
        flags.append("unsure")
    if hidden.is_reordered(row, own.text):
        flags.append("reordered")
    return dict.fromkeys(flags)


def fits(segment: Segment, translation: Translation) -> bool:
    """Tell whether some hypothesis keeps all placeholders."""
    return any(keeps_copies(segment, one.text) for one in translation.hypotheses)


def text_read(segment: Segment, translation: Translation) -> str:
    """Return what models read of a segment: its text without copies, and the texts of a chain.

    A placeholder returns as it is, whatever the model reads. What a later model of a chain does
    not know stands in the text that the one before it wrote.
    """
    own = segment.text
    for copied in segment.copies:
        own = own.replace(copied, " ", 1)
    return "\n".join((own, *(step.translation for step in translation.through[:-1])))
