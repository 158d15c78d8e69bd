"""Translation of documents: their sentences with those of all clients, then their tags."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pellucid.decode.constraints.term_reports import doubts_about, find_used
from pellucid.documents.markup.segments import Element, Segment, Syntax
from pellucid.errors import DataError
from pellucid.serve.answers.responses import Problem
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import Text, Translate, estimate_tokens
from pellucid.translate.constraints import constraints_of

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary
    from pellucid.decode.constraints.terms import UsedTerm
    from pellucid.serve.worker.document_worker import Described
    from pellucid.translate.links.document_texts import Asking, DocumentText, Key, TextsAsked
    from pellucid.translate.results import Translation

    Translations = Mapping[Key, Translation]
    Used = tuple[UsedTerm, ...]


@dataclass(frozen=True)
class _Read:
    """A document and its distinct texts.

    Attributes:
        text: the document.
        texts: as the model is asked for them.
    """

    text: str
    texts: Sequence[DocumentText]

    def rows(
        self, found: Translations, glossary: Glossary | None
    ) -> tuple[Sequence[Sequence[object]], Sequence[Used]]:
        """List the translations of the texts as the worker takes them, and the terms of each."""
        from pellucid.translate.links.document_texts import doubt_of

        rows: list[Sequence[object]] = []
        terms: list[Used] = []
        for text in self.texts:
            one = found[text.key]
            source = text.segment.text.strip()
            if one.error is not None:
                rows.append(((), [], one.error))
                terms.append(find_used(glossary, source, "", one.terms))
                continue
            answers = [(best.text, best.words, best.alignment) for best in one.hypotheses]
            used = find_used(glossary, source, one.text, one.terms)
            rows.append((one.source_words, answers, next(iter(doubts_about(used)), doubt_of(one))))
            terms.append(used)
        return rows, terms


@dataclass(frozen=True)
class WrittenDocument:
    """A translated document.

    Attributes:
        text: the document; an archive is in Base64.
        unsure: of the texts to look at the line, the key and the reason.
        terms: of a glossary, those of each text, in their order.
    """

    text: str
    unsure: Sequence[tuple[int, str, str]]
    terms: Used = ()


def as_answer(unsure: Sequence[tuple[int, str, str]]) -> dict[str, object]:
    """Return the field of an answer that names the texts to look at; nothing without any."""
    rows = [{"line": line, "key": key, "reason": reason} for line, key, reason in unsure]
    return {"unsure": rows} if rows else {}


async def translate_documents(
    parts: Parts,
    task: Translate,
    documents: Sequence[str],
    form: str = "html",
    *,
    keeps_faulty: bool = False,
    glossary: Glossary | None = None,
) -> list[WrittenDocument]:
    """Translate documents, keeping their tags.

    Args:
        parts: of the server.
        task: how to translate, with links.
        documents: fragments or whole documents.
        form: the name of their format.
        keeps_faulty: True to leave a sentence that cannot be translated as it is.
        glossary: terms that translations should hold.

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
            read.append(_Read(one, await asyncio.to_thread(_texts, described)))
    except DataError as error:
        raise Problem(400, f"Invalid request: {error}") from None
    texts = [one for document in read for one in document.texts]
    found = await _translate(parts, task, texts, glossary)
    fault = next((one.error for one in found.values() if one.error is not None), None)
    if fault is not None and not keeps_faulty:
        raise Problem(400, f"Cannot translate text: {fault}")
    written = []
    for document in read:
        rows, terms = await asyncio.to_thread(document.rows, found, glossary)
        text, unsure, places = await worker.write(document.text, form, languages, rows)
        used: list[UsedTerm] = []
        for number, is_written in places if glossary else ():
            own = document.texts[number].segment.text.strip()
            # Where the source stayed, no term is written.
            used += terms[number] if is_written else find_used(glossary, own, "", terms[number])
        written.append(WrittenDocument(text, unsure, tuple(used)))
    return written


def _texts(described: Sequence[Described]) -> list[DocumentText]:
    from pellucid.translate.links.document_texts import DocumentText

    found = []
    for text, has_tags, is_wide, has_markup, copies in described:
        elements = {
            number: Element(start, end, (), (), is_copy=True)
            for number, (start, end) in enumerate(copies)
        }
        segment = Segment(text=text, elements=elements, syntax=Syntax({}, has_markup=has_markup))
        found.append(DocumentText(segment, has_tags, is_wide))
    return found


async def _translate(
    parts: Parts, task: Translate, texts: Sequence[DocumentText], glossary: Glossary | None
) -> Translations:
    """Translate texts as the command does, together with what others ask of the model."""
    from pellucid.translate.links.document_texts import wide_search

    limits = parts.settings.limits
    decoding = task.model.translator.decoding.model_copy(update=dict(task.options))
    wide = wide_search(decoding, min(limits.beam, limits.count))
    # Links cost a pass of the decoder more, and only tags within sentences need them.
    cost = sum(estimate_tokens(one.segment.text) for one in texts if one.is_wide)
    asking: list[Asking] = []
    found: list[Translation] | None = None
    while True:
        # Choosing among hypotheses reads attention, in turns with what others compute.
        work = partial(_next, task, texts, asking, found)
        asked, translations = await parts.aside(work, cost=max(1, cost))
        if asked is None:
            return translations
        options = {**dict(task.options), **(wide if asked.is_wide else {})}
        treatment = dict(task.treatment)
        if asked.has_copies:
            treatment["unknown"] = "source-word"
        own = replace(
            task,
            options=tuple(options.items()),
            treatment=tuple(treatment.items()),
            align=task.align if asked.is_linked else None,
        )
        constraints = (constraints_of(one, "", (), (), (), glossary) for one in asked.texts)
        found = await parts.translate(own, [*map(Text, asked.texts, constraints)])


def _next(
    task: Translate,
    texts: Sequence[DocumentText],
    asking: list[Asking],
    found: list[Translation] | None,
) -> tuple[TextsAsked | None, Translations]:
    """Go on to the next texts that the model is asked for; at the end there are none."""
    from pellucid.translate.links.document_texts import translate_texts

    if not asking:
        # Under changes the translator may be made here, which only the computing thread may do.
        translator = task.model.changed(task.changes)
        asking.append(translate_texts(translator, texts))
    try:
        return (next(asking[0]) if found is None else asking[0].send(found)), {}
    except StopIteration as end:
        translations: Translations = end.value
        return None, translations
