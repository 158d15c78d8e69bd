"""The routes that LibreTranslate's clients use, with its names, codes and errors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from pellucid.config import DecodingConfig
from pellucid.serve.answers.bodies import StatusAnswer
from pellucid.serve.answers.responses import Problem, reply
from pellucid.serve.compat import schemas
from pellucid.serve.compat.file_routes import file_operations
from pellucid.serve.compat.language_pairs import Detector, Languages, detect_each, display_name
from pellucid.serve.compat.schemas import Fields, read_fields
from pellucid.serve.compat.translated_texts import Asked, TranslatedText, translate_in
from pellucid.serve.compat.uploads import READERS, Format
from pellucid.serve.operations import Operation, libre_fact, libre_keyed, libre_work
from pellucid.serve.parts import Parts
from pellucid.serve.queue.tasks import estimate_tokens
from pellucid.serve.settings import Limits

# What LibreTranslate does not have; its own alternatives is a number.
_OPTIONS = set(DecodingConfig.model_fields) - {"alternatives"}


def compat_operations(parts: Parts) -> list[Operation]:
    """Make LibreTranslate's routes.

    Args:
        parts: of the server.
    """
    languages = Languages(parts.models)
    return [
        *_translation(parts, languages),
        *_facts(parts, languages),
        *file_operations(parts, languages),
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
        libre_fact(
            "/languages",
            list_languages,
            gives=list[schemas.LanguageAnswer],
            name="libre_languages",
        ),
        libre_fact(
            "/frontend/settings", frontend_settings, gives=dict[str, Any], name="libre_settings"
        ),
        libre_fact("/health", health, gives=StatusAnswer, name="libre_health"),
        libre_keyed(
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
            detected = await detect_each(parts.scheduler, to_sources, texts, is_html=form == "html")
        else:
            detected = [{"confidence": 100.0, "language": languages.check(source)}] * len(texts)
        sources = [one["language"] for one in detected]
        glossary = await fields.glossary(limits)
        asked = Asked(form, count, glossary)
        found = await _translate(parts, languages, sources, target, texts, asked)
        content: dict[str, list[Any]] = {"translatedText": [one.text for one in found]}
        if source == "auto":
            content["detectedLanguage"] = detected
        if count:
            content["alternatives"] = [one.others for one in found]
        if glossary is not None:
            content["terms"] = [[term.to_dict() for term in one.terms] for one in found]
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
        libre_work(
            "/translate",
            translate,
            form=schemas.TRANSLATE,
            gives=schemas.TranslatedAnswer,
            name="libre_translate",
        ),
        libre_work(
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
    asked: Asked,
) -> list[TranslatedText]:
    """Translate texts whose languages may differ, each language's together."""
    directions = {source: languages.find(source, target) for source in dict.fromkeys(sources)}
    found: dict[int, TranslatedText] = {}
    for source, direction in directions.items():
        places = [place for place, one in enumerate(sources) if one == source]
        own = [texts[place] for place in places]
        if direction is None:
            translated = [*map(TranslatedText, own)]
        else:
            translated = await translate_in(parts, direction, own, asked)
        found.update(zip(places, translated, strict=True))
    return [found[place] for place in range(len(texts))]


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
