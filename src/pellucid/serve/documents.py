"""Translation of documents: their sentences with those of all clients, then their tags."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pellucid.documents.markup.segments import Element, Segment
from pellucid.documents.segment_writing import FEWEST_FOR_PLACEHOLDERS
from pellucid.errors import DataError
from pellucid.serve.answers.responses import Problem
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import Text, Translate

if TYPE_CHECKING:
    from pellucid.text.tokenizers.tokenizer import Tokenizer
    from pellucid.translate.masking import Hidden
    from pellucid.translate.results import Translation

# Translations by whether they have links, and the key of a segment.
Translations = Mapping[tuple[bool, object], "Translation"]


@dataclass(frozen=True)
class _Read:
    """A document and its distinct segments, with the places of their copies and no tags.

    Attributes:
        text: the document.
        segments: each with True if word links are needed to write its translation.
    """

    text: str
    segments: Sequence[tuple[Segment, bool]]

    def rows(self, found: Translations) -> Sequence[Sequence[object]]:
        """List the translations of the segments as the worker takes them."""
        rows: list[Sequence[object]] = []
        for segment, needs_links in self.segments:
            one = found[needs_links, segment.key]
            if one.error is not None:
                rows.append(((), [], one.error))
                continue
            answers = [(best.text, best.words, best.alignment) for best in one.hypotheses]
            rows.append((one.source_words, answers, _doubt(segment, one)))
        return rows


@dataclass(frozen=True)
class WrittenDocument:
    """A translated document.

    Attributes:
        text: the document; an archive is in Base64.
        unsure: of the texts to look at the line, the key and the reason.
    """

    text: str
    unsure: Sequence[tuple[int, str, str]]


def _doubt(segment: Segment, translation: Translation) -> str:
    """Say why a translation should be looked at; empty if nothing is known."""
    notes = translation.notes
    if notes.flags:
        return f"the translation looks wrong: {', '.join(notes.flags)}"
    from pellucid.translate.links.covered_choice import text_read

    rest = text_read(segment, translation)
    unknown = dict.fromkeys(one for one in (*notes.unknown_words, *notes.unknown) if one in rest)
    return f"unknown to the model: {' '.join(unknown)}" if unknown else ""


async def translate_documents(
    parts: Parts,
    task: Translate,
    documents: Sequence[str],
    form: str = "html",
    *,
    keeps_faulty: bool = False,
) -> list[WrittenDocument]:
    """Translate documents, keeping their tags.

    Args:
        parts: of the server.
        task: how to translate, with links.
        documents: fragments or whole documents.
        form: the name of their format.
        keeps_faulty: True to leave a sentence that cannot be translated as it is.

    Raises:
        Problem: 400, a sentence cannot be translated, or a document is not of its format; 413, it
            takes too long to read.
    """
    worker = parts.documents
    source, _, target = (dict(task.treatment).get("to") or "").rpartition(":")
    languages = (source or task.model.source, target or task.model.target)
    read = []
    try:
        for one in documents:
            described = await worker.read(one, form, languages)
            read.append(_Read(one, await asyncio.to_thread(_segments, described)))
    except DataError as error:
        raise Problem(400, f"Invalid request: {error}") from None
    # Links cost a pass of the decoder more, and only tags within sentences need them.
    plain = replace(task, align=None)
    found = {
        **await _translate(parts, task, read, needs_links=True, has_copies=False),
        **await _translate(parts, _wide(parts, task), read, needs_links=True, has_copies=True),
        **await _translate(parts, plain, read, needs_links=False, has_copies=False),
    }
    fault = next((one.error for one in found.values() if one.error is not None), None)
    if fault is not None and not keeps_faulty:
        raise Problem(400, f"Cannot translate text: {fault}")
    written = []
    for document in read:
        rows = await asyncio.to_thread(document.rows, found)
        answer = await worker.write(document.text, form, languages, rows)
        written.append(WrittenDocument(*answer))
    return written


def _wide(parts: Parts, task: Translate) -> Translate:
    """Search for several translations, among which one with all placeholders is sought."""
    given = dict(task.options)
    decoding = task.model.translator.decoding.model_copy(update=given)
    if decoding.sample:
        return task
    limits = parts.settings.limits
    most = max(decoding.beam, min(FEWEST_FOR_PLACEHOLDERS, limits.beam, limits.count))
    return replace(task, options=tuple({**given, "beam": most, "n_best": most}.items()))


def _segments(
    described: Sequence[tuple[str, bool, Sequence[tuple[int, int]]]],
) -> list[tuple[Segment, bool]]:
    found = []
    for text, needs_links, copies in described:
        elements = {
            number: Element(start, end, (), (), is_copy=True)
            for number, (start, end) in enumerate(copies)
        }
        found.append((Segment(text=text, elements=elements), needs_links))
    return found


async def _translate(
    parts: Parts, task: Translate, read: Sequence[_Read], *, needs_links: bool, has_copies: bool
) -> Translations:
    # In a thread, which others interrupt: a page may have thousands of segments.
    keys, hidden, texts = await asyncio.to_thread(
        _hide, task.model.translator.tokenizers, read, (needs_links, has_copies)
    )
    translations = await parts.translate(task, texts)
    shown = await asyncio.to_thread(hidden.show, translations, [str(key[0]) for key in keys])
    return {(needs_links, key): one for key, one in zip(keys, shown, strict=True)}


def _hide(
    tokenizers: Sequence[Tokenizer], read: Sequence[_Read], kind: tuple[bool, bool]
) -> tuple[list[tuple[object, ...]], Hidden, list[Text]]:
    """Collect the distinct segments of all documents, and mask what they copy."""
    from pellucid.translate.masking import hide_copies

    by_key = {
        segment.key: segment
        for document in read
        for segment, is_linked in document.segments
        if (is_linked, bool(segment.copies)) == kind
    }
    hidden = hide_copies(tokenizers, list(by_key.values()))
    return list(by_key), hidden, [*map(Text, hidden.texts)]
