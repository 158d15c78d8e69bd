"""The routes that translate files, as LibreTranslate's clients use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from pellucid.decode.constraints.term_reports import count_terms, doubts_about, find_used
from pellucid.errors import DataError
from pellucid.serve.answers.responses import NOT_KEPT, Problem, reply
from pellucid.serve.compat import schemas
from pellucid.serve.compat.language_pairs import Detector, Languages, detect_each
from pellucid.serve.compat.schemas import read_fields
from pellucid.serve.compat.translated_texts import fit_given, task_of, with_terms
from pellucid.serve.compat.uploads import LINES_OF_A_PART, FileStore, Upload, read_upload
from pellucid.serve.documents import WrittenDocument, as_answer, translate_documents
from pellucid.serve.operations import BASE, DOOR, Operation, libre_fact, libre_work
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import Translate

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary
    from pellucid.decode.constraints.terms import UsedTerm
    from pellucid.translate.results import Translation

MOST_JUDGED = 5000
"""Characters of a file by which its language is judged."""


def file_operations(parts: Parts, languages: Languages) -> list[Operation]:
    """Make the routes that translate files.

    Args:
        parts: of the server.
        languages: of its models.
    """
    to_sources = Detector(languages.sources)
    # In memory: texts of clients are written to no disk.
    store = FileStore()

    async def translate_a_file(request: Request) -> Response:
        """Translate a file, and say where to fetch it."""
        fields = await read_fields(request, parts.settings)
        if fields.file is None:
            raise Problem(400, "Invalid request: missing file parameter")
        if not fields.file_name:
            raise Problem(400, "Invalid request: empty file")
        source = fields.text("source")
        target = languages.check(fields.text("target"))
        upload = read_upload(fields.file_name, fields.file)
        found: dict[str, Any] = {}
        if source == "auto":
            (detected,) = await detect_each(
                parts.scheduler, to_sources, [await _text_in(parts, upload)]
            )
            found["detectedLanguage"] = detected
            source = detected["language"]
        direction = languages.find(languages.check(source), target)
        content = fields.file
        glossary = await fields.glossary(parts.settings.limits)
        if direction is not None:
            glossary = await fit_given(parts, glossary, direction)
            is_lines = upload.form == "text"
            align = None if is_lines else ("auto", None, None)
            task = task_of(direction, {}, align, is_plain=glossary is None)
            if is_lines:
                document = await _translate_lines(parts, task, upload.text, glossary)
                content = document.text.encode()
            else:
                (document,) = await translate_documents(
                    parts, task, [upload.text], upload.form, keeps_faulty=True, glossary=glossary
                )
                content = upload.content(document.text)
            found |= as_answer(document.unsure)
            if glossary is not None:
                found["glossary"] = count_terms(document.terms)
        key = store.add(upload.name_in(target), content, upload.media_type)
        address = f"{request.scope[BASE]}/download_file/{quote(key)}"
        return reply({"translatedFileUrl": address, **found})

    async def download_file(request: Request) -> Response:
        """Fetch a translated file at the address that was given for it."""
        file = store.get(request.path_params["name"])
        # Never shown by a browser: a translated page must not run in this server's origin.
        headers = {
            "Content-Disposition": f'attachment; filename="{_ascii(file.name)}"; '
            f"filename*=UTF-8''{quote(file.name)}",
            "Content-Security-Policy": "sandbox",
            **NOT_KEPT,
        }
        return Response(file.content, headers=headers, media_type=file.media_type)

    return [
        libre_work(
            "/translate_file",
            translate_a_file,
            form=schemas.FILE,
            gives=schemas.FileAnswer,
            name="libre_translate_file",
        ),
        # Open, because the name of a file cannot be guessed and clients fetch it without a key.
        libre_fact(
            "/download_file/{name}",
            download_file,
            refusals=(404, *DOOR),
            name="libre_download_file",
        ),
    ]


async def _text_in(parts: Parts, upload: Upload) -> str:
    """Return what a file says, without what is copied."""
    if upload.form == "text":
        return upload.text[:MOST_JUDGED]
    try:
        found = await parts.documents.read(upload.text, upload.form, ("", ""))
    except DataError as error:
        raise Problem(400, f"Invalid request: {error}") from None
    return "\n".join(one[0] for one in found)[:MOST_JUDGED]


async def _translate_lines(
    parts: Parts, task: Translate, text: str, glossary: Glossary | None
) -> WrittenDocument:
    """Translate the lines of a text; one that cannot be translated stays, with its reason."""
    lines = text.split("\n")
    rows: list[tuple[str, Translation]] = []
    starts = range(0, len(lines), LINES_OF_A_PART)
    cut = [lines[start : start + LINES_OF_A_PART] for start in starts]
    # Many lines are one text: a text for each of thousands would hold up the event loop.
    found = await parts.translate(task, with_terms(["\n".join(one) for one in cut], glossary))
    for own, answer in zip(cut, found, strict=True):
        if answer.error is None:
            rows += [(line, answer) for line in answer.text.split("\n")]
            continue
        each = await parts.translate(task, with_terms(own, glossary))
        rows += [
            (line if one.error is not None else one.text, one)
            for line, one in zip(own, each, strict=True)
        ]
    unsure: list[tuple[int, str, str]] = []
    terms: list[UsedTerm] = []
    for number, (line, (written, one)) in enumerate(zip(lines, rows, strict=True), start=1):
        used = find_used(glossary, line, "" if one.error is not None else written, one.terms)
        if reason := one.error or next(iter(doubts_about(used)), ""):
            unsure.append((number, f"line {number}", reason))
        terms += used
    return WrittenDocument("\n".join(written for written, _ in rows), unsure, tuple(terms))


def _ascii(name: str) -> str:
    return name.encode("ascii", "replace").decode().replace("?", "_").replace('"', "_")
