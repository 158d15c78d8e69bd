"""The routes that LibreTranslate's clients use, with its names, codes and errors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from pellucid.config import DecodingConfig
from pellucid.documents.markup.reading import visible_text
from pellucid.errors import DataError
from pellucid.machine.turns import give_way
from pellucid.serve.answers.bodies import StatusAnswer
from pellucid.serve.answers.responses import NOT_KEPT, Problem, reply
from pellucid.serve.compat import schemas
from pellucid.serve.compat.language_pairs import Detector, LanguagePair, Languages, display_name
from pellucid.serve.compat.schemas import Fields, read_fields
from pellucid.serve.compat.uploads import (
    LINES_OF_A_PART,
    READERS,
    FileStore,
    Format,
    Upload,
    read_upload,
)
from pellucid.serve.documents import as_answer, translate_documents
from pellucid.serve.operations import BASE, DOOR, WORK, Need, Operation
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import Text, Translate, estimate_tokens
from pellucid.serve.settings import Limits

if TYPE_CHECKING:
    from pellucid.translate.results import Translation

# The translation of a text, and other translations of it.
WithOthers = tuple[str, list[str]]

# Characters up to which a text's language is judged by all texts of the request.
SHORT = 40

# Characters of a file by which its language is judged.
MOST_JUDGED = 5000

# What LibreTranslate does not have; its own alternatives is a number.
_OPTIONS = set(DecodingConfig.model_fields) - {"alternatives"}

_fact = partial(Operation, "GET", need=Need.NOTHING, refusals=DOOR, tag="LibreTranslate")
_keyed = partial(Operation, "POST", need=Need.KEY_IN_BODY, refusals=DOOR, tag="LibreTranslate")
_work = partial(_keyed, is_work=True, refusals=(*DOOR, *WORK))


def compat_operations(parts: Parts) -> list[Operation]:
    """Make LibreTranslate's routes.

    Args:
        parts: of the server.
    """
    languages = Languages(parts.models)
    return [
        *_translation(parts, languages),
        *_facts(parts, languages),
        *_files(parts, languages),
    ]


def _facts(parts: Parts, languages: Languages) -> list[Operation]:
    limits = parts.settings.limits
    has_keys = parts.settings.keys is not None
    source, target = languages.default
    listed = languages.list_all()
    settings = {
        "charLimit": limits.characters,
        "frontendTimeout": 500,
        "apiKeys": has_keys,
        "keyRequired": has_keys,
        "suggestions": False,
        "filesTranslation": True,
        "supportedFilesFormat": list(READERS),
        "language": {
            "source": {"code": source, "name": display_name(source)},
            "target": {"code": target, "name": display_name(target)},
        },
    }

    async def list_languages(_: Request) -> Response:
        """List the languages, each with those that it can be translated into."""
        return reply(listed)

    async def frontend_settings(_: Request) -> Response:
        """List the limits and the formats of files that the server takes."""
        return reply(settings)

    async def health(_: Request) -> Response:
        """Answer if the process is alive, where LibreTranslate does."""
        return reply({"status": "ok"})

    async def suggest(request: Request) -> Response:
        """Refuse a suggestion: this server keeps no texts."""
        await read_fields(request, parts.settings)
        raise Problem(403, "Suggestions are disabled on this server.")

    return [
        _fact(
            "/languages",
            list_languages,
            gives=list[schemas.LanguageAnswer],
            name="libre_languages",
        ),
        _fact("/frontend/settings", frontend_settings, gives=dict[str, Any], name="libre_settings"),
        _fact("/health", health, gives=StatusAnswer, name="libre_health"),
        _keyed(
            "/suggest", suggest, form=schemas.SUGGEST, gives=dict[str, bool], name="libre_suggest"
        ),
    ]


def _translation(parts: Parts, languages: Languages) -> list[Operation]:
    limits = parts.settings.limits
    detector = Detector(languages.codes)
    to_sources = Detector(languages.sources)

    async def translate(request: Request) -> Response:
        """Translate a text, or a list of texts."""
        fields = await read_fields(request, parts.settings)
        for name in _OPTIONS & fields.values.keys():
            raise Problem(400, f"Invalid request: {name} is an option of /v1/translate")
        texts, is_list = fields.texts("q")
        source = fields.text("source")
        target = fields.text("target")
        _check_sizes(texts, limits, is_list=is_list)
        form = _form_of(fields)
        count = fields.number("alternatives", min(limits.count, limits.beam) - 1)
        target = languages.check(target)
        if source == "auto":
            detected = await _detect(parts, to_sources, texts, form)
        else:
            detected = [{"confidence": 100.0, "language": languages.check(source)}] * len(texts)
        sources = [one["language"] for one in detected]
        found = await _translate(parts, languages, sources, target, texts, form, count)
        content: dict[str, list[Any]] = {"translatedText": [first for first, _ in found]}
        if source == "auto":
            content["detectedLanguage"] = detected
        if count:
            content["alternatives"] = [others for _, others in found]
        if not is_list:
            return reply(
                {name: one for name, (one,) in content.items()}, most_bytes=limits.response_bytes
            )
        return reply(content, most_bytes=limits.response_bytes)

    async def detect(request: Request) -> Response:
        """Name the language of a text."""
        fields = await read_fields(request, parts.settings)
        (text, *more), is_list = fields.texts("q")
        _check_sizes([text, *more], limits, is_list=is_list)
        whole = " ".join([text, *more])
        cost = estimate_tokens(whole)
        await detector.prepare()
        return reply(await parts.scheduler.call(partial(detector.detect, whole), cost=cost))

    return [
        _work(
            "/translate",
            translate,
            form=schemas.TRANSLATE,
            gives=schemas.TranslatedAnswer,
            name="libre_translate",
        ),
        _work(
            "/detect",
            detect,
            form=schemas.DETECT,
            gives=list[schemas.Detection],
            name="libre_detect",
        ),
    ]


async def _translate(
    parts: Parts,
    languages: Languages,
    sources: Sequence[str],
    target: str,
    texts: Sequence[str],
    form: Format,
    count: int,
) -> list[WithOthers]:
    """Translate texts whose languages may differ, each language's together."""
    directions = {source: languages.find(source, target) for source in dict.fromkeys(sources)}
    found: dict[int, WithOthers] = {}
    for source, direction in directions.items():
        places = [place for place, one in enumerate(sources) if one == source]
        own = [texts[place] for place in places]
        translated = await _translate_with_others(parts, direction, own, form, count)
        found.update(zip(places, translated, strict=True))
    return [found[place] for place in range(len(texts))]


