"""Chooses the hypothesis that is written for a text with placeholders, and judges that one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pellucid.decode.hypothesis import Hypothesis
from pellucid.documents.markup.segments import Segment
from pellucid.documents.placeholders import keeps_copies
from pellucid.translate.attended_words import GivenPair, unlinked_words
from pellucid.translate.judging import judge
from pellucid.translate.masking import Hidden
from pellucid.translate.results import Flag, Translation
from pellucid.translate.text_translator import TextTranslator

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
