"""The bodies of LibreTranslate's routes: answers, the description of requests, and their fields.

Clients differ: some send JSON, some forms, ``deep-translator`` puts everything into the query of a
POST without a body. All of them come out as one dictionary.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from pydantic import Field
from starlette.requests import Request

from pellucid.serve.answers.bodies import AnswerBody, TermAnswer, TermCount, UnsureText
from pellucid.serve.answers.given_glossaries import Term, read_match, read_term_file, read_terms
from pellucid.serve.answers.responses import Problem
from pellucid.serve.queue.large_bodies import SMALL_BYTES, check_keys, in_turn
from pellucid.serve.settings import Limits, Settings, key_of
from pellucid.text.word_forms import Match

if TYPE_CHECKING:
    from pellucid.decode.constraints.glossary import Glossary

MOST_FIELDS = 1000
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class LanguageAnswer(AnswerBody):
    """A language, and those that it can be translated into."""

    code: str
    name: str
    targets: list[str]


class Detection(AnswerBody):
    """A language that a text may be in, with a confidence in percent."""

    confidence: float = Field(ge=0, le=100)
    language: str


class TranslatedAnswer(AnswerBody):
    """A translation, or several."""

    translatedText: str | list[str]
    detectedLanguage: Detection | list[Detection] | None = None
    alternatives: list[str] | list[list[str]] | None = None
    terms: list[TermAnswer] | list[list[TermAnswer]] | None = Field(
        None, description="Of a glossary, the terms in each text."
    )


class FileAnswer(AnswerBody):
    """The place of a translated file, and what to look at in it."""

    translatedFileUrl: str
    detectedLanguage: Detection | None = None
    unsure: list[UnsureText] | None = None
    glossary: list[TermCount] | None = Field(None, description="What became of each term.")


def _forms(properties: dict[str, Any], required: list[str], example: dict[str, Any]) -> Any:
    """Describe a body that may be JSON or a form."""
    key = {"type": "string", "description": "A key, if the server needs one."}
    schema = {
        "type": "object",
        "properties": {**properties, "api_key": key},
        "required": required,
        "example": example,
    }
    return {kind: {"schema": schema} for kind in ("application/json", *FORMS)}


_TERMS = {
    "type": "array",
    "items": Term.model_json_schema(),
    "description": "Terms that the translation should have, with their forms as for /v1/translate.",
}
_GLOSSARY = {
    "oneOf": [{"type": "string", "format": "binary"}, _TERMS],
    "description": "A file of terms (.tbx, .csv, or with tabs), or the JSON of a list of them.",
}
_MATCH = {
    "type": "string",
    "enum": [*get_args(Match)],
    "description": "The forms in which terms are found; auto by default.",
}
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
        "glossary": _TERMS,
        "glossary_match": _MATCH,
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
    "multipart/form-data": {
        "schema": {
            "type": "object",
            "properties": {
                "file": {"type": "string", "format": "binary"},
                "source": {**_LANGUAGE, "description": "Source language, or auto."},
                "target": _TARGET,
                "glossary": _GLOSSARY,
                "glossary_match": _MATCH,
                "api_key": {"type": "string"},
            },
            "required": ["file", "source", "target"],
            "example": {"file": "The dog ate it.", "source": "en", "target": "fr"},
        }
    }
}


@dataclass(frozen=True)
class Fields:
    """What a request says.

    Attributes:
        values: by name; lists for fields that are given several times.
        file: the content of a file, if there is one.
        file_name: its name.
        term_file: the name and the content of a glossary.
    """

    values: dict[str, Any]
    file: bytes | None = None
    file_name: str = ""
    term_file: tuple[str, bytes] | None = None

    def text(self, name: str) -> str:
        """Take a field that must be there.

        Raises:
            Problem: 400, it is missing or not a text.
        """
        value = self.values.get(name)
        if not value:
            raise Problem(400, f"Invalid request: missing {name} parameter")
        if not isinstance(value, str):
            raise Problem(400, f"Invalid request: {name} must be a text")
        return _sound(value)

    def texts(self, name: str) -> tuple[list[str], bool]:
        """Take a text or a list of texts; tell whether it is a list.

        Raises:
            Problem: 400, it is missing or something else.
        """
        value = self.values.get(name)
        if not value:
            raise Problem(400, f"Invalid request: missing {name} parameter")
        given = value if isinstance(value, list) else [value]
        if not all(isinstance(one, str) for one in given):
            raise Problem(400, f"Invalid request: {name} must be a text or a list of texts")
        return [_sound(one) for one in given], isinstance(value, list)

    async def glossary(self, limits: Limits) -> Glossary | None:
        """Take the glossary, which may be missing.

        Raises:
            Problem: 400 or 422, it cannot be read.
        """
        match = read_match(self.values.get("glossary_match"))
        # A browser sends a file without a name where none was chosen.
        if self.term_file is not None and self.term_file[0]:
            # Thousands of terms would hold up the event loop.
            return await asyncio.to_thread(read_term_file, *self.term_file, match)
        return read_terms(self.values.get("glossary"), limits.phrases, match)

    def number(self, name: str, most: int) -> int:
        """Take a number that may be missing, which counts as 0.

        Raises:
            Problem: 400, it is not a number, or above the limit.
        """
        value = self.values.get(name)
        if value in (None, ""):
            return 0
        is_written = isinstance(value, str) and value.isascii() and value.isdigit()
        if isinstance(value, bool) or not (isinstance(value, int) or is_written):
            raise Problem(400, f"Invalid request: {name} must be a number")
        # Python refuses to read thousands of digits, with an error that is not ours.
        number = int(value) if len(str(value)) < 10 else most + 1
        if not 0 <= number <= most:
            raise Problem(400, f"Invalid request: {name} exceeds limit ({most})")
        return number


async def read_fields(request: Request, settings: Settings) -> Fields:
    """Read all fields of a request, and refuse it without the right key.

    Args:
        request: the request.
        settings: keys, and whether a query may hold one.

    Raises:
        Problem: 400 if the body or the query cannot be read, 403 if the key is missing or wrong.
    """
    if request.scope["query_string"].count(b"&") > MOST_FIELDS:
        raise Problem(400, "Invalid request: too many fields")
    query = request.query_params.multi_items()
    fields = await _read(request, query, settings)
    keys = settings.keys
    if keys is None:
        return fields
    in_query = dict(query).get("api_key")
    in_body = fields.values.get("api_key")
    key = key_of(request.headers.get("authorization"))
    # LibreTranslate's clients put it into the body; in a query proxies would log it.
    key = key or (in_body if isinstance(in_body, str) else None)
    key = key or (in_query if settings.keys_in_query else None)
    if not key:
        hint = "" if in_query is None else ". Keys in a query string are not accepted here"
        raise Problem(403, f"Please contact the server operator to get an API key{hint}")
    if not keys.accept(key):
        raise Problem(403, "Invalid API key")
    return fields


async def _read(request: Request, query: list[tuple[str, str]], settings: Settings) -> Fields:
    values: dict[str, Any] = {}
    _add(values, [(name, value) for name, value in query if name != "api_key"])
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in FORMS:
        # A parser in Python: in a thread others run meanwhile.
        async with in_turn(len(body)):
            if len(body) > SMALL_BYTES:
                return await asyncio.to_thread(asyncio.run, _read_form(request, values, body))
            return await _read_form(request, values, body)
    if not body:
        return Fields(values)
    async with in_turn(len(body)):
        try:
            check_keys(body, settings.limits)
            read = json.loads(body)
        except (ValueError, RecursionError):
            raise Problem(400, "Invalid JSON format") from None
    if not isinstance(read, dict):
        raise Problem(400, "Invalid JSON format")
    return Fields(values | read)


async def _read_form(request: Request, values: dict[str, Any], body: bytes) -> Fields:
    from starlette.datastructures import UploadFile
    from starlette.formparsers import MultiPartException

    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # Of fields next to each other Starlette counts only those that are not empty.
    if kind == FORMS[0] and body.count(b"&") > MOST_FIELDS:
        raise Problem(400, "Invalid form format")
    try:
        # The body has been bounded already; Starlette's own limit is a megabyte a part.
        form = await request.form(max_files=2, max_fields=MOST_FIELDS, max_part_size=len(body) + 1)
    except (MultiPartException, ValueError, AssertionError):
        raise Problem(400, "Invalid form format") from None
    own: dict[str, Any] = {}
    content = None
    file_name = ""
    term_file = None
    for name, value in form.multi_items():
        if isinstance(value, str):
            # Forms break lines with CR and LF; texts are counted and translated without the CR.
            text = value.replace("\r\n", "\n") if name == "q" else value
            _add(own, [(name, text)])
    for name, value in form.multi_items():
        if not isinstance(value, UploadFile):
            continue
        if name == "glossary":
            term_file = value.filename or "", await value.read()
        else:
            content = await value.read()
            file_name = value.filename or ""
    await form.close()
    return Fields(values | own, content, file_name, term_file)


def _add(values: dict[str, Any], pairs: list[tuple[str, str]]) -> None:
    """Collect fields; one that is given several times becomes a list."""
    for name, value in pairs:
        if name not in values:
            values[name] = value
        elif isinstance(values[name], list):
            values[name].append(value)
        else:
            values[name] = [values[name], value]


def _sound(text: str) -> str:
    """Replace halves of characters, which JSON can spell and nothing can read."""
    return text.encode("utf-8", "replace").decode("utf-8")