async def _translate_all(
    parts: Parts, direction: LanguagePair | None, texts: Sequence[str], form: str
) -> list[str]:
    """Translate texts.

    Args:
        parts: of the server.
        direction: the model and its target; None leaves the texts as they are.
        texts: the texts.
        form: ``text``, or the name of a format of documents, whose tags are kept.

    Raises:
        Problem: 400, a text cannot be translated.
    """
    if direction is None:
        return list(texts)
    if form != "text":
        task = _task(direction, {}, align=("auto", None, None))
        return [one.text for one in await translate_documents(parts, task, texts, form)]
    return [
        _text_of(one) for one in await parts.translate(_task(direction, {}), [*map(Text, texts)])
    ]


async def _translate_with_others(
    parts: Parts, direction: LanguagePair | None, texts: Sequence[str], form: Format, count: int
) -> list[WithOthers]:
    """Translate texts, and give other translations of each.

    The first translations are those without alternatives, which a beam finds in addition.

    Args:
        parts: of the server.
        direction: as for `_translate_all`.
        texts: the texts.
        form: alternatives of ``html`` have no tags, so there are none.
        count: the most alternatives of each text.
    """
    first = await _translate_all(parts, direction, texts, form)
    if direction is None or form == "html" or not count:
        return [(best, []) for best in first]
    # One more than asked for, since the first translation may be among them.
    wide = {"beam": count + 1, "n_best": count + 1}
    others = await parts.translate(_task(direction, wide), [*map(Text, texts)])
    found = []
    for best, other in zip(first, others, strict=True):
        distinct = dict.fromkeys(one.text for one in other.hypotheses)
        distinct.pop(best, None)
        found.append((best, list(distinct)[:count]))
    return found


