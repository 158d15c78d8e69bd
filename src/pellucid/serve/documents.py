"""Translation of documents: their sentences with those of all clients, then their tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pellucid.documents.markup.placing import place_tags
from pellucid.documents.markup.reading import read_segments
from pellucid.documents.markup.segments import Piece, Segment, find_segments, spell
from pellucid.serve.answers.responses import Problem
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import Text, Translate

if TYPE_CHECKING:
    from pellucid.translate.results import Translation

Translations = Mapping[str, "Translation"]
"""Translations by text; those with links and those without."""

Read = tuple[list[Piece], list[Segment], list[Segment]]
"""A document as parts, its segments that need links, and the others."""


async def translate_markup(parts: Parts, task: Translate, documents: Sequence[str]) -> list[str]:
    """Translate HTML, keeping its tags.

    Args:
        parts: of the server.
        task: how to translate, with links.
        documents: fragments or whole documents.

    Raises:
        Problem: 400, a sentence cannot be translated.
    """
    languages = (task.model.source, dict(task.treatment).get("to") or task.model.target)
    # One by one, so that a long list does not hold up other requests.
    read = [await parts.aside(partial(_read, one, languages)) for one in documents]
    linked = await _translate(parts, task, (one for _, own, _ in read for one in own))
    plain = await _translate(
        parts, replace(task, align=None), (one for _, _, own in read for one in own)
    )
    return [await parts.aside(partial(_write, one, linked, plain)) for one in read]


def _read(document: str, languages: tuple[str, str]) -> Read:
    pieces = read_segments(document, languages)
    segments = list(find_segments(pieces))
    needing = [one for one in segments if not one.is_blank and one.needs_links]
    return pieces, needing, [one for one in segments if not one.is_blank and not one.needs_links]


async def _translate(parts: Parts, task: Translate, segments: Iterable[Segment]) -> Translations:
    from pellucid.decode.constraints.request import Constraints

    # Menus and tables repeat their texts.
    texts = list(dict.fromkeys(one.text.strip() for one in segments))
    translations = await parts.scheduler.compute(
        task, [Text(text, Constraints()) for text in texts]
    )
    parts.metrics.texts.labels(task.model.name, "translate").inc(len(texts))
    fault = next((one.error for one in translations if one.error is not None), None)
    if fault is not None:
        raise Problem(400, f"Cannot translate text: {fault}")
    return dict(zip(texts, translations, strict=True))


def _write(read: Read, linked: Translations, plain: Translations) -> str:
    """Write a document with its translations."""
    pieces = read[0]
    for segment in find_segments(pieces):  # Those inside the tags of others come first.
        if not segment.is_blank:
            found = linked if segment.needs_links else plain
            segment.written = _write_segment(segment, found[segment.text.strip()])
    return spell(pieces)


def _write_segment(segment: Segment, translation: Translation) -> str:
    text, best = segment.text, translation.best
    before = text[: len(text) - len(text.lstrip())]
    whole = f"{before}{translation.text}{text[len(text.rstrip()) :]}"
    if best.alignment is None:
        return place_tags(segment, whole, (), (), ())
    return place_tags(segment, whole, translation.source_words, best.words, best.alignment)
