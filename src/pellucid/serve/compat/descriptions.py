"""The OpenAPI description of LibreTranslate's routes, whose bodies come in several forms."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pellucid.serve.answers import Answer, ProblemAnswer, StatusAnswer
from pellucid.serve.responses import PROBLEMS


class LanguageAnswer(Answer):
    """A language."""

    code: str
    name: str
    targets: list[str]


class Detection(Answer):
    """A guess at a language."""

    confidence: float = Field(ge=0, le=100)
    language: str


class TranslatedAnswer(Answer):
    """A translation, or several."""

    translatedText: str | list[str]
    detectedLanguage: Detection | list[Detection] | None = None
    alternatives: list[str] | list[list[str]] | None = None


class FileAnswer(Answer):
    """The place of a translated file."""

    translatedFileUrl: str


def _refusals(*more: int) -> dict[int | str, dict[str, Any]]:
    return {
        status: {"model": ProblemAnswer, "description": PROBLEMS[status]}
        for status in sorted({400, 403, 408, 413, 421, *more})
    }


def _body(properties: dict[str, Any], required: list[str], example: dict[str, Any]) -> Any:
    """Describe a body that may be JSON or a form."""
    key = {"type": "string", "description": "A key, if the server needs one."}
    schema = {
        "type": "object",
        "properties": {**properties, "api_key": key},
        "required": required,
        "example": example,
    }
    kinds = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    return {
        "requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}
    }


_TEXT = {"type": "string", "minLength": 1}
_LANGUAGE = {"type": "string", "minLength": 1, "example": "en"}
_WORK = (429, 500, 503, 504)

_TRANSLATE_BODY = _body(
    {
        "q": {"oneOf": [_TEXT, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
        "source": {**_LANGUAGE, "description": "Source language, or auto."},
        "target": {**_LANGUAGE, "example": "fr"},
        "format": {"type": "string", "enum": ["text", "html"]},
        "alternatives": {"type": "integer", "minimum": 0},
    },
    ["q", "source", "target"],
    {"q": "The dog ate it.", "source": "en", "target": "fr"},
)
_FILE_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "source": _LANGUAGE,
                        "target": {**_LANGUAGE, "example": "fr"},
                        "api_key": {"type": "string"},
                    },
                    "required": ["file", "source", "target"],
                    "example": {"file": "The dog ate it.", "source": "en", "target": "fr"},
                }
            }
        },
    }
}
_SUGGEST_BODY = _body(
    {"q": _TEXT, "s": _TEXT, "source": _LANGUAGE, "target": _LANGUAGE},
    [],
    {"q": "The dog ate it.", "s": "Le chien l'a mangé.", "source": "en", "target": "fr"},
)

_TAGS = {"tags": ["LibreTranslate"]}
LANGUAGES: dict[str, Any] = {
    **_TAGS, "response_model": list[LanguageAnswer], "responses": _refusals()
}  # fmt: skip
SETTINGS: dict[str, Any] = {**_TAGS, "response_model": dict[str, Any], "responses": _refusals()}
HEALTH: dict[str, Any] = {**_TAGS, "response_model": StatusAnswer, "responses": _refusals()}
TRANSLATE: dict[str, Any] = {
    **_TAGS,
    "response_model": TranslatedAnswer,
    "response_model_exclude_none": True,
    "responses": _refusals(*_WORK),
    "openapi_extra": _TRANSLATE_BODY,
}
DETECT: dict[str, Any] = {
    **_TAGS,
    "response_model": list[Detection],
    "responses": _refusals(*_WORK),
    "openapi_extra": _body({"q": _TEXT}, ["q"], {"q": "The dog ate it."}),
}
SUGGEST: dict[str, Any] = {
    **_TAGS,
    "response_model": dict[str, bool],
    "responses": _refusals(),
    "openapi_extra": _SUGGEST_BODY,
}
TRANSLATE_FILE: dict[str, Any] = {
    **_TAGS,
    "response_model": FileAnswer,
    "responses": _refusals(*_WORK),
    "openapi_extra": _FILE_BODY,
}
DOWNLOAD: dict[str, Any] = {
    **_TAGS,
    "responses": {
        **_refusals(),
        404: {"model": ProblemAnswer, "description": "There is no such file."},
    },
}