def _task(
    direction: LanguagePair, options: dict[str, Any], align: tuple[Any, ...] | None = None
) -> Translate:
    chosen = direction.model.decide(options, is_plain=True)
    # Clients show a word that the model does not know rather than <unk>.
    treatment: tuple[tuple[str, Any], ...] = (("unknown", "source-word"),)
    if direction.to is not None:
        treatment += (("to", direction.to),)
    return Translate(direction.model, chosen, treatment, align)


def _text_of(translation: Translation) -> str:
    if translation.error is not None:
        raise Problem(400, f"Cannot translate text: {translation.error}")
    return translation.text


async def _detect(
    parts: Parts, detector: Detector, texts: Sequence[str], form: Format
) -> list[dict[str, Any]]:
    """Find the language of each text; short ones are judged by all texts together."""

    def detect() -> list[dict[str, Any]]:
        shown = []
        for text in texts:
            give_way()  # A page of 20,000 characters may take 50 ms.
            shown.append(visible_text(text) if form == "html" else text)
        # A word or two says little about its language.
        of_all = detector.detect(" ".join(shown))
        return [
            (detector.detect(one) if len(one) > SHORT and len(shown) > 1 else of_all)[0]
            for one in shown
        ]

    cost = sum(map(estimate_tokens, texts))
    await detector.prepare()
    found: list[dict[str, Any]] = await parts.scheduler.call(detect, cost=cost)
    return found


def _form_of(fields: Fields) -> Format:
    form = fields.values.get("format") or "text"
    if form == "html":
        return "html"
    if form != "text":
        raise Problem(400, f"{str(form)[:40]} format is not supported")
    return "text"


def _check_sizes(texts: Sequence[str], limits: Limits, *, is_list: bool) -> None:
    sizes = [(len(texts), limits.texts)] if is_list else []
    sizes += [(len(text), limits.characters) for text in texts]
    for size, limit in sizes:
        if size > limit:
            raise Problem(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")


def _files(parts: Parts, languages: Languages) -> list[Operation]:
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
            (detected,) = await _detect(parts, to_sources, [await _text_in(parts, upload)], "text")
            found["detectedLanguage"] = detected
            source = detected["language"]
        direction = languages.find(languages.check(source), target)
        content = fields.file
        unsure: Sequence[tuple[int, str, str]] = ()
        if direction is not None and upload.form == "text":
            content, unsure = await _translate_lines(parts, _task(direction, {}), upload.text)
        elif direction is not None:
            task = _task(direction, {}, align=("auto", None, None))
            (document,) = await translate_documents(
                parts, task, [upload.text], upload.form, keeps_faulty=True
            )
            content = upload.content(document.text)
            unsure = document.unsure
        found |= as_answer(unsure)
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
        _work(
            "/translate_file",
            translate_a_file,
            form=schemas.FILE,
            gives=schemas.FileAnswer,
            name="libre_translate_file",
        ),
        # Open, because the name of a file cannot be guessed and clients fetch it without a key.
        _fact(
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
    parts: Parts, task: Translate, text: str
) -> tuple[bytes, Sequence[tuple[int, str, str]]]:
    """Translate the lines of a text; one that cannot be translated stays, with its reason."""
    lines = text.split("\n")
    answers: list[str] = []
    unsure: list[tuple[int, str, str]] = []
    starts = range(0, len(lines), LINES_OF_A_PART)
    cut = [lines[start : start + LINES_OF_A_PART] for start in starts]
    # Many lines are one text: a text for each of thousands would hold up the event loop.
    found = await parts.translate(task, [Text("\n".join(one)) for one in cut])
    for start, own, answer in zip(starts, cut, found, strict=True):
        if answer.error is None:
            answers.append(answer.text)
            continue
        for number, (line, one) in enumerate(
            zip(own, await parts.translate(task, [*map(Text, own)]), strict=True), start=start + 1
        ):
            answers.append(line if one.error is not None else one.text)
            if one.error is not None:
                unsure.append((number, f"line {number}", one.error))
    return "\n".join(answers).encode(), unsure


def _ascii(name: str) -> str:
    return name.encode("ascii", "replace").decode().replace("?", "_").replace('"', "_")
