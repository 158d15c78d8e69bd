"""Translation of documents: their sentences with those of all clients, then their tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pellucid.documents.formats import FORMATS
from pellucid.documents.markup.segments import Segment
from pellucid.documents.segment_writing import write_segment
from pellucid.documents.units import How, Unit
from pellucid.errors import DataError
from pellucid.serve.answers.responses import Problem
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import Text, Translate

if TYPE_CHECKING:
    from pellucid.translate.results import Translation

# Translations by the key of a segment; those with links and those without.
Translations = Mapping[object, "Translation"]

# A document as parts, its segments that need links, and the others.
Read = tuple[list[str | Unit], list[Segment], list[Segment]]


async def translate_documents(
    parts: Parts, task: Translate, documents: Sequence[str], form: str = "html"
) -> list[str]:
    """Translate documents, keeping their tags.

    Args:
        parts: of the server.
        task: how to translate, with links.
        documents: fragments or whole documents.
        form: the name of their format.

    Raises:
        Problem: 400, a sentence cannot be translated, or a document is not of its format.
    """
    languages = (task.model.source, dict(task.treatment).get("to") or task.model.target)
    # One by one, so that a long list does not hold up other requests.
    read = [await parts.aside(partial(_read, one, languages, form)) for one in documents]
    # Links cost a pass of the decoder more, and only tags within sentences need them.
    linked = await _translate(parts, task, (one for _, own, _ in read for one in own))
    plain = await _translate(
        parts, replace(task, align=None), (one for _, _, own in read for one in own)
    )
    return [await parts.aside(partial(_write, one, linked, plain)) for one in read]


def _read(document: str, languages: tuple[str, str], form: str) -> Read:
    try:
        pieces = list(FORMATS[form].read(document, How(languages=languages)))
    except DataError as error:
        raise Problem(400, f"Invalid request: {error}") from None
    segments = [one for unit in pieces if isinstance(unit, Unit) for one in unit.segments]
    needing = [one for one in segments if one.needs_links]
    return pieces, needing, [one for one in segments if not one.needs_links]


async def _translate(parts: Parts, task: Translate, segments: Iterable[Segment]) -> Translations:
    from pellucid.translate.masking import hide_copies

    # Menus and tables repeat their texts.
    by_key = {one.key: one for one in segments}
    hidden = hide_copies(task.model.translator.tokenizer, [*by_key.values()])
    texts = [one.text.strip() for one in by_key.values()]
    translations = await parts.translate(task, [*map(Text, hidden.texts)])
    fault = next((one.error for one in translations if one.error is not None), None)
    if fault is not None:
        raise Problem(400, f"Cannot translate text: {fault}")
    return dict(zip(by_key, hidden.show(translations, texts), strict=True))


def _write(read: Read, linked: Translations, plain: Translations) -> str:
    """Write a document with its translations, all marked if the format has marks."""
    for unit in read[0]:
        if isinstance(unit, Unit):
            unit.is_marked = True
            for segment in unit.segments:
                found = linked if segment.needs_links else plain
                one = found[segment.key]
                write_segment(segment, one.hypotheses[:1], one.source_words)
    return "".join(map(str, read[0]))
