"""The bodies of LibreTranslate's routes, which come in several forms, and their answers."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pellucid.serve.answers.bodies import Answer


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


def _forms(properties: dict[str, Any], required: list[str], example: dict[str, Any]) -> Any:
    """Describe a body that may be JSON or a form."""
    key = {"type": "string", "description": "A key, if the server needs one."}
    schema = {
        "type": "object",
        "properties": {**properties, "api_key": key},
        "required": required,
        "example": example,
    }
    kinds = ("application/json", "application/x-www-form-urlencoded", _PARTS)
    return {kind: {"schema": schema} for kind in kinds}


_PARTS = "multipart/form-data"
_TEXT = {"type": "string", "minLength": 1}
_LANGUAGE = {"type": "string", "minLength": 1, "example": "en"}
_TARGET = {**_LANGUAGE, "example": "fr"}

TRANSLATE = _forms(
    {
        "q": {"oneOf": [_TEXT, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
        "source": {**_LANGUAGE, "description": "Source language, or auto."},
        "target": _TARGET,
        "format": {"type": "string", "enum": ["text", "html"]},
        "alternatives": {"type": "integer", "minimum": 0},
    },
    ["q", "source", "target"],
    {"q": "The dog ate it.", "source": "en", "target": "fr"},
)
DETECT = _forms({"q": _TEXT}, ["q"], {"q": "The dog ate it."})
SUGGEST = _forms(
    {"q": _TEXT, "s": _TEXT, "source": _LANGUAGE, "target": _LANGUAGE},
    [],
    {"q": "The dog ate it.", "s": "Le chien l'a mangé.", "source": "en", "target": "fr"},
)
FILE = {
    _PARTS: {
        "schema": {
            "type": "object",
            "properties": {
                "file": {"type": "string", "format": "binary"},
                "source": _LANGUAGE,
                "target": _TARGET,
                "api_key": {"type": "string"},
            },
            "required": ["file", "source", "target"],
            "example": {"file": "The dog ate it.", "source": "en", "target": "fr"},
        }
    }
}
