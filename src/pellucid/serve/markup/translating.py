"""Translation of documents: their sentences with those of all clients, then their tags."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pellucid.serve.answers.responses import Problem
from pellucid.serve.markup.placing import place_tags, place_tags_around
from pellucid.serve.markup.reading import Segment, read_segments
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import Text, Translate

if TYPE_CHECKING:
    from pellucid.translate.results import Translation

Translations = dict[tuple[int, int], "Translation"]


async def translate_markup(parts: Parts, task: Translate, documents: Sequence[str]) -> list[str]:
    """Translate HTML, keeping its tags.

    Args:
        parts: of the server.
        task: how to translate, with links.
        documents: fragments or whole documents.

    Raises:
        Problem: 400, a sentence cannot be translated.
    """
    # One by one, so that a long list does not hold up other requests.
    read = [await parts.aside(partial(read_segments, one)) for one in documents]
    with_links: list[tuple[int, int]] = []
    without: list[tuple[int, int]] = []
    for number, pieces in enumerate(read):
        for place, piece in enumerate(pieces):
            if isinstance(piece, Segment) and not piece.is_blank:
                (with_links if piece.needs_links else without).append((number, place))
    found: Translations = {}
    for places, how in ((with_links, task), (without, replace(task, align=None))):
        found |= await _translate(parts, how, read, places)
    return [
        await parts.aside(partial(_write_all, number, pieces, found))
        for number, pieces in enumerate(read)
    ]


async def _translate(
    parts: Parts,
    task: Translate,
    read: Sequence[Sequence[str | Segment]],
    places: Sequence[tuple[int, int]],
) -> Translations:
    from pellucid.decode.constraints.request import Constraints

    segments = [read[number][place] for number, place in places]
    texts = [Text(one.text.strip(), Constraints()) for one in segments if isinstance(one, Segment)]
    translations = await parts.scheduler.compute(task, texts)
    parts.metrics.texts.labels(task.model.name, "translate").inc(len(texts))
    fault = next((one.error for one in translations if one.error is not None), None)
    if fault is not None:
        raise Problem(400, f"Cannot translate text: {fault}")
    return dict(zip(places, translations, strict=True))


def _write_all(number: int, pieces: Sequence[str | Segment], found: Translations) -> str:
    return "".join(_write(piece, found.get((number, place))) for place, piece in enumerate(pieces))


def _write(piece: str | Segment, translation: Translation | None) -> str:
    """Write a part of a document, translated if it has a translation."""
    if isinstance(piece, str):
        return piece
    if translation is None:
        return piece.raw
    text = piece.text
    before = text[: len(text) - len(text.lstrip())]
    after = text[len(text.rstrip()) :]
    whole = f"{before}{translation.text}{after}"
    if not piece.elements and not piece.points:
        return html.escape(whole, quote=False)
    best = translation.best
    if best.alignment is None:
        return place_tags_around(piece, whole)
    return place_tags(piece, whole, translation.source_words, best.words, best.alignment)
